"""New folders of the collector beside files of the user."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import OutputError
from collector.files.atomic_files import output_error

if TYPE_CHECKING:
    import os


def temporary_folder() -> str:
    """The folder for temporary files.

    Raises:
        collector.OutputError: this user can write to none.
    """
    try:
        return tempfile.gettempdir()
    except FileNotFoundError as error:
        raise OutputError(
            "no folder for temporary files can be written",
            "Set TMPDIR to a folder with room that this user may write to",
        ) from error


def new_folder(parent: str | os.PathLike[str], prefix: str) -> Path:
    """Make a folder with a unique name; return its path.

    Args:
        parent: the folder in which it is made.
        prefix: the beginning of its name.

    Raises:
        collector.OutputError: the folder cannot be made.
    """
    try:
        return Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    except OSError as error:
        raise output_error(f"cannot make a folder in {parent}", error) from error
