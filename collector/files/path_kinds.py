"""The kind of the file at a path. Most functions here treat a path that cannot be examined as one without a file.

Before CPython 3.14 `Path.is_dir`, `Path.is_file` and `Path.exists` raise an error for a path in a folder that the user
may not enter, and for a name that is too long. Opening such a file gives the error that names it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path


def mode_at(path: str | os.PathLike[str]) -> int:
    """The type and permissions of the file to which a path leads, as in ``st_mode``; 0 if they are not known."""
    try:
        return os.stat(path).st_mode  # noqa: PTH116 - a test that sets `os.name` cannot make a Path
    except (OSError, ValueError):  # ValueError: a NUL is in the path
        return 0


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a path leads to a folder."""
    return stat.S_ISDIR(mode_at(path))


def is_regular_file(path: str | os.PathLike[str]) -> bool:
    """Whether a path leads to a regular file: not to a folder, pipe, socket or device."""
    return stat.S_ISREG(mode_at(path))


def exists(path: str | os.PathLike[str]) -> bool:
    """Whether a path leads to a file of any kind."""
    return mode_at(path) != 0


def readable_mode(path: str | os.PathLike[str]) -> int:
    """The type and permissions of a file, as in ``st_mode``.

    Raises:
        OSError: they are not known, or the file is a folder that this user may not list.
    """
    mode = Path(path).stat().st_mode
    if stat.S_ISDIR(mode):
        os.scandir(path).close()
    return mode
