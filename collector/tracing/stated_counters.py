"""Counters of a trace that CUPTI does not record: samples of NVML, and what frameworks state about themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from collector.runtime.signal_handlers import error_of_handler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from collector.recording.capture import Capture
    from collector.recording.counter_rows import SampledSeries
    from collector.tracing.counter_sampler import CounterSampler

    State = Callable[[], Iterable[SampledSeries]]

_statements: list[State] = []


def state_counters(state: State) -> Callable[[], None]:
    """Call ``state`` at the end of each trace for its counters; returns the function that ends this."""
    _statements.append(state)

    def end() -> None:
        if state in _statements:
            _statements.remove(state)

    return end


class StatedCounters(NamedTuple):
    """All counters of a trace that ends."""

    series: list[SampledSeries]
    trouble: str
    """The reasons why there are none, or not all; empty: there are no reasons."""

    @classmethod
    def at_end(cls, sampler: CounterSampler | None = None) -> StatedCounters:
        """End the sampler, and query the frameworks. A framework that fails is a loss of the trace, not an error."""
        series: list[SampledSeries] = [] if sampler is None else [*sampler.stop()]
        troubles = [] if sampler is None else [sampler.trouble]
        for state in list(_statements):
            try:
                series += state()
            except Exception as error:  # of the framework, of any kind
                if error_of_handler(error) is not None:
                    raise
                troubles.append(f"{type(error).__name__}: {error}")
        return cls(series, "; ".join(filter(None, troubles)))

    def facts(self) -> tuple[dict[str, str], dict[str, int]]:
        """Texts and numbers for a journal, from which its reader makes rows."""
        texts: dict[str, str] = {}
        if self.series:
            from collector.recording.counter_texts import counter_texts

            texts = counter_texts(self.series)
        if not self.trouble:
            return texts, {}
        return texts | {"environment.counter_trouble": self.trouble}, {"counters_not_sampled": 1}

    def add_to(self, capture: Capture) -> None:
        """Add the counters within the step to a capture."""
        if self.trouble:
            capture["environment"]["counter_trouble"] = self.trouble
            capture["counters"]["counters_not_sampled"] = 1
        if self.series:
            from collector.recording.counter_rows import add_counters

            add_counters(capture, self.series)
