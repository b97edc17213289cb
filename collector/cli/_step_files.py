"""Steps given to commands as files: reading with a progress bar, and warnings about incomplete files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import CollectorError
from collector.text import terminal
from collector.text.natural_order import natural_order
from collector.text.progress import progress

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from collector.formats.step import Step


_LEFT_OUT = "files that are no traces, or hold no records, are left out"


def add_step_files(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments ``inputs``: files of one step each."""
    from collector.formats.registry import readable_list

    parser.add_argument(
        "inputs",
        type=Path,
        nargs="+",
        metavar="FILE",
        help=f"one step each: {readable_list(with_origins=True)}; also gzipped",
    )


def load_steps(paths: Sequence[Path]) -> list[Step]:
    """The steps in these files, in their order; losses are reported on standard error.

    Raises:
        collector.InvalidFileError: a file is no step.
    """
    from collector.analysis.no_launches import no_launches
    from collector.formats.loading import load

    steps = []
    with progress("reading") as report:
        for place, path in enumerate(paths):
            report(f"reading {path.name}", place, len(paths))
            steps.append(load(path).columns_alone())  # the files of all ranks together may exceed the memory
            report(f"reading {path.name}", place + 1, len(paths))
    for step in steps:
        if step.warning:
            terminal.report(step.warning)
        if step.sums is None and (causes := no_launches(step.recording)):
            terminal.report(f"{step.path}: {causes}")
    return steps


def step_files(given: str) -> list[Path]:
    """A file, the files that a pattern finds, or all traces in a folder, in the order of the numbers in their names.

    A journal that is a folder of segments is one trace. Other files in a folder are named on standard error.

    Raises:
        collector.CollectorError: there are none.
    """
    from collector.formats.loading import is_trace

    path = Path(given).expanduser()
    if path.is_dir() and not is_trace(path):
        present = [each for each in path.iterdir() if not each.name.startswith(".")]
        found = [each for each in present if is_trace(each)]
        left_out = sorted(each.name for each in set(present).difference(found) if each.is_file())
        if left_out:
            terminal.report(f"{path}: {_LEFT_OUT}: {', '.join(left_out)}")
    elif path.exists() or not any(mark in given for mark in "*?["):
        return [path]
    else:
        root = Path(path.anchor)
        found = [each for each in root.glob(str(path.relative_to(root))) if each.is_file() or is_trace(each)]
    if not found:
        raise CollectorError(f"{given}: there are no files", "Give files of steps, a folder of them, or a pattern")
    return sorted(found, key=lambda each: natural_order(each.name))
