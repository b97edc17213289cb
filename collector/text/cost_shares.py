"""Shares of time as people write them: the budget of a recording."""

from __future__ import annotations

import re

MILLION = 1_000_000
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")


def millionths_of(text: str) -> int:
    """A share of time in millionths.

    >>> millionths_of("1%"), millionths_of("0.25 %")
    (10000, 2500)

    Raises:
        ValueError: the text is not a share from 0.0001% to 100%.
    """
    match = _SHARE.fullmatch(text.strip()) if isinstance(text, str) else None
    share = 0 if match is None else round(float(match[1]) * MILLION / 100)
    if not 1 <= share <= MILLION:
        raise ValueError(f"budget={text!r}: write a share of the time of one core from 0.0001% to 100%, such as 1%")
    return share
