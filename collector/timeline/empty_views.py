"""The reason why a view selects no slice of a step, and the values that would select some."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from collector.text.quantities import time_text
from collector.timeline.drawing import View, chrome_trace, write_trace

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_NAMED = 8
_MOST_READ = 10_000
"""The number of longest slices from which names are taken."""


def reason_of_empty_view(step: Any, view: View) -> tuple[str, str]:
    """The first condition of a view that no slice of a step meets, and values that slices have instead.

    Args:
        step: the step, as for `collector.chrome_trace`.
        view: the view, which selects no slice of the step.

    Returns:
        Cause and remedy of an error; empty if the step has no slices.
    """
    whole = View(arrows=False, counters=False, extent=view.extent)
    drawn = json.loads(chrome_trace(step, **vars(replace(whole, max_events=_MOST_READ, extent=None))))
    slices = [event for event in drawn["traceEvents"] if event.get("ph") == "X"]
    outside = "no slice overlaps the window", f"The step is {time_text(_length_ns(step, view, drawn))} long"
    if not slices:  # where the step is the part of a window, the whole may have some
        return ("", "") if view.extent is None else outside
    if view.devices is not None and not _num_slices(step, replace(whole, devices=view.devices)):
        devices = dict.fromkeys(each.device for each in step.step_stats.dev_stats)
        return f"no device matches {view.devices!r}", f"The devices are {_listed(devices)}"
    if view.names is not None and not _num_slices(step, replace(whole, names=view.names)):
        total: Counter[str] = Counter()
        for event in slices:
            total[event["name"]] += event.get("dur", 0)
        names = (name for name, _ in total.most_common())
        return f"no slice has a name that matches {view.names!r}", f"The names with most time are {_listed(names)}"
    longest_ns = round(1000 * max(event.get("dur", 0) for event in slices))
    if longest_ns < view.min_duration_ns:
        return (
            f"no slice is as long as {time_text(view.min_duration_ns)}",
            f"The longest takes {time_text(longest_ns)}",
        )
    if not _num_slices(step, replace(whole, window_ns=view.window_ns)):
        return outside
    return "no slice meets all conditions at once", "Some slices meet each of them alone: leave one out"


def _length_ns(step: Any, view: View, drawn: dict[str, Any]) -> int:
    """The length of the step, from where windows count; of one without a beginning, the length of its drawing."""
    if view.extent is not None:
        return view.extent.last_ns - view.extent.session_start_ns
    recording = step if hasattr(step, "clock") else getattr(step, "recording", None)
    return int(drawn["otherData"]["drawn"]["end_ns"] if recording is None else recording.clock.window_ns)


def _num_slices(step: Any, view: View) -> int:
    return write_trace(step, lambda piece: None, view).slices


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _MOST_NAMED} more" if len(every) > _MOST_NAMED else ""
    return ", ".join(every[:_MOST_NAMED]) + more
