"""Distinguishes StepStats from RunMetadata by their bytes, and reads either without trusting it."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError

from collector.errors import InvalidFileError
from collector.protos.run_metadata_pb2 import Provenance, RunMetadata
from collector.protos.step_stats_pb2 import StepStats
from collector.stepstats import varint
from collector.stepstats.varint import field_head

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MALFORMED = -1
_END = 0
_FIELDS_THAT_IDENTIFY = 64
_NODES_OF_A_LARGE_STEP = 20_000
_FIRST_PAGES = 64 << 20  # in bytes; only the written part costs memory


def is_run_metadata(data: bytes | bytearray | memoryview) -> bool:
    """Whether wire bytes are a ``RunMetadata`` and not a ``StepStats``, which begin with the same byte.

    ``StepStats`` contains only devices (field 1), each with a name and nodes; ``RunMetadata`` contains one
    ``StepStats`` (field 1) and other fields. The first device or step decides, so the cost does not grow with the file.
    """
    top = fields_of(memoryview(data))
    number, first = next(top, (_END, None))
    if number != 1 or first is None:
        return number > 1
    second, _ = next(top, (_END, None))
    if second > 1:
        return True
    fields = fields_of(first)
    number, name = next(fields, (_END, None))
    if number == _END:  # an empty step, or an unnamed device without nodes among others
        return second != 1
    if number != 1 or name is None:  # nodes of a device without a name
        return False
    following, _ = next(fields, (_END, None))
    if following == 1:  # a second device
        return True
    if len(name) == 0:  # an empty device of a step, or the empty name of a device with nodes or threads
        return following not in (2, 3)
    return _is_device(name)


def _is_device(data: memoryview) -> bool:
    """Whether the bytes are a device's message and not the text of its name.

    Fields of later versions are no evidence; protobuf may write them before the known ones.
    """
    for number, payload in fields_of(data, limit=_FIELDS_THAT_IDENTIFY):
        if number in (1, 2, 3, _MALFORMED):
            return payload is not None
    return False


def parse_step(data: bytes | bytearray | memoryview, *, whole: bool | None = None) -> Any:
    """Parses ``StepStats`` or ``RunMetadata`` bytes.

    ``whole``: whether they are a ``RunMetadata`` (True) or a ``StepStats`` (False); None: their first bytes decide.

    Raises:
        InvalidFileError: the bytes are neither, or are truncated.
    """
    whole = is_run_metadata(data) if whole is None else whole
    message = RunMetadata() if whole else StepStats()
    try:
        message.ParseFromString(bytes(data))
    except DecodeError as error:
        from collector.stepstats.salvage import salvage  # it is slower, and only needed to locate the damage

        broken = salvage(bytes(data), whole).error
        why = f"{broken} (at byte {broken.position})" if broken else str(error)
        raise InvalidFileError(f"not a whole {type(message).__name__} message: {why}") from error
    return message


def provenance_of(data: bytes | bytearray | memoryview) -> Provenance | None:
    """The provenance in the wire bytes of a ``RunMetadata`` of any writer; None if there is none.

    Raises:
        InvalidFileError: it cannot be read.
    """
    found = None
    for number, payload in fields_of(memoryview(data)):
        if number == RunMetadata.PROVENANCE_FIELD_NUMBER and payload is not None:
            found = found or Provenance()
            try:
                found.MergeFromString(bytes(payload))
            except DecodeError as error:
                raise InvalidFileError(
                    f"not a whole RunMetadata message: its provenance is broken ({error})"
                ) from error
    return found


def run_metadata_of(data: bytes, is_run_metadata: bool) -> RunMetadata:
    """The message in wire bytes; a ``StepStats`` is put into a new one.

    Raises:
        google.protobuf.message.DecodeError: protobuf cannot parse them.
    """
    message = RunMetadata()
    (message if is_run_metadata else message.step_stats).ParseFromString(data)
    return message


def step_stats_of(data: bytes, is_run_metadata: bool) -> StepStats:
    """The step in whole wire bytes of either message."""
    return RunMetadata.FromString(data).step_stats if is_run_metadata else StepStats.FromString(data)


def as_run_metadata(data: bytes) -> bytes:
    """The wire bytes of a ``RunMetadata`` that contains only the step of these ``StepStats`` bytes."""
    tag = varint.encode(RunMetadata.STEP_STATS_FIELD_NUMBER << 3 | _BYTES)
    return b"".join([tag, varint.encode(len(data)), data]) if data else b""


def serialized_step(step_stats: Any) -> bytes | memoryview:
    """The wire bytes of a ``StepStats`` message of any class.

    The message is written device by device: protobuf grows its output by copying it, and new pages for a whole step
    cost as much as the writing. A device's bytes are copied and freed before those of the next device are made, so that
    the same memory is used again; the copy is large, and its pages are huge if the system provides them.
    """
    devices = step_stats.dev_stats
    if sum(len(device.node_stats) for device in devices) < _NODES_OF_A_LARGE_STEP:
        return b"".join(piece for device in devices for piece in _device_field(device))
    pages = mmap.mmap(-1, _FIRST_PAGES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages.madvise(mmap.MADV_HUGEPAGE)
    for device in devices:
        head, message = _device_field(device)
        end = pages.tell() + len(head) + len(message)
        if end > len(pages):
            pages.resize(2 * end)
        pages.write(head)
        pages.write(message)
        del message
    return memoryview(pages)[: pages.tell()]


def _device_field(device: Any) -> tuple[bytes, bytes]:
    message = device.SerializeToString()
    return field_head(StepStats.DEV_STATS_FIELD_NUMBER, len(message)), message


def fields_of(data: memoryview, limit: int | None = None) -> Iterator[tuple[int, memoryview | None]]:
    """Field number and, for length-delimited fields, the available payload of each field; ends at invalid bytes."""
    position = 0
    try:
        while position < len(data) and limit != 0:
            limit = None if limit is None else limit - 1
            tag, position = varint.decode(data, position)
            number, kind = tag >> 3, tag & 7
            payload = None
            if kind == _VARINT:
                _, position = varint.decode(data, position)
            elif kind == _BYTES:
                length, position = varint.decode(data, position)
                payload = data[position : position + length]
                position += length
            elif kind in (_FIXED64, _FIXED32):
                position += 8 if kind == _FIXED64 else 4
            else:
                number = 0
            if number == 0:
                yield _MALFORMED, None
                return
            yield number, payload
    except varint.VarintError:
        yield _MALFORMED, None
