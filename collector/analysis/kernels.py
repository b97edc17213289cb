"""Kernels and their time: ``collector.analysis.kernels(step)``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.analysis.annotation_paths import OP
from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question, question_by, sums_in
from collector.analysis.device_times import ratio
from collector.analysis.duration_groups import DurationGroups, Keys
from collector.analysis.kernel_keys import kernel_names
from collector.analysis.named_question import named_question
from collector.analysis.stream_numbers import STREAM_COLUMNS, stream_name_keys
from collector.analysis.tensor_cores import tensor_core_uses_of_groups
from collector.errors import CollectorError
from collector.recording.kernel_names import demangle, short_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.formats.call_sums import CallSum, CallSums
    from collector.recording.recording import Recording

KEYS = {
    "name": (Column("name", "text", "Short name of the kernel, distinct for different kernels."),),
    "whole_name": (Column("whole_name", "text", "Demangled name, with template arguments and types."),),
    "op": (
        OP,
        Column("name", "text", "Short name of the kernel."),
    ),
    "shape": (
        Column("name", "text", "Short name of the kernel."),
        Column("grid", "text", "Blocks of the grid, x,y,z."),
        Column("block", "text", "Threads of a block, x,y,z."),
    ),
    "stream": (
        *STREAM_COLUMNS,
        Column("name", "text", "Short name of the kernel."),
    ),
}
"""Value of ``by`` -> the columns of the key."""
_FIGURES = (
    Column("count", "count", "Number of kernels."),
    Column("total_ns", "ns", "Sum of their durations."),
    Column("share", "share", "total_ns divided by the sum of the durations of all kernels."),
    Column("min_ns", "ns", "Shortest duration."),
    Column("median_ns", "ns", "Median of the durations; of an even number of kernels the lower middle one."),
    Column("max_ns", "ns", "Longest duration."),
    Column(
        "tensor_cores",
        "text",
        "Use of tensor cores by name: yes, unknown or no evidence; unknown also where the names of a row differ.",
    ),
)
QUESTIONS = {
    by: Question(
        "kernels",
        f"Kernels counted by {by.replace('_', ' ')}; times are sums of durations: kernels that ran at once count each.",
        (*columns, *_FIGURES),
        summed=("count", "total_ns"),
        tables=("kernels",),
    )
    for by, columns in KEYS.items()
}
_KEYS_OF_SUMS: dict[str, Callable[[CallSum], tuple[Any, ...]]] = {
    "name": lambda row: (short_name(row.path[-1]),),
    "whole_name": lambda row: (demangle(row.path[-1]),),
    "op": lambda row: ("/".join(row.path[:-1]), short_name(row.path[-1])),
}
SUMS_QUESTIONS = {
    by: Question(
        "kernels",
        f"Kernels counted by {by.replace('_', ' ')}, from sums without start times: times are sums of durations; the "
        "durations of single kernels are unknown.",
        (
            *KEYS[by],
            *_FIGURES[:3],
            Column("num_bytes", "bytes", "Bytes that the program stated for them."),
            Column("flops", "count", "Floating-point operations that the program stated for them."),
        ),
        summed=("count", "total_ns"),
    )
    for by in _KEYS_OF_SUMS
}


@named_question(
    QUESTIONS,
    in_overview=True,
    of_sums=True,
    counts=("kernels",),
    aliases={
        "cuda_gpu_kern_sum": "name",
        "cuda_gpu_kern_gb_sum": "shape",
        "nvtx_kern_sum": "op",
        "gpu_kernel_breakdown": "name",
        "gpu_kernels_with_user_annotations": "op",
    },
    by_alone={"kernel": "name", "shape": "shape"},
)
def kernels(steps: Asked, *, by: str = "name") -> Answer:
    """Kernels and their time, longest total first.

    A profile without start times is answered from its sums, with the columns that these allow.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
        by: ``name``, ``whole_name``, ``op``, ``shape`` or ``stream``.

    Raises:
        ValueError: ``by`` has another value.
        collector.CollectorError: a profile without start times does not have this key.
    """
    question = question_by(QUESTIONS, by, "kernels are")
    if sums := sums_in(steps):
        if by not in SUMS_QUESTIONS:
            known = ", ".join(SUMS_QUESTIONS)
            raise CollectorError(f"a profile of sums does not say the {by} of kernels", f"Count them by {known}")
        return SUMS_QUESTIONS[by].ask_each(
            sums, lambda each: _sums_part(each, by), is_one=not isinstance(steps, Sequence)
        )
    return question.ask(steps, lambda recording: _part(recording, by))


def _part(recording: Recording, by: str) -> Part:
    groups = DurationGroups(keys_of_kernels(recording, by), recording.kernels.duration_ns)
    uses = {"tensor_cores": tensor_core_uses_of_groups(recording, groups)}
    return Part(groups.named_keys(KEYS[by]) | groups.figures() | uses, (), groups.evidence("kernels"))


def _sums_part(sums: CallSums, by: str) -> Part:
    totals: dict[tuple[Any, ...], Counter[str]] = {}
    for row in sums.kernels:
        found = totals.setdefault(_KEYS_OF_SUMS[by](row), Counter())
        found.update(count=row.runs, total_ns=row.total_ns, num_bytes=row.num_bytes, flops=row.flops)
    whole = sum(found["total_ns"] for found in totals.values())
    rows = [
        (
            *key,
            each["count"],
            each["total_ns"],
            ratio(each["total_ns"], whole),
            each["num_bytes"],
            each["flops"],
        )
        for key, each in sorted(totals.items(), key=lambda item: (-item[1]["total_ns"], item[0]))
    ]
    return Part(rows)


def keys_of_kernels(recording: Recording, by: str) -> list[Keys]:
    """The keys under which kernels are counted, one for each column of `KEYS`."""
    table = recording.kernels
    if by == "whole_name":
        return [Keys.of(table.name_id, lambda name: demangle(table.text(name)))]
    names = kernel_names(recording)
    if by == "op":
        paths = Keys.of(table.annotation_ids, lambda path: recording.strings[path] if path >= 0 else "")
        return [paths, names]
    if by == "shape":
        shapes = (Keys.of_shapes(*(getattr(table, f"{what}_{axis}") for axis in "xyz")) for what in ("grid", "block"))
        return [names, *shapes]
    if by == "stream":
        places = [column.astype(np.int64) for column in (table.device_id, table.context_id, table.stream_id)]
        return [*map(Keys.of, places), stream_name_keys(recording, *places), names]
    return [names]
