"""The rank and the number of a step among many: from its devices, its metadata, or the name of its file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_RANK_IN_NAME = re.compile(r"(?:^|[^a-z])rank[_-]?(\d{1,7})", re.IGNORECASE)
_STEP_IN_NAME = re.compile(r"(?:^|[^a-z])(?:step|timeline)[_-]?(\d{1,12})", re.IGNORECASE)
_NO_RANK = re.compile(r"^process$|\bstep$")
_RANK_IN_DEVICE = re.compile(r"^/job:([^/]+)/replica:\d+/task:([0-9]{1,9})(?![0-9])")


def tasks_of(devices: Iterable[str]) -> set[tuple[str, int]]:
    """The jobs and ranks that device names state, except the one local task that every machine of its own has.

    A task may also be a process or a step, in what was read from a merged trace.
    """
    found = (_RANK_IN_DEVICE.match(device) for device in devices)
    ranks = (task for task in found if task and not _NO_RANK.search(task[1]))
    return {(task[1], int(task[2])) for task in ranks if task[1] != "localhost" or int(task[2])}


def rank_number(tasks: set[tuple[str, int]], stated: int | None, file_name: str) -> int | None:
    """The rank of a step; None if nothing states it, or if the step is of several ranks.

    Args:
        tasks: the jobs and ranks that its devices state.
        stated: the rank that its file states.
        file_name: the name of its file, ``""`` where it has none.
    """
    if len(tasks) == 1:
        return min(tasks)[1]
    if tasks:
        return None  # one file of several ranks, which its devices already name
    if stated is not None:
        return stated
    named = _RANK_IN_NAME.findall(Path(file_name).name)
    return int(named[-1]) if named else None


def step_number(file_name: str) -> int | None:
    """The number of a step in the name of its file; None where it has none."""
    named = _STEP_IN_NAME.findall(Path(file_name).name)
    return int(named[-1]) if named else None
