"""Answers on standard output: as tables, JSON, CSV or Markdown."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from collector.cli._completed_values import CompletedValues, complete_values
from collector.text import terminal
from collector.text.document_cells import markdown_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.analysis.answer import Answer

_ROWS = 20
_ALL = "all"
_WIDTH = 100
"""Characters of a line if the width of the terminal is unknown."""


def add_format_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of printed answers."""
    rows = parser.add_argument(
        "--rows",
        type=_rows,
        metavar="N",
        help=f"number of rows of an answer, or {_ALL} ({_ROWS} in a table for terminals, otherwise {_ALL})",
    )
    complete_values(rows, CompletedValues(lambda: (_ALL,)))
    parser.add_argument(
        "--whole-names",
        action="store_true",
        help="print whole names in tables, even if lines become longer than the terminal is wide",
    )
    formats = parser.add_mutually_exclusive_group()
    formats.add_argument(
        "--json", action="store_true", help="a list of answers with their rows and the meanings of columns"
    )
    formats.add_argument("--csv", action="store_true", help="the rows of one answer; unprintable characters escaped")
    formats.add_argument("--markdown", action="store_true", help="the rows as tables of Markdown")


def _rows(text: str) -> int:
    if text == _ALL:
        return sys.maxsize
    try:
        rows = int(text)
    except ValueError:
        rows = 0
    if rows < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number from 1 on nor {_ALL!r}")
    return rows


def print_answers(answers: Sequence[Answer], arguments: argparse.Namespace) -> None:
    """Print answers in the format that the arguments choose; each loss is printed once.

    The number of rows that a project states is that of tables for terminals: programs that read other formats get
    every row unless the command line limits them.
    """
    if "rows" in arguments.on_command_line and (arguments.json or arguments.csv or arguments.markdown):
        answers = [_first_rows(answer, arguments.rows) for answer in answers]
    if arguments.json:
        json.dump([answer.to_json() for answer in answers], sys.stdout, indent=1, allow_nan=False)
        print()
    elif arguments.csv:
        sys.stdout.write(answers[0].to_csv())
    elif arguments.markdown:
        sys.stdout.write("\n".join(f"{markdown_text(each.definition)}\n\n{each.to_markdown()}" for each in answers))
    else:
        rows = _ROWS if arguments.rows is None else arguments.rows
        width = shutil.get_terminal_size((_WIDTH, 0)).columns
        color = terminal.shows_colours(sys.stdout)
        options = {"rows": rows, "width": width, "color": color, "whole_names": arguments.whole_names}
        print("\n\n".join(answer.text(**options, losses=False) for answer in answers))
        for loss in dict.fromkeys(loss for answer in answers for loss in answer.losses):
            print(f"incomplete: {terminal.printable(loss)}")


def _first_rows(answer: Answer, rows: int) -> Answer:
    """The answer with its first rows alone, and a note about the others."""
    if rows >= len(answer):
        return answer
    note = f"These are the first {rows:,} of {len(answer):,} rows; the totals are those of all rows."
    values = {name: column[:rows] for name, column in answer.values.items()}
    return replace(answer, values=values, evidence=(), notes=(*answer.notes, note))
