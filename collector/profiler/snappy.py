"""Decompression of snappy blocks, which the tables of checkpoints may contain."""

from __future__ import annotations

from collector.errors import InvalidFileError
from collector.stepstats import varint


def decompress(data: bytes) -> bytes:
    """The decompressed bytes of a snappy block.

    Raises:
        InvalidFileError: the block is damaged.
    """
    try:
        expected, position = varint.decode(data, 0)
        out = bytearray()
        while position < len(data):
            tag = data[position]
            position += 1
            if tag & 3 == 0:
                size, position = _literal(data, tag, position)
                out += data[position : position + size]
                position += size
            else:
                size, offset, position = _copy(data, tag, position)
                _repeat(out, offset, size)
            if len(out) > expected:
                break
    except (IndexError, varint.VarintError):
        raise InvalidFileError("a compressed block ends too early") from None
    if len(out) != expected:
        raise InvalidFileError("a compressed block is damaged")
    return bytes(out)


def _literal(data: bytes, tag: int, position: int) -> tuple[int, int]:
    """The number of literal bytes, and their start. From 60 on, the length is in 1 to 4 bytes of its own."""
    size = tag >> 2
    if size < 60:
        return size + 1, position
    extra = size - 59
    if position + extra > len(data):
        raise IndexError
    return int.from_bytes(data[position : position + extra], "little") + 1, position + extra


def _copy(data: bytes, tag: int, position: int) -> tuple[int, int, int]:
    """Length, distance back, and the position after a copy of one of three widths."""
    if tag & 3 == 1:
        return (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[position], position + 1
    width = 2 if tag & 3 == 2 else 4
    if position + width > len(data):
        raise IndexError
    return (tag >> 2) + 1, int.from_bytes(data[position : position + width], "little"), position + width


def _repeat(out: bytearray, offset: int, size: int) -> None:
    if not 0 < offset <= len(out):
        raise IndexError
    begin = len(out) - offset
    for index in range(size):  # the source may overlap the target
        out.append(out[begin + index])
