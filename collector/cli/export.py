"""Write steps into a dataset of Parquet files, a database, or lines of JSON, for questions in SQL.

Reads all files that `collector timeline` reads. Files of several ranks and steps become one run. Existing runs of the
dataset are kept.

  collector export step_*.json --to parquet runs --run tuesday       add twenty steps to the dataset in the folder runs
  collector export rank*.json.gz --to parquet runs                   the ranks of a job, side by side
  collector export step.gpurec --to duckdb runs                      the file runs/trace.duckdb, with all views
  collector export step.gpurec --to sqlite runs                      the file runs/trace.sqlite
  collector export step_*.json --to ndjson lines                     a file for each table, as `bq load` takes it
  collector sql runs "select name, sum(duration_ns) from kernels group by name"
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from collector.cli._completed_values import CompletedValues, complete_values
from collector.cli._foreign_parquet import report_foreign_parquet
from collector.cli._path_arguments import check_names
from collector.cli._step_files import add_step_files, files_of, without_repeats
from collector.errors import OutputError
from collector.files.atomic_files import output_error
from collector.files.new_folders import scratch_folder
from collector.formats.output_paths import check_placeholders, filled_path, placeholders_of
from collector.runtime.optional_packages import optional_package
from collector.text import terminal
from collector.text.progress import progress
from collector.text.surrogates import without_surrogates
from collector.text.wording import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from collector.formats.step import Step

_TARGETS = ("parquet", "duckdb", "sqlite", "ndjson")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    add_step_files(parser)
    target = parser.add_argument(
        "--to", nargs=2, required=True, metavar=("KIND", "DIR"), help=f"{', '.join(_TARGETS)}; a folder"
    )
    complete_values(target, CompletedValues(lambda: _TARGETS, before_folder=True))
    parser.add_argument(
        "--run",
        default="",
        help="name of the run of all files (COLLECTOR_RUN, or the time at which the first of them began); runs of a "
        "dataset keep theirs",
    )
    parser.add_argument(
        "--events",
        action="store_true",
        help="also write the events of the drawn Chrome trace, the table trace_events, for files of other formats",
    )
    parser.add_argument("--label", default="", help="a text about the run, in the table runs (that of its first step)")


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    from collector.formats.named_steps import named_steps

    check_names(arguments.to[1:])
    kind, folder = arguments.to[0], Path(arguments.to[1]).expanduser()
    if kind not in _TARGETS:
        raise OutputError(f"--to {kind}: choose one of {', '.join(_TARGETS)}")
    check_placeholders(folder)
    if kind != "parquet" or "rank" not in placeholders_of(folder):  # else the writer of each rank fills it in
        folder = filled_path(folder, None)
    optional_package("pyarrow.parquet")
    report_foreign_parquet(arguments.inputs)
    each_of = ([given] if named_steps(given) is not None else files_of([given]) for given in arguments.inputs)
    inputs = without_repeats(file for files in each_of for file in files)
    if kind == "duckdb":
        optional_package("duckdb")
    if kind == "parquet":
        written = _export(arguments, inputs, folder)
    else:
        with scratch_folder() as scratch:
            written = _export(arguments, inputs, scratch / "dataset")
            _convert(kind, scratch / "dataset", folder, inputs)
    with terminal.reader_may_leave():
        print(f"{terminal.printable(str(folder))}: {counted('{:,} step[|s]', written)} added")
    return 0


def _export(arguments: argparse.Namespace, inputs: Sequence[Path], folder: Path) -> int:
    from collector.dataset.dataset_writer import run_that_is_named
    from collector.dataset.exports import export_steps

    with progress("exporting") as report:
        warnings: list[str] = []

        def on_step(step: Step) -> None:
            warnings.append(step.warning)
            report(f"exporting {step.path.name if step.path else ''}", len(warnings), len(inputs))

        written = export_steps(
            inputs,
            folder,
            run=arguments.run or run_that_is_named(),
            label=without_surrogates(arguments.label),
            draw_events=arguments.events,
            on_step=on_step,
        )
    for warning in filter(None, warnings):
        terminal.report(warning)
    return written


def _convert(kind: str, source: Path, folder: Path, inputs: Sequence[Path]) -> None:
    from collector.dataset.dataset import Dataset
    from collector.dataset.exports import export_ndjson, export_sqlite

    dataset = Dataset(source)
    if kind == "ndjson":
        export_ndjson(dataset, folder, inputs)
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise output_error(f"cannot make {folder}", error) from error
    if kind == "sqlite":
        export_sqlite(dataset, folder / "trace.sqlite")
        return
    from collector.dataset.database import Database

    Database.save(dataset, folder / "trace.duckdb")
