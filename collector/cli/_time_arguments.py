"""Arguments that are times, such as ``12.5us``, and parts of a trace: ``20ms..35ms``."""

from __future__ import annotations

import argparse

from collector.text.quantities import TIME_UNITS, number_and_unit


def time_argument(text: str) -> int:
    """Parse a time with a unit; return nanoseconds."""
    number, unit = number_and_unit(text) or (-1, "")
    if not number and not unit:  # 0 of any unit
        return 0
    if number < 0 or unit not in TIME_UNITS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time: give a number and ns, us, ms or s, such as 12.5us")
    return round(number * TIME_UNITS[unit])


def time_window(text: str) -> tuple[int | None, int | None]:
    """Begin and end of a part of a trace in ns since it began; None: open."""
    first, dots, last = text.partition("..")
    if not dots:
        raise argparse.ArgumentTypeError(f"{text!r} is not a part of a trace: give FROM..TO, such as 20ms..35ms")
    begin, end = time_argument(first) if first else None, time_argument(last) if last else None
    if begin is not None and end is not None and end < begin:
        raise argparse.ArgumentTypeError(f"{text!r} ends before it begins")
    return begin, end
