"""Run a program and trace its work on the GPU, without a change to the program.

Any program that uses CUDA can be traced; it need not import or link the collector. Its input, terminal, signals and
exit status are its own; the summary goes to standard error.

  collector run ./train --epochs 1                        print what ran on the GPU
  collector run -o step.pftrace train.py --epochs 1       a Python script, and a trace for https://ui.perfetto.dev
  collector run -o step.json -m package.train             a Python module
  collector run -o trace.pftrace torchrun --nproc-per-node 8 train.py     all ranks in one trace
  collector run -o 'rank{rank}.gpurec' mpirun -n 4 ./a.out                each rank in a file of its own
  collector run --capture-range cudaProfilerApi -o step.json ./train      only from cudaProfilerStart to -Stop
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from collector.cli._completed_values import CompletedValues, complete_values
from collector.cli._number_arguments import seconds_argument
from collector.cli._project_options import settle
from collector.cli._recorded_steps import print_recorded
from collector.cli._size_arguments import ring_size_argument
from collector.errors import CollectorError
from collector.files.path_kinds import is_folder
from collector.text import terminal
from collector.text.cost_shares import millionths_of
from collector.text.shell_words import file_argument
from collector.text.wording import counted

if TYPE_CHECKING:
    from pathlib import Path

    from collector.launching.capture_range import CaptureRange
    from collector.launching.process_journals import TracedProcess
    from collector.launching.run_environment import RunOptions

_MOST_SUMMARIES = 4
"""The maximum number of processes or ranges whose summaries are printed."""

_MOST_FILES = 8
"""The maximum number of files that are all named; of more files only the first and the last are."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    from collector.formats.registry import suffixes_help, written_suffixes
    from collector.launching.capture_range import PROFILER
    from collector.options import KINDS, KINDS_ON_REQUEST

    parser.usage = "collector run [OPTIONS] [--] (PROGRAM | SCRIPT.py | -m MODULE) [ARGUMENT ...]"
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=f"the file to write; its suffix is the format: {suffixes_help(written_suffixes())}; or the folder of a "
        "dataset, with a slash at its end. {rank}, {pid}, {host}, {step} and {env:VARIABLE} are filled in for each "
        "process",
    )
    kinds = parser.add_argument(
        "--kinds", metavar="KIND,...", help="the kinds of activity to record, as in collector.trace"
    )
    complete_values(kinds, CompletedValues(lambda: (*KINDS, *KINDS_ON_REQUEST), separator=","))
    parser.add_argument("--nvtx", action="store_true", help="record NVTX ranges as annotations")
    domains = parser.add_argument(
        "--nvtx-domains",
        metavar="DOMAIN,...",
        help="record only the NVTX ranges of these domains; default is the default domain",
    )
    complete_values(domains, CompletedValues(lambda: ("default",)))
    parser.add_argument(
        "--delay", type=seconds_argument, default=0.0, metavar="S", help="begin S seconds after CUDA's initialisation"
    )
    parser.add_argument(
        "--duration", type=_duration_argument, default=0.0, metavar="S", help="end S seconds after the begin"
    )
    capture_range = parser.add_argument(
        "--capture-range",
        metavar="RANGE",
        help="record only the work between calls of cudaProfilerStart and cudaProfilerStop (cudaProfilerApi), or "
        "inside NVTX ranges of this name (nvtx:NAME, nvtx:NAME@DOMAIN; @* is any domain)",
    )
    complete_values(capture_range, CompletedValues(lambda: (PROFILER,)))
    capture_range_end = parser.add_argument(
        "--capture-range-end",
        metavar="END",
        help="after a range: repeat (the default) records each further one, repeat:N the first N, stop the first alone",
    )
    complete_values(capture_range_end, CompletedValues(lambda: ("repeat", "stop")))
    parser.add_argument(
        "--python",
        action="store_true",
        help="in Python programs, name the work of PyTorch's modules and optimizers and of Triton's kernels, with the "
        "Python stack of every name",
    )
    parser.add_argument(
        "--max-size",
        type=ring_size_argument,
        default=0,
        metavar="SIZE",
        help="disk space for the records of each process while it runs, such as 512MB: older records are removed",
    )
    parser.add_argument(
        "--budget",
        metavar="SHARE",
        help="maximum cost of recording in each process, such as 1%% of a core's time; kinds are left out if it costs "
        "more",
    )
    parser.add_argument(
        "--listen", action="store_true", help="let `collector attach` control the recording of each process"
    )
    parser.add_argument(
        "--wait",
        choices=("program", "all"),
        default="program",
        help="what to wait for: the program alone (default), or also processes that it leaves behind, such as a daemon",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no summary")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="a Python module to run")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="the program and its arguments")


def _duration_argument(text: str) -> float:
    """A number of seconds above 0."""
    seconds = seconds_argument(text)
    if not seconds:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in which anything can be recorded")
    return seconds


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    from collector.launching.child_program import callers_environment, exit_as, run_child, stop_raises
    from collector.launching.journal_folder import JournalFolder
    from collector.launching.process_journals import check_output, is_dataset, variables_of
    from collector.launching.run_environment import run_environment
    from collector.tracing.nvtx import missing_tool

    command = _command(arguments)
    options = _options(arguments)
    variables: list[str] = []
    as_dataset = False
    if arguments.output is not None:
        check_output(arguments.output)
        variables, as_dataset = variables_of(arguments.output), is_dataset(arguments.output)
    status: int | None = None
    with JournalFolder(arguments.output) as folder, stop_raises():
        environment = run_environment(folder.path, options, callers_environment(), variables)
        if trouble := missing_tool(environment):
            terminal.report(trouble)
        try:
            status, has_survivors = run_child(command, environment, waits_for_all=arguments.wait == "all")
            _finish(folder.path, arguments, options, as_dataset=as_dataset)
            if has_survivors and is_folder(folder.path):
                folder.keep()
                terminal.report(
                    "processes that the program has started are still running: what they record from now on is in "
                    f"{folder.path}, which `collector merge` reads (--wait all waits for them)"
                )
        except BaseException as error:  # the exit status stays the program's
            if status is None:
                raise
            folder.keep()
            merged = f"`collector merge {file_argument(str(folder.path))} -o FILE` makes one trace of it"
            place = f"; what was recorded is in {folder.path}: {merged}" if is_folder(folder.path) else ""
            terminal.report(f"{_cause(error)}{place}")
    return exit_as(status)


def _cause(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    text = " ".join(str(error).split())
    if isinstance(error, CollectorError):
        return text
    return f"the trace cannot be written ({type(error).__name__}: {text})"


def _command(arguments: argparse.Namespace) -> list[str]:
    from collector.launching.child_program import command_of

    if arguments.module:
        return [sys.executable, "-m", *arguments.module]
    words = arguments.program[1:] if arguments.program[:1] == ["--"] else arguments.program
    if not words or not words[0]:
        raise CollectorError("no program is named", "Write it after the options: collector run ./program")
    return command_of(words)


def _options(arguments: argparse.Namespace) -> RunOptions:
    from collector.launching.run_environment import RunOptions
    from collector.options import KINDS, TraceOptions

    kinds = tuple(arguments.kinds.split(",")) if arguments.kinds is not None else KINDS
    try:
        TraceOptions(kinds=kinds)
        if arguments.budget is not None:
            millionths_of(arguments.budget)
    except ValueError as error:
        raise CollectorError(str(error)) from None
    domains = tuple(arguments.nvtx_domains.split(",")) if arguments.nvtx_domains is not None else ()
    if not all(domains):
        raise CollectorError(
            f"--nvtx-domains {arguments.nvtx_domains!r} has a domain without a name",
            "The default domain is called `default`; --nvtx records all domains",
        )
    nvtx = arguments.nvtx or bool(domains)
    return RunOptions(
        kinds,
        nvtx=nvtx,
        nvtx_domains=domains,
        delay_s=arguments.delay,
        duration_s=arguments.duration,
        max_bytes=arguments.max_size,
        listens=arguments.listen,
        budget=arguments.budget or "",
        python=arguments.python,
        ranges=_ranges(arguments),
    )


def _ranges(arguments: argparse.Namespace) -> CaptureRange | None:
    from collector.launching.capture_range import CaptureRange, most_ranges

    settle(arguments, ("capture_range", "capture_range_end"), ("delay", "duration"))
    if arguments.capture_range is None:
        if "capture_range_end" in arguments.on_command_line:
            raise CollectorError("--capture-range-end is given without --capture-range", "Name the ranges")
        return None
    if arguments.delay or arguments.duration:
        raise CollectorError(
            "--capture-range cannot be combined with --delay or --duration",
            "Omit them: the ranges decide what is recorded",
        )
    try:
        return CaptureRange.of(arguments.capture_range, most_ranges(arguments.capture_range_end or "repeat"))
    except ValueError as error:
        raise CollectorError(str(error)) from None


def _finish(folder: Path, arguments: argparse.Namespace, options: RunOptions, *, as_dataset: bool) -> None:
    """Write the output, and print what was recorded."""
    from collector.launching.process_journals import save_processes, traced_processes
    from collector.launching.python_programs import unnamed_programs

    if not is_folder(folder):
        terminal.report(f"{folder}, the folder of the records, was removed while the program ran: there is no trace")
        return
    processes, without_ranges, lost = traced_processes(folder)
    for line in lost:
        terminal.report(line)
    if options.python:
        for line in unnamed_programs(folder, processes):
            terminal.report(line)
    for each in processes:
        if each.is_running:
            terminal.report(f"{each.name} is still running: its records up to now are used")
    if not processes and without_ranges and options.ranges is not None:
        terminal.report(
            f"no range was recorded, and there is no trace: the program never made {options.ranges.opening}. Let it do "
            "so around what is to be recorded, or leave --capture-range out"
        )
        return
    if not processes:
        nothing = "no process of the program did anything on a GPU that was recorded: there is no trace"
        terminal.report(nothing if any(folder.glob("*.journal")) else f"{nothing}. {_reason_for_no_journal(options)}")
        return
    try:
        files = [] if arguments.output is None else save_processes(processes, arguments.output, as_dataset=as_dataset)
    except CollectorError:
        _print(processes, quiet=arguments.quiet)
        raise
    _print(processes, quiet=arguments.quiet)
    if files:
        # One that executes another program, or is stopped and started by `collector attach`, has several journals.
        num_processes = len({(each.identity.host, each.identity.process_id) for each in processes})
        of = f" ({counted('{} process[|es]', num_processes)})" if num_processes > 1 else ""
        listed = ", ".join(map(str, files))
        if len(files) > _MOST_FILES:
            listed = f"{len(files)} files, {files[0]} to {files[-1]}"
        terminal.report(f"the trace{of} is in {listed}")


def _reason_for_no_journal(options: RunOptions) -> str:
    """The likely reason why no process began to record, which it does when CUDA is initialised."""
    from collector.errors import UnavailableError
    from collector.sources import open_source

    try:
        found = open_source("native").probe()
    except UnavailableError as error:
        found = {"available": False, "cause": error.cause, "remedy": error.remedy}
    if found.get("available"):
        lasted = f", and run for {options.delay_s:g} s after that (--delay)" if options.delay_s else ""
        return (
            f"None has initialised CUDA{lasted}, unless a line above names another reason. A program is traced if it "
            "loads libcuda dynamically and is not set-uid"
        )
    return f"This machine cannot be traced: {found['cause']}. {found['remedy']}"


def _print(processes: list[TracedProcess], *, quiet: bool) -> None:
    parts = [(each.name, each.step) for each in processes]
    if any(each.ranges for each in processes):
        parts = [
            (f"{each.name}, range {number}", step)
            for each in processes
            for number, step in enumerate(each.ranges or (each.step,), 1)
        ]
    for name, step in parts[:_MOST_SUMMARIES]:
        print_recorded(step, name if len(parts) > 1 else "", quiet=quiet)
    others = parts[_MOST_SUMMARIES:]
    of = "processes" if len(parts) == len(processes) else "ranges"
    incomplete = [name for name, step in others if not step.ledger.complete]
    if incomplete:
        named = ", ".join(incomplete[:_MOST_FILES]) + (", …" if len(incomplete) > _MOST_FILES else "")
        terminal.report(f"{len(incomplete)} of {len(others)} more {of} are incomplete: {named}")
    if others and not quiet:
        terminal.report(f"and {len(others)} more {of}, whose summaries are left out")
