"""Sentences with a count or a list in them, and suggestions for misspelled words."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_CHOICE = re.compile(r"\[([^\[\]|]*)\|([^\[\]|]*)\]")


def counted(text: str, count: int) -> str:
    """Return ``text`` with ``count`` for ``{}``, and the matching form of each ``[singular|plural]``.

    >>> counted("{} activit[y|ies] start[s|] before the step", 1)
    '1 activity starts before the step'
    >>> counted("{:,} record[|s]", 2000)
    '2,000 records'
    """
    return _CHOICE.sub(lambda choice: choice[1] if count == 1 else choice[2], text).format(count)


def suggestion(given: str, known: Sequence[str]) -> str:
    """Return the end of a message: a question with the word of ``known`` that is most similar to ``given``, if any.

    >>> suggestion("mempcy", ["kernel", "memcpy"])
    '; did you mean memcpy?'
    """
    similar = most_similar(given, known)
    return f"; did you mean {similar}?" if similar else ""


def most_similar(given: str, known: Sequence[str]) -> str:
    """Return the word of ``known`` that is most similar to ``given``, or ``""`` if none is similar."""
    return next(iter(difflib.get_close_matches(given, known, n=1)), "")


def listed(words: Sequence[str], last: str = "and") -> str:
    """Return words as one enumeration, with a word before the last of them.

    >>> listed(["kernels", "copies", "memsets"], "or")
    'kernels, copies or memsets'
    """
    return f" {last} ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
