"""The folder in which the processes of a program write their journals while it runs."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from collector.files.atomic_files import expanded
from collector.files.new_folders import new_folder, temporary_folder
from collector.files.path_kinds import is_folder
from collector.formats.output_paths import placeholders_of

if TYPE_CHECKING:
    from types import TracebackType


class JournalFolder:
    """A new folder, removed with its contents when the block ends; if the block raises, only if it is empty.

    It is beside the output, where there is room for it and where the ranks on other machines find it too; without an
    output it is in the folder for temporary files.
    """

    def __init__(self, output: str | None) -> None:
        """Choose the place; nothing is made yet. Raises `collector.OutputError` if there is none."""
        self._parent = temporary_folder() if output is None else _existing_folder(output)
        self._is_kept = False
        self.path = Path()
        """The folder."""

    def __enter__(self) -> JournalFolder:
        self.path = new_folder(self._parent, ".collector-run-").absolute()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if exc_type is not None and not self._is_kept:  # the only copy of what was recorded, unless it is empty
            with suppress(OSError):
                self.path.rmdir()
        elif not self._is_kept:
            shutil.rmtree(self.path, ignore_errors=True)

    def keep(self) -> None:
        """Keep the folder when the block ends."""
        self._is_kept = True


def _existing_folder(output: str) -> str:
    """The innermost folder of ``output`` that exists; of a path with placeholders, the part before the first."""
    folder = expanded(output).absolute()
    folder = folder if output.endswith(os.sep) else folder.parent
    while placeholders_of(folder) or not is_folder(folder):
        folder = folder.parent
    return os.fspath(folder)
