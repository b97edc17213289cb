"""What tracing itself cost: ``collector.analysis.tracing_cost(step)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question
from collector.recording.cupti_enums import OVERHEAD_KINDS
from collector.recording.intervals import Union

if TYPE_CHECKING:
    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

DECODE_THREAD = "Decode Thread"
"""The row with the CPU time of the collector's own thread."""
UNKNOWN = "The CPU time of the decode thread is not known: the recording does not state it."
QUESTION = Question(
    "tracing_cost",
    "What tracing took: CUPTI's records of its overheads, which hold the program up, and the CPU time of the thread in "
    "which the collector reads records beside the program. Modules are loaded lazily without tracing, too.",
    (
        Column("kind", "text", "CUPTI's kind of overhead; Decode Thread: the collector's own thread."),
        Column("count", "count", "Records of overheads; of the decode thread: records that it read."),
        Column("total_ns", "ns", "Sum of their durations; of the decode thread: its CPU time, by its thread clock."),
        Column("covered_ns", "ns", "Time in which at least one of them lasted; of the decode thread: its CPU time."),
        Column("share", "share", "Covered time by the duration of the step."),
    ),
    summed=("total_ns",),
)


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
        covered_ns = Union.of(overheads.start_ns[own], overheads.end_ns[own]).length
        total_ns = int(overheads.duration_ns[own].sum())
        rows.append((name, len(own), total_ns, covered_ns, _share(covered_ns, window_ns)))
        evidence.append({"overheads": own})
    if ledger.decode_cpu_ns:
        cpu_ns = ledger.decode_cpu_ns
        rows.append((DECODE_THREAD, ledger.records_decoded, cpu_ns, cpu_ns, _share(cpu_ns, window_ns)))
        evidence.append({})
    ranked = sorted(range(len(rows)), key=lambda place: (-rows[place][2], rows[place][0]))
    notes = () if ledger.decode_cpu_ns else (UNKNOWN,)
    return Part([rows[place] for place in ranked], (), [evidence[place] for place in ranked], notes=notes)


def _share(part: int, whole: int) -> float:
    return part / whole if whole > 0 else 0.0
