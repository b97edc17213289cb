"""The timeline of a step, as Chrome JSON or a Perfetto trace."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

from collector.checked_arguments import plain_text, regular_expression, switch, time_range, whole_number
from collector.errors import InvalidFileError, UnknownFormatError
from collector.files.atomic_files import atomic_write, packed
from collector.recording.possible_times import is_wall_time
from collector.recording.schema import ACTIVITY_TABLES
from collector.recording.step_origin import NO_ORIGIN
from collector.runtime.extension import convert_extension
from collector.stepstats.object_tables import object_rows, object_rows_of
from collector.stepstats.stated_window import KEY as WINDOW_KEY
from collector.stepstats.stated_window import window_of, window_texts
from collector.stepstats.wire import fields_of, is_run_metadata, provenance_of, serialized_step
from collector.text.quantities import time_text
from collector.text.wording import counted, suggestion
from collector.timeline.drawn_files import CHROME, DRAWN_FILES, DrawnFile, Write, drawn_file
from collector.timeline.object_labels import EventRecord, SampledCounter, object_labels
from collector.timeline.op_arguments import NOTHING, OpDetails, call_ops, op_details

if TYPE_CHECKING:
    from collector.protos.run_metadata_pb2 import Provenance
    from collector.recording.journal_facts import Extent
    from collector.stepstats.object_tables import ObjectRow
    from collector.stepstats.stated_window import Window
    from collector.timeline.recording_part import RecordingPart

_WINDOW_START, _WINDOW_END = "start", "end"
_WHERE_LOST = {"early": _WINDOW_START}
"""The counter of a loss without single times -> the end of the step at which it is drawn."""


@dataclass(frozen=True)
class View:
    """The selection of a step's slices to draw. Counters of copies and busy streams cover the drawn slices."""

    devices: str | None = None
    """Only devices whose StepStats name (``/gpu:0/stream:7``) matches this regular expression (search)."""
    names: str | None = None
    """Only slices whose short or whole name matches this regular expression (search)."""
    min_duration_ns: int = 0
    """Only slices of at least this length."""
    window_ns: tuple[int | None, int | None] = (None, None)
    """Only slices that overlap this part of the step: start and end since its beginning; either may be open. A message
    that states no window begins with its first drawn event."""
    max_events: int | None = None
    """At most this many slices, the longest ones; the file states the number of slices left out. If any are left out,
    there are no counters: counters of the drawn slices would be wrong, and counters of all slices would be too many."""
    arrows: bool = True
    """Draw an arrow from each call to each activity that it launched, and from the reason of each wait to the wait."""
    counters: bool = True
    """Draw memory per allocator, bytes in flight per kind of copy, busy streams of GPUs of which several streams are
    drawn, and figures that were sampled."""
    label: str = ""
    """Text shown beside each process, such as a rank or a step."""
    extent: Extent | None = None
    """The extent of the whole recording, if the step is the part of it that `window_ns` selects. `max_events` is None
    then. None: the step is the whole recording."""

    def __post_init__(self) -> None:
        """Raise ValueError for impossible values, and TypeError for those of a wrong type."""
        for name in ("devices", "names"):
            if (expression := getattr(self, name)) is not None:
                regular_expression(name, expression)
        if self.max_events is not None:
            object.__setattr__(self, "max_events", whole_number("max_events", self.max_events, least=0))
        object.__setattr__(self, "min_duration_ns", whole_number("min_duration_ns", self.min_duration_ns, least=0))
        object.__setattr__(self, "window_ns", time_range("window_ns", self.window_ns))
        for name in ("arrows", "counters"):
            object.__setattr__(self, name, switch(name, getattr(self, name)))
        plain_text("label", self.label)

    @property
    def selects(self) -> bool:
        """Whether slices have to meet a condition."""
        has_texts = self.devices is not None or self.names is not None
        return has_texts or self.min_duration_ns > 0 or self.window_ns != (None, None)


