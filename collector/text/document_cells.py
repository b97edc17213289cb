"""Untrusted texts as cells of documents: CSV that spreadsheets open, and Markdown that viewers render."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, Any

from collector.text.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

_FORMULA = ("=", "+", "-", "@")
"""First characters of a cell that a spreadsheet evaluates."""
_MARKDOWN = re.compile(r"[\\`*\[\]<>|#~&$]|(?<![^\W_])_|_(?![^\W_])")
"""Characters that Markdown may interpret. It does not interpret an underscore within a word."""


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """The rows as comma-separated values, one line for each.

    Control characters and other unprintable characters are escaped as `printable` writes them, because readers of CSV
    refuse NUL and lone surrogates, and a terminal obeys escape sequences. A text that a spreadsheet would take for a
    formula gets an apostrophe before it. None and NaN are empty cells.
    """
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([_csv_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _csv_cell(value: Any) -> Any:
    if value is None or isinstance(value, (int, float)):
        return "" if value is None or value != value else value
    text = printable(str(value))
    return f"'{text}" if text.startswith(_FORMULA) else text


def markdown_text(text: str) -> str:
    """The text in one line that Markdown renders as it is; unprintable characters are escaped as in `printable`."""
    return _MARKDOWN.sub(r"\\\g<0>", printable(text))


def markdown_row(cells: Iterable[str]) -> str:
    """One line of a table of Markdown."""
    return f"| {' | '.join(map(markdown_text, cells))} |"
