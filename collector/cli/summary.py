"""Show steps as a few tables: busy time, kernels, time by annotation, copies, what was lost.

Reads whatever `collector stats` reads; a step's tables are those of its ``summary()``.

  collector summary step.pb
  collector summary rank*.json.gz
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from collector.text.terminal import printable

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    from collector.formats.registry import readable_list

    parser.add_argument(
        "inputs",
        type=Path,
        nargs="+",
        metavar="FILE",
        help=f"one step each: {readable_list(with_origins=True)}; also gzipped",
    )


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    print(summaries(arguments.inputs))
    return 0


def summaries(paths: list[Path]) -> str:
    """The summary of each step, under its file's name where there are several."""
    from collector.cli._step_files import load_steps

    steps = load_steps(paths)
    heads = [f"{printable(str(step.path))}\n" if len(steps) > 1 else "" for step in steps]
    return "\n\n".join(head + step.summary() for head, step in zip(heads, steps, strict=True))