@dataclass(frozen=True)
class DrawingOptions:
    """A `View` with predicates for its expressions, in the form for the extension."""

    keep_device: Callable[[str], bool] | None
    keep_name: Callable[[str], bool] | None
    min_duration_ns: int
    window_start_ns: int | None
    window_end_ns: int | None
    window_origin_ns: int | None
    max_slices: int | None
    arrows: bool
    counters: bool
    label: str
    remarks: Sequence[tuple[str, str, int | None]]
    """(name, details, wall time or None for the end) of the losses."""
    labels: Mapping[str, str] = field(default_factory=dict)
    thread_processes: Mapping[int, int] = field(default_factory=dict)
    """Thread -> process, of threads whose calls the message may lack."""
    event_records: Sequence[EventRecord] = ()
    """In the form of `collector.timeline.object_labels.ObjectLabels`."""
    op_details: OpDetails = NOTHING
    collectives: OpDetails = NOTHING
    call_ops: OpDetails = NOTHING
    """In the form of `collector.timeline.op_arguments`."""
    sampled: Sequence[SampledCounter] = ()
    """In the form of `collector.timeline.object_labels.ObjectLabels.counters`."""


@dataclass(frozen=True)
class Drawn:
    """The figures of a drawn trace: its contents, and the nodes left out. Times are ns."""

    slices: int
    arrows: int
    counter_values: int
    left_out: int
    """Slices left out for ``max_events``, with their total duration ``left_out_ns`` and ``longest_left_out_ns``."""
    left_out_ns: int
    longest_left_out_ns: int
    filtered: int
    """Slices that other options left out."""
    untimed: int
    """Nodes that cannot be drawn: no start, an end before the start, or far from all others."""
    base_ns: int
    """Wall time of the trace's time 0."""
    end_ns: int
    """The last end since the base."""

    def sentences(self) -> list[str]:
        """One line for each reason why slices are missing in the timeline; empty if none are."""
        lines = []
        if self.left_out:
            lines.append(
                f"left out the {counted('{:,} shortest slice[|s]', self.left_out)}, {time_text(self.left_out_ns)} in "
                f"all, none longer than {time_text(self.longest_left_out_ns)}; and all counters"
            )
        if self.filtered:
            lines.append(counted("filtered out {:,} slice[|s]", self.filtered))
        if self.untimed:
            placed = counted("could not place {:,} node[|s] in time", self.untimed)
            lines.append(f"{placed}: no start, an end before it, or far off")
        return lines


@overload
def chrome_trace(step: Any, path: None = None, **options: Any) -> str: ...
@overload
def chrome_trace(step: Any, path: str | os.PathLike[str], **options: Any) -> Drawn: ...
def chrome_trace(step: Any, path: str | os.PathLike[str] | None = None, **options: Any) -> str | Drawn:
    """Draw a step for Perfetto (https://ui.perfetto.dev) or chrome://tracing.

    >>> collector.chrome_trace(step.run_metadata, "step.json.gz", max_events=100_000)  # doctest: +SKIP

    Times are exact to the nanosecond and count from ``otherData.base_time_ns``. Processes are devices, threads are
    streams or host threads, with further lanes only if activities overlap. Arrows connect calls and their activities.

    Args:
        step: a ``Session``, ``Step`` (``collector.load``), ``Recording``, ``RunMetadata`` or ``StepStats``
            (TensorFlow's too), or wire bytes of one of these messages.
        path: the file to write, completely or not at all: ``.json`` or ``.pftrace``, either with ``.gz``; None for the
            JSON text.
        options: fields of `View`.

    Returns:
        The text, or the figures of the file.

    Raises:
        collector.InvalidFileError: the bytes are not such a message; the error contains the position.
        collector.OutputError: the file cannot be written.
        collector.UnknownFormatError: ``path`` has none of these suffixes.
        ValueError: an option has an impossible value, such as an invalid regular expression.
        TypeError: an option has a value of a wrong type, or there is no such option; or ``step`` is no step.
    """
    view = _view(options)
    if path is None:
        pieces: list[str] = []
        write_trace(step, lambda piece: pieces.append(str(piece, "utf-8")), view)
        return "".join(pieces)
    drawn = drawn_file(Path(path).name)
    if drawn is None:
        *first, last = (suffix for each in DRAWN_FILES for suffix in each.suffixes)
        raise UnknownFormatError(f"{path}: no trace has this suffix", f"Use {', '.join(first)} or {last}")
    with atomic_write(path) as file, packed(file, path) as stream:
        return write_trace(step, stream.write, view, drawn)


