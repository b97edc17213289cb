"""Arguments that are plain numbers."""

from __future__ import annotations

import argparse

_MOST_SECONDS = 1e8


def seconds_argument(text: str) -> float:
    """A number of seconds from 0 on."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _MOST_SECONDS:  # also not a number
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of seconds from 0 to {_MOST_SECONDS:.0f}, such as 2.5"
        )
    return seconds


def number_in(text: str) -> int:
    """The whole number in a text; -1 if there is none, or one of more digits than Python reads."""
    try:
        return int(text)
    except ValueError:
        return -1


def count_in(text: str) -> int:
    """The number in a text of digits alone; -1 if it has anything else, or more digits than Python reads."""
    return number_in(text) if text.isdecimal() else -1


def whole_argument(text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
