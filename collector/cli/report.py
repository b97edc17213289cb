"""Write a page about one step or several into one file that opens in any browser, without a network.

Reads all files that `collector timeline` reads. The page shows how busy the GPUs were, why they were idle, kernels,
annotations, copies, launches, a timeline, findings and losses; its figures are those of `collector stats`.

  collector report step.pb -o step.html
  collector report step_*.pb -o run.html              several steps: how much they differ, and in what
  collector report now.pb --before main.pb -o change.html  what changed, and whether that is more than chance
  collector report step.pb -o step.html --max-size 8MB     with more of the timeline's slices
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from collector.cli._path_arguments import path_argument
from collector.cli._size_arguments import size_argument
from collector.cli._step_files import add_step_files, files_of, load_steps
from collector.errors import CollectorError
from collector.formats.named_steps import named_steps
from collector.text import terminal
from collector.text.progress import progress
from collector.text.wording import counted

if TYPE_CHECKING:
    from pathlib import Path

_LEAST_SIZE = 400_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    add_step_files(parser)
    parser.add_argument("-o", "--output", type=path_argument, required=True, metavar="FILE", help="the page: .html")
    parser.add_argument(
        "--before",
        type=path_argument,
        nargs="+",
        default=[],
        metavar="FILE",
        help="steps that the others are compared with; two files alone are compared as well, the second with the first",
    )
    parser.add_argument("--title", default="", help="title of the page (the names of the files)")
    parser.add_argument(
        "--max-size",
        type=_size,
        metavar="SIZE",
        default="2MB",
        help="largest size of the file: slices of the timeline that do not fit are left out, the shortest first, and "
        "the page says so; tables are never cut for it (2MB)",
    )


def _size(text: str) -> int:
    num_bytes = size_argument(text)
    if num_bytes < _LEAST_SIZE:
        raise argparse.ArgumentTypeError(
            f"{text!r} is too small: the page without any data takes {_LEAST_SIZE // 1000} kB"
        )
    return num_bytes


def _name(path: Path) -> str:
    """The name of a step on the page."""
    named = named_steps(path)
    return path.name if named is None else named.name


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    from collector.files.atomic_files import check_writable
    from collector.files.distinct_names import distinct_names
    from collector.files.written_files import written
    from collector.web.report_file import write_report

    if arguments.output.suffix.lower() != ".html":
        raise CollectorError(f"{arguments.output}: a report is a page", "Name it .html")
    before, inputs = files_of(arguments.before), files_of(arguments.inputs)
    paths = [*before, *inputs]
    check_writable(arguments.output, *paths)
    names = distinct_names([_name(path) for path in paths], paths)
    steps = list(zip(names, load_steps(paths), strict=True))
    with written(arguments.output), progress(f"writing {arguments.output.name}"):
        page = write_report(
            arguments.output,
            steps[len(before) :],
            before=steps[: len(before)],
            title=arguments.title,
            max_size=arguments.max_size,
        )
    if page.slices < page.all_slices:
        terminal.report(
            f"{arguments.output}: holds the longest {page.slices:,} of "
            f"{counted('{:,} slice[|s]', page.all_slices)} of the timeline; --max-size gives room for more"
        )
    return 0
