"""Figures in tfprof's form: three decimal units, two decimals.

Values are not rounded up to the next unit: 999,999 is 1000.00k.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def number(count: int) -> str:
    """930580 -> ``930.58k``; also m (10^6) and b (10^9)."""
    if count < 1000:
        return str(count)
    if count < 1_000_000:
        return f"{count / 1e3:.2f}k"
    if count < 1_000_000_000:
        return f"{count / 1e6:.2f}m"
    return f"{count / 1e9:.2f}b"


def time(micros: int) -> str:
    """Microseconds as ``us``, ``ms`` or ``sec``."""
    if micros < 1000:
        return f"{micros}us"
    if micros < 1_000_000:
        return f"{micros / 1e3:.2f}ms"
    return f"{micros / 1e6:.2f}sec"


def memory(num_bytes: int) -> str:
    """Bytes as ``B``, ``KB`` or ``MB`` of 1000 (there is no GB)."""
    if num_bytes < 1000:
        return f"{num_bytes}B"
    if num_bytes < 1_000_000:
        return f"{num_bytes / 1e3:.2f}KB"
    return f"{num_bytes / 1e6:.2f}MB"


def shape(dims: Iterable[int]) -> str:
    """``3x3x16``; an unknown dimension is -1."""
    return "x".join(map(str, dims))


def input_shapes(shapes: Mapping[int, list[int]]) -> list[str]:
    """``["0:2x3", "1:unknown"]`` in order of the input's index."""
    return [f"{index}:{shape(dims) or 'unknown'}" for index, dims in sorted(shapes.items())]


UNITS = {"exec_micros": time, "accelerator_exec_micros": time, "cpu_exec_micros": time}
"""Counter -> the formatting function of its figure; every other measured counter is memory."""


def measure(counter: str, value: int) -> str:
    """``value`` of a time or memory counter in its unit."""
    return UNITS.get(counter, memory)(value)
