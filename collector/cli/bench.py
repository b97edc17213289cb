"""Compare kernels: run the benchmarks in bench_*.py files.

collector bench bench_matmul.py                              measure and print
collector bench benchmarks/ -k 'n=4096' --json now.json      run a selection, and store the samples
collector bench bench_matmul.py --baseline main.json         exit 1 if an arm became slower by more than 3 %
collector bench compare main.json now.json                   compare two stored reports without measuring

Options after "compare": --fail-above, --allow-other-machine, --markdown, --csv. A benchmark file named compare must be
written as ./compare.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.cli._number_arguments import count_in, seconds_argument, whole_argument
from collector.cli._path_arguments import check_names, path_argument
from collector.cli._share_arguments import add_fail_above_argument, share
from collector.errors import CollectorError
from collector.files.atomic_files import atomic_write, check_writable
from collector.files.new_folders import scratch_folder
from collector.formats.output_paths import check_placeholders
from collector.runtime.child_interpreters import python_command
from collector.runtime.optional_packages import optional_package
from collector.text import terminal
from collector.text.job_summary import VARIABLES, add_to_job_summary, job_annotations
from collector.text.progress import progress
from collector.text.wording import counted

if TYPE_CHECKING:
    from collector.bench.baseline import Regression
    from collector.bench.benchmark_report import Report
    from collector.bench.discovery import Instance
    from collector.recording.recording import Recording

EXIT_REGRESSION = 1
"""Exit status if an arm became slower or could not be measured."""
STORED_RUNS = 3
"""The default of --runs for stored reports and for comparisons with stored reports."""
_COMPARE = "compare"
_SUMMARY = "collector bench"
"""Title of the tables on the page of a job."""
_USAGE = f"collector bench {_COMPARE} BEFORE.json NOW.json"
_MEASURING = {
    "-k": "pattern", "--baseline": "baseline", "--json": "json", "--plot": "plot", "--html": "html",
    "--dataset": "dataset", "--precision": "precision", "--max-seconds": "max_seconds", "--seed": "seed",
    "--runs": "runs",
}  # fmt: skip
"""Options about measuring and about samples."""


_OUTPUTS = ("json", "markdown", "csv", "html", "plot", "dataset")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    from collector.bench.design import Design

    parser.add_argument(
        "paths", nargs="+", metavar="FILE", help="files, or folders of bench_*.py; or: compare BEFORE.json NOW.json"
    )
    parser.add_argument("-k", dest="pattern", default="", metavar="REGEX", help="only benchmarks whose name matches")
    parser.add_argument("--baseline", type=path_argument, metavar="JSON", help="an earlier report to compare with")
    add_fail_above_argument(parser)
    parser.add_argument("--allow-other-machine", action="store_true", help="accept a baseline of another card")
    parser.add_argument(
        "--json", type=path_argument, metavar="FILE", help="write the report with all samples to this file"
    )
    parser.add_argument(
        "--markdown", type=path_argument, metavar="FILE", help="write the tables as Markdown to this file"
    )
    parser.add_argument("--csv", type=path_argument, metavar="FILE", help="write the figures of every arm as CSV")
    parser.add_argument("--html", type=path_argument, metavar="FILE", help="write the tables as one HTML page")
    parser.add_argument("--plot", type=path_argument, metavar="FILE", help="write a plot as one HTML page")
    parser.add_argument(
        "--dataset", type=path_argument, metavar="DIR", help="add the traces of all measured rounds to this dataset"
    )
    parser.add_argument(
        "--precision",
        type=_precision,
        metavar="PERCENT",
        help="stop when half the interval of every ratio is within this (the benchmark's own, else "
        f"{100 * Design.precision:g}%%)",
    )
    parser.add_argument(
        "--max-seconds",
        type=_measuring_time,
        metavar="S",
        help=f"time limit of one comparison (the benchmark's own, else {Design.max_seconds:g})",
    )
    parser.add_argument("--seed", type=whole_argument, help="seed of the order of the arms")
    parser.add_argument(
        "--runs",
        type=_count,
        metavar="N",
        help="measure everything N times, each time in a new process, to include the spread of runs "
        f"({STORED_RUNS} with --json or --baseline, else 1)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar")


def _precision(text: str) -> float:
    value = share(text)
    if not value:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share above 0, such as 0.5% or 0.005")
    return value


def _measuring_time(text: str) -> float:
    seconds = seconds_argument(text)
    if not seconds:
        raise argparse.ArgumentTypeError(f"{text!r} is no time to measure in")
    return seconds


def _count(text: str) -> int:
    number = count_in(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of runs")
    return number


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    optional_package("scipy")  # checked before any measurement
    check_names(arguments.paths)
    if arguments.paths[0] == _COMPARE:
        return _compare(arguments)
    from collector.bench.benchmark_errors import BenchmarkError
    from collector.bench.benchmark_report import Report
    from collector.bench.discovery import benchmark_files, discover
    from collector.bench.documents import as_markdown

    if arguments.dataset is not None:
        from collector.dataset.dataset_folder import check_output

        optional_package("pyarrow.parquet")
        check_placeholders(arguments.dataset)
        check_output(arguments.dataset)
    before = Report.load(arguments.baseline) if arguments.baseline else None
    given = [Path(path) for path in arguments.paths]
    inputs = [*benchmark_files(given), *([arguments.baseline] if before else [])]
    for path in (arguments.json, arguments.plot, arguments.html, arguments.markdown, arguments.csv):
        if path is not None:
            check_writable(path, *inputs)
    here = Path.cwd()  # a benchmark may change the working directory
    for name in _OUTPUTS:
        if (path := getattr(arguments, name)) is not None:
            setattr(arguments, name, path.absolute())
    instances = discover(given, arguments.pattern)
    runs = arguments.runs or (STORED_RUNS if arguments.json or before else 1)
    if runs > 1:
        report, troubles = _measure_in_processes(arguments, runs, here)
    else:
        report, troubles = _measure_here(instances, arguments)
    for trouble in troubles:
        terminal.report(trouble)
    if report is None:
        raise BenchmarkError("nothing could be measured")
    try:
        _write_documents(report, arguments)
        add_to_job_summary(_SUMMARY, as_markdown(report))
    finally:  # figures that cannot be stored are shown
        with terminal.reader_may_leave():
            print(report)
            _annotate_errors(troubles)
    status = EXIT_REGRESSION if troubles or report.failures else 0
    if before is not None and _regressed(report, before, arguments):
        status = EXIT_REGRESSION
    return status


def _write_documents(report: Report, arguments: argparse.Namespace) -> None:
    from collector.bench.documents import as_csv, as_markdown

    if arguments.json:
        report.save(arguments.json)
    if arguments.plot:
        from collector.bench.plot import save_plot

        save_plot(report, arguments.plot)
    if arguments.html:
        from collector.web.table_page import write_benchmark_page

        write_benchmark_page(report, arguments.html)
    _write(arguments.markdown, as_markdown, report)
    _write(arguments.csv, as_csv, report)


def _compare(arguments: argparse.Namespace) -> int:
    """Compare the second of two stored reports with the first."""
    from collector.bench.baseline import regressions, unmeasured
    from collector.bench.benchmark_errors import BenchmarkError
    from collector.bench.benchmark_report import Report
    from collector.bench.documents import changes_as_csv, changes_as_markdown

    given = [option for option, name in _MEASURING.items() if name in arguments.on_command_line]
    if given:
        raise BenchmarkError(f"compare measures nothing, so {', '.join(given)} cannot be used with it")
    if len(arguments.paths) != 3:
        raise BenchmarkError(
            f"compare takes two reports, and not {len(arguments.paths) - 1}",
            f"{_USAGE} (benchmarks in a file of that name: ./{_COMPARE})",
        )
    for path in (arguments.markdown, arguments.csv):
        if path is not None:
            check_writable(path, *arguments.paths[1:])
    before, now = (Report.load(path) for path in arguments.paths[1:])
    found, notes = regressions(
        now, before, fail_above=arguments.fail_above, allow_other_machine=arguments.allow_other_machine
    )
    try:
        _write(arguments.markdown, partial(changes_as_markdown, notes=notes), found)
        _write(arguments.csv, changes_as_csv, found)
    finally:
        _show(found, notes, arguments.paths[1], arguments.fail_above)
    troubles = unmeasured(now, before)
    for trouble in troubles:
        terminal.report(trouble)
    with terminal.reader_may_leave():
        _annotate_errors(troubles)
    return EXIT_REGRESSION if troubles or any(each.failed for each in found) else 0


def _write(path: Path | None, document: Callable[[Any], str], content: Any) -> None:
    """Write the document of ``content``, if a path is given."""
    if path is not None:
        with atomic_write(path) as file:
            file.write(document(content).encode())


def _show(found: Sequence[Regression], notes: Sequence[str], baseline: str | Path, fail_above: float) -> None:
    from collector.bench.documents import changes_as_markdown
    from collector.bench.report_tables import changes_as_text

    threshold = f"{100 * fail_above:g} %"
    add_to_job_summary(f"{_SUMMARY}: changes", changes_as_markdown(found, notes))
    slower = [each for each in found if each.failed]
    with terminal.reader_may_leave():
        print(f"\nAgainst {baseline}: now over before (a regression is slower by more than {threshold}):")
        print(changes_as_text(found, notes))
        _annotate_errors(
            [f"{each.title} {each.arm} takes {each.decisive.interval.estimate:.3g} times as long" for each in slower],
        )


def _annotate_errors(messages: Sequence[str]) -> None:
    """Show errors at the job, where the command runs in one."""
    for line in job_annotations("error", _SUMMARY, messages):
        print(line)


def _measure_here(instances: Sequence[Instance], arguments: argparse.Namespace) -> tuple[Report | None, list[str]]:
    """One run, in this process; also returns the failures with their reasons."""
    from collector.bench.benchmark_report import joined

    options = {
        key: getattr(arguments, key)
        for key in ("precision", "max_seconds", "seed")
        if getattr(arguments, key) is not None
    }
    reports: list[Report] = []
    troubles: list[str] = []
    recordings: list[Recording] = []
    options["keep"] = None if arguments.dataset is None else recordings.append
    with _progress(shown=not arguments.quiet, of=len(instances)) as show_progress:
        for index, instance in enumerate(instances):
            try:
                _measure(instance, options, partial(show_progress, index, instance), reports.append)
            except CollectorError as error:
                troubles.append(f"{instance.title}: {error}")
            except Exception as error:  # e.g. an invalid option, or a card that a kernel left unusable
                troubles.append(f"{instance.title}: {type(error).__name__}: {error}")
            if recordings:  # not between rounds, whose times it would change
                troubles += _add_to_dataset(arguments.dataset, instance, recordings)
                recordings.clear()
    return joined(reports) if reports else None, troubles


def _add_to_dataset(folder: Path, instance: Instance, recordings: Sequence[Recording]) -> list[str]:
    """Add the recordings of a benchmark to a dataset; return the failures with their reasons."""
    from collector.dataset.dataset_writer import DatasetWriter

    try:
        with DatasetWriter(folder) as writer:
            for recording in recordings:
                writer.write(recording, name=instance.title)
    except (CollectorError, OSError) as error:
        return [f"{instance.title} is not in the dataset: {error}"]
    return []


def _measure_in_processes(arguments: argparse.Namespace, runs: int, here: Path) -> tuple[Report | None, list[str]]:
    """Several runs, each in a separate process, so that they contain the differences between processes.

    The processes begin in the folder ``here``.
    """
    from collector.bench.benchmark_report import Report, runs_joined

    reports: list[Report] = []
    troubles: dict[str, None] = {}
    surroundings = {name: value for name, value in os.environ.items() if name not in VARIABLES}  # one summary for all
    if arguments.dataset is not None:
        from collector.dataset.dataset_writer import run_of_this_process

        surroundings["COLLECTOR_RUN"] = run_of_this_process()
    with scratch_folder() as folder:
        for index in range(runs):
            file = folder / f"{index}.json"
            # The path is not in PYTHONPATH, which the measured programs would inherit.
            program = f"sys.path[:] = {sys.path!r}; from collector.cli import main; sys.exit(main(sys.argv[1:]))"
            # What the project states is in the arguments, and is for all runs together: a baseline, files of tables.
            command = python_command(program, "bench", "--isolated", *arguments.paths, "--runs=1")
            command += [f"-k={arguments.pattern}", f"--json={file}"]
            command += ["-q"] if arguments.quiet else []
            command += [] if arguments.dataset is None else [f"--dataset={arguments.dataset}"]
            command += [f"--precision={arguments.precision}"] if arguments.precision is not None else []
            command += [f"--max-seconds={arguments.max_seconds}"] if arguments.max_seconds is not None else []
            command += [f"--seed={arguments.seed + index}"] if arguments.seed is not None else []
            bar = not arguments.quiet and sys.stderr.isatty()
            done = subprocess.run(
                command,
                stdout=subprocess.DEVNULL,
                stderr=None if bar else subprocess.PIPE,
                encoding="locale",
                errors="replace",
                check=False,
                cwd=here,
                env=surroundings,
            )
            messages = (done.stderr or "").strip().splitlines()
            report = Report.load(file) if file.exists() else None
            if report is not None:
                reports.append(report)
            if not messages and (report is None or (done.returncode != 0 and not report.failures)):
                messages = [f"run {index + 1} ended with status {done.returncode}"]
            if done.returncode != 0 or report is None:
                troubles |= dict.fromkeys(line.removeprefix("collector: ") for line in messages)
    return runs_joined(reports) if reports else None, list(troubles)


def _measure(
    instance: Instance,
    options: dict[str, Any],
    progress: Callable[[int, float], None],
    measured: Callable[[Report], None],
) -> None:
    """Measure one benchmark and pass on its report, which it keeps if it then fails to release its inputs."""
    from collector.bench.comparing import compare

    with instance.prepared() as case:
        chosen = {**case.options, **options}
        measured(
            compare(
                case.arms, name=instance.benchmark.name, parameters=instance.parameters, progress=progress, **chosen
            )
        )


def _regressed(report: Report, before: Report, arguments: argparse.Namespace) -> bool:
    from collector.bench.baseline import regressions

    found, notes = regressions(
        report, before, fail_above=arguments.fail_above, allow_other_machine=arguments.allow_other_machine
    )
    _show(found, notes, arguments.baseline, arguments.fail_above)
    return any(each.failed for each in found)


@contextmanager
def _progress(*, shown: bool, of: int) -> Iterator[Callable[[int, Instance, int, float], None]]:
    """A progress bar on standard error, or nothing."""
    with progress("benchmarks", shown=shown, after_s=0) as report:

        def show_progress(index: int, instance: Instance, rounds: int, width: float) -> None:
            report(f"{instance.title[-50:]}: {counted('{} round[|s]', rounds)}, ±{width:.2%}", index, of)

        yield show_progress
