"""The order in which people expect names with numbers."""

from __future__ import annotations

import re


def natural_order(name: str) -> list[tuple[int, str]]:
    """A key by which ``step_9`` comes before ``step_10``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]
