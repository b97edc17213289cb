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
    ids, index = np.unique(table.name_id * np.int64(2) + is_runtime, return_inverse=True)
    functions = [(plain_api_name(table.text(number // 2)), bool(number % 2)) for number in ids.tolist()]
    distinct = list(dict.fromkeys(functions))
    index = np.array([distinct.index(function) for function in functions], np.int64)[index]
    grouped = np.argsort(index, kind="stable")
    bounds = np.searchsorted(index[grouped], np.arange(len(distinct) + 1))
    durations = table.duration_ns
    rows, evidence = [], []
    for place, (name, of_runtime) in enumerate(distinct):
        own = grouped[bounds[place] : bounds[place + 1]]
        spent = durations[own]
        errors = int((table.return_value[own] != 0).sum())
        domain = "runtime" if of_runtime else "driver"
        figures = (int(spent.sum()), int(spent.min()), lower_median(spent), int(spent.max()))
        rows.append((name, domain, len(own), errors, *figures))
        evidence.append({"api_calls": own})
    order = sorted(range(len(rows)), key=lambda place: (-rows[place][4], rows[place][:2]))
    return Part([rows[place] for place in order], (), [evidence[place] for place in order])
