"""New folders of the collector beside files of the user."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import OutputError
from collector.files.atomic_files import output_error

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator


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
    folder = _unused_path(parent, prefix)
    _make(folder)
    return folder


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder for temporary files, which only this user can read; it is removed at the end of the block.

    Also a signal whose handler raises an exception leaves nothing, wherever it arrives. `tempfile.TemporaryDirectory`
    keeps a folder whose removal is interrupted.

    Raises:
        collector.OutputError: the folder cannot be made.
    """
    folder = _unused_path(temporary_folder(), "collector-")  # known before it is made
    try:
        try:
            _make(folder)
            yield folder
        finally:
            remove_folder(folder)
    finally:
        remove_folder(folder)  # the first removal may have been interrupted


def _unused_path(parent: str | os.PathLike[str], prefix: str) -> Path:
    return Path(parent, prefix + secrets.token_hex(8))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise output_error(f"cannot make a folder in {folder.parent}", error) from error


def remove_folder(folder: Path) -> None:
    """Remove a folder with its files, as far as that is possible."""
    with contextlib.suppress(OSError):  # Python 3.13 and earlier raise those of `close` nevertheless
        shutil.rmtree(folder, ignore_errors=True)
