"""A name with control sequences for terminals, and a check of texts that contain it."""

from __future__ import annotations

import unicodedata

EVIL = "\x1b]0;title\x07\x1b[31mred\x9b2J\r\x08\u202eright to left\x7f"
"""A window title, a colour, a cleared screen by its 8-bit code, overwriting, reversed text, delete."""


def obeyed(text: str) -> set[str]:
    """The characters of ``text`` that a terminal obeys instead of showing them, except line ends and tabs."""
    return {each for each in text if unicodedata.category(each) in ("Cc", "Cf", "Cs") and each not in "\n\t"}
