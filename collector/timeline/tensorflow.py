"""TensorFlow's ``Timeline`` class: the same names, arguments and output."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Protocol

from collector.checked_arguments import plain_text
from collector.errors import InvalidFileError
from collector.protos.types_pb2 import DataType
from collector.runtime.extension import convert_extension
from collector.stepstats.wire import is_run_metadata, parse_step, serialized_step
from collector.timeline.tensorflow_rules import AllocationMaximum, CompatibleConverter


class ChromeTrace(Protocol):
    """A trace that can be written out."""

    def format_to_string(self, pretty: bool = False) -> str:
        """The trace as JSON text: indented by 4 if ``pretty``, otherwise compact."""
        ...


class StepStatsAnalysis(NamedTuple):
    """The result of ``Timeline.analyze_step_stats``."""

    chrome_trace: ChromeTrace
    allocator_maximums: dict[str, AllocationMaximum]
    """By allocator name; empty unless memory was shown."""


@dataclass(frozen=True)
class _Options:
    show_dataflow: bool
    show_memory: bool
    op_time: str


class Timeline:
    """Renders one step exactly as TensorFlow 2.21 does.

    There are two differences from TensorFlow's class: the caller's StepStats is never changed (TensorFlow writes lane
    numbers into ``thread_id``), and more inputs are accepted.

    Args:
        step_stats: a ``StepStats`` or ``RunMetadata`` of this package, of TensorFlow or of any class with the same
            fields, or the wire bytes of one.
        graph: not used, as in TensorFlow.
    """

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        self._step = _Step(step_stats)
        self._earlier_calls: list[_Options] = []

    def generate_chrome_trace_format(
        self, show_dataflow: bool = True, show_memory: bool = False, op_time: str = "schedule"
    ) -> str:
        """The trace as JSON text, indented by 4.

        As in TensorFlow, a further call on the same object returns the events of the earlier calls again.

        Args:
            show_dataflow: draw an arrow from each tensor's producer to its consumers.
            show_memory: add tensor objects and a counter of bytes per allocator.
            op_time: ``schedule`` leaves ops at the host's times; ``gpu`` moves them over their kernels; ``all``
                extends them from the host's start to the last kernel's end.

        Raises:
            TypeError: the step is not a message, or ``op_time`` is not text.
            ValueError: an ``op_time`` other than ``schedule`` gives an op a duration beyond 64 bits.
            collector.InvalidFileError: the bytes are neither message.
        """
        options = _Options(show_dataflow, show_memory, plain_text("op_time", op_time))
        text = None if self._earlier_calls else self._step.native_text(options, pretty=True)
        if text is None:
            text = self._converted(options).text(pretty=True)
        self._earlier_calls.append(options)
        return text

    def analyze_step_stats(
        self, show_dataflow: bool = True, show_memory: bool = True, op_time: str = "schedule"
    ) -> StepStatsAnalysis:
        """The trace before its conversion to text, and the time at which each allocator held the most memory.

        Arguments and errors are those of ``generate_chrome_trace_format``.
        """
        options = _Options(show_dataflow, show_memory, plain_text("op_time", op_time))
        maximums = None if self._earlier_calls else self._step.native_maximums(options)
        if maximums is None:
            converter = self._converted(options)
            analysis = StepStatsAnalysis(_ConvertedTrace(converter), converter.maximums)
        else:
            analysis = StepStatsAnalysis(_NativeTrace(self._step, options), maximums)
        self._earlier_calls.append(options)
        return analysis

    def _converted(self, options: _Options) -> CompatibleConverter:
        return self._step.convert([*self._earlier_calls, options])


@dataclass(frozen=True)
class _Step:
    """The given step, in the form that each converter needs."""

    given: Any

    def native_text(self, options: _Options, *, pretty: bool) -> str | None:
        """The text from the extension; None if only Python can compute it."""
        wire = self._wire()
        if wire is None:
            return None
        data, whole = wire
        try:
            text: str | None = convert_extension.tensorflow_timeline(
                data,
                is_run_metadata=whole,
                show_dataflow=bool(options.show_dataflow),
                show_memory=bool(options.show_memory),
                op_time=options.op_time,
                pretty=pretty,
                data_type_names=_data_type_names(),
            )
        except convert_extension.WireError as error:
            raise _invalid(error, whole) from error
        return text

    def native_maximums(self, options: _Options) -> dict[str, AllocationMaximum] | None:
        """The maximums from the extension; None if only Python can compute them."""
        if not options.show_memory:
            return {}
        wire = self._wire()
        if wire is None:
            return None
        data, whole = wire
        try:
            maximums = convert_extension.allocator_maximums(data, is_run_metadata=whole, op_time=options.op_time)
        except (convert_extension.WireError, UnicodeDecodeError) as error:
            raise _invalid(error, whole) from error
        if maximums is None:
            return None
        return {name: AllocationMaximum(time_us, num_bytes, tensors) for name, time_us, num_bytes, tensors in maximums}

    def convert(self, calls: list[_Options]) -> CompatibleConverter:
        """The events of all calls, made in Python."""
        message = parse_step(self.given) if _is_bytes(self.given) else self.given
        step_stats = _step_stats_in(message)
        converter = CompatibleConverter()
        for options in calls:
            converter.add(
                step_stats,
                show_dataflow=options.show_dataflow,
                show_memory=options.show_memory,
                op_time=options.op_time,
            )
        return converter

    def _wire(self) -> tuple[bytes | bytearray | memoryview, bool] | None:
        """Wire bytes, and whether they are a RunMetadata's; None if the step is not a message."""
        if _is_bytes(self.given):
            return self.given, is_run_metadata(self.given)
        step_stats = _step_stats_in(self.given)
        return (serialized_step(step_stats), False) if hasattr(step_stats, "SerializeToString") else None


@dataclass(frozen=True)
class _NativeTrace:
    step: _Step
    options: _Options

    def format_to_string(self, pretty: bool = False) -> str:
        text = self.step.native_text(self.options, pretty=pretty)
        return self.step.convert([self.options]).text(pretty) if text is None else text


@dataclass(frozen=True)
class _ConvertedTrace:
    converter: CompatibleConverter

    def format_to_string(self, pretty: bool = False) -> str:
        return self.converter.text(pretty)


def _step_stats_in(given: Any) -> Any:
    step_stats = getattr(given, "step_stats", given)
    if not hasattr(step_stats, "dev_stats"):
        raise TypeError(
            f"a timeline is drawn of StepStats or RunMetadata, and not of {given!r}: see collector.load(path)"
        )
    return step_stats


def _is_bytes(given: Any) -> bool:
    return isinstance(given, (bytes, bytearray, memoryview))


@cache
def _data_type_names() -> dict[int, str]:
    return {number: value.name for number, value in DataType.DESCRIPTOR.values_by_number.items()}


def _invalid(error: Exception, whole: bool) -> InvalidFileError:
    kind = "RunMetadata" if whole else "StepStats"
    if isinstance(error, UnicodeDecodeError):
        return InvalidFileError(f"not a {kind} message: a name that is not UTF-8")
    what, position = error.args
    return InvalidFileError(f"not a {kind} message: {what} (at byte {position})")
