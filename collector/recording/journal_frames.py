"""The frames of a journal and their blocks, on the level of bytes.

``native/capture/journal_format.h`` describes the format. A file begins with `MAGIC` and the version; frames follow,
each of blocks of some kind. The last frame may be truncated, if the program ended while it was written.
"""

from __future__ import annotations

import contextlib
import os
import struct
from enum import IntFlag
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.errors import InvalidFileError
from collector.recording.packed_rows import unpack_rows

if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterator
    from pathlib import Path
    from typing import TypeAlias

    import numpy.typing as npt

    Buffer: TypeAlias = bytes | mmap.mmap
    Columns: TypeAlias = dict[str, npt.NDArray[Any]]

MAGIC = b"GPUJRNL"
"""The first bytes of a journal; one byte with the version follows."""
VERSION = 5
HEAD_BYTES = len(MAGIC) + 1
FRAME_MARK = 0x4D415246
"""The first bytes of a frame, as a number."""
BLOCK_KINDS = (
    "texts", "numbers", "layout", "callback_names", "strings", "rows", "annotation_paths", "annotation_ends", "details",
    "packed_rows", "numbered_paths", "opened_ranges", "ended_ranges",
)  # fmt: skip
"""The names of the block kinds in the order of their numbers, which start at 1."""
DAMAGE = (struct.error, ValueError, LookupError, TypeError, OverflowError, RecursionError)
"""The errors that damaged bytes lead to."""

_FRAME = struct.Struct("<IIQ")  # a mark, flags, bytes
_BLOCK = struct.Struct("<IIQ")  # kind, count, bytes
_LENGTH = struct.Struct("<I")
_KEY = struct.Struct("<III")


class FrameFlags(IntFlag):
    """The flags of a frame."""

    REPEATED = 1
    """It repeats rows of earlier segments."""
    BROKE_OFF = 2
    """It is the first of a file that could not be written to its end, although the session went on."""


class RowsKey(NamedTuple):
    """The device, context and stream that all rows of a block share; 0 in rows of the host."""

    device: int
    context: int
    stream: int


def check_version(name: Path, data: Buffer) -> None:
    """Raise `collector.InvalidFileError` if the journal is of a version that is not known."""
    version = data[len(MAGIC)] if len(data) >= HEAD_BYTES else None
    if version is None or not 1 <= version <= VERSION:
        raise InvalidFileError(
            f"{name}: a journal of version {'?' if version is None else version}, this program reads version {VERSION}",
            "Read it with the version of cupti-collector that wrote it",
        )


def flags_of_frame(data: Buffer, at: int) -> FrameFlags:
    """The flags of the frame at byte ``at``; none if there is not even the head of one."""
    return FrameFlags(_FRAME.unpack_from(data, at)[1] if at + _FRAME.size <= len(data) else 0)


def end_of_frame(data: Buffer, at: int) -> int:
    """The byte behind the frame at byte ``at``. Raises one of `DAMAGE` if there is no complete frame."""
    mark, _, num_bytes = _FRAME.unpack_from(data, at)
    end = at + _FRAME.size + int(num_bytes)
    if mark != FRAME_MARK:
        raise ValueError(f"no frame at byte {at}")
    if end > len(data):
        raise ValueError("the frame is cut off")
    return end


def last_frame(data: Buffer) -> int | None:
    """The first byte of the last frame; None: it is not complete, or there is something else."""
    at = last = HEAD_BYTES
    with contextlib.suppress(*DAMAGE):
        while at + _FRAME.size <= len(data):
            last, at = at, end_of_frame(data, at)
        return last
    return None


def blocks_of_frame(data: Buffer, at: int) -> Iterator[tuple[str, BlockReader, int]]:
    """The kinds, contents and counts of the blocks of the frame at byte ``at``. Raises one of `DAMAGE`."""
    end = end_of_frame(data, at)
    at += _FRAME.size
    while at < end:
        kind, count, num_bytes = _BLOCK.unpack_from(data, at)
        at += _BLOCK.size
        if at + num_bytes > end or not 1 <= kind <= len(BLOCK_KINDS):
            raise ValueError(f"no block at byte {at - _BLOCK.size}")
        yield BLOCK_KINDS[kind - 1], BlockReader(data, at, at + num_bytes), count
        at += num_bytes


def holds_records(path: Path) -> bool:
    """Whether the journal at ``path``, which may be truncated, contains any records.

    It does if there is a second complete frame: the first frame only describes how to read the others.
    """
    with contextlib.suppress(OSError, struct.error), path.open("rb") as file:
        end = HEAD_BYTES
        for _ in range(2):
            file.seek(end)
            mark, _, num_bytes = _FRAME.unpack(file.read(_FRAME.size))
            end += _FRAME.size + num_bytes
            if mark != FRAME_MARK or end > os.fstat(file.fileno()).st_size:
                return False
        return True
    return False


class BlockReader:
    """Reads the items of one block in order."""

    def __init__(self, data: Buffer, at: int, end: int) -> None:
        """Begin at byte ``at`` of ``data``; the block ends before byte ``end``."""
        self._data, self._at, self._end = data, at, end

    def take(self, kind: struct.Struct) -> tuple[Any, ...]:
        """The numbers of a struct."""
        return kind.unpack(self._bytes(kind.size))

    def text(self) -> str:
        """A text after its length. Kernel names are arbitrary bytes of the program."""
        return self._bytes(self.take(_LENGTH)[0]).decode("utf-8", "backslashreplace")

    def key(self) -> RowsKey:
        """The key of the rows that follow."""
        return RowsKey(*self.take(_KEY))

    def rest(self) -> bytes:
        """All bytes up to the end of the block."""
        return self._bytes(self._end - self._at)

    def rows(self, layout: np.dtype[Any], count: int) -> npt.NDArray[Any]:
        """Unpacked rows, as they are in memory."""
        return np.frombuffer(self._data, layout, count, self._pass(count * layout.itemsize))

    def packed_rows(self, layout: np.dtype[Any], count: int) -> Columns:
        """Packed rows; see `collector.recording.packed_rows`."""
        return unpack_rows(self._data, self._at, self._end, layout, count)

    def _bytes(self, count: int) -> bytes:
        begin = self._pass(count)
        return self._data[begin : self._at]

    def _pass(self, count: int) -> int:
        """Skip ``count`` bytes; return their position."""
        begin, self._at = self._at, self._at + count
        if self._at > self._end:
            raise ValueError(f"the block ends before the bytes at {begin}")
        return begin
