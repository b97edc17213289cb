"""The order in which people expect names with numbers."""

from __future__ import annotations

import re


def natural_order(name: str) -> list[tuple[int, str]]:
    """A key by which ``step_9`` comes before ``step_10``; native code orders tracks alike."""
    parts = re.split(r"([0-9]+)", name)  # every second one is a number
    parts[1::2] = [digits.lstrip("0") for digits in parts[1::2]]
    return [(len(part) if place % 2 else 0, part) for place, part in enumerate(parts)]
