"""JSON in files, whose whole numbers must fit into the 64 bits of columns and messages."""

from __future__ import annotations

import json
from typing import Any


def json_64_bit(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: the text is not JSON, or a whole number in it has more than 64 bits.
        RecursionError: the value is nested too deeply.
    """
    return json.loads(text, parse_int=_64_bit)


def _64_bit(digits: str) -> int:
    number = int(digits)
    if not -(1 << 63) <= number < 1 << 64:
        raise ValueError(f"the number {digits} has more than 64 bits")
    return number
