"""Tables and sentences for notebooks and pages: short HTML without a script, in the colours of the page around it."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from collector.text.terminal import printable
from collector.text.text_tables import cut_names

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_LONGEST = 80
"""Characters of a cell; the middle of longer ones is left out."""
_LEFT, _RIGHT, _FIGURE = (f' style="text-align:{each}"' for each in ("left", "right", "right;white-space:nowrap"))
"""Styles of cells: JupyterLab's style sheet aligns all cells to the right, and breaks the lines of all."""
_COLORS = (
    "<style>.collector-good{color:#00785a}.collector-bad{color:#b3261e}"
    "@media(prefers-color-scheme:dark){.collector-good{color:#5fd0a8}.collector-bad{color:#ff9a8f}}</style>"
)


def html_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    is_name: Sequence[bool],
    *,
    caption: str = "",
    meanings: Sequence[str] = (),
    sentences: Collection[str] = (),
) -> str:
    """A table of any texts, which are escaped. Names are aligned to the left, figures to the right, on one line each.

    Args:
        heads: the headings of the columns.
        rows: a cell for each column.
        is_name: whether each column holds names; long names are cut in the middle.
        caption: one line above it.
        meanings: descriptions of the columns, shown as tooltips.
        sentences: headings of columns of names that are not cut.
    """
    columns = [
        cut_names([printable(row[place]) for row in rows], _LONGEST)
        if is_name[place] and heads[place] not in sentences
        else [row[place] for row in rows]
        for place in range(len(heads))
    ]
    sides = [_LEFT if left else _RIGHT for left in is_name]
    tips = [f' title="{html.escape(each)}"' for each in meanings] or [""] * len(heads)
    head = "".join(
        f'<th scope="col"{tip}{side}>{html.escape(printable(name))}</th>'
        for name, side, tip in zip(heads, sides, tips, strict=True)
    )
    of_cells = [_LEFT if left else _FIGURE for left in is_name]
    body = ""
    for row in zip(*columns, strict=True):
        cells = [html.escape(printable(cell)) for cell in row]
        body += f"<tr>{''.join(f'<td{side}>{cell}</td>' for side, cell in zip(of_cells, cells, strict=True))}</tr>"
    above = f"<caption>{html.escape(printable(caption))}</caption>" if caption else ""
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_line(text: str, mood: str = "") -> str:
    """A sentence as a paragraph, coloured if ``mood`` is ``good`` or ``bad``."""
    if not mood:
        return f"<p>{html.escape(printable(text))}</p>"
    return f'{_COLORS}<p class="collector-{mood}">{html.escape(printable(text))}</p>'
