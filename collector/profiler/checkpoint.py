"""Checkpoints of format V2: an index file (a sorted table of names) and data files (the tensors' bytes).

The index is a table of blocks in LevelDB's format: entries share prefixes with the previous entry, blocks end with a
list of restarts, and each block is followed by its compression (0 none, 1 snappy) and a masked CRC-32C. The entry with
the empty name is the header. A variable saved in slices has an entry that lists them, and each slice has its own entry.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from collector.errors import InvalidFileError
from collector.profiler import slices, snappy
from collector.profiler.crc32c import crc32c, unmask
from collector.protos import BundleEntryProto, BundleHeaderProto, DataType
from collector.stepstats import varint
from collector.text.wording import counted

Order = Literal["<", ">"]
"""Byte order of numbers."""

_MAGIC = 0xDB4775248B80FB57
_FOOTER_BYTES = 48
_TRAILER_BYTES = 5
_STRING = 7
_BFLOAT16 = 14
_REFERENCE = 100
"""Types above this are references to the type without it."""

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
"""Element type -> numpy's type, without byte order. Strings and bfloat16 are read separately."""


class Checkpoint:
    """Names, types, shapes and values of saved variables.

    Args:
        prefix: the path without ``.index``; the index file itself is accepted too.

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
        self._slices: dict[tuple[str, slices.Extents], BundleEntryProto] = {}
        try:
            self._read_index(table)
        except (
            InvalidFileError,
            DecodeError,
            IndexError,
            varint.VarintError,
            struct.error,
            UnicodeDecodeError,
        ) as error:
            raise InvalidFileError(f"{path} is not a checkpoint index, or a corrupt one: {error}") from error

    def _read_index(self, table: bytes) -> None:
        header = None
        for key, value in read_table(table):
            if key == b"":
                header = BundleHeaderProto.FromString(value)
            elif slices.is_slice(key):
                self._slices[slices.decode(key)] = BundleEntryProto.FromString(value)
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
        """The variable's value; strings are ``object`` elements of bytes, bfloat16 is converted to float32.

        Raises:
            InvalidFileError: the data file is missing, too short or corrupt, or the variable's type is unknown.
        """
        entry = self._entries[name]
        return self._whole(name, entry) if entry.slices else self._part(name, entry)

    def _whole(self, name: str, entry: BundleEntryProto) -> NDArray[np.generic]:
        """A variable assembled from its slices."""
        shape = self.shape(name)
        parts = []
        for listed in entry.slices:
            extents = slices.extents_of(listed)
            if (name, extents) not in self._slices:
                raise InvalidFileError(f"a slice of {name} is missing in {self._prefix}.index")
            where = tuple(slice(start, None if length < 0 else start + length) for start, length in extents)
            parts.append((where, self._part(name, self._slices[name, extents])))
        if sum(part.size for _, part in parts) != math.prod(shape):
            raise InvalidFileError(f"the slices of {name} do not make up the shape {shape}")
        value = np.empty(shape, parts[0][1].dtype)
        is_filled = np.zeros(shape, bool)
        for where, part in parts:
            if len(where) != value.ndim or value[where].shape != part.shape or is_filled[where].any():
                raise InvalidFileError(f"a slice of {name} does not fit into the shape {shape}")
            value[where] = part
            is_filled[where] = True
        return value

    def _part(self, name: str, entry: BundleEntryProto) -> NDArray[np.generic]:
        """One entry of the index: a variable or a slice of one."""
        path = Path(f"{self._prefix}.data-{entry.shard_id:05d}-of-{self._shards:05d}")
        shape = tuple(dim.size for dim in entry.shape.dim)
        try:
            with path.open("rb") as file:
                if not 0 <= entry.offset <= entry.offset + entry.size <= os.fstat(file.fileno()).st_size:
                    raise InvalidFileError(f"{path} ends before the value of {name}")
                file.seek(entry.offset)
                data = file.read(entry.size)
        except OSError as error:
            raise InvalidFileError(f"{path} cannot be read: {error.strerror}") from error
        kind = entry.dtype % _REFERENCE
        value: NDArray[np.generic]
        if kind == _STRING:
            value, checked = _strings(data, self._order, shape, name)
        else:
            value, checked = _numbers(data, kind, self._order, shape, name), data
        if entry.crc32c and unmask(entry.crc32c) != crc32c(checked):
            raise InvalidFileError(f"{path}: the value of {name} is corrupt (its checksum is wrong)")
        return value


def _numbers(data: bytes, kind: int, order: Order, shape: tuple[int, ...], name: str) -> NDArray[np.generic]:
    if kind != _BFLOAT16 and kind not in DTYPES:
        raise InvalidFileError(f"{name} is of type {kind}, which is not supported")
    dtype = np.dtype(DTYPES.get(kind, "u2")).newbyteorder(order)
    if len(data) != math.prod(shape) * dtype.itemsize or min(shape, default=0) < 0:
        raise InvalidFileError(
            f"{name} has {counted('{} byte[|s], which [does|do] not make the shape', len(data))} {shape}"
        )
    flat: NDArray[np.generic] = np.frombuffer(data, dtype)
    if kind == _BFLOAT16:
        flat = (flat.astype(np.uint32) << 16).view(np.float32)
    return flat.reshape(shape)


def _strings(data: bytes, order: Order, shape: tuple[int, ...], name: str) -> tuple[NDArray[np.generic], bytes]:
    """The texts, and the data of their checksum: lengths as numbers, the checksum of these, and the texts.

    The file contains all lengths as varints, a checksum of them, and then all texts.
    """
    count = math.prod(shape)
    position, lengths = 0, []
    try:
        for _ in range(count):
            length, position = varint.decode(data, position)
            lengths.append(length)
    except varint.VarintError:
        raise InvalidFileError(f"the value of {name} is too short") from None
    checked = b"".join(struct.pack(f"{order}{'I' if length < 1 << 32 else 'Q'}", length) for length in lengths)
    checked += data[position:]
    position += 4 if count else 0
    values = np.empty(count, object)
    for index, length in enumerate(lengths):
        values[index] = data[position : position + length]
        position += length
    if position > len(data):
        raise InvalidFileError(f"the value of {name} is too short")
    return values.reshape(shape), checked


def read_table(table: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(key, value) of every entry, in order.

    Raises:
        InvalidFileError: the bytes are not a table, or a block is damaged.
    """
    if len(table) < _FOOTER_BYTES or struct.unpack("<Q", table[-8:])[0] != _MAGIC:
        raise InvalidFileError("it does not end like a table")
    footer = table[-_FOOTER_BYTES:]
    _, position = varint.decode(footer, 0)
    _, position = varint.decode(footer, position)
    offset, position = varint.decode(footer, position)
    size, _ = varint.decode(footer, position)
    for _, handle in _entries(_block(table, offset, size)):
        begin, position = varint.decode(handle, 0)
        length, _ = varint.decode(handle, position)
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
        shared, position = varint.decode(block, position)
        unshared, position = varint.decode(block, position)
        length, position = varint.decode(block, position)
        key = key[:shared] + block[position : position + unshared]
        position += unshared
        yield key, block[position : position + length]
        position += length
    if position != end:
        raise InvalidFileError("a block's entries do not fill it")
