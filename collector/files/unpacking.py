"""Decompression of gzip files as far as they are intact, and size limits of the result."""

from __future__ import annotations

import contextlib
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from collector.errors import InvalidFileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_BYTES = 4 << 30
"""The maximum size of a file, before and after decompression: Python cannot hold larger traces."""
GZIP = b"\x1f\x8b"
_MOST_TIMES = 200
"""The maximum compression ratio; the most repetitive traces shrink to an 80th of their size."""
_HARMLESS_BYTES = 64 << 20
"""The size up to which any file may be decompressed."""
_CHUNK = 1 << 16
_SMALL_CHUNK = 1 << 8
"""The precision in bytes with which the intact part of a damaged chunk is determined."""
_GROUP = Path("/sys/fs/cgroup")


class _PartOfMemory(NamedTuple):
    divisor: int
    name: str


_PART_OF_TEXT = _PartOfMemory(4, "a quarter")
"""A trace in memory takes at least four times the bytes of a text or of messages."""
_PART_OF_COLUMNS = _PartOfMemory(2, "half")
"""The answers about a recording take about as much memory as its columns."""


class Unpacked(NamedTuple):
    """The decompressed content of a gzip file."""

    content: bytes
    damage: str
    """The error of a stream that cannot be read to its end, or ``""``."""
    is_cut: bool
    """Whether the file ends inside a stream."""


class GzipPieces:
    """The decompressed content of one or more gzip streams, piece by piece.

    Data after the streams or after damage is ignored. `damage` and `is_cut` are known once all pieces were taken.
    """

    def __init__(self, packed: Iterable[bytes], num_bytes: int, name: object) -> None:
        """Hold the packed bytes, `num_bytes` in all; errors call them `name`."""
        self._packed = packed
        self._limit = _Limit.of(num_bytes)
        self._name = name
        self.damage = ""
        """See `Unpacked`."""
        self.is_cut = False
        """See `Unpacked`."""

    def __iter__(self) -> Iterator[bytes]:
        """The pieces.

        Raises:
            collector.InvalidFileError: the decompressed content is larger than that of any trace of its size, or than
                this machine's memory permits.
        """
        left = self._limit.num_bytes
        stream = zlib.decompressobj(wbits=31)
        chunks = (piece[at : at + _CHUNK] for piece in self._packed for at in range(0, len(piece), _CHUNK))
        for first in chunks:
            chunk = first
            while len(chunk):
                before = stream.copy()
                try:
                    part = stream.decompress(chunk, left + 1)
                except zlib.error as error:
                    part, self.damage = _before_damage(before, chunk, left + 1), str(error)
                left -= len(part)
                if left < 0:
                    raise self._limit.error(self._name)
                yield part
                if self.damage:
                    return
                chunk = b""
                if stream.eof:
                    chunk = stream.unused_data
                    while len(chunk) < len(GZIP) and (more := next(chunks, None)) is not None:
                        chunk += more
                    if not chunk or not GZIP.startswith(chunk[: len(GZIP)]):
                        return
                    stream = zlib.decompressobj(wbits=31)
        self.is_cut = True


def unpack_gzip(data: bytes, name: object) -> Unpacked:
    """Decompress one or more gzip streams; see `GzipPieces`.

    Raises:
        collector.InvalidFileError: the result is larger than `GzipPieces` permits.
    """
    pieces = GzipPieces([data], len(data), name)
    return Unpacked(b"".join(pieces), pieces.damage, pieces.is_cut)


def _before_damage(stream: zlib._Decompress, chunk: bytes, most: int) -> bytes:
    parts = []
    with contextlib.suppress(zlib.error):
        for at in range(0, len(chunk), _SMALL_CHUNK):
            parts.append(stream.decompress(chunk[at : at + _SMALL_CHUNK], most))
            most -= len(parts[-1])
            if most <= 0:
                break
    return b"".join(parts)


def check_columns_size(num_bytes: int, name: object) -> None:
    """Refuse recordings whose columns, each counted in full, take more than half of the available memory.

    The size of the file limits nothing, because columns of equal rows, or of equal steps, take nearly no bytes in it.

    Raises:
        collector.InvalidFileError: they take more.
    """
    limit = _Limit.of_memory(_PART_OF_COLUMNS) or _Limit.of_any_file()
    if num_bytes > limit.num_bytes:
        raise limit.error(name)


class _Limit(NamedTuple):
    """The maximum decompressed size of a file."""

    num_bytes: int
    why: str
    remedy: str

    @classmethod
    def of(cls, packed_bytes: int) -> _Limit:
        """The limit of a gzip file of this size."""
        of_ratio = cls(
            max(_HARMLESS_BYTES, packed_bytes * _MOST_TIMES),
            f"{_MOST_TIMES} times its size, as no trace does",
            "Unpack it first if you know what is in it",
        )
        limits = (cls.of_any_file(), of_ratio, cls.of_memory(_PART_OF_TEXT))
        return min(limit for limit in limits if limit is not None)

    @classmethod
    def of_any_file(cls) -> _Limit:
        return cls(MAX_BYTES, f"{MAX_BYTES >> 30} GiB", "")

    @classmethod
    def of_memory(cls, part: _PartOfMemory) -> _Limit | None:
        """The limit of this machine, or None if its available memory is not known."""
        available = available_memory()
        if available is None:
            return None
        why = f"{part.name} of the {available >> 20} MiB of available memory"
        return cls(available // part.divisor, why, "Read it where there is more memory")

    def error(self, name: object) -> InvalidFileError:
        return InvalidFileError(f"{name}: unpacks to more than {self.why}", self.remedy)


def available_memory() -> int | None:
    """Bytes that this process can still allocate, by the machine's memory and its control group's; None: unknown."""
    free = []
    with contextlib.suppress(OSError, ValueError, LookupError):
        free.append(_figures(Path("/proc/meminfo").read_text("ascii"))["MemAvailable:"] << 10)
    with contextlib.suppress(OSError, ValueError, LookupError):
        cache = _figures((_GROUP / "memory.stat").read_text("ascii"))
        used = int((_GROUP / "memory.current").read_text("ascii")) - cache["active_file"] - cache["inactive_file"]
        limit = int((_GROUP / "memory.max").read_text("ascii"))  # "max" is not a number, and means no limit
        free.append(max(limit - used, 0))
    return min(free, default=None)


def _figures(text: str) -> dict[str, int]:
    return {line.split()[0]: int(line.split()[1]) for line in text.splitlines()}
