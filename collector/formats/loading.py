"""Read back what was traced: StepStats and RunMetadata, our recordings, Chrome traces.

>>> import collector
>>> trace = collector.load("step.pb")  # doctest: +SKIP
>>> trace.step_stats, trace.kind, trace.skipped  # doctest: +SKIP
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import stat
import zipfile
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

from collector.errors import InvalidFileError
from collector.files.atomic_files import expanded
from collector.files.unpacking import GZIP, MAX_BYTES, unpack_gzip
from collector.protos.run_metadata_pb2 import RunMetadata
from collector.protos.step_stats_pb2 import StepStats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.recording.recording import Recording

MAX_MESSAGE_BYTES = (2 << 30) - 1
"""A protobuf message cannot be larger."""

_HEAD_BYTES = 1 << 16
"""Read of a file before the rest, to see what it is."""

_SPACE = b"\xef\xbb\xbf \t\r\n"
"""What may stand before the first letter of a text."""
_ZIP = b"PK\x03\x04"
_JOURNAL = b"GPUJRNL"
_FOREIGN = {
    b"SQLite format 3\0": "an SQLite database (an Nsight Systems export?)",
    b"\x89PNG": "a picture",
    b"\x7fELF": "a program",
    b"PAR1": "a Parquet table",
    b"ARROW1": "an Arrow table",
    b"BZh": "a bzip2 archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"\xfd7zXZ": "an xz archive",
}
"""First bytes -> what the file is, for files that are often handed over by mistake."""
_READABLE = (
    "Readable are StepStats and RunMetadata (.pb, .pbtxt), recordings (.gpurec), journals and Chrome traces (.json), "
    "also gzipped"
)
_TEXT_PROTO = re.compile(
    rb"(?:\s|#[^\n]*\n)*(step_stats|dev_stats|cost_graph|partition_graphs|function_graphs|provenance)\s*[:{<]"
)
_EMPTY_IS_EMPTY_STEP = (".pb", ".pbtxt")
"""Of a message without any field no byte is written, which TensorFlow may have done."""


@dataclass(frozen=True)
class LoadedTrace:
    """One step read from a file."""

    path: Path
    kind: str
    """RunMetadata, StepStats, recording, journal, collector timeline, TensorFlow timeline, or Chrome trace."""
    run_metadata: RunMetadata
    """The step as RunMetadata, whatever the file held."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Reason -> how many pieces of the file were left out or mended. Empty: everything was read."""
    cut_at: int | None = None
    """Byte (for JSON: character) of the unpacked file from which on it could not be read, or None."""
    recording: Recording | None = None
    """The recording itself, where the file is one, or a journal."""
    rank: int | None = None
    """The rank among many processes, where a profiler's trace states it."""

    def __repr__(self) -> str:
        """One line; the step itself may have millions."""
        devices = self.step_stats.dev_stats
        num_nodes = sum(len(device.node_stats) for device in devices)
        held = f"{len(devices):,} device{'s' * (len(devices) != 1)}, {num_nodes:,} node{'s' * (num_nodes != 1)}"
        incomplete = ", not all of it could be read" if self.warning else ""
        return f"<LoadedTrace {os.fspath(self.path)!r}: {self.kind}, {held}{incomplete}>"

    @property
    def step_stats(self) -> StepStats:
        """The step's devices and nodes."""
        return self.run_metadata.step_stats

    def serialized(self) -> bytes:
        """`run_metadata` in protobuf's wire format, as a ``.pb`` file holds it."""
        return self.run_metadata.SerializeToString(deterministic=True)

    @property
    def warning(self) -> str:
        """One line that says what was left out and where; empty where nothing was."""
        if not self.skipped and self.cut_at is None:
            return ""
        where = "" if self.cut_at is None else f" from position {self.cut_at} on"
        reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(self.skipped.items()))
        return f"{self.path}: not all of it could be read{where}: {reasons or 'cut off'}"


def load(path: str | os.PathLike[str]) -> LoadedTrace:
    """Read one trace; the content decides what it is, not the name. Gzip is unpacked.

    A file that is damaged gives what is whole of it, with `LoadedTrace.skipped` and `LoadedTrace.warning` saying what
    is missing. Times are kept as the file has them: a Chrome trace that states no base may count from anything.

    Raises:
        collector.InvalidFileError: the file is not there, is something else, or nothing in it can be read. One line
            that names the file and the place.
    """
    trace = _load(expanded(path))
    unread = dict(trace.skipped)
    if trace.cut_at is not None and not unread and trace.recording is None:
        unread["unreadable rest of the file"] = 1
    for reason, count in unread.items():
        trace.run_metadata.provenance.unread[reason] += count  # so that whatever is made of the step says it, too
    return trace


