"""Parquet files of other programs in the folders of datasets: they are named, and not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.text import terminal
from collector.text.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_NAMED = 3


def report_foreign_parquet(paths: Sequence[Path]) -> None:
    """One line on standard error for each dataset among the paths that has such files."""
    from collector.dataset.dataset_folder import files_of
    from collector.formats.named_steps import is_dataset

    for path in filter(is_dataset, paths):
        if foreign := files_of(path).foreign:
            names = [str(each.relative_to(path)) for each in foreign[:_NAMED]]
            more = ["…"] if len(foreign) > _NAMED else []
            text = counted("{:,} Parquet file[ is|s are] not of the dataset and left alone", len(foreign))
            terminal.report(f"{path}: {text}: {', '.join([*names, *more])}")
