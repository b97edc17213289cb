"""Varints, the number encoding of protobuf and snappy (seven bits per byte, lowest first), and heads of fields."""

from __future__ import annotations

LONGEST = 10
"""The maximum length of an encoded field value."""


class VarintError(ValueError):
    """There is no valid number: the bytes end inside it, or it is longer than `LONGEST` bytes.

    Attributes:
        position: the index of the first byte that is missing or superfluous.
    """

    def __init__(self, problem: str, position: int) -> None:
        super().__init__(problem)
        self.position = position


def encode(value: int) -> bytes:
    """Return the bytes of a number of at least 0."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def field_head(field: int, num_bytes: int) -> bytes:
    """Return the tag and length before a message or text of ``num_bytes`` in the enclosing message."""
    length_delimited = 2
    return encode(field << 3 | length_delimited) + encode(num_bytes)


def decode(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Return the number at ``position``, of up to 70 bits, and the position after it.

    Raises:
        VarintError: there is no valid number.
    """
    value = 0
    for shift in range(0, 7 * LONGEST, 7):
        if position >= len(data):
            raise VarintError("a number cut off by the end of its message", position)
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise VarintError("a number longer than 10 bytes", position)
