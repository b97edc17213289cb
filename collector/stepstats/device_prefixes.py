"""What stands before the names of a rank's devices: ``/job:worker/replica:0/task:3`` or nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_PREFIX = r"/job:[^/]+/replica:\d+/task:\d+"
_BEFORE_DEVICE = re.compile(rf"((?:{_PREFIX})?)/(?!job:)")


def is_device_prefix(text: str) -> bool:
    """Whether a text may stand before the names of devices."""
    return re.fullmatch(_PREFIX, text) is not None


def common_prefix(devices: Iterable[str]) -> str | None:
    """The prefix of all these devices, ``""`` if they have none; None if they differ, or if there are no devices."""
    prefixes = {match[1] if (match := _BEFORE_DEVICE.match(name)) else None for name in devices}
    return prefixes.pop() if len(prefixes) == 1 else None
