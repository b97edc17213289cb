"""Offsets between the clocks of ranks as arguments: ``1=-2500``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from collector.errors import CollectorError

if TYPE_CHECKING:
    from collections.abc import Sequence


def add_clock_offset(clocks: argparse._MutuallyExclusiveGroup) -> None:
    """Declare the option ``--clock-offset`` beside the others about the ranks' clocks."""
    clocks.add_argument(
        "--clock-offset",
        type=_clock_offset,
        action="append",
        metavar="RANK=NS",
        help="subtract NS nanoseconds from the times of RANK, whose clock is that far ahead; once per rank",
    )


def _clock_offset(text: str) -> tuple[int, int]:
    """A rank and the offset of its clock in ns, positive if it is ahead."""
    rank, equals, offset_ns = text.partition("=")
    try:
        if not equals:
            raise ValueError(text)
        return int(rank), int(offset_ns)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not RANK=NS, such as 1=-2500") from None


def offsets_by_rank(given: Sequence[tuple[int, int]] | None) -> dict[int, int] | None:
    """Rank -> ns that its clock is ahead; None: no offset was given.

    Raises:
        collector.CollectorError: a rank has two.
    """
    offsets = dict(given or ())
    if len(offsets) < len(given or ()):
        raise CollectorError("--clock-offset is given twice for one rank")
    return offsets or None
