"""Proto text, as people and TensorFlow's tools write it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, TypeVar

from google.protobuf import text_format

if TYPE_CHECKING:
    from google.protobuf.message import Message

    M = TypeVar("M", bound="Message")


def parse_text(text: str, message: M) -> M:
    """Read ``text`` into ``message``, which is returned; fields that it does not know are passed over.

    Raises:
        google.protobuf.text_format.ParseError: it is not proto text, or of another message.
        RecursionError: it is nested too deeply.
    """
    with warnings.catch_warnings():
        # protobuf reads escapes with Python's own codec, which warns of those it does not know. The file is not the
        # program's, and its reader is to have a trace or one clear error, also under -W error.
        warnings.simplefilter("ignore", DeprecationWarning)
        return text_format.Parse(text, message, allow_unknown_field=True)
