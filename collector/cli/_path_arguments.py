"""Names of files and folders on the command line; an empty word would be the working directory."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import CollectorError

if TYPE_CHECKING:
    from collections.abc import Iterable

_EMPTY, _REMEDY = "the name of a file is empty", "is a variable of the shell not set?"


def path_argument(text: str) -> Path:
    """A file or a folder."""
    if not text:
        raise argparse.ArgumentTypeError(f"{_EMPTY}: {_REMEDY}")
    return Path(text)


def check_names(names: Iterable[str]) -> None:
    """Raise `collector.CollectorError` if one of the names is empty."""
    if not all(names):
        raise CollectorError(_EMPTY, _REMEDY.capitalize())
