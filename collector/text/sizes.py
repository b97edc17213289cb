"""Sizes in bytes as people write them."""

from __future__ import annotations

import re

_UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")


def bytes_of(text: str) -> int:
    """The bytes of a size.

    >>> bytes_of("512MB"), bytes_of("1.5 GiB"), bytes_of("4096")
    (536870912, 1610612736, 4096)

    Raises:
        ValueError: it is none.
    """
    match = _SIZE.fullmatch(text.strip())
    unit = None if match is None else _UNITS.get(match[2].upper().replace("IB", "B"))
    if match is None or unit is None:
        raise ValueError(f"{text!r} is no size: write a number with KB, MB or GB, such as 512MB")
    return round(float(match[1]) * unit)
