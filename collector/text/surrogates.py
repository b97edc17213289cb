"""Text with lone surrogates, which Python uses for file names that are not UTF-8."""

from __future__ import annotations


def is_utf8(text: str) -> bool:
    """Whether ``text`` has no lone surrogates, so that it can be encoded in UTF-8."""
    return without_surrogates(text) == text


def without_surrogates(text: str) -> str:
    """``text`` with its lone surrogates escaped, as files and messages need it."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
