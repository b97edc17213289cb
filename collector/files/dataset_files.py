"""The files of a dataset, which no other output replaces.

A dataset is ``DIR/schema.json`` and files below ``DIR/<table>/run=<name>``; see `collector.dataset.dataset_folder`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.files.path_kinds import exists, is_regular_file

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA_FILE = "schema.json"
"""The file that makes a folder a dataset."""
SCHEMA_NAME = "collector.dataset"
"""The name in this file, which comes first."""
_BEGINNING = 256
_DEEPEST = 4
"""The number of folders from a file of a rank up to that of the dataset."""


def dataset_that_holds(path: Path) -> Path | None:
    """The folder of the dataset to which an existing file belongs; None: it belongs to none.

    Another file that is called ``schema.json`` belongs to no dataset: it may be an earlier output.
    """
    if not exists(path):
        return None
    absolute = path.absolute()
    if path.name == SCHEMA_FILE and _is_schema(path):
        return absolute.parent
    for folder in absolute.parents[1:_DEEPEST]:
        if absolute.relative_to(folder).parts[1].startswith("run=") and _is_schema(folder / SCHEMA_FILE):
            return folder
    return None


def _is_schema(path: Path) -> bool:
    """Whether a file is the schema of a dataset."""
    if not is_regular_file(path):
        return False
    try:
        with path.open("rb") as file:
            return f'"{SCHEMA_NAME}"'.encode() in file.read(_BEGINNING)
    except OSError:
        return False
