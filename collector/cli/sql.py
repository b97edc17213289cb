"""Answer a question in SQL about a dataset, or about files of steps.

DuckDB answers it; docs/sql.md lists the tables and views, and `--tables` prints them. A query can only read: it cannot
write, and it has no access to other files or to the network.

  collector sql runs "select name, sum(duration_ns) as total_ns from kernels group by name order by total_ns desc"
  collector sql step.pb "select * from devices"
  collector sql timeline-*.json "select arg_name, sum(dur) from trace_events group by arg_name"
  collector sql runs --tables
  collector sql --dialect bigquery --print answer_overlap    the query of a view for another engine
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from collector.cli._completed_values import CompletedValues, complete_values
from collector.cli._foreign_parquet import report_foreign_parquet
from collector.cli._printed_answers import add_format_arguments, print_answers
from collector.cli._step_files import step_files
from collector.errors import CollectorError
from collector.files.path_kinds import is_folder
from collector.text import terminal
from collector.text.progress import progress

if TYPE_CHECKING:
    import argparse

    from collector.formats.step import Step

_TABLES = (
    "select table_name, string_agg(column_name, ', ' order by ordinal_position) as columns "
    "from information_schema.columns group by table_name order by table_name"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    from collector.dataset.view_files import DIALECTS, view_texts

    parser.add_argument(
        "words",
        nargs="*",
        metavar="DIR_OR_FILE… QUERY",
        help="a dataset, a database of DuckDB, or files, folders and patterns of files of steps, and the query last",
    )
    parser.add_argument("--tables", action="store_true", help="list the tables and views with their columns")
    view = parser.add_argument(
        "--print", metavar="VIEW", dest="view", help="print the query of a view, and run nothing"
    )
    complete_values(view, CompletedValues(lambda: view_texts(DIALECTS[0])))
    dialect = parser.add_argument(
        "--dialect",
        help=f"dialect of --print: {', '.join(DIALECTS)}; others if Ibis is installed (duckdb)",
    )
    complete_values(dialect, CompletedValues(lambda: DIALECTS))
    add_format_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    if arguments.view is not None:
        from collector.dataset.view_definitions import view_text

        if arguments.words or arguments.tables:
            raise CollectorError(
                "--print prints the query of a view and asks nothing: give no files, query or --tables"
            )
        if arguments.dialect == "":
            raise CollectorError("the name of the dialect is empty", "Is a variable of the shell not set?")
        terminal.write(view_text(arguments.view, arguments.dialect or "duckdb"))
        return 0
    if "dialect" in arguments.on_command_line:
        raise CollectorError("--dialect is that of --print; queries are asked of DuckDB", "Add --print VIEW")
    words = [*arguments.words, *([_TABLES] if arguments.tables else [])]
    if len(words) < 2:
        raise CollectorError(
            "a query needs a dataset or a file, and comes last", 'For example: collector sql runs "select * from steps"'
        )
    *paths, query = words
    from collector.dataset.database import Database, names_events

    with progress("reading") as report:
        warnings: list[str] = []

        def on_step(step: Step) -> None:
            warnings.append(step.warning)
            report("reading", len(warnings), len(paths))

        files = [file for path in paths for file in _files(path)]
        report_foreign_parquet(files)
        database = Database.of(files, on_step, draw_events=names_events(query), query=query)
    for warning in filter(None, warnings):
        terminal.report(warning)
    with database:
        print_answers([database.sql(query)], arguments)
    return 0


def _files(given: str) -> list[Path]:
    """The dataset at a path, the database in a folder (of ``collector export --to duckdb``), or files of steps."""
    from collector.dataset.database import is_database
    from collector.formats.named_steps import named_steps

    path = Path(given).expanduser()
    if given and named_steps(path) is not None:
        return [path]
    databases = sorted(filter(is_database, path.iterdir())) if given and is_folder(path) else []
    if len(databases) > 1:
        names = ", ".join(each.name for each in databases)
        raise CollectorError(f"{path} has several databases: {names}", "Name one of them")
    return databases or step_files(given)
