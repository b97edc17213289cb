"""Run a command of ours as in a terminal and draw what it prints, as SVG.

python scripts/terminal_picture.py OUT.svg ARGUMENTS
"""

from __future__ import annotations

import io
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path

from rich.console import Console
from rich.text import Text

from collector.cli import main

WIDTH = 72
_FONT_FACES = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
"""Fonts that the picture would load from elsewhere."""


class Terminal(io.StringIO):
    """Standard output that is taken for a terminal."""

    def isatty(self) -> bool:
        """Commands colour their output for a terminal."""
        return True


def picture(arguments: list[str]) -> str:
    """What ``collector ARGUMENTS`` prints, with the command above it, as SVG."""
    printed = Terminal()
    with redirect_stdout(printed):
        status = main(arguments)
    if status:
        raise SystemExit(status)
    lines = Text.from_ansi(printed.getvalue())
    lines.rstrip()
    shown = [name if "/" not in name else Path(name).name for name in arguments]
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text(f"$ collector {' '.join(shown)}", style="bold"))
    console.print(lines)
    svg = console.export_svg(title="collector", unique_id="collector")
    return "\n".join(line.rstrip() for line in _FONT_FACES.sub("", svg).splitlines()) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(sys.argv[2:]))
