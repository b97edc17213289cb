"""Sentences with a count in them."""

from __future__ import annotations

import re

_CHOICE = re.compile(r"\[([^\[\]|]*)\|([^\[\]|]*)\]")


def counted(text: str, count: int) -> str:
    """Return ``text`` with ``count`` for ``{}``, and the matching form of each ``[singular|plural]``.

    >>> counted("{} activit[y|ies] start[s|] before the step", 1)
    '1 activity starts before the step'
    >>> counted("{:,} record[|s]", 2000)
    '2,000 records'
    """
    return _CHOICE.sub(lambda choice: choice[1] if count == 1 else choice[2], text).format(count)
