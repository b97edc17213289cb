"""Text for a terminal: names are untrusted, and a terminal would execute escape sequences in them."""

from __future__ import annotations

import re
import sys

_KEPT = re.compile(r"([\n\t])")


def printable(text: str) -> str:
    """Return ``text`` as one line in which control characters and other unprintable characters are escaped."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def printable_lines(text: str) -> str:
    """`printable` for a text of several lines, in which line ends and tabs are kept."""
    return "".join(map(_printable_part, _KEPT.split(text)))


def _printable_part(part: str) -> str:
    return part if part in ("\n", "\t") else printable(part)


def write(text: str) -> None:
    """Write lines to standard output at once, in the form of `printable_lines`."""
    sys.stdout.write(printable_lines(text))
    sys.stdout.flush()


def report(message: str) -> None:
    """Write one line to standard error, after the program's name."""
    print(f"collector: {printable(message)}", file=sys.stderr)
