"""Memory that a program held, and its high water by annotation: ``collector.analysis.memory(step)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.analysis.annotation_paths import NO_ANNOTATION, launch_paths
from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question, question_by
from collector.analysis.device_times import ratio
from collector.analysis.named_question import named_question
from collector.recording.cupti_enums import ALLOCATION, RELEASE
from collector.recording.first_rows import distinct_rows
from collector.recording.kind_names import memory_kind_name
from collector.recording.possible_sizes import LARGEST_BYTES
from collector.text.wording import counted

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]

UNKNOWN_FREES = "{:,} release[|s] of memory whose allocation was not recorded"
ADDRESSES_IN_USE = "{:,} allocation[|s] at an address in use, whose release was not recorded"
ODD_OPERATIONS = "{:,} memory operation[|s] of an unknown kind or an impossible size"
"""Losses of the answers about memory."""
_NEVER = np.iinfo(np.int64).max
_DEFINITION = (
    "Memory that was allocated during the step and not released yet; memory that was allocated before the step does "
    "not count. The high water is the largest amount that was held at one moment, for each kind of memory and each "
    "pool."
)
_PLACE = (
    Column("device_id", "number", "CUDA device ordinal."),
    Column("memory", "text", "Kind of memory: Device, Pinned, Managed, …"),
    Column("pool", "text", "Address of the memory pool; empty: none."),
)
QUESTIONS = {
    "pool": Question(
        "memory",
        _DEFINITION,
        (
            *_PLACE,
            Column("allocations", "count", "Number of allocations."),
            Column("frees", "count", "Number of releases of memory that was allocated in the step."),
            Column("unknown_frees", "count", "Number of releases of memory whose allocation was not recorded."),
            Column("allocated_bytes", "bytes", "Sum of the sizes of the allocations."),
            Column("high_water_bytes", "bytes", "Largest amount that was held at once."),
            Column("high_water_ns", "ns", "First moment of the high water, counted from the beginning of the step."),
            Column("end_bytes", "bytes", "Bytes that were held at the end of the step."),
            Column("pool_used_bytes", "bytes", "Largest recorded number of bytes in use in the pool; 0: not recorded."),
            Column("pool_reserved_bytes", "bytes", "Largest recorded size of the pool; 0: not recorded."),
        ),
        summed=("allocations", "frees", "unknown_frees", "allocated_bytes"),
        tables=("memory_operations",),
        otherwise="No operation allocates or releases memory.",
    ),
    "op": Question(
        "memory",
        f"Memory that was held at the high water, by the annotation of its allocation. {_DEFINITION}",
        (
            *_PLACE,
            Column("path", "text", "Path of the annotation; (no annotation) for allocations outside of annotations."),
            Column("allocations", "count", "Number of allocations that were held."),
            Column("live_bytes", "bytes", "Sum of their sizes."),
            Column("share", "share", "live_bytes divided by the high water."),
        ),
        summed=("allocations", "live_bytes"),
        tables=("memory_operations",),
        otherwise="Nothing was allocated in the step.",
    ),
}


@named_question(QUESTIONS)
def memory(steps: Asked, *, by: str = "pool") -> Answer:
    """The most memory that was held at once, for each kind and pool, or the annotations that held it then.

    Memory operations are recorded on request only: kind ``memory_operations``.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
        by: ``pool``, or ``op`` for what was held at the high water by allocating annotation.

    Raises:
        ValueError: ``by`` has another value.
    """
    question = question_by(QUESTIONS, by, "memory is")
    return question.ask(steps, _by_pool if by == "pool" else _by_op)


def rows_by_address(recording: Recording) -> Numbers:
    """Rows of ``memory_operations`` of a known kind and a possible size, in order of devices, addresses and times."""
    table = recording.memory_operations
    rows = np.flatnonzero(np.isin(table.operation, (ALLOCATION, RELEASE)) & (table.num_bytes <= LARGEST_BYTES))
    # Correlation ids ascend with calls: they order an allocation and a release at the same moment.
    keys = (table.operation, table.correlation_id, table.start_ns, table.address, table.device_id)
    in_order: Numbers = rows[np.lexsort([key[rows] for key in keys])]
    return in_order


def memory_places(recording: Recording) -> tuple[list[tuple[int, str, str]], Numbers]:
    """The distinct places of memory (device, kind of memory, pool), and the index of the place of each operation."""
    table = recording.memory_operations
    columns = (table.device_id, table.memory_kind, table.pool_address)
    first, place_of_row = distinct_rows(columns)
    return [
        (device, memory_kind_name(kind), hex(pool) if pool else "")
        for device, kind, pool in zip(*(column[first].tolist() for column in columns), strict=True)
    ], place_of_row


def allocating_paths(recording: Recording) -> tuple[list[str], Numbers]:
    """Paths of annotations, and for each row of ``memory_operations`` the index of the path in which it was called."""
    paths, path_of_row = launch_paths(recording, recording.memory_operations.correlation_id)
    return [path or NO_ANNOTATION for path in paths], path_of_row


class Lifetimes(NamedTuple):
    """Every allocation with its release. Rows are those of ``memory_operations``."""

    allocated: Numbers
    """Rows that allocate, in order of devices, addresses and times."""
    freed_ns: Numbers
    """Time of each release; the largest time: the release is not in the recording."""
    freed_by: Numbers
    """Row of each release; -1: the release is not in the recording."""
    unknown_frees: Numbers
    """Rows that release an address without a recorded allocation."""

    @classmethod
    def of(cls, recording: Recording) -> tuple[Lifetimes, list[str]]:
        """Pair allocations with releases by device and address."""
        table = recording.memory_operations
        rows = rows_by_address(recording)
        is_allocation = table.operation[rows] == ALLOCATION
        address, device = table.address[rows], table.device_id[rows]
        is_same = (address[1:] == address[:-1]) & (device[1:] == device[:-1])
        has_next = np.append(is_same, False)
        had_before = np.insert(is_same & is_allocation[:-1], 0, False)[: len(rows)]
        following = np.append(rows[1:], -1)
        next_ns = np.append(table.start_ns[rows][1:], _NEVER)
        is_reused = is_allocation & has_next & np.append(is_allocation[1:], False)
        lifetimes = cls(
            rows[is_allocation],
            np.where(has_next, next_ns, _NEVER)[is_allocation],
            np.where(has_next & ~is_reused, following, -1)[is_allocation],
            rows[~is_allocation & ~had_before],
        )
        lost = {
            UNKNOWN_FREES: len(lifetimes.unknown_frees),
            ADDRESSES_IN_USE: int(is_reused.sum()),
            ODD_OPERATIONS: len(table) - len(rows),
        }
        return lifetimes, [counted(text, count) for text, count in lost.items() if count]

    @property
    def is_freed(self) -> npt.NDArray[np.bool_]:
        """Whether each allocation ended in the recording."""
        freed: npt.NDArray[np.bool_] = self.freed_ns != _NEVER
        return freed

    def where(self, mask: npt.NDArray[np.bool_], unknown_mask: npt.NDArray[np.bool_]) -> Lifetimes:
        """Some of the allocations, and some of the releases of unknown memory."""
        return Lifetimes(
            self.allocated[mask], self.freed_ns[mask], self.freed_by[mask], self.unknown_frees[unknown_mask]
        )

    def changes(self, recording: Recording) -> tuple[Numbers, Numbers]:
        """Each time at which the held memory changed, on the recording's clock, and the bytes held from then on."""
        table = recording.memory_operations
        sizes, starts = table.num_bytes[self.allocated].astype(np.int64), table.start_ns[self.allocated]
        is_freed = self.is_freed
        times = np.concatenate([self.freed_ns[is_freed], starts])
        order = np.argsort(times, kind="stable")
        times, held = times[order], np.cumsum(np.concatenate([-sizes[is_freed], sizes])[order])
        is_last = np.append(times[1:] != times[:-1], True)[: len(times)]
        return times[is_last], held[is_last]


