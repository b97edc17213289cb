"""Keys of variables saved in slices: a checkpoint stores each part under a key with the variable and the part.

The encoding preserves the sort order: a zero; the name, ended by 0 1, with 0 written as 0 255 and 255 as 255 0; the
number of dimensions; and for each dimension the start and the length, -1 for all of it. Counts are preceded by their
length in bytes. Signed numbers begin with as many equal bits as they have bytes; the first bit is the sign.
"""

from __future__ import annotations

from collector.errors import InvalidFileError
from collector.protos import TensorSliceProto

Extents = tuple[tuple[int, int], ...]
"""(start, length) in each dimension; ``WHOLE`` for dimensions that are not cut."""

WHOLE = (0, -1)


def is_slice(key: bytes) -> bool:
    """Whether a key is that of a slice; no variable's name begins like that."""
    return key.startswith(b"\0")


def extents_of(slice_: TensorSliceProto) -> Extents:
    """The part that an entry lists."""
    return tuple(
        (extent.start, extent.length) if extent.WhichOneof("has_length") else WHOLE for extent in slice_.extent
    )


def decode(key: bytes) -> tuple[str, Extents]:
    """Name and part of a key.

    Raises:
        InvalidFileError: ``key`` is not the key of a slice.
    """
    try:
        name, position = _text(key, 1)
        dimensions, position = _count(key, position)
        extents = []
        for _ in range(dimensions):
            start, position = _signed(key, position)
            length, position = _signed(key, position)
            extents.append((start, length) if length >= 0 else WHOLE)
    except (IndexError, UnicodeDecodeError):
        raise InvalidFileError("the name of a slice is damaged") from None
    if position != len(key):
        raise InvalidFileError("the name of a slice is too long")
    return name, tuple(extents)


def _text(key: bytes, position: int) -> tuple[str, int]:
    found = bytearray()
    while True:
        byte, following = key[position], key[position + 1]
        if byte not in (0, 255):
            found.append(byte)
            position += 1
        elif (byte, following) == (0, 1):
            return found.decode(), position + 2
        elif (byte, following) in ((0, 255), (255, 0)):
            found.append(byte)
            position += 2
        else:
            raise IndexError


def _count(key: bytes, position: int) -> tuple[int, int]:
    end = position + 1 + key[position]
    if end > len(key):
        raise IndexError
    return int.from_bytes(key[position + 1 : end], "big"), end


def _signed(key: bytes, position: int) -> tuple[int, int]:
    is_negative = key[position] < 0x80
    head = int.from_bytes(key[position : position + 2].ljust(2, b"\0"), "big") ^ (0xFFFF if is_negative else 0)
    size = next((bit for bit in range(1, 11) if not head & 0x8000 >> bit), 11)
    end = position + size
    if size > 10 or end > len(key):
        raise IndexError
    bits = 7 * size
    value = int.from_bytes(key[position:end], "big") & (1 << bits) - 1
    return value - (1 << bits if is_negative else 0), end
