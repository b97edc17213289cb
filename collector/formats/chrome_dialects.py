"""Recognition of the program that wrote a Chrome trace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from collector.formats.chrome_events import process_names

if TYPE_CHECKING:
    from collector.formats.chrome_events import ChromeEvents

COMPUTE = " Compute"
"""Ends of the names of processes that hold a device's ops in TensorFlow's timelines."""
XPROF_GPU = re.compile(r"/device:GPU:([0-9]{1,9})\b")
"""The name of a GPU's process in traces of XProf."""
_CATEGORIES = frozenset(("kernel", "memcpy", "memset", "op", "api", "sync", "overhead", "other"))
"""Categories of the slices in our traces."""


def stated_base(found: ChromeEvents) -> int | None:
    """Wall time of the trace's time 0, which only our own traces state as text; None for any other."""
    about = found.metadata.get("otherData")
    stated = about.get("base_time_ns") if isinstance(about, dict) else None
    return int(stated) if isinstance(stated, str) and re.fullmatch(r"-?[0-9]{1,19}", stated) else None


def is_cut_timeline(found: ChromeEvents) -> bool:
    """Whether a trace looks like ours and lacks its end, where the base is stated."""
    if not found.is_cut or found.metadata.get("otherData") is not None:
        return False
    slices = [event for event in found.events if event.get("ph") == "X"]
    is_ours = all(str(event.get("cat")) in _CATEGORIES and isinstance(event.get("pid"), int) for event in slices)
    return bool(slices) and is_ours and found.metadata == {"displayTimeUnit": "ns"}


def is_tensorflow(events: list[dict[str, Any]]) -> bool:
    """Whether the events are those of a TensorFlow timeline."""
    return any(name == "Allocators" or name.endswith(COMPUTE) for name in process_names(events).values()) and not any(
        event.get("ph") == "X" and event.get("cat") != "Op" for event in events
    )


def is_xprof(events: list[dict[str, Any]]) -> bool:
    """Whether a GPU is drawn as XProf draws it."""
    return any(XPROF_GPU.match(name) for name in process_names(events).values()) and not any(
        "cat" in each for each in events
    )
