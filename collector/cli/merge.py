"""Draw many steps, or many ranks, into one trace.

Reads whatever `collector timeline` reads, mixed: StepStats and RunMetadata (.pb, .pbtxt), recordings (.gpurec),
TensorFlow's and PyTorch's timelines (.json), also gzipped. Which rank and which step a file holds is read from its
devices (/job:worker/replica:0/task:3), from the trace itself, or from its name (rank3, step_12).

  collector merge step*.pb -o all.json                     steps one after the other, on the same tracks
  collector merge step*.pb -o all.json --overlay           steps on top of each other, all beginning together
  collector merge rank*.pb -o all.pftrace --align          ranks side by side, their clocks put right

Open the result at https://ui.perfetto.dev or chrome://tracing.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.merging import MergeReport, Progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    parser.add_argument("inputs", type=Path, nargs="+", metavar="FILE", help="the steps, in any order")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="what to write: .json, .json.gz, .pftrace or .pftrace.gz",
    )
    parser.add_argument(
        "--overlay", action="store_true", help="let all steps begin at the same moment, each with processes of its own"
    )
    clocks = parser.add_mutually_exclusive_group()
    clocks.add_argument(
        "--align",
        action="store_true",
        help="estimate how far the ranks' clocks are apart from the ends of collectives that they ran together",
    )
    clocks.add_argument(
        "--clock-offset",
        type=_clock_offset,
        action="append",
        metavar="RANK=NS",
        help="how many ns the clock of RANK is ahead; once for each rank",
    )
    parser.add_argument(
        "--marker", metavar="REGEX", help="with --align: names of what the ranks do together (default: collectives)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar and no summary")


def _clock_offset(text: str) -> tuple[int, int]:
    rank, equals, offset_ns = text.partition("=")
    try:
        if not equals:
            raise ValueError(text)
        return int(rank), int(offset_ns)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not RANK=NS, such as 1=-2500") from None


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    from collector.formats.clocks import COLLECTIVE
    from collector.merging import merge

    offsets = dict(arguments.clock_offset) if arguments.clock_offset else None
    with _progress(shown=not arguments.quiet and sys.stderr.isatty()) as progress:
        report = merge(
            arguments.inputs,
            arguments.output,
            layout="overlay" if arguments.overlay else "sequence",
            clock_offsets="estimate" if arguments.align else offsets,
            marker=arguments.marker or COLLECTIVE.pattern,
            progress=progress,
        )
    for each in report.inputs:
        if each.warning:
            print(f"collector: {each.warning}", file=sys.stderr)
        elif each.skipped:
            reasons = ", ".join(f"{count} {reason}" for reason, count in each.skipped.items())
            print(f"collector: {each.name}: {reasons}", file=sys.stderr)
    if not arguments.quiet:
        _print(report)
    return 0


def _print(report: MergeReport) -> None:
    slices = sum(each.slices for each in report.inputs)
    print(f"{report.output}: {len(report.inputs)} inputs, {slices} slices")
    for rank, clock in report.clock_offsets.items():
        if clock.source == "estimated":
            error = "error unknown" if clock.error_ns is None else f"±{clock.error_ns} ns"
            found = f"{clock.markers} common moment{'s' * (clock.markers != 1)}"
            if clock.disagreeing:
                found += f", {clock.disagreeing} other{'s' * (clock.disagreeing != 1)} without a partner"
            if clock.out_of_order:
                found += f", {clock.out_of_order} in an impossible order"
            if clock.through is not None:
                found += f", by way of rank {clock.through}"
            print(f"rank {rank}: clock {clock.offset_ns} ns ahead, {error} ({found})")
        elif clock.source == "none":
            print(f"rank {rank}: clock left as it is: nothing that tells an offset in common with other ranks")


@contextmanager
def _progress(*, shown: bool) -> Iterator[Progress | None]:
    """A progress bar on standard error, or nothing."""
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("merging")
        yield lambda what, done, of: bar.update(task, description=what[-60:], completed=done, total=of)
