"""Calls of CUDA's API: ``collector.analysis.calls(step)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question
from collector.analysis.duration_groups import DurationGroups, Keys
from collector.analysis.named_question import named_question
from collector.recording.api_functions import plain_api_name
from collector.recording.cupti_enums import RUNTIME_DOMAIN

if TYPE_CHECKING:
    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

QUESTION = Question(
    "calls",
    "Calls of CUDA's runtime and driver by function; the time of a runtime call includes the driver calls that it "
    "makes, so the times of both do not add up.",
    (
        Column("api", "text", "Function that was called, without its version suffix."),
        Column("domain", "text", "runtime or driver."),
        Column("count", "count", "Number of calls."),
        Column("errors", "count", "Number of calls that returned an error."),
        Column("total_ns", "ns", "Sum of their durations."),
        Column("min_ns", "ns", "Shortest call."),
        Column("median_ns", "ns", "Median of their durations; of an even number of calls the lower middle one."),
        Column("max_ns", "ns", "Longest call."),
    ),
    summed=("count", "errors"),
    tables=("api_calls",),
)


@named_question(QUESTION, in_overview=True, counts=("api_calls",), aliases={"cuda_api_sum": ""})
def calls(steps: Asked) -> Answer:
    """Calls of CUDA's API by function, those that took longest first.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
    """
    return QUESTION.ask(steps, _part)


def _part(recording: Recording) -> Part:
    table = recording.api_calls
    names = Keys.of(table.name_id, lambda name: plain_api_name(table.text(name)))
    domains = Keys.of(table.domain == RUNTIME_DOMAIN, lambda of_runtime: "runtime" if of_runtime else "driver")
    groups = DurationGroups([names, domains], table.duration_ns)
    errors = groups.reduced(np.add, (table.return_value != 0).astype(np.int64))
    columns = groups.named_keys(QUESTION.columns[:2]) | groups.figures() | {"errors": errors}
    return Part(columns, (), groups.evidence("api_calls"))
