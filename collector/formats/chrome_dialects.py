"""Recognition of the program that wrote a Chrome trace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collector.formats.chrome_events import ChromeEvents

COMPUTE = " Compute"
"""Suffix of the names of processes that hold a device's ops in TensorFlow's timelines."""
XPROF_GPU = re.compile(r"/device:GPU:([0-9]{1,9})\b")
"""The name of a GPU's process in traces of XProf."""
_CATEGORIES = frozenset(("kernel", "memcpy", "memset", "op", "api", "sync", "overhead", "other"))
"""Categories of the slices in our traces."""


def stated_base(found: ChromeEvents) -> int | None:
    """Wall time of the trace's time 0, which only traces of this project state as text; None for any other."""
    about = found.metadata.get("otherData")
    stated = about.get("base_time_ns") if isinstance(about, dict) else None
    return int(stated) if isinstance(stated, str) and re.fullmatch(r"-?[0-9]{1,19}", stated) else None


def is_cut_timeline(found: ChromeEvents) -> bool:
    """Whether a trace looks like one of this project and lacks its end, where the base is stated."""
    if not found.is_cut or found.metadata != {"displayTimeUnit": "ns"}:
        return False
    slices = found.rows("X")
    processes = {found.tracks[number][0] for number in set(found.track_numbers(slices).tolist())}
    is_ours = _CATEGORIES.issuperset(found.categories(slices)[0]) and all(isinstance(pid, int) for pid in processes)
    return bool(len(slices)) and is_ours


def is_tensorflow(found: ChromeEvents) -> bool:
    """Whether the events are those of a TensorFlow timeline."""
    if not any(name == "Allocators" or name.endswith(COMPUTE) for name in found.process_names.values()):
        return False
    return set(found.categories(found.rows("X"))[0]) <= {"Op"}


def is_xprof(found: ChromeEvents) -> bool:
    """Whether a GPU is drawn as XProf draws it."""
    if not any(XPROF_GPU.match(name) for name in found.process_names.values()):
        return False
    return not found.has_categories
