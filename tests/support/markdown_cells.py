"""Reads lines of tables of Markdown."""

from __future__ import annotations

import re


def markdown_cells(line: str) -> list[str]:
    """The texts that a viewer of Markdown shows for a line of a table."""
    cells = re.findall(r"((?:\\.|[^|\\])*)\|", line.removeprefix("|"))
    return [re.sub(r"\\(.)", r"\1", cell.strip(" ")) for cell in cells]
