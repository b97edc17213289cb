"""Arguments that are shares: ``3%`` or ``0.03``."""

from __future__ import annotations

import argparse


def share(text: str) -> float:
    """Parse a share: ``3%`` and ``0.03`` are both 0.03."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share such as 3% or 0.03")
    return value


def add_fail_above_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--fail-above``, a share."""
    parser.add_argument(
        "--fail-above",
        type=share,
        default=0.03,
        metavar="PERCENT",
        help="the slowdown that counts as a regression (3%%)",
    )
