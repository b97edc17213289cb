"""New folders of the collector beside files of the user."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from collector.files.atomic_files import output_error

if TYPE_CHECKING:
    import os


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
