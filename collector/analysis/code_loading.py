"""Time that the driver spent compiling and loading code: ``collector.analysis.code_loading(step)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question
from collector.analysis.device_times import ratio
from collector.analysis.named_question import named_question
from collector.analysis.tracing_cost import covered_in_step
from collector.recording.cupti_enums import JIT_ENTRY_TYPES, JIT_OPERATION_TYPES, LOADING_OVERHEADS, OVERHEAD_KINDS
from collector.recording.kind_names import kind_name
from collector.recording.possible_sizes import LARGEST_BYTES

if TYPE_CHECKING:
    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

QUESTION = Question(
    "code_loading",
    "Time that the driver spent compiling and loading code while the program ran, which the first step of a program "
    "takes for the most part, traced or not. CUPTI states its parts as overheads; the driver's compilations and uses "
    "of its cache, which are recorded on request (kind jit_operations), are what the driver's compiler did.",
    (
        Column("kind", "text", "CUPTI's kind of overhead, or of the driver's operation."),
        Column("code", "text", "What was compiled to what; empty: CUPTI does not state it."),
        Column("count", "count", "Number of records."),
        Column("total_ns", "ns", "Sum of their durations."),
        Column("covered_ns", "ns", "Time of the step in which at least one of them lasted."),
        Column("share", "share", "covered_ns divided by the duration of the step."),
        Column("cache_bytes", "bytes", "Sum of the sizes of the code in the cache; 0: not stated."),
    ),
    summed=("count",),
    tables=("overheads", "jit_operations"),
    otherwise="None of CUPTI's overheads is one of compiling or loading code.",
)


@named_question(QUESTION)
def code_loading(steps: Asked) -> Answer:
    """Time that the driver spent compiling code, and loading modules and functions.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
    """
    return QUESTION.ask(steps, _part)


def _part(recording: Recording) -> Part:
    overheads, jit = recording.overheads, recording.jit_operations
    found: list[tuple[tuple[str, str], str, Any, int]] = [
        ((OVERHEAD_KINDS[kind], ""), "overheads", np.flatnonzero(overheads.overhead_kind == kind), 0)
        for kind in LOADING_OVERHEADS
    ]
    for kind in sorted(set(zip(jit.jit_operation_type.tolist(), jit.jit_entry_type.tolist(), strict=True))):
        own = np.flatnonzero((jit.jit_operation_type == kind[0]) & (jit.jit_entry_type == kind[1]))
        operation = JIT_OPERATION_TYPES[kind[0] if kind[0] < len(JIT_OPERATION_TYPES) else 0]
        num_bytes = int(np.minimum(jit.cache_bytes[own], LARGEST_BYTES).sum())  # larger: a damaged record
        found.append(((operation, kind_name(JIT_ENTRY_TYPES, kind[1])), "jit_operations", own, num_bytes))
    rows, evidence = [], []
    for key, name, own, num_bytes in found:
        if len(own):
            table = getattr(recording, name)
            covered_ns = covered_in_step(recording, table[own])
            figures = (len(own), int(table.duration_ns[own].sum()), covered_ns)
            rows.append((*key, *figures, ratio(covered_ns, recording.clock.window_ns), num_bytes))
            evidence.append({name: own})
    return Part.ordered(rows, evidence, lambda row: (-row[3], row[:2]))
