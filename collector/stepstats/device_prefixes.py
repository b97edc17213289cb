"""Prefixes of the names of a rank's devices: ``/job:worker/replica:0/task:3`` or empty."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_PREFIX = r"/job:[^/]+/replica:\d+/task:\d+"
_LOCAL = "/job:localhost/replica:0/task:0"
"""TensorFlow's prefix for a program of a single task."""
_BEFORE_DEVICE = re.compile(rf"((?:{_PREFIX})?)/(?!job:)")

_RANK = re.compile(r"(rank) (\d{1,7}) ")
_OWNER = re.compile(r"((?:(?:rank|process) \d{1,7} )?step|rank|process) (\d{1,12}) ")
"""The prefix of process names in merged traces: the rank, process or step to which the devices belong."""


def is_device_prefix(text: str) -> bool:
    """Whether a text can be the prefix of device names."""
    return re.fullmatch(_PREFIX, text) is not None


def owned_device(device: str, words: str, number: str) -> str:
    """A device with the rank, the process or the step of a merged trace that it belongs to in its prefix.

    >>> owned_device("/gpu:0", "rank", "3"), owned_device("/gpu:0", "process", "1234")
    ('/job:worker/replica:0/task:3/gpu:0', '/job:process/replica:0/task:1234/gpu:0')
    >>> owned_device("/job:worker/replica:0/task:3/gpu:0", "step", "7")
    '/job:worker 3 step/replica:0/task:7/gpu:0'
    """
    prefix, rest = split_prefix(device)
    is_named = prefix not in ("", _LOCAL)
    of_rank = f"{prefix.split('/')[1].removeprefix('job:')} {prefix.rpartition(':')[2]} " if is_named else ""
    return f"/job:{of_rank}{re.sub('^rank', 'worker', words)}/replica:0/task:{number}{rest}"


def device_in_process(device: str, process: str, *, is_merged: bool = True) -> str:
    """The name of a device in a drawn process, with the rank that precedes the process's name in its prefix.

    In merged traces it may also be a process of the machine, or a step.

    >>> device_in_process("/gpu:0", "rank 3 GPU 0"), device_in_process("/gpu:0", "GPU 0")
    ('/job:worker/replica:0/task:3/gpu:0', '/gpu:0')
    """
    owner = (_OWNER if is_merged else _RANK).match(process) if device.startswith("/") else None
    return device if owner is None else owned_device(device, *owner.groups())


def split_prefix(device: str) -> tuple[str, str]:
    """The prefix of a device's name, ``""`` if it has none, and the name without it."""
    found = _BEFORE_DEVICE.match(device)
    prefix = found[1] if found else ""
    return prefix, device[len(prefix) :]


def task_numbers(devices: Iterable[str]) -> list[int]:
    """The number of the task that each device belongs to, by its prefix; 0 for all where there are no two tasks.

    Devices without a prefix are one more task then. TensorFlow gives those of one task a prefix only in part.
    """
    prefixes = [split_prefix(device)[0] for device in devices]
    if len({*prefixes} - {""}) < 2:
        return [0] * len(prefixes)
    numbers: dict[str, int] = {}
    return [numbers.setdefault(prefix, len(numbers)) for prefix in prefixes]


def common_prefix(devices: Iterable[str]) -> str | None:
    """The prefix of all these devices, ``""`` if they have none; None if they differ, or if there are no devices."""
    prefixes = {match[1] if (match := _BEFORE_DEVICE.match(name)) else None for name in devices}
    return prefixes.pop() if len(prefixes) == 1 else None
