"""What the host called: ``collector.analysis.calls(step)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question
from collector.analysis.launches import lower_median
from collector.recording.api_functions import plain_api_name
from collector.recording.cupti_enums import RUNTIME_DOMAIN

if TYPE_CHECKING:
    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

QUESTION = Question(
    "calls",
    "Calls of CUDA's runtime and driver by function; a call of the runtime holds the driver's calls that it makes, so "
    "times of both do not add up.",
    (
        Column("api", "text", "Function that was called, without its version."),
        Column("domain", "text", "runtime or driver."),
        Column("count", "count", "Calls of it."),
        Column("errors", "count", "Calls that returned an error."),
        Column("total_ns", "ns", "Time in them."),
        Column("min_ns", "ns", "Shortest call."),
        Column("median_ns", "ns", "Median of the calls, of an even number the lower one."),
        Column("max_ns", "ns", "Longest call."),
    ),
    summed=("count", "errors"),
)


def calls(steps: Asked) -> Answer:
    """Calls of CUDA's API by function, those that took longest first.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
    """
    return QUESTION.ask(steps, _part)


def _part(recording: Recording) -> Part:
    table = recording.api_calls
    is_runtime = table.domain == RUNTIME_DOMAIN
    names = [plain_api_name(name) for name in table.recorded_names()]
    keys = {key: place for place, key in enumerate(dict.fromkeys(zip(names, is_runtime.tolist(), strict=True)))}
    index = np.array([keys[key] for key in zip(names, is_runtime.tolist(), strict=True)], np.int64)
    durations = table.duration_ns
    rows, evidence = [], []
    for (name, of_runtime), place in keys.items():
        own = np.flatnonzero(index == place)
        spent = durations[own]
        errors = int((table.return_value[own] != 0).sum())
        domain = "runtime" if of_runtime else "driver"
        figures = (int(spent.sum()), int(spent.min()), lower_median(spent), int(spent.max()))
        rows.append((name, domain, len(own), errors, *figures))
        evidence.append({"api_calls": own})
    order = sorted(range(len(rows)), key=lambda place: (-rows[place][4], rows[place][:2]))
    return Part([rows[place] for place in order], (), [evidence[place] for place in order])
