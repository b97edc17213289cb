"""Text for a terminal. Names are untrusted, and a terminal would obey escape sequences in them."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

_KEPT = re.compile(r"([\n\t])")
_STYLES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33}
"""Style -> number of its escape sequence (ECMA-48, SGR)."""
_SIMILAR_SIGNS = "collector.similar_signs"
"""Name of an error handler of encodings."""
_SIMILAR = {"µs": "us", "─": "-", "…": "~", "±": "~", "·": "-", "✓": "+", "✗": "x"}
"""Sign of our own output -> as many characters of ASCII; commands read ``us`` as well."""


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


def shows_colours(stream: TextIO) -> bool:
    """Whether text for this stream should have colours.

    It should on a terminal, except where ``NO_COLOR`` is set (https://no-color.org) or ``TERM`` is ``dumb``.
    """
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def styled(text: str, *styles: str, color: bool) -> str:
    """The text in these styles (bold, dim, red, green, yellow) where the terminal shows colours."""
    if not color or not text:
        return text
    return f"\x1b[{';'.join(str(_STYLES[style]) for style in styles)}m{text}\x1b[0m"


def replace_closed_streams() -> None:
    """Discard output to a standard stream that the caller has closed, which is None in Python.

    The replacement stays open until the process ends.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115


def escape_unknown_characters() -> None:
    """Let both standard streams write characters that their encoding lacks, such as ``µ`` in ASCII.

    Signs of our own output become similar ones of ASCII, and all others escapes. Python opens standard output with
    ``surrogateescape`` in the C locale and with ``strict`` in others, and standard error with ``backslashreplace``.
    """
    codecs.register_error(_SIMILAR_SIGNS, _with_similar_signs)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape", "backslashreplace"):
            stream.reconfigure(errors=_SIMILAR_SIGNS)


def as_written(text: str) -> str:
    """The text with the replacements that standard output makes after `escape_unknown_characters`.

    Tables are laid out with it, because an escape is wider than its character.
    """
    stream = sys.stdout
    if text.isascii() or not isinstance(stream, io.TextIOWrapper) or stream.errors != _SIMILAR_SIGNS:
        return text
    return text.encode(stream.encoding, _SIMILAR_SIGNS).decode(stream.encoding)


def _with_similar_signs(error: UnicodeError) -> tuple[str, int]:
    """An error handler of encodings, with a character for each sign of ours, so that tables stay aligned."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text, place = error.object, error.start
    sign = next((each for each in _SIMILAR if text.startswith(each, place)), "")
    if sign:
        return _SIMILAR[sign], place + len(sign)
    return text[place].encode("unicode_escape").decode(), place + 1


def write(text: str) -> None:
    """Write lines to standard output at once, in the form of `printable_lines`."""
    sys.stdout.write(printable_lines(text))
    sys.stdout.flush()


def discard_output() -> None:
    """Discard the rest of standard output, including what the interpreter writes when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def reader_may_leave() -> Iterator[None]:
    """Discard standard output in the block once its reader, such as `head`, has closed the pipe.

    This is for commands whose exit status does not depend on the output, because it states a verdict or the success of
    completed work.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()


def report(message: str) -> None:
    """Write one line to standard error, after the program's name. Raises nothing."""
    write_error(f"collector: {printable(message)}\n")


def write_error(text: str) -> None:
    """Write printable lines to standard error.

    With a pipe without a reader or a full disk only the message is lost: results and the exit status are unaffected.
    """
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        # Without this the interpreter writes again when it ends, and exits with status 120.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
