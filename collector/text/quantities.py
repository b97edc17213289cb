"""Times and sizes as text: for display with four digits and the unit that fits, and as users write them."""

from __future__ import annotations

import math
import re

from collector.text.wording import counted

TIME_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
"""Unit as written by users -> ns."""
SIZE_UNITS = (
    {"B": 1}
    | {f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGT", 1)}
    | {f"{prefix}B": 1000**power for power, prefix in enumerate(("k", "M", "G", "T"), 1)}
    | {"KB": 1000}
)
"""Unit as written by users -> bytes. ``kB``, ``MB``, ... are decimal, ``KiB``, ``MiB``, ... are binary."""
_SIZE_FACTORS = {"": 1} | {unit.lower(): size for unit, size in SIZE_UNITS.items()}
_SECONDS = {"ms": 0.001, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600}

_QUANTITY = re.compile(r"\s*(-?\d+(?:\.\d*)?|-?\.\d+)\s*([^\s\d]*)\s*")

_LARGER_TIMES = (("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000))
_LARGER_SIZES = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3))


def time_text(nanoseconds: float) -> str:
    """A time in s, ms, µs or ns.

    >>> time_text(12_345), time_text(500)
    ('12.35 µs', '500 ns')
    """
    for unit, length in _LARGER_TIMES:
        if nanoseconds >= length:
            return f"{_four_digits(nanoseconds / length)} {unit}"
    return f"{nanoseconds:.0f} ns"


def size_text(num_bytes: float) -> str:
    """A number of bytes in TB, GB, MB, kB (all decimal) or bytes.

    >>> size_text(4_194_304), size_text(1)
    ('4.194 MB', '1 byte')
    """
    for unit, size in _LARGER_SIZES:
        if num_bytes >= size:
            return f"{_four_digits(num_bytes / size)} {unit}"
    return counted("{} byte[|s]", round(num_bytes))


def _four_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def number_and_unit(text: str) -> tuple[float, str] | None:
    """The number and the unit of a quantity as users write it; None: it is not a quantity, or is infinite.

    >>> number_and_unit("12.5us"), number_and_unit("16 MiB"), number_and_unit("3"), number_and_unit("us")
    ((12.5, 'us'), (16.0, 'MiB'), (3.0, ''), None)
    """
    found = _QUANTITY.fullmatch(text)
    return (float(found[1]), found[2]) if found and math.isfinite(float(found[1])) else None


def bytes_of(text: str) -> int:
    """The bytes of a size as users write it, with a unit of `SIZE_UNITS` in any case, or without a unit.

    >>> bytes_of("512MB"), bytes_of("1.5 GiB"), bytes_of("4096")
    (512000000, 1610612736, 4096)

    Raises:
        ValueError: the text is not a size.
    """
    number, unit = number_and_unit(text) or (-1, "")
    factor = _SIZE_FACTORS.get(unit.lower())
    if number < 0 or factor is None:
        raise ValueError(f"{text!r} is not a size: write a number with kB, MB, GB, KiB, MiB or GiB, such as 512MB")
    num_bytes: int = round(number * factor)
    return num_bytes


def seconds_of(text: str) -> float:
    """The seconds of a duration as users write it, in ms, s, min or h.

    >>> seconds_of("30s"), seconds_of("500 ms"), seconds_of("1.5min")
    (30.0, 0.5, 90.0)

    Raises:
        ValueError: the text is not a duration.
    """
    number, unit = number_and_unit(text) or (-1, "")
    if number < 0 or unit not in _SECONDS:
        raise ValueError(f"{text!r} is not a duration: write a number with ms, s, min or h, such as 30s")
    return number * _SECONDS[unit]
