"""The files in a folder and in the folders below it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DEEPEST = 8
"""The depth of folders below the given one that are searched."""


class Found(NamedTuple):
    """A file, or a folder that was not entered."""

    path: Path
    unreadable: str = ""
    """The reason why a folder could not be entered."""


def found_below(folder: Path, is_file: Callable[[Path], bool], *, depth: int = 0) -> Iterator[Found]:
    """Yield the files in a folder and in the folders below it, in the order of their names.

    Hidden files and folders are skipped, and so are folders below `DEEPEST`. Links are yielded but not entered.

    Args:
        folder: the folder.
        is_file: whether a folder is yielded like a file, e.g. a journal in segments.
        depth: the number of levels between the first folder and this one.
    """
    try:
        with os.scandir(folder) as entries:
            listed = sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda it: it.name)
    except OSError as error:
        yield Found(folder, error.strerror or str(error))
        return
    for entry in listed:
        path = folder / entry.name
        if not entry.is_dir(follow_symlinks=False) or is_file(path):
            yield Found(path)
        elif depth < DEEPEST:
            yield from found_below(path, is_file, depth=depth + 1)
