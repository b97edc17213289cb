"""TensorFlow's ``Timeline`` class: its names, its arguments, its text to the byte."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from collector.timeline.compatible import AllocationMaximum, CompatibleConverter
from collector.timeline.wire import parse_step


class ChromeTrace(Protocol):
    """A trace that can be written out."""

    def format_to_string(self, pretty: bool = False) -> str:
        """The trace as JSON text: indented by 4 if ``pretty``, otherwise compact."""
        ...


class StepStatsAnalysis(NamedTuple):
    """What ``Timeline.analyze_step_stats`` returns."""

    chrome_trace: ChromeTrace
    allocator_maximums: dict[str, AllocationMaximum]
    """By allocator name; empty unless memory was shown."""


class Timeline:
    """Renders one step as TensorFlow 2.21 does, byte for byte.

    Two things differ from TensorFlow's class: the caller's StepStats is never changed (TensorFlow writes lane numbers
    into ``thread_id``), and more is accepted.

    Args:
        step_stats: a ``StepStats`` or ``RunMetadata``, of this package, of TensorFlow or of anybody with the same
            fields, or the wire bytes of one.
        graph: not used, as in TensorFlow.

    Raises:
        InvalidFileError: bytes that are neither message.
    """

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        self._step_stats = step_stats
        self._converter = CompatibleConverter()

    def generate_chrome_trace_format(
        self, show_dataflow: bool = True, show_memory: bool = False, op_time: str = "schedule"
    ) -> str:
        """The trace as JSON text, indented by 4.

        Args:
            show_dataflow: draw an arrow from each tensor's producer to its consumers.
            show_memory: add tensor objects and a counter of bytes per allocator.
            op_time: ``schedule`` leaves ops where the host ran them; ``gpu`` moves them over their kernels; ``all``
                stretches them from the host's start to the last kernel's end.

        Raises:
            ValueError: an ``op_time`` other than ``schedule`` gives an op a duration beyond 64 bits.
        """
        analysis = self.analyze_step_stats(show_dataflow, show_memory, op_time)
        return analysis.chrome_trace.format_to_string(pretty=True)

    def analyze_step_stats(
        self, show_dataflow: bool = True, show_memory: bool = True, op_time: str = "schedule"
    ) -> StepStatsAnalysis:
        """The trace, not yet text, and the moment at which each allocator held the most."""
        step_stats = self._step_stats
        if isinstance(step_stats, (bytes, bytearray, memoryview)):
            step_stats = parse_step(step_stats)
        step_stats = getattr(step_stats, "step_stats", step_stats)
        self._converter.add(step_stats, show_dataflow=show_dataflow, show_memory=show_memory, op_time=op_time)
        return StepStatsAnalysis(_PythonChromeTrace(self._converter), self._converter.maximums)


class _PythonChromeTrace:
    def __init__(self, converter: CompatibleConverter) -> None:
        self._converter = converter

    def format_to_string(self, pretty: bool = False) -> str:
        return self._converter.text(pretty)