def _load(name: Path) -> LoadedTrace:
    data = bytes_of(name)
    skipped: Counter[str] = Counter()
    suffixes = name.suffixes
    if data.startswith(GZIP):
        data = _unpack(data, name, skipped)
        suffixes = [suffix for suffix in suffixes if suffix != ".gz"]
    if data.startswith((_ZIP, _JOURNAL)):
        return _load_recording(data, name)
    _refuse_foreign(data, name)
    start = data.lstrip(_SPACE)[:1]
    if not start:
        if data or not (suffixes and suffixes[-1] in _EMPTY_IS_EMPTY_STEP):
            reasons = "".join(f" ({reason}: {count})" for reason, count in skipped.items())
            raise InvalidFileError(f"{name}: the file is empty{reasons}")
        return LoadedTrace(name, "StepStats", RunMetadata(), skipped)
    if start in b"{[" and not _is_message(data):
        return _load_json(data, name, skipped)
    if _TEXT_PROTO.match(data):
        return _load_text(data, name, skipped)
    return _load_binary(data, name, skipped)


def bytes_of(name: Path) -> bytes:
    """The bytes of a file or a pipe.

    Raises:
        collector.InvalidFileError: it cannot be read, or their number or the first of them say that it is no trace.
    """
    try:
        with name.open("rb") as file:
            head = file.read(_HEAD_BYTES)
            if len(head) < _HEAD_BYTES:
                return head
            about = os.fstat(file.fileno())
            if not head.startswith((GZIP, _ZIP, _JOURNAL)):
                _check_head(head, name, about.st_size)
            if about.st_size > MAX_BYTES:
                raise InvalidFileError(f"{name}: larger than {MAX_BYTES >> 30} GiB")
            if stat.S_ISREG(about.st_mode):
                file.seek(0)
                return file.read()
            data = head + file.read(MAX_BYTES + 1 - len(head))  # a pipe does not say how much will come
    except OSError as error:
        raise InvalidFileError(f"{name}: {error.strerror or error}") from error
    if len(data) > MAX_BYTES:
        raise InvalidFileError(f"{name}: larger than {MAX_BYTES >> 30} GiB")
    return data


def _check_head(head: bytes, name: Path, num_bytes: int) -> None:
    """Refuse what starts as nothing that can be read does, before all of it is read."""
    from collector.stepstats.salvage import WireError, fields

    _refuse_foreign(head, name)
    start = head.lstrip(_SPACE)[:1]
    if not start or start in b"{[" or _TEXT_PROTO.match(head):
        return
    try:
        next(fields(memoryview(head)))
    except WireError as error:
        why = f"at byte {error.position}: {error}"
        raise InvalidFileError(f"{name}: not a StepStats or RunMetadata message ({why})", _READABLE) from error
    if num_bytes > MAX_MESSAGE_BYTES:
        raise InvalidFileError(f"{name}: larger than the 2 GiB that a protobuf message can be")


def _refuse_foreign(data: bytes, name: Path) -> None:
    for magic, what in _FOREIGN.items():
        if data.startswith(magic):
            raise InvalidFileError(f"{name}: this is {what}, not a trace", _READABLE)


def _is_message(data: bytes) -> bool:
    """Whether what could begin JSON is a message: a device of 91 or 123 bytes begins with a line feed and a bracket."""
    from collector.stepstats.salvage import WireError, fields, foreign
    from collector.stepstats.wire import is_run_metadata

    if data[:1] != b"\n" or foreign(data, is_run_metadata(data)) is not None:
        return False
    try:
        first = next(fields(memoryview(data)))
        return first.whole and all(item.whole for item in fields(first.payload))
    except WireError:
        return False


def _unpack(data: bytes, name: Path, skipped: Counter[str]) -> bytes:
    """The content of a gzip file, as far as it can be unpacked."""
    with contextlib.suppress(zlib.error):
        head = zlib.decompressobj(wbits=31).decompress(data, _HEAD_BYTES)
        if len(head) == _HEAD_BYTES and not head.startswith((_ZIP, _JOURNAL)):
            _check_head(head, name, len(data))
    content, damage, is_cut = unpack_gzip(data, name)
    if damage:
        if not content:
            raise InvalidFileError(f"{name}: damaged gzip ({damage})")
        skipped["damaged gzip streams"] += 1
    elif is_cut:
        skipped["gzip streams cut off"] += 1
    return content


def _load_recording(data: bytes, name: Path) -> LoadedTrace:
    from collector.recording.gpurec import load_recording
    from collector.stepstats.from_recording import run_metadata

    recording = load_recording(name, data)
    if data.startswith(_ZIP):
        kind, is_cut = "recording", recording.ledger.tables_cut_off and not zipfile.is_zipfile(io.BytesIO(data))
        cut_at = len(data) if is_cut else None
    else:
        kind, cut = "journal", recording.counters["journal_bytes_cut"]
        cut_at = len(data) - cut if cut else None
    return LoadedTrace(name, kind, run_metadata(recording), recording=recording, cut_at=cut_at)


