"""Bytes, time and bandwidth of copies and memsets: ``collector.analysis.copies(step)``."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from collector.analysis.activities import WorkClass, work_classes
from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question
from collector.analysis.device_times import ratio
from collector.analysis.named_question import named_question
from collector.recording.distinct import combination_codes, distinct_values, grouped_rows
from collector.recording.intervals import Union
from collector.recording.kind_names import copy_kind_name, memory_kind_name
from collector.recording.possible_sizes import possible_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording
    from collector.recording.table import Table

MEMSET = "memset"
"""The kind of memsets, beside the directions of copies."""

QUESTION = Question(
    "copies",
    "Bandwidth is the bytes of all copies of a kind divided by the sum of their durations, and divided by the time in "
    "which at least one of them ran; copies whose size is unknown count for neither.",
    (
        Column("device_id", "number", "CUDA device ordinal."),
        Column("kind", "text", "Direction, or memset."),
        Column("source", "text", "Kind of memory that was read; empty for a memset."),
        Column("target", "text", "Kind of memory that was written."),
        Column("count", "count", "Number of copies or memsets."),
        Column("unknown_sizes", "count", "Number of these whose size was not recorded, or is impossible."),
        Column("num_bytes", "bytes", "Sum of the known sizes."),
        Column("total_ns", "ns", "Sum of their durations."),
        Column("union_ns", "ns", "Time in which at least one ran."),
        Column("bandwidth", "bytes/s", "Bytes divided by the sum of durations."),
        Column("union_bandwidth", "bytes/s", "Bytes divided by the time in which at least one ran."),
        Column("hidden_ns", "ns", "Time of the step in which at least one ran beside a compute kernel of the device."),
        Column("hidden_share", "share", "hidden_ns divided by the time of the step in which at least one ran."),
    ),
    summed=("count", "unknown_sizes", "num_bytes", "total_ns"),
    tables=("memcpys", "memsets"),
)


@named_question(
    QUESTION,
    in_overview=True,
    counts=("memcpys", "memsets"),
    aliases={"cuda_gpu_mem_time_sum": "", "cuda_gpu_mem_size_sum": "", "memory_bw_summary": ""},
)
def copies(steps: Asked) -> Answer:
    """Copies and memsets of each device by direction and kinds of memory, those that took longest first.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
    """
    return QUESTION.ask(steps, _part)


def bytes_by_kind(recording: Recording) -> dict[str, int]:
    """The bytes of the copies of each direction, and of memsets, as far as their sizes are known."""
    kinds, sizes = recording.memcpys.copy_kind, possible_bytes(recording.memcpys.num_bytes)
    sums = {copy_kind_name(kind): int(sizes[kinds == kind].sum()) for kind in distinct_values(kinds).tolist()}
    return sums | {MEMSET: int(possible_bytes(recording.memsets.num_bytes).sum())}


def _part(recording: Recording) -> Part:
    computing = _ComputeTimes(recording)
    rows, evidence = [], []
    for table_name, columns in KINDS.items():
        table = getattr(recording, table_name)
        keys = [getattr(table, name) for name in ("device_id", *columns)]
        codes = combination_codes(keys)
        grouped, bounds = grouped_rows(codes, int(codes.max(initial=-1)) + 1)
        firsts = zip(*(column[grouped[bounds[:-1]]].tolist() for column in keys), strict=True)
        for (device, *kinds), (begin, end) in zip(firsts, pairwise(bounds.tolist()), strict=True):
            own = grouped[begin:end]
            figures, ran = _figures(table[own])
            rows.append((device, *names_of_kinds(kinds), *figures, *computing.hiding(device, ran)))
            evidence.append({table_name: own})
    return Part.ordered(rows, evidence, lambda row: (-row[7], row[:4]))


KINDS = {"memcpys": ("copy_kind", "src_kind", "dst_kind"), "memsets": ("memory_kind",)}
"""Table -> the columns with the kinds by which its rows are counted, beside their device."""


def names_of_kinds(kinds: Sequence[int]) -> tuple[str, str, str]:
    """Direction, source and target of a copy by its three kinds, of a memset by that of the memory."""
    if len(kinds) == 1:
        return MEMSET, "", memory_kind_name(kinds[0])
    direction, source, target = kinds
    return copy_kind_name(direction), memory_kind_name(source), memory_kind_name(target)


def _figures(work: Table) -> tuple[tuple[int | float, ...], Union]:
    """The columns from ``count`` to ``union_bandwidth`` of the copies or memsets of one kind, and when these ran."""
    starts, ends, sizes = work.start_ns, work.end_ns, possible_bytes(work.num_bytes)
    known = sizes > 0  # CUPTI records 0 for an unknown size
    num_bytes = int(sizes.sum())
    ran = Union.of(starts, ends)
    figures = (
        len(work),
        int((~known).sum()),
        num_bytes,
        int((ends - starts).sum()),
        ran.length,
        _rate(num_bytes, int((ends - starts)[known].sum())),
        _rate(num_bytes, Union.of(starts[known], ends[known]).length),
    )
    return figures, ran


class _ComputeTimes:
    """The times in which compute kernels ran on each device."""

    def __init__(self, recording: Recording) -> None:
        self._clock = recording.clock
        self._kernels = recording.kernels
        self._is_compute = work_classes(recording)[0] == WorkClass.COMPUTE
        self._known: dict[int, Union] = {}

    def hiding(self, device: int, ran: Union) -> tuple[int, float]:
        """The time of the step in which a compute kernel of a device ran beside these times, and its share of them."""
        in_step = ran.within(self._clock.cupti_start_ns, self._clock.cupti_stop_ns)
        hidden_ns = in_step.overlap(self._of(device))
        return hidden_ns, ratio(hidden_ns, in_step.length)

    def _of(self, device: int) -> Union:
        if device not in self._known:
            chosen = self._is_compute & (self._kernels.device_id == device)
            self._known[device] = Union.of(self._kernels.start_ns[chosen], self._kernels.end_ns[chosen])
        return self._known[device]


def _rate(num_bytes: int, nanoseconds: int) -> float:
    """Bytes a second; NaN where it is unknown."""
    return num_bytes * 1e9 / nanoseconds if nanoseconds and num_bytes else float("nan")
