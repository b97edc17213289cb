"""Protobuf text format."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, TypeVar

from google.protobuf import text_format

if TYPE_CHECKING:
    from google.protobuf.message import Message

    M = TypeVar("M", bound="Message")


def parse_text(text: str, message: M) -> M:
    """Read ``text`` into ``message``, which is returned; unknown fields are skipped.

    Raises:
        google.protobuf.text_format.ParseError: ``text`` is not proto text, or is the text of another message.
        RecursionError: ``text`` is nested too deeply.
    """
    with warnings.catch_warnings():
        # protobuf reads escapes with Python's own codec, which warns about unknown escapes. The warning would concern
        # the file and not the program, and under -W error it would replace the trace or the one clear error.
        warnings.simplefilter("ignore", DeprecationWarning)
        return text_format.Parse(text, message, allow_unknown_field=True)
