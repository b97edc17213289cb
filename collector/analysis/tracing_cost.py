"""The cost of tracing itself: ``collector.analysis.tracing_cost(step)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question
from collector.analysis.device_times import ratio
from collector.recording.cupti_enums import OVERHEAD_KINDS
from collector.recording.intervals import Union

if TYPE_CHECKING:
    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

DECODE_THREAD = "Decode Thread"
"""The kind of the row with the CPU time of the collector's own thread."""
UNKNOWN = "The CPU time of the decode thread is not known: the recording does not state it."
QUESTION = Question(
    "tracing_cost",
    "The cost of tracing: CUPTI's records of its overheads, which delay the program, and the CPU time of the "
    "collector's thread, which decodes records beside the program. Lazy loading of modules takes time without tracing "
    "as well.",
    (
        Column("kind", "text", "CUPTI's kind of overhead; Decode Thread: the collector's own thread."),
        Column("count", "count", "Number of overhead records; for the decode thread the number of decoded records."),
        Column("total_ns", "ns", "Sum of their durations; for the decode thread its CPU time, by its thread clock."),
        Column("covered_ns", "ns", "Time in which at least one of them lasted; for the decode thread its CPU time."),
        Column("share", "share", "covered_ns divided by the duration of the step."),
    ),
    summed=("total_ns",),
    tables=("overheads",),
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
        rows.append((name, len(own), total_ns, covered_ns, ratio(covered_ns, window_ns)))
        evidence.append({"overheads": own})
    if ledger.decode_cpu_ns:
        cpu_ns = ledger.decode_cpu_ns
        rows.append((DECODE_THREAD, ledger.records_decoded, cpu_ns, cpu_ns, ratio(cpu_ns, window_ns)))
        evidence.append({})
    return Part.ordered(rows, evidence, lambda row: (-row[2], row[0]), () if ledger.decode_cpu_ns else (UNKNOWN,))
