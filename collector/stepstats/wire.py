"""Telling StepStats from RunMetadata by their bytes, and reading either without trusting it."""

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

MAX_MESSAGE_BYTES = (2 << 30) - 1
"""A protobuf message cannot be larger."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MALFORMED = -1
_END = 0
_NODES_OF_A_LARGE_STEP = 20_000
_FIRST_PAGES = 64 << 20  # bytes, of which only what is written to costs memory


def is_run_metadata(data: bytes | bytearray | memoryview) -> bool:
    """Whether wire bytes are a ``RunMetadata`` rather than a ``StepStats``: the two look alike at their first byte.

    ``StepStats`` holds nothing but devices (field 1), each with a name and nodes; ``RunMetadata`` holds one
    ``StepStats`` (field 1) and other fields. The first device or step decides, so the cost does not grow with the file.
    """
    top = fields_of(memoryview(data))
    number, first = next(top, (_END, None))
    if number != 1 or first is None:
        return number > 1
    fields = fields_of(first)
    number, name = next(fields, (_END, None))
    if number == _END:  # an empty step, or an unnamed device without nodes among others
        return next(top, (_END, None))[0] != 1
    if number != 1 or name is None:  # nodes of a device without a name
        return False
    following, _ = next(fields, (_END, None))
    if following in (1, 2, 3):  # a second device; or the first one's nodes or threads
        return following == 1
    # Else it is text where it names a device, and a device message where it is the only device of a step.
    return all(number in (1, 2, 3) and value is not None for number, value in fields_of(name, limit=1))


def parse_step(data: bytes | bytearray | memoryview, source: str = "", *, whole: bool | None = None) -> Any:
    """Parses ``StepStats`` or ``RunMetadata`` bytes; ``source`` names them in the error.

    ``whole`` says that they are a ``RunMetadata`` (True) or a ``StepStats`` (False); None: their first bytes decide.

    Raises:
        InvalidFileError: the bytes are neither, or end early.
    """
    whole = is_run_metadata(data) if whole is None else whole
    message = RunMetadata() if whole else StepStats()
    try:
        message.ParseFromString(bytes(data))
    except DecodeError as error:
        from collector.stepstats.salvage import salvage  # it is read more slowly, to say where it is broken

        broken = salvage(bytes(data), whole).error
        why = f"{broken} (at byte {broken.position})" if broken else str(error)
        where = f"{source}: " if source else ""
        raise InvalidFileError(f"{where}not a whole {type(message).__name__} message: {why}") from error
    return message


def provenance_of(data: bytes | bytearray | memoryview) -> Provenance | None:
    """The provenance in the wire bytes of a ``RunMetadata``, whosever class wrote them; None where there is none.

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
    """The message in wire bytes, or one that holds the step in those of a ``StepStats``.

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
    """The wire bytes of a ``RunMetadata`` that holds nothing but the step in these of a ``StepStats``."""
    tag = varint.encode(RunMetadata.STEP_STATS_FIELD_NUMBER << 3 | _BYTES)
    return b"".join([tag, varint.encode(len(data)), data]) if data else b""


def serialized_step(step_stats: Any) -> bytes | memoryview:
    """The wire bytes of a ``StepStats`` message, whosever class it is of.

    It is written device by device: protobuf enlarges the memory that it writes to by copying it, and new pages for a
    whole step cost as much as the writing. A device's bytes are copied and freed before the next one's are made, so
    that those are made in the same memory; the pages of a large copy are huge, if the system gives any.
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
    """Field number and, where it has a length, payload (as far as it is there) of each field; ends at rubbish."""
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
