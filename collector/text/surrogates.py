"""Text with halves of characters in it, as Python has it of file names that are not UTF-8."""

from __future__ import annotations


def without_surrogates(text: str) -> str:
    """``text`` as files and messages can hold it: lone surrogates are written out."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
