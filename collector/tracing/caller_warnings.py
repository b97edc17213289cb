"""Warnings at the line of the program that called this package."""

from __future__ import annotations

import contextlib
import sys
import warnings
from pathlib import Path

from collector.errors import CollectorWarning

_PACKAGE = str(Path(__file__).parent.parent)


def warn_caller(message: str) -> None:
    """Give a `CollectorWarning` at the caller's line, the first one outside this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    with contextlib.suppress(ValueError):  # the program has closed sys.stderr
        warnings.warn(message, CollectorWarning, stacklevel=level)
