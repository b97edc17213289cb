"""The steps of a dataset that a name of `collector.formats.named_steps` stands for."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from collector.dataset.dataset import Dataset, StepKey
from collector.errors import InvalidFileError
from collector.files.dataset_files import SCHEMA_FILE
from collector.formats.named_steps import NamedSteps

if TYPE_CHECKING:
    from pathlib import Path

    from collector.formats.step import Step


def paths_of_steps(named: NamedSteps) -> list[Path]:
    """The name of each of the steps, in the order of runs, ranks and numbers. Raises as `keys_of`."""
    dataset = Dataset(named.folder, run=named.run, rank=named.rank)
    return [NamedSteps(named.folder, *key).path for key in keys_of(dataset, named)]


def keys_of(dataset: Dataset, named: NamedSteps) -> list[StepKey]:
    """The keys of those steps in a dataset, in the order of runs, ranks and numbers.

    Raises:
        collector.InvalidFileError: there are none.
    """
    found = dataset.select(named.run, named.rank, named.step)
    if not found:
        number = "s" if named.step is None else f" {named.step}"
        raise InvalidFileError(f"{named._replace(step=None).path} has no step{number}", _remedy(dataset))
    return found


def load_named_step(named: NamedSteps) -> Step:
    """The step of a name; its rows are read on request.

    Raises:
        collector.InvalidFileError: there is no such step, the name is that of several steps, or the dataset cannot be
            read.
    """
    status = (named.folder / SCHEMA_FILE).stat()
    version = status.st_dev, status.st_ino, status.st_mtime_ns
    dataset = _opened(named.folder, version)
    # The dataset may have got the step since; and further ones, if the name is not that of one step.
    if named.step is None or not dataset.select(named.run, named.rank, named.step):
        _opened.cache_clear()
        dataset = _opened(named.folder, version)
    first, *others = keys_of(dataset, named)
    if others:
        remedy = f"Name one of them: {NamedSteps(named.folder, *first).path}"
        raise InvalidFileError(f"{named.path} has {1 + len(others)} steps", remedy)
    return dataset.step(first)


def _remedy(dataset: Dataset) -> str:
    if not dataset.keys:
        return "Add steps to it: collector export FILE --to parquet DIR"
    first, last = (NamedSteps(dataset.folder, *dataset.keys[place]).path for place in (0, -1))
    return f"It has {first}" if first == last else f"Its steps are {first} to {last}"


@lru_cache(maxsize=1)
def _opened(folder: Path, version: object) -> Dataset:
    """The dataset, whose files are listed once for all its steps.

    Steps are never changed, so that those that were listed remain. ``version`` tells datasets apart that had the same
    folder one after the other.
    """
    return Dataset(folder)
