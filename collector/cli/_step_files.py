"""Steps given to commands as files: reading with a progress bar, and warnings about incomplete files."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from collector.cli._path_arguments import check_names, path_argument
from collector.cli._repeated_steps import given_steps, report_repeats
from collector.errors import CollectorError
from collector.files.dataset_files import SCHEMA_FILE
from collector.files.path_kinds import exists, is_folder, is_regular_file
from collector.formats.named_steps import is_dataset, named_steps
from collector.text import terminal
from collector.text.natural_order import natural_order
from collector.text.progress import progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.formats.step import Step


_MOST_NAMED = 8
_LEFT_OUT = "files that are not traces, or hold no records, are left out"
_UNREADABLE = "left out, because this user may not read them"
_DATASETS = "datasets are left out, unless they are named themselves"


def add_step_files(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments ``inputs``: files of one step each, or folders of them, which `files_of` takes."""
    from collector.formats.registry import readable_list

    parser.add_argument(
        "inputs",
        type=path_argument,
        nargs="+",
        metavar="FILE",
        help=f"one step each, or folders of them: {readable_list(with_origins=True)}; also gzipped; steps of a "
        "dataset by name (DIR/run=NAME/rank=0/step_3, or less of it)",
    )


def load_steps(paths: Sequence[Path]) -> list[Step]:
    """The steps in these files, in their order; losses are reported on standard error.

    Raises:
        collector.InvalidFileError: a file is not a step.
    """
    from collector.analysis.no_launches import no_launches
    from collector.formats.loading import load

    steps = []
    with progress("reading") as report:
        for place, path in enumerate(paths):
            report(f"reading {path.name}", place, len(paths))
            steps.append(load(path).columns_alone())  # the files of all ranks together may exceed the memory
            report(f"reading {path.name}", place + 1, len(paths))
    if len(steps) > 1:
        report_repeats(given_steps(steps))
    for step in steps:
        if step.warning:
            terminal.report(step.warning)
        if step.sums is None and (causes := no_launches(step.recording)):
            terminal.report(f"{step.path}: {causes}")
    return steps


def files_of(given: Iterable[Path], output: Path | None = None) -> list[Path]:
    """The files that were given, and instead of each folder the traces in it; see `step_files`.

    A file of a folder that is the ``output``, from an earlier run of the command, is not an input.
    """
    files = []
    for path in given:
        if not is_folder(path) and named_steps(path) is None:
            files.append(path)
            continue
        for file in step_files(str(path)):
            if output is not None and _identity(file) == _identity(output):
                terminal.report(f"{file} is the output, and not an input: it is written anew")
            else:
                files.append(file)
    return files


def without_repeats(given: Iterable[Path]) -> list[Path]:
    """Each file and each step once, for a file that is made of all of them; repeats are named on standard error.

    A part of a dataset is a repeat, too, where all of it is given.
    """
    paths = list(given)
    identities = [_identity(path) for path in paths]
    first: dict[tuple[object, ...], int] = {}
    for place, identity in enumerate(identities):
        first.setdefault(identity, place)
    found = []
    for place, (path, identity) in enumerate(zip(paths, identities, strict=True)):
        wholes = (identity[:length] for length in range(1, len(identity) + 1))
        read = next(first[whole] for whole in wholes if whole in first)
        if read == place:
            found.append(path)
        else:
            other = "" if paths[read] == path else f", as {paths[read]}"
            terminal.report(f"{path} is given more than once{other}: it is read once")
    return found


def _identity(path: Path) -> tuple[object, ...]:
    """The file that a path leads to, or the dataset, and the run, rank and step that it names.

    The identity of a part of a dataset begins with that of the whole.
    """
    named = named_steps(path)
    try:
        status = (path if named is None else named.folder / SCHEMA_FILE).stat()
    except (OSError, ValueError):  # which is reported when it is read
        return (path,)
    parts = () if named is None else (each for each in named[1:] if each is not None)
    return status.st_dev, status.st_ino, *parts


def step_files(given: str) -> list[Path]:
    """A file, the files that a pattern finds, all traces in a folder and below it, or the named steps of a dataset.

    They are in the order of the numbers in their names. A journal that is a folder of segments is one trace. Hidden
    files and links to folders are passed over; datasets and other files in a folder, and folders in it that cannot be
    read, are named on standard error.

    Raises:
        collector.CollectorError: there are none, or the folder cannot be read.
    """
    from collector.formats.loading import is_trace

    check_names([given])
    path = Path(given).expanduser()
    if (named := named_steps(path)) is not None:
        from collector.dataset.steps_by_name import paths_of_steps

        return paths_of_steps(named)
    remedy = "Give files of steps, a folder of them, or a pattern"
    if is_folder(path) and not is_trace(path):
        below = _below(path)
        for why, left_out in (
            (_LEFT_OUT, below.others),
            (_UNREADABLE, below.unreadable),
            (_DATASETS, below.datasets if below.traces else []),  # else the error names one
        ):
            names = sorted(each.relative_to(path).as_posix() for each in left_out)
            if names:
                more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
                terminal.report(f"{path}: {why}: {', '.join(names[:_MOST_NAMED])}{more}")
        if below.datasets:
            remedy = f"{below.datasets[0]} is a dataset: give its name, and its steps are read"
        return _ordered(below.traces, f"{given}: there are no traces in this folder", remedy)
    if exists(path) or not any(mark in given for mark in "*?["):
        return [path]
    root = Path(path.anchor)
    matching = root.glob(str(path.relative_to(root)))
    return _ordered(
        [each for each in matching if is_regular_file(each) or is_trace(each)], f"{given}: there are no files", remedy
    )


def _ordered(found: list[Path], trouble: str, remedy: str) -> list[Path]:
    if not found:
        raise CollectorError(trouble, remedy)
    return sorted(found, key=lambda each: natural_order(str(each)))


@dataclass
class _Below:
    """The content of a folder and of the folders below it."""

    traces: list[Path] = field(default_factory=list)
    others: list[Path] = field(default_factory=list)
    unreadable: list[Path] = field(default_factory=list)
    """Files and folders."""
    datasets: list[Path] = field(default_factory=list)


def _below(folder: Path) -> _Below:
    """The content of a folder.

    Raises:
        collector.CollectorError: the folder cannot be read.
    """
    from collector.files.nested_files import found_below
    from collector.formats.loading import is_trace

    below = _Below()
    for path, reason in found_below(folder, lambda each: is_trace(each) or is_dataset(each)):
        if reason and path == folder:
            raise CollectorError(f"{folder}: {reason}")
        if reason or (is_regular_file(path) and not os.access(path, os.R_OK)):
            below.unreadable.append(path)
        elif is_trace(path):
            below.traces.append(path)
        elif is_dataset(path):
            below.datasets.append(path)
        elif not is_folder(path):
            below.others.append(path)
    return below