def _load_json(data: bytes, name: Path, skipped: Counter[str]) -> LoadedTrace:
    from collector.formats import chrome_events, collector_timeline, profiler_timeline, tensorflow_timeline

    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        text = data.decode("utf-8", "replace")
        skipped[f"bytes that are not UTF-8 (the first at byte {error.start}; mended)"] += text.count("\ufffd")
    try:
        found = chrome_events.parse(text)
    except chrome_events.NotATraceError as error:
        raise InvalidFileError(f"{name}: {error} (character {error.position})", _READABLE) from error
    if _is_proton_tree(found.events):
        raise InvalidFileError(
            f"{name}: this is a profile of Proton, which holds sums by call path but no times to draw",
            "Record a trace instead",
        )
    found.skipped.update(skipped)
    metadata = RunMetadata()
    base_ns = collector_timeline.base_time_ns(found)
    if base_ns is not None:
        kind = "collector timeline"
        step = collector_timeline.to_step_stats(found, base_ns)
        stated = collector_timeline.provenance(found)
        if stated.ByteSize():
            metadata.provenance.CopyFrom(stated)
    elif tensorflow_timeline.is_tensorflow(found.events):
        kind = "TensorFlow timeline"
        step = tensorflow_timeline.to_step_stats(found.events, found.skipped)
    else:
        kind = "Chrome trace"
        step = profiler_timeline.to_step_stats(found)
    if not step.dev_stats and (found.skipped or found.cut_at is not None):
        reasons = ", ".join(found.skipped) or "cut off"
        raise InvalidFileError(
            f"{name}: no event of it can be read ({reasons}; position {found.cut_at or 0})", _READABLE
        )
    if not step.dev_stats and kind == "Chrome trace" and found.events:
        raise InvalidFileError(f"{name}: JSON with a list in which nothing is an event with a time", _READABLE)
    distributed = found.metadata.get("distributedInfo")
    rank = distributed.get("rank") if isinstance(distributed, dict) else None
    rank = rank if type(rank) is int and rank >= 0 else None
    metadata.step_stats.CopyFrom(step)
    return LoadedTrace(name, kind, metadata, found.skipped, found.cut_at, rank=rank)


def _is_proton_tree(events: list[dict[str, Any]]) -> bool:
    return bool(events) and {"frame", "children"} <= events[0].keys() and "ph" not in events[0]


def _load_text(data: bytes, name: Path, skipped: Counter[str]) -> LoadedTrace:
    from google.protobuf import text_format

    from collector.stepstats.proto_text import parse_text

    text = data.decode("utf-8", "replace")
    if "\ufffd" in text:
        skipped["bytes that are not UTF-8 (mended)"] += text.count("\ufffd")
    beginning = _TEXT_PROTO.match(data)
    assert beginning is not None
    message: RunMetadata | StepStats = StepStats() if beginning[1] == b"dev_stats" else RunMetadata()
    try:
        parse_text(text, message)
    except text_format.ParseError as error:
        place = f"line {error.GetLine()}, column {error.GetColumn()}" if error.GetLine() else "its end"
        raise InvalidFileError(f"{name}: broken proto text at {place} ({_one_line(error)})") from error
    except RecursionError as error:
        raise InvalidFileError(f"{name}: proto text nested too deeply") from error
    if isinstance(message, StepStats):
        return LoadedTrace(name, "StepStats", RunMetadata(step_stats=message), skipped)
    return LoadedTrace(name, "RunMetadata", message, skipped)


def _load_binary(data: bytes, name: Path, skipped: Counter[str]) -> LoadedTrace:
    from collector.stepstats.salvage import foreign, salvage
    from collector.stepstats.wire import is_run_metadata

    whole = is_run_metadata(data)
    kind = "RunMetadata" if whole else "StepStats"
    metadata = RunMetadata()
    try:
        if whole:
            metadata.ParseFromString(data)
        else:
            metadata.step_stats.ParseFromString(data)
    except DecodeError:
        saved = salvage(data, whole)
        metadata = saved.run_metadata
        skipped.update(saved.skipped)
        place = saved.error.position if saved.error else None
        if not any(device.node_stats for device in metadata.step_stats.dev_stats):
            _refuse_output(data, name)
            why = f"at byte {place}: {saved.error}" if saved.error else "no node in it can be read"
            raise InvalidFileError(f"{name}: not a StepStats or RunMetadata message ({why})", _READABLE) from None
        return LoadedTrace(name, kind, metadata, skipped, place)
    stranger = foreign(data, whole)
    if stranger is not None:
        _refuse_output(data, name)
        why = f"at byte {stranger.position}: {stranger}"
        raise InvalidFileError(f"{name}: not a StepStats or RunMetadata message ({why})", _READABLE)
    return LoadedTrace(name, kind, metadata, skipped)


def _refuse_output(data: bytes, name: Path) -> None:
    """Say so where the file is one that can be written but not be read back."""
    from collector.stepstats.salvage import only_written

    what = only_written(data)
    if what:
        raise InvalidFileError(
            f"{name}: this is {what}, which cannot be read back",
            "Give the file that it was made from, or write .json or .pb, which can",
        )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
