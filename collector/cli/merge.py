"""Put many steps, or the traces of many ranks, into one trace.

A viewer opens one file at a time; this command combines many files in one. It reads all formats of `collector
timeline`, which may be mixed.

  collector merge step*.pb -o all.json                 one step after the other on the same tracks, at their true times
  collector merge step*.pb -o all.json --overlay       all steps from time 0 on, below each other, to compare them
  collector merge rank*.json.gz -o all.pftrace --align the ranks of a job below each other, with aligned clocks
  collector merge traces -o all.pftrace                all files in a folder
  collector merge step*.pb -o RUN/host.xplane.pb       for XProf and TensorBoard, with RUN = LOGDIR/plugins/profile/NAME

Open .json and .pftrace at https://ui.perfetto.dev, .json also in chrome://tracing.

The number of a step is taken from the file's name (step_12); otherwise files are counted in the order of time. The rank
is taken from the devices in the file (/job:worker/replica:0/task:3), from the trace's metadata, or from the file's name
(rank3); with more than one rank, it precedes the name of each process.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from collector.cli._clock_arguments import add_clock_offset, offsets_by_rank
from collector.cli._path_arguments import path_argument
from collector.cli._project_options import leave_out
from collector.cli._repeated_steps import GivenStep, report_repeats
from collector.cli._step_files import files_of, without_repeats
from collector.errors import CollectorError
from collector.files.written_files import written
from collector.text import terminal
from collector.text.progress import progress
from collector.text.wording import counted

if TYPE_CHECKING:
    import argparse

    from collector.merging.merged_trace import MergeReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    from collector.formats.registry import merged_suffixes, readable_list, suffixes_help

    parser.add_argument(
        "inputs",
        type=path_argument,
        nargs="+",
        metavar="FILE",
        help="the files to merge, in any order, or folders of them, one step of one rank each: "
        f"{readable_list(with_origins=True)}; also gzipped",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=path_argument,
        required=True,
        metavar="FILE",
        help=f"the file to write; its suffix is the format: {suffixes_help(merged_suffixes())}",
    )
    parser.add_argument(
        "--overlay",
        action="store_true",
        help="draw all steps from time 0 on, each with processes of its own, instead of one after the other",
    )
    group = parser.add_argument_group(
        "clocks",
        "The clocks of machines differ. Without these options they are not corrected. The file has the offsets.",
    )
    clocks = group.add_mutually_exclusive_group()
    clocks.add_argument(
        "--align",
        action="store_true",
        help="estimate the offsets of the ranks' clocks from the ends of collectives (all-reduce, ...) on each rank; "
        "the offsets and their errors are printed",
    )
    add_clock_offset(clocks)
    group.add_argument(
        "--marker",
        metavar="REGEX",
        help="with --align: only nodes whose name matches count as run together, such as AllReduce or barrier",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar and no summary")


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    from collector.merging.clocks import COLLECTIVE
    from collector.merging.merged_trace import merge
    from collector.merging.rank_numbers import step_number

    offsets = offsets_by_rank(arguments.clock_offset)
    inputs = without_repeats(files_of(arguments.inputs, arguments.output))
    if not arguments.align:
        leave_out(arguments, "marker")
    if arguments.marker and not arguments.align:
        raise CollectorError("--marker names the collectives for --align: give both")
    with (
        nullcontext() if arguments.quiet else written(arguments.output),
        progress("merging", shown=not arguments.quiet) as report_progress,
    ):
        report = merge(
            inputs,
            arguments.output,
            layout="overlay" if arguments.overlay else "sequence",
            clock_offsets="estimate" if arguments.align else offsets,
            marker=arguments.marker or COLLECTIVE.pattern,
            progress=report_progress,
        )
    drawn = [each for each in report.inputs if each.slices]
    report_repeats([GivenStep(each.name, each.run, each.rank, each.start_ns, each.end_ns) for each in drawn])
    for each in report.inputs:
        if (named := step_number(each.name)) is not None and each.slices and each.step != named:
            terminal.report(f"{each.name}: drawn as step {each.step}, because another file is step {named} as well")
        if each.warning:
            terminal.report(each.warning)
        elif each.skipped:
            reasons = ", ".join(f"{reason}: {count}" for reason, count in each.skipped.items())
            terminal.report(f"{each.name}: {reasons}")
    if not arguments.quiet:
        with terminal.reader_may_leave():
            _print(report, aligned=arguments.align)
    return 0


def _print(report: MergeReport, *, aligned: bool) -> None:
    slices = sum(each.slices for each in report.inputs)
    inputs, drawn = counted("{} input[|s]", len(report.inputs)), counted("{} slice[|s]", slices)
    print(f"{terminal.printable(str(report.output))}: {inputs}, {drawn}")
    if aligned and len(report.clock_offsets) < 2:
        print("no clock was corrected: the inputs are not of several ranks")
    for rank, clock in report.clock_offsets.items():
        if clock.source == "estimated":
            error = "error unknown" if clock.error_ns is None else f"±{clock.error_ns} ns"
            found = counted("{} common moment[|s]", clock.markers)
            if clock.disagreeing:
                found += counted(", {} other[|s] without a partner", clock.disagreeing)
            if clock.out_of_order:
                found += f", {clock.out_of_order} in an impossible order"
            if clock.through is not None:
                found += f", by way of rank {clock.through}"
            print(f"rank {rank}: clock {clock.offset_ns} ns ahead, {error} ({found})")
        elif clock.source == "none":
            print(f"rank {rank}: clock unchanged: no collectives shared with other ranks determine its offset")
