"""Checkpoints of format V2: an index file (a sorted table of names) and data files (the tensors' bytes).

The index is a table of blocks as LevelDB writes them: entries share prefixes with the one before, blocks end with a
list of restarts, each is followed by its compression (0 none, 1 snappy) and a masked CRC-32C. The entry of the empty
name is the header.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from collector.errors import InvalidFileError
from collector.profiler import snappy
from collector.protos import BundleEntryProto, BundleHeaderProto, DataType

Order = Literal["<", ">"]
"""Byte order of numbers."""

_MAGIC = 0xDB4775248B80FB57
_FOOTER_BYTES = 48
_TRAILER_BYTES = 5
_STRING = 7
_BFLOAT16 = 14
_REFERENCE = 100
"""Types above are references to the type without it."""

DTYPES: dict[int, str] = {
    1: "f4",
    2: "f8",
    3: "i4",
    4: "u1",
    5: "i2",
    6: "i1",
    8: "c8",
    9: "i8",
    10: "?",
    17: "u2",
    18: "c16",
    19: "f2",
    22: "u4",
    23: "u8",
}
"""Element type -> numpy's, byte order aside. Strings and bfloat16 are read apart."""


class Checkpoint:
    """Names, types, shapes and values of saved variables.

    Args:
        prefix: what comes before ``.index``; naming the index file itself will do.

    Raises:
        InvalidFileError: the index is missing or corrupt.
    """

    def __init__(self, prefix: str | os.PathLike[str]) -> None:
        self._prefix = os.fspath(prefix).removesuffix(".index")
        path = Path(f"{self._prefix}.index")
        try:
            table = path.read_bytes()
        except OSError as error:
            raise InvalidFileError(f"{path} cannot be read: {error.strerror}", "Give PREFIX of PREFIX.index") from error
        self._entries: dict[str, BundleEntryProto] = {}
        try:
            self._read_index(table)
        except (InvalidFileError, DecodeError, IndexError, struct.error, UnicodeDecodeError) as error:
            raise InvalidFileError(f"{path} is no checkpoint index, or a corrupt one: {error}") from error

    def _read_index(self, table: bytes) -> None:
        header = None
        for key, value in read_table(table):
            if key == b"":
                header = BundleHeaderProto.FromString(value)
            else:
                self._entries[key.decode()] = BundleEntryProto.FromString(value)
        if header is None:
            raise InvalidFileError("it has no header")
        self._shards = header.num_shards
        self._order: Order = ">" if header.endianness == BundleHeaderProto.BIG else "<"

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def names(self) -> list[str]:
        """All variables, sorted."""
        return sorted(self._entries)

    def dtype(self, name: str) -> DataType:
        """The variable's element type."""
        return self._entries[name].dtype

    def shape(self, name: str) -> tuple[int, ...]:
        """The variable's shape."""
        return tuple(dim.size for dim in self._entries[name].shape.dim)

    def read(self, name: str) -> NDArray[np.generic]:
        """The variable's value; strings come as ``object`` elements of bytes, bfloat16 as float32.

        Raises:
            InvalidFileError: its data file is missing, too short or corrupt, or its type is not known.
        """
        entry = self._entries[name]
        if entry.slices:
            raise InvalidFileError(f"{name} is saved in slices, which are not put together here")
        path = Path(f"{self._prefix}.data-{entry.shard_id:05d}-of-{self._shards:05d}")
        try:
            with path.open("rb") as file:
                file.seek(entry.offset)
                data = file.read(entry.size)
        except OSError as error:
            raise InvalidFileError(f"{path} cannot be read: {error.strerror}") from error
        if len(data) != entry.size:
            raise InvalidFileError(f"{path} ends before the value of {name}")
        kind = entry.dtype % _REFERENCE
        if kind == _STRING:
            return _strings(data, self.shape(name), name)
        if entry.crc32c and unmask(entry.crc32c) != crc32c(data):
            raise InvalidFileError(f"{path}: the value of {name} is corrupt (its checksum is wrong)")
        return _numbers(data, kind, self._order, self.shape(name), name)


def _numbers(data: bytes, kind: int, order: Order, shape: tuple[int, ...], name: str) -> NDArray[np.generic]:
    if kind == _BFLOAT16:
        upper = np.frombuffer(data, f"{order}u2").astype(np.uint32) << 16
        flat: NDArray[np.generic] = upper.view(np.float32)
    elif kind in DTYPES:
        flat = np.frombuffer(data, np.dtype(DTYPES[kind]).newbyteorder(order))
    else:
        raise InvalidFileError(f"{name} is of type {kind}, which is not known here")
    if flat.size != int(np.prod(shape, dtype=np.int64)):
        raise InvalidFileError(f"{name} has {flat.size} elements, which do not make the shape {shape}")
    return flat.reshape(shape)


def _strings(data: bytes, shape: tuple[int, ...], name: str) -> NDArray[np.generic]:
    """All lengths, a checksum of them, then all texts."""
    count = int(np.prod(shape, dtype=np.int64))
    position, lengths = 0, []
    try:
        for _ in range(count):
            length, position = _varint(data, position)
            lengths.append(length)
    except IndexError:
        raise InvalidFileError(f"the value of {name} is too short") from None
    position += 4 if count else 0
    values = np.empty(count, object)
    for index, length in enumerate(lengths):
        values[index] = data[position : position + length]
        position += length
    if position > len(data):
        raise InvalidFileError(f"the value of {name} is too short")
    return values.reshape(shape)


def read_table(table: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(key, value) of every entry, in order.

    Raises:
        InvalidFileError: this is no table, or a block is damaged.
    """
    if len(table) < _FOOTER_BYTES or struct.unpack("<Q", table[-8:])[0] != _MAGIC:
        raise InvalidFileError("it does not end like a table")
    footer = table[-_FOOTER_BYTES:]
    _, position = _varint(footer, 0)
    _, position = _varint(footer, position)
    offset, position = _varint(footer, position)
    size, _ = _varint(footer, position)
    for _, handle in _entries(_block(table, offset, size)):
        begin, position = _varint(handle, 0)
        length, _ = _varint(handle, position)
        yield from _entries(_block(table, begin, length))


def _block(table: bytes, offset: int, size: int) -> bytes:
    end = offset + size
    if end + _TRAILER_BYTES > len(table):
        raise InvalidFileError("a block reaches beyond the file")
    stored = table[offset:end]
    compression, checksum = table[end], struct.unpack("<I", table[end + 1 : end + _TRAILER_BYTES])[0]
    if unmask(checksum) != crc32c(stored + table[end : end + 1]):
        raise InvalidFileError("a block's checksum is wrong")
    if compression > 1:
        raise InvalidFileError(f"a block is compressed in a way ({compression}) not known here")
    return snappy.decompress(stored) if compression else stored


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    restarts = struct.unpack("<I", block[-4:])[0]
    end = len(block) - 4 * (restarts + 1)
    position, key = 0, b""
    while position < end:
        shared, position = _varint(block, position)
        unshared, position = _varint(block, position)
        length, position = _varint(block, position)
        key = key[:shared] + block[position : position + unshared]
        position += unshared
        yield key, block[position : position + length]
        position += length
    if position != end:
        raise InvalidFileError("a block's entries do not fill it")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def unmask(masked: int) -> int:
    """A stored checksum as it was computed: they are rotated and shifted, lest data hold its own checksum."""
    rotated = (masked - 0xA282EAD8) & 0xFFFFFFFF
    return (rotated >> 17 | rotated << 15) & 0xFFFFFFFF


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_CRC = _crc_table()


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli) of ``data``."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF
