"""The texts in which a regular expression of a page finds a match, searched by a process that can be ended.

Python's ``re`` keeps the interpreter's lock while it searches, and some expressions, as ``(a+)+$``, take time
exponential in the length of a text: in a thread of the server they would stop all of its answers.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from collector.web.opened_runs import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_S = 5.0
"""The longest time of a search."""
_SEARCH = """\
import json, re, sys
expression, texts = json.load(sys.stdin)
search = re.compile(expression, re.IGNORECASE).search
json.dump([place for place, text in enumerate(texts) if search(text)], sys.stdout)
"""
_MATCH = """\
import json, re, sys
expression, texts = json.load(sys.stdin)
match = re.compile(expression).fullmatch
for text in texts:
    match(text)
"""


def matching_texts(expression: str, texts: Iterable[str]) -> set[str]:
    """The distinct texts in which an expression finds a match; case does not matter.

    Raises:
        RefusedError: it is not a regular expression, or the search took more than `LONGEST_S` seconds.
    """
    try:
        re.compile(expression, re.IGNORECASE)
    except re.error as error:
        raise RefusedError(f"{expression!r} is not a regular expression: {error}") from error
    distinct = list(dict.fromkeys(texts))
    return {distinct[place] for place in json.loads(_output(_SEARCH, expression, distinct))}


def check_match_time(expression: str, texts: Iterable[str]) -> None:
    """Check that a regular expression can be matched with each of some texts as a whole.

    Raises:
        RefusedError: that took more than `LONGEST_S` seconds.
    """
    _output(_MATCH, expression, list(dict.fromkeys(texts)))


def _output(program: str, expression: str, texts: list[str]) -> str:
    try:
        return subprocess.run(
            [sys.executable or "python3", "-I", "-S", "-c", program],
            input=json.dumps([expression, texts]),
            capture_output=True,
            check=True,
            encoding="ascii",
            timeout=LONGEST_S,
        ).stdout
    except subprocess.TimeoutExpired as error:
        raise RefusedError(
            f"the search for {expression!r} was ended after {LONGEST_S:g} s",
            "A repetition within a repetition, as in (a+)+, takes that long; search for a part of the name",
        ) from error