def write_trace(step: Any, write: Write, view: View, drawn: DrawnFile = CHROME) -> Drawn:
    """Draw ``step`` and pass the file's bytes piece by piece to ``write``.

    A piece is bytes or a memoryview that is valid only during the call. ``drawn`` is the kind of file; the other
    arguments and errors are those of `chrome_trace`.
    """
    part = _part_of(step, view)
    if part is None:
        data, whole = wire_of(step)
        provenance = provenance_of(data) if whole else None
        objects = objects_of(step, data, whole)
    else:
        from collector.stepstats.from_recording import provenance as provenance_of_recording
        from collector.stepstats.from_recording import serialized

        recording = _recording_of(step)
        data, whole = serialized(part.recording, getattr(step, "device_prefix", "")), True
        provenance = provenance_of_recording(recording, getattr(step, "origin", NO_ORIGIN))
        objects = object_rows(recording)
    origin_ns = _window_origin_ns(step, view, provenance)
    shown = object_labels(objects, provenance)
    options = DrawingOptions(
        keep_device=_predicate(view.devices),
        keep_name=_predicate(view.names),
        min_duration_ns=_int64(view.min_duration_ns),
        window_start_ns=None if view.window_ns[0] is None else _int64(view.window_ns[0]),
        window_end_ns=None if view.window_ns[1] is None else _int64(view.window_ns[1]),
        window_origin_ns=origin_ns,
        max_slices=None if view.max_events is None else _int64(view.max_events),
        arrows=view.arrows,
        counters=view.counters and (part is None or not part.left_out),
        label=view.label,
        remarks=remarks_of(provenance, None if part is None else part.base_ns + part.end_ns),
        labels=shown.labels,
        thread_processes={} if part is None else part.thread_processes,
        event_records=shown.event_records,
        op_details=op_details_of(step, data, whole),
        collectives=shown.collectives,
        call_ops=call_ops_of(step, data, whole),
        sampled=shown.counters,
    )

    def whole_figures(figures: dict[str, int]) -> dict[str, int]:
        return figures if part is None else part.figures(figures)

    def describe(figures: dict[str, int]) -> str:
        data = _other_data(Drawn(**whole_figures(figures)), provenance, shown.tables, view, origin_ns)
        return json.dumps(data, ensure_ascii=False)

    base_ns = None if part is None else part.base_ns
    figures = draw(data, write, options, describe, is_run_metadata=whole, writer=drawn.writer, base_ns=base_ns)
    return Drawn(**whole_figures(figures))


def _window_origin_ns(step: Any, view: View, provenance: Provenance | None) -> int | None:
    """The wall time from which the view's window counts; None: the first start that is drawn."""
    if view.window_ns == (None, None):
        return None
    if view.extent is None and provenance is not None and (window := window_of(provenance)):
        return window[0]
    recording = _recording_of(step) or getattr(step, "recording", None)
    if recording is None:
        return None
    clock = recording.clock
    began_ns = clock.cupti_start_ns if view.extent is None else view.extent.session_start_ns
    return int(began_ns + clock.offset_ns)


def _recording_of(step: Any) -> Any:
    """The recording from which a step is made; None if its StepStats are the original."""
    from collector.recording.recording import Recording

    return step if isinstance(step, Recording) else getattr(step, "recorded", None)


def objects_of(step: Any, data: bytes | bytearray | memoryview, whole: bool) -> dict[str, list[ObjectRow]]:
    """The rows of objects of a step, which its message has if it is a whole RunMetadata of ours."""
    held = object_rows_of(data) if whole else {}
    return held or (step.object_rows() if hasattr(step, "object_rows") else {})


def op_details_of(step: Any, data: bytes | bytearray | memoryview, whole: bool) -> OpDetails:
    """The metadata of the ops of a step; for messages only if they contain a recording."""
    recording = _recording_of(step)
    if recording is None and getattr(step, "has_more_columns", False):
        recording = step.recording
    if recording is None and whole and _has_details(data):
        from collector.stepstats.to_recording import annotations_of

        recording = annotations_of(data)
    return NOTHING if recording is None else op_details(recording)