class _Held(NamedTuple):
    """The memory of one kind on one device, or of one pool, over time."""

    place: tuple[int, str, str]
    lifetimes: Lifetimes
    high_water: int
    high_water_ns: int
    """First moment of the high water, on the recording's clock."""
    live: npt.NDArray[np.bool_]
    """Whether each allocation was held at that moment."""

    @classmethod
    def of(cls, place: tuple[int, str, str], lifetimes: Lifetimes, recording: Recording) -> _Held:
        """Find the time of the largest total. Memory that is released at a time no longer counts at that time."""
        times, held = lifetimes.changes(recording)
        if not len(held):
            return cls(place, lifetimes, 0, recording.clock.cupti_start_ns, np.zeros(0, bool))
        high_water_ns = int(times[np.argmax(held)])
        table = recording.memory_operations
        sizes, starts = table.num_bytes[lifetimes.allocated].astype(np.int64), table.start_ns[lifetimes.allocated]
        live = (starts <= high_water_ns) & (lifetimes.freed_ns > high_water_ns)
        return cls(place, lifetimes, int(sizes[live].sum()), high_water_ns, live)


def _held(recording: Recording) -> tuple[list[_Held], list[str]]:
    """The memory of each device, kind and pool, and the losses."""
    lifetimes, losses = Lifetimes.of(recording)
    places, place_of_row = memory_places(recording)
    found = []
    for number, place in enumerate(places):
        is_own = place_of_row[lifetimes.allocated] == number
        own = lifetimes.where(is_own, place_of_row[lifetimes.unknown_frees] == number)
        if len(own.allocated) or len(own.unknown_frees):
            found.append(_Held.of(place, own, recording))
    return found, losses


