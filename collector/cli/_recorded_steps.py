"""The report on standard error of a command that ends a recording."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from collector.text import terminal

if TYPE_CHECKING:
    from collector.formats.step import Step


def print_recorded(step: Step, name: str = "", *, quiet: bool) -> None:
    """Print the summary of a step that was recorded; of its losses and cut parts at least the lines.

    Args:
        step: the step.
        name: its name among several; empty: it is the only one.
        quiet: print no summary.
    """
    if not quiet:
        head = f"\n{terminal.printable(name)}\n" if name else ""
        terminal.write_error(f"{head}{step.summary(color=terminal.shows_colours(sys.stderr))}\n")
        return
    head = f"{name}: " if name else ""
    for line in step.ledger.losses():
        terminal.report(f"{head}incomplete: {line}")
    for line in step.ledger.part_lines():
        terminal.report(f"{head}{line}")