def call_ops_of(step: Any, data: bytes | bytearray | memoryview, whole: bool) -> OpDetails:
    """The annotations of calls that launched no work; for messages only if they contain a recording."""
    recording = _recording_of(step)
    if recording is None and getattr(step, "has_ids_of_columns", False):
        recording = step.recording
    if recording is None and whole and (stated := provenance_of(data)) and stated.ledger.get("external_correlations"):
        from collector.stepstats.to_recording import has_recording, read_recording

        if has_recording(data):
            recording = read_recording(data, ("annotations", "external_correlations", *ACTIVITY_TABLES)).recording
    return NOTHING if recording is None else call_ops(recording)


def _has_details(data: bytes | bytearray | memoryview) -> bool:
    from collector.protos import Capture, RunMetadata

    captures = (part for number, part in fields_of(memoryview(data)) if number == RunMetadata.CAPTURE_FIELD_NUMBER)
    members = (number for capture in captures if capture is not None for number, _ in fields_of(capture))
    return Capture.DETAILS_FIELD_NUMBER in members


def _part_of(step: Any, view: View) -> RecordingPart | None:
    """The part of a recording that the view's times select; None if they select all, or if there is no recording."""
    has_times = view.window_ns != (None, None) or view.min_duration_ns > 0 or view.max_events is not None
    is_part = view.extent is not None
    recording = _recording_of(step) if is_part or (has_times and view.devices is None) else None
    if recording is None:
        return None
    from collector.timeline.recording_part import part_of

    return part_of(
        recording,
        window_ns=view.window_ns,
        min_duration_ns=view.min_duration_ns,
        max_slices=view.max_events,
        times_decide=view.names is None and view.devices is None,
        with_memory=view.counters,
        extent=view.extent,
    )


def draw(
    data: bytes | bytearray | memoryview,
    write: Write,
    options: DrawingOptions,
    describe: Callable[[dict[str, int]], str],
    *,
    is_run_metadata: bool,
    writer: str = CHROME.writer,
    base_ns: int | None = None,
) -> dict[str, int]:
    """Draw a serialized message with the extension; return the fields of `Drawn`.

    Args:
        data: a StepStats, or a RunMetadata if ``is_run_metadata``.
        write: takes the file's bytes piece by piece.
        options: the selection to draw.
        describe: makes the file's metadata, as JSON, from the fields of `Drawn`.
        is_run_metadata: the type of the message.
        writer: the extension's name of the file's writer.
        base_ns: wall time of the trace's time 0; None: the first start.

    Raises:
        collector.InvalidFileError: the bytes are not such a message; the error contains the position.
    """
    try:
        figures: dict[str, int] = convert_extension.write_trace(
            data,
            write,
            is_run_metadata=is_run_metadata,
            writer=writer,
            base_ns=base_ns,
            describe=describe,
            **vars(options),
        )
    except convert_extension.WireError as error:
        what, position = error.args
        kind = "RunMetadata" if is_run_metadata else "StepStats"
        raise InvalidFileError(f"not a whole {kind} message: {what} (at byte {position})") from error
    return figures


def wire_of(step: Any) -> tuple[bytes | bytearray | memoryview, bool]:
    """The wire bytes of any object that contains a step, and whether they are a RunMetadata and not a StepStats.

    The type of a message is known. Only bytes must be inspected: a few StepStats can be parsed as RunMetadata too.
    """
    if isinstance(step, (bytes, bytearray, memoryview)):
        return step, is_run_metadata(step)
    if hasattr(step, "dev_stats"):
        return serialized_step(step), False
    if hasattr(step, "wire"):
        return cast("tuple[bytes, bool]", step.wire())
    if hasattr(step, "SerializeToString"):
        return cast(bytes, step.SerializeToString()), True
    if hasattr(step, "serialized"):
        return cast(bytes, step.serialized()), True
    from collector.recording.recording import Recording
    from collector.stepstats.from_recording import serialized

    if not isinstance(step, Recording):
        raise TypeError(
            f"a timeline is drawn of a step, its StepStats or its RunMetadata, not of {type(step).__name__}"
        )
    return serialized(step), True


def _int64(number: int) -> int:
    """The nearest 64-bit number; the times of a trace never exceed 64 bits."""
    return max(min(number, (1 << 63) - 1), -(1 << 63))


def _view(options: Mapping[str, Any]) -> View:
    known = [each.name for each in fields(View)]
    for name in options:
        if name not in known:
            similar = suggestion(name, known) or "."
            raise TypeError(f"there is no option {name!r}{similar} The options are {', '.join(known)}")
    return View(**options)


