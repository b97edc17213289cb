"""Names of steps in datasets, which commands and `collector.load` take like names of files.

``runs`` is the folder of a dataset, ``runs/run=tuesday`` stands for the steps of a run in it,
``runs/run=tuesday/rank=0`` for those of one of its ranks, and ``runs/run=tuesday/rank=0/step_3`` for one step. No file
has these names: the rows of a step are in the files of all tables.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from collector.files.dataset_files import SCHEMA_FILE
from collector.files.path_kinds import exists, is_regular_file

_NAME = re.compile(r"(?s)(?:(.*)/)?run=([^/]+)(?:/rank=([0-9]{1,9})(?:/step_([0-9]{1,19}))?)?")


class NamedSteps(NamedTuple):
    """The steps that a name stands for."""

    folder: Path
    """The folder of the dataset."""
    run: str | None = None
    """Only the steps of this run."""
    rank: int | None = None
    """Only the steps of this rank."""
    step: int | None = None
    """Only the step of this number."""

    @property
    def path(self) -> Path:
        """The name, as a path."""
        return self.folder / self.name

    @property
    def name(self) -> str:
        """The name without the folder; empty for all steps of the dataset."""
        parts = ("run={}", self.run), ("rank={}", self.rank), ("step_{}", self.step)
        return "/".join(form.format(value) for form, value in parts if value is not None)


def is_dataset(folder: Path) -> bool:
    """Whether a path is the folder of a dataset."""
    return is_regular_file(folder / SCHEMA_FILE)


def named_steps(path: Path) -> NamedSteps | None:
    """The steps in a dataset that a path names; None: it names a file or a folder, or nothing."""
    if is_dataset(path):
        return NamedSteps(path)
    found = _NAME.fullmatch(os.fspath(path))
    if found is None or exists(path):
        return None
    folder = Path("." if found[1] is None else found[1] or "/")
    rank, step = (None if number is None else int(number) for number in found.group(3, 4))
    return NamedSteps(folder, found[2], rank, step) if is_dataset(folder) else None
