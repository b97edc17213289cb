"""Show steps as a few tables: busy time, kernels, time by annotation, copies, losses.

Reads all files that `collector stats` reads; the tables of a step are those of its ``summary()``.

  collector summary step.pb
  collector summary rank*.json.gz
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from collector.cli._step_files import add_step_files, files_of, load_steps
from collector.text.progress import progress
from collector.text.terminal import printable

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    add_step_files(parser)


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    print(summaries(files_of(arguments.inputs)))
    return 0


def summaries(paths: list[Path]) -> str:
    """The summary of each step, under its file's name where there are several."""
    parts = []
    steps = load_steps(paths)
    with progress("summing up") as report:
        for place, (path, step) in enumerate(zip(paths, steps, strict=True)):
            report(f"summing up {path.name}", place, len(steps))
            head = f"{printable(str(path))}\n" if len(steps) > 1 else ""
            parts.append(head + step.summary())
    return "\n\n".join(parts)