def memory_over_time(recording: Recording) -> list[tuple[tuple[int, str, str], Numbers, Numbers]]:
    """Device, kind of memory and pool of each place, the times of its changes, and its bytes from then on."""
    return [(each.place, *each.lifetimes.changes(recording)) for each in _held(recording)[0]]


def _by_pool(recording: Recording) -> Part:
    held, losses = _held(recording)
    table = recording.memory_operations
    rows, evidence = [], []
    for each in held:
        own = each.lifetimes
        sizes = table.num_bytes[own.allocated].astype(np.int64)
        freed_by = own.freed_by[own.freed_by >= 0]
        used = np.sort(np.concatenate([own.allocated, freed_by, own.unknown_frees]))
        rows.append(
            (
                *each.place,
                len(own.allocated),
                len(freed_by),
                len(own.unknown_frees),
                int(sizes.sum()),
                each.high_water,
                each.high_water_ns - recording.clock.cupti_start_ns,
                int(sizes[~own.is_freed].sum()),
                int(np.minimum(table.pool_used_bytes[used].max(), LARGEST_BYTES)),
                int(np.minimum(table.pool_bytes[used].max(), LARGEST_BYTES)),
            )
        )
        evidence.append({"memory_operations": used})
    return Part(rows, (), evidence, losses)


def _by_op(recording: Recording) -> Part:
    held, losses = _held(recording)
    table = recording.memory_operations
    paths, path_of_row = allocating_paths(recording)
    rows: list[tuple[Any, ...]] = []
    evidence = []
    for each in held:
        live = each.lifetimes.allocated[each.live]
        by_path: dict[str, list[int]] = {}
        for row, path in zip(live.tolist(), path_of_row[live].tolist(), strict=True):
            by_path.setdefault(paths[path], []).append(row)
        sums = {path: int(table.num_bytes[own].astype(np.int64).sum()) for path, own in by_path.items()}
        for path in sorted(by_path, key=lambda path: (-sums[path], path)):
            rows.append((*each.place, path, len(by_path[path]), sums[path], ratio(sums[path], each.high_water)))
            evidence.append({"memory_operations": np.sort(by_path[path])})
    return Part(rows, (), evidence, losses)