def _predicate(pattern: str | None) -> Callable[[str], bool] | None:
    if pattern is None:
        return None
    search = re.compile(pattern).search
    return lambda text: search(text) is not None


def remarks_of(provenance: Provenance | None, end_ns: int | None = None) -> list[tuple[str, str, int | None]]:
    """(name, details, wall time) of the losses; `end_ns`, or None for the drawing's end, if the time is unknown."""
    if provenance is None:
        return []
    from collector.recording.ledger import Ledger

    window = provenance.window_start_nanos, provenance.window_end_nanos
    ends = dict(zip((_WINDOW_START, _WINDOW_END), window if any(window) else (None, None), strict=True))
    known = {losses.figure: losses.at_nanos for losses in provenance.losses}
    remarks: list[tuple[str, str, int | None]] = []
    for figure, line in Ledger.of(provenance).explained_losses():
        name = "lost: " + line.partition(":")[0]
        where = _WHERE_LOST.get(figure)
        if figure in known:
            remarks += [(name, line, at_ns) for at_ns in known[figure]]
        elif where is not None:
            remarks.append((name, line, end_ns if ends[where] is None else ends[where]))
        else:
            at_ns = end_ns if ends[_WINDOW_END] is None else ends[_WINDOW_END]
            remarks.append((name, f"{line} (when is not known)", at_ns))
    return remarks


def _drawn_window(window: Window, origin_ns: int, view: View) -> Window:
    """The part of a step's window that a view shows, whose times count from ``origin_ns``."""
    start_ns, end_ns = view.window_ns
    first_ns = window[0] if start_ns is None else max(window[0], origin_ns + start_ns)
    last_ns = window[1] if end_ns is None else min(window[1], origin_ns + end_ns)
    return first_ns, max(first_ns, last_ns)


def _other_data(
    drawn: Drawn,
    provenance: Provenance | None,
    tables: Mapping[str, list[ObjectRow]],
    view: View,
    origin_ns: int | None,
) -> dict[str, Any]:
    """The file's own metadata. Times beyond 53 bits are text, because JSON readers store numbers in doubles."""
    whole_seconds, rest = divmod(drawn.base_ns, 1_000_000_000)
    figures = {each.name: getattr(drawn, each.name) for each in fields(Drawn) if each.name != "base_ns"}
    data: dict[str, Any] = {
        "base_time_ns": str(drawn.base_ns),
        "base_time": _iso_time(whole_seconds, rest) if is_wall_time(drawn.base_ns) else "",
        "drawn": figures,
        "not_drawn": drawn.sentences(),
        **tables,
    }
    if provenance is not None:
        from collector.recording.ledger import Ledger

        ledger = Ledger.of(provenance)
        data["not_drawn"] += ledger.unread_lines()
        if window := window_of(provenance):
            origin_ns = drawn.base_ns if origin_ns is None else origin_ns
            data[WINDOW_KEY] = window_texts(_drawn_window(window, origin_ns, view))
        data |= {"losses": ledger.losses(), "unread": dict(sorted(provenance.unread.items()))}
        if provenance.HasField("rank"):
            data["rank"] = provenance.rank
        if provenance.world_size:
            data["world_size"] = provenance.world_size
    if provenance is not None and provenance.ledger:
        data |= {
            **recorded_by(provenance),
            "ledger": dict(sorted(provenance.ledger.items())),
            "tracer_cost": {
                "decode_cpu_ns": ledger.decode_cpu_ns,
                "bytes_completed": ledger.bytes_completed,
                "buffers_completed": ledger.buffers_completed,
                "records_decoded": ledger.records_decoded,
                "callback_calls": ledger.callback_calls,
            },
        }
    return data


def recorded_by(provenance: Provenance) -> dict[str, Any]:
    """The version, source and environment that recorded a step, for the metadata of a file."""
    return {
        "collector_version": provenance.collector_version,
        "source": provenance.source,
        "simulated": provenance.simulated,
        "environment": dict(sorted(provenance.environment.items())),
        "json_environment": sorted(provenance.json_environment),
    }


def _iso_time(seconds: int, nanoseconds: int) -> str:
    try:
        moment = datetime.fromtimestamp(seconds, timezone.utc)
    except (OverflowError, OSError, ValueError):
        return ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{nanoseconds:09}Z"
