"""Durations as people write them."""

from __future__ import annotations

import re

_UNITS = {"ms": 0.001, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600}
_DURATION = re.compile(rf"(\d+(?:\.\d+)?)\s*({'|'.join(_UNITS)})")


def seconds_of(text: str) -> float:
    """The seconds of a duration.

    >>> seconds_of("30s"), seconds_of("500 ms"), seconds_of("1.5min")
    (30.0, 0.5, 90.0)

    Raises:
        ValueError: it is none.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no time: write a number with ms, s, min or h, such as 30s")
    return float(match[1]) * _UNITS[match[2]]
