"""The checksum of checkpoints, CRC-32C (Castagnoli), fast enough for large variables without an extra library.

The checksum is linear: that of two concatenated pieces is the first one's, advanced by as many zero bytes as the second
is long, xor the second one's. A large piece is therefore cut into many lanes of equal length, numpy works on all lanes
at once, and lanes are combined in pairs.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

Checksums = NDArray[np.uint32]

_POLYNOMIAL = 0x82F63B78
_LANES_POWER = 14
_LARGEST_POWER, _SMALLEST_POWER = 22, 16
"""Pieces have a power of two of bytes; the rest below the smallest is read byte by byte."""


def crc32c(data: bytes | memoryview) -> int:
    """CRC-32C of ``data``."""
    view = memoryview(data)
    checksum = np.array([0xFFFFFFFF], np.uint32)
    for power in range(_LARGEST_POWER, _SMALLEST_POWER - 1, -1):
        while len(view) >= 1 << power:
            checksum = _moved(checksum, power) ^ _of_piece(view[: 1 << power], power)
            view = view[1 << power :]
    state = int(checksum[0])
    table = _table().tolist()
    for byte in view:
        state = table[(state ^ byte) & 0xFF] ^ state >> 8
    return state ^ 0xFFFFFFFF


def unmask(masked: int) -> int:
    """The original value of a stored checksum: they are rotated and shifted, in case data contains its own checksum."""
    rotated = (masked - 0xA282EAD8) & 0xFFFFFFFF
    return (rotated >> 17 | rotated << 15) & 0xFFFFFFFF


def _of_piece(piece: memoryview, power: int) -> Checksums:
    """The checksums of 2**power zero bytes, begun with 0."""
    lane_power = power - _LANES_POWER
    columns = np.frombuffer(piece, np.uint8).reshape(1 << _LANES_POWER, 1 << lane_power).T.astype(np.uint32)
    table = _table()
    states = np.zeros(1 << _LANES_POWER, np.uint32)
    for column in columns:
        states = table[(states ^ column) & 0xFF] ^ states >> 8
    for joined in range(_LANES_POWER):
        states = _moved(states[::2], lane_power + joined) ^ states[1::2]
    return states


def _moved(states: Checksums, power: int) -> Checksums:
    """``states`` advanced by 2**power zero bytes."""
    moved = np.zeros_like(states)
    for bit, image in enumerate(_images(power).tolist()):
        moved ^= (states >> np.uint32(bit) & np.uint32(1)) * np.uint32(image)
    return moved


@cache
def _images(power: int) -> Checksums:
    """Each single bit advanced by 2**power zero bytes."""
    if power > 0:
        return _moved(_images(power - 1), power - 1)
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    images: Checksums = _table()[bits & 0xFF] ^ bits >> 8
    return images


@cache
def _table() -> Checksums:
    """Each byte advanced by eight bits."""
    table: Checksums = np.arange(256, dtype=np.uint32)
    one = np.uint32(1)
    for _ in range(8):
        table = table >> one ^ (table & one) * np.uint32(_POLYNOMIAL)
    return table
