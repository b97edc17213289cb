"""Facts about a step that only its process knows and that the source does not record: names, labels, counters."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from collector.recording.run_label import RunLabel
from collector.runtime.git_revision import git_revision
from collector.runtime.process_threads import thread_names
from collector.tracing.nvtx import add_facts
from collector.tracing.stated_counters import StatedCounters

if TYPE_CHECKING:
    from collector.options import TraceOptions
    from collector.recording.capture import Capture
    from collector.sources.native import NativeSource
    from collector.tracing.annotate import Ended
    from collector.tracing.counter_sampler import CounterSampler


class FactsAtEnd(NamedTuple):
    """The facts of a step. Both methods return one line about what the NVTX handler could not see, for a warning."""

    options: TraceOptions
    annotations: Ended | None
    """The annotations of the step; None: the recording that contains the step has them."""
    sampler: CounterSampler | None
    at_exit: bool
    """Whether the exit of the interpreter ends the step."""

    def add_to(self, capture: Capture) -> str:
        """Add the facts to a capture that has its rows in memory."""
        capture["environment"].setdefault("thread_names", thread_names())
        capture["environment"].update(self._label())
        StatedCounters.at_end(self.sampler).add_to(capture)
        unseen = add_facts(capture, self.options.nvtx)
        if self.annotations is not None:
            capture.setdefault("details", tuple(self.annotations.details))
        capture["counters"].update(self._counters())
        return unseen

    def write_to_journal(self, source: NativeSource) -> str:
        """Write the facts into the journal of ``source``, which is about to stop."""
        facts = cast(
            "Capture",
            {
                "environment": {"source": source.name, "thread_names": thread_names(), **self._label()},
                "counters": self._counters(),
                "tables": {},
            },
        )
        unseen = add_facts(facts, self.options.nvtx)
        environment = facts["environment"]
        texts, not_sampled = StatedCounters.at_end(self.sampler).facts()
        texts |= {f"thread.{number}": name for number, name in environment["thread_names"].items()}
        texts |= {f"environment.{name}": text for name, text in environment.items() if isinstance(text, str)}
        source.note_facts(texts, facts["counters"] | not_sampled)
        return unseen

    def _label(self) -> dict[str, str]:
        revision = git_revision() if self.options.git_revision else ""
        return dict(RunLabel(self.options.label, revision).as_environment())

    def _counters(self) -> dict[str, int]:
        counters = {} if self.annotations is None else {k: n for k, n in self.annotations.counters.items() if n}
        return counters | ({"open_at_exit": 1} if self.at_exit else {})
