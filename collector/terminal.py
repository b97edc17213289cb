"""Text for a terminal: names are words of strangers, and some of them would be obeyed instead of shown."""

from __future__ import annotations

import re
import sys

_KEPT = re.compile(r"([\n\t])")


def printable(text: str) -> str:
    """Return ``text`` in one line, with escapes for what a terminal would obey instead of showing it."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def printable_lines(text: str) -> str:
    """`printable` for a text of several lines, whose ends and tabs are kept."""
    return "".join(map(_printable_part, _KEPT.split(text)))


def _printable_part(part: str) -> str:
    return part if part in ("\n", "\t") else printable(part)


def write(text: str) -> None:
    """Write lines to standard output at once, as `printable_lines` has them."""
    sys.stdout.write(printable_lines(text))
    sys.stdout.flush()


def tell(message: str) -> None:
    """Write one line to standard error that says whose it is."""
    print(f"collector: {printable(message)}", file=sys.stderr)
