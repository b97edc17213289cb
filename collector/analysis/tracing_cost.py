"""The cost of tracing itself: ``collector.analysis.tracing_cost(step)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question
from collector.analysis.device_times import ratio
from collector.analysis.named_question import named_question
from collector.recording.cupti_enums import OVERHEAD_KINDS
from collector.recording.intervals import Union

if TYPE_CHECKING:
    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording
    from collector.recording.table import Table

DECODE_THREAD = "Decode Thread"
"""The kind of the row with the CPU time of the collector's own thread."""
UNKNOWN = "The CPU time of the decode thread is not known: the recording does not state it."
OF_THE_WHOLE = "The CPU time of the decode thread is known of the whole recording, not of a part of it."
QUESTION = Question(
    "tracing_cost",
    "The cost of tracing: CUPTI's records of its overheads, which delay the program, and the CPU time of the "
    "collector's thread, which decodes records beside the program. Lazy loading of modules takes time without tracing "
    "as well.",
    (
        Column("kind", "text", "CUPTI's kind of overhead; Decode Thread: the collector's own thread."),
        Column("count", "count", "Number of overhead records; for the decode thread the number of decoded records."),
        Column("total_ns", "ns", "Sum of their durations; for the decode thread its CPU time, by its thread clock."),
        Column(
            "covered_ns",
            "ns",
            "Time of the step in which at least one of them lasted; for the decode thread its CPU time.",
        ),
        Column("share", "share", "covered_ns divided by the duration of the step."),
    ),
    summed=("total_ns",),
    tables=("overheads",),
)


@named_question(QUESTION)
def tracing_cost(steps: Asked) -> Answer:
    """CUPTI's overheads by kind, and the CPU time of the collector's thread.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
    """
    return QUESTION.ask(steps, _part)


def _part(recording: Recording) -> Part:
    overheads, ledger = recording.overheads, recording.ledger
    window_ns = recording.clock.window_ns
    names = np.array([OVERHEAD_KINDS.get(kind, OVERHEAD_KINDS[0]) for kind in overheads.overhead_kind.tolist()], object)
    rows, evidence = [], []
    for name in sorted(set(names.tolist())):
        own = np.flatnonzero(names == name)
        covered_ns = covered_in_step(recording, overheads[own])
        total_ns = int(overheads.duration_ns[own].sum())
        rows.append((name, len(own), total_ns, covered_ns, ratio(covered_ns, window_ns)))
        evidence.append({"overheads": own})
    is_known = bool(ledger.decode_cpu_ns) and not recording.is_part
    if is_known:
        cpu_ns = ledger.decode_cpu_ns
        rows.append((DECODE_THREAD, ledger.records_decoded, cpu_ns, cpu_ns, ratio(cpu_ns, window_ns)))
        evidence.append({})
    notes = () if is_known else (note_on_part(recording),)
    return Part.ordered(rows, evidence, lambda row: (-row[2], row[0]), notes)


def note_on_part(recording: Recording) -> str:
    """The reason why the cost of tracing lacks the row of the decode thread, if the recording is a part."""
    return OF_THE_WHOLE if recording.ledger.decode_cpu_ns else UNKNOWN


def covered_in_step(recording: Recording, rows: Table) -> int:
    """The time of the step in which at least one of some rows lasted; those of a part may reach beyond it."""
    clock = recording.clock
    return Union.of(rows.start_ns, rows.end_ns).within(clock.cupti_start_ns, clock.cupti_stop_ns).length
