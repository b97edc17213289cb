"""Counters that a framework states about itself, such as the memory of its allocator, added to a trace when it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from collector.recording.capture import Capture
    from collector.recording.counter_rows import SampledSeries

    State = Callable[[], Iterable[SampledSeries]]

_statements: list[State] = []


def state_counters(state: State) -> Callable[[], None]:
    """Call ``state`` at the end of each trace for its counters; returns the function that ends this."""
    _statements.append(state)

    def end() -> None:
        if state in _statements:
            _statements.remove(state)

    return end


def add_stated_counters(capture: Capture) -> None:
    """Add the counters within the step to a capture. A framework that fails is a loss of the trace, and no error."""
    for state in list(_statements):
        try:
            from collector.recording.counter_rows import add_counters

            add_counters(capture, state())
        except Exception as error:  # of the framework, of any kind
            trouble = f"{type(error).__name__}: {error}"
            before = capture["environment"].get("counter_trouble")
            capture["environment"]["counter_trouble"] = f"{before}; {trouble}" if before else trouble
            capture["counters"]["counters_not_sampled"] = 1
