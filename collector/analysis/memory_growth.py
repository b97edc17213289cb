"""Memory that each step allocated and kept, and the annotations that keep more in every step."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.analysis.annotation_paths import NO_ANNOTATION, annotation_paths
from collector.analysis.answer import Column, Window
from collector.analysis.asked import Part, Question, question_by, steps_in
from collector.analysis.duration_groups import Keys
from collector.analysis.memory import Lifetimes, allocating_paths, memory_places
from collector.analysis.named_question import named_question
from collector.analysis.ranks import run_and_rank
from collector.analysis.step_marks import MARK, cut_steps, mark_pattern, path_within, step_rows, unmarked
from collector.checked_arguments import switch
from collector.recording.distinct import distinct_codes, grouped_rows
from collector.recording.first_rows import distinct_rows

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]

BEFORE = "(allocated before the recording)"
"""The path, among those that grew, of memory that was released and whose allocation was not recorded."""
_DEFINITION = (
    "The growth of a step is the memory that it allocated minus the memory that it released, for each kind of memory "
    "and each pool. Memory that was allocated before the recording counts where it is released, with the size that the "
    "release states. Operations between steps belong to no step."
)
_PLACE = (
    Column("device_id", "number", "CUDA device ordinal."),
    Column("memory", "text", "Kind of memory: Device, Pinned, Managed, …"),
    Column("pool", "text", "Address of the memory pool; empty: none."),
)
QUESTIONS = {
    "step": Question(
        "memory_growth",
        _DEFINITION,
        (
            Column("mark_number", "number", "Number of the marked step in its recording, from 0."),
            Column("name", "text", "Annotation that marks the step; empty: the step is the whole recording."),
            *_PLACE,
            Column("allocations", "count", "Number of allocations in the step."),
            Column("releases", "count", "Number of releases in the step."),
            Column("allocated_bytes", "bytes", "Sum of the sizes of the allocations."),
            Column("released_bytes", "bytes", "Sum of the sizes of what was released."),
            Column("growth_bytes", "bytes", "allocated_bytes minus released_bytes; negative: the step released more."),
            Column("high_water_bytes", "bytes", "Largest amount held in the step of what the recording allocated."),
            Column("end_bytes", "bytes", "Amount held at the end of the step of what the recording allocated."),
        ),
        summed=("allocations", "releases", "allocated_bytes", "released_bytes", "growth_bytes"),
        tables=("memory_operations",),
        otherwise="No operation in a step allocates or releases memory.",
    ),
    "op": Question(
        "memory_growth",
        f"The growth of all steps together, by the annotation of the allocation. {_DEFINITION} The first step of each "
        "run and rank, which warms up, is left out where there are others.",
        (
            *_PLACE,
            Column(
                "path",
                "text",
                f"Path of the annotation inside the step; {NO_ANNOTATION} for allocations outside of annotations; "
                f"{BEFORE} for releases of what was allocated before.",
            ),
            Column("growth_bytes", "bytes", "Sum of the growth of the steps; negative: they released more."),
            Column("growing_steps", "count", "Number of steps that allocated more there than they released."),
            Column("steps", "count", "Number of steps that were compared."),
            Column("bytes_per_step", "bytes", "growth_bytes divided by the number of steps, rounded down."),
            Column("verdict", "text", "every step, some steps, or no step grew; empty: there is only one step."),
        ),
        summed=("growth_bytes",),
        tables=("memory_operations",),
        otherwise="No operation in a step allocates or releases memory.",
    ),
}


@named_question(QUESTIONS)
def memory_growth(steps: Asked, *, by: str = "step", first_apart: bool = True, mark: str = MARK) -> Answer:
    """Memory that each step allocated and did not release, or the annotations whose memory grew from step to step.

    A recording whose steps are marked by annotations counts as these steps, as in `steps`; any other recording is one
    step. Memory operations are recorded on request only: kind ``memory_operations``.

    Args:
        steps: a recording, a loaded step or an ended session, or several in the order in which they ran.
        by: ``step``, or ``op`` for the growth of all steps by allocating annotation.
        first_apart: by ``op``, leave out the first step of each run and rank, and the first marked one of a recording.
        mark: regular expression for the whole name of an annotation that marks a step.

    Raises:
        ValueError: ``by`` has another value, or the mark is not a regular expression.
    """
    question = question_by(QUESTIONS, by, "growth of memory is")
    pattern, first_apart = mark_pattern(mark), switch("first_apart", first_apart)
    if by == "step":
        return question.ask(steps, lambda recording: _by_step(recording, pattern))
    groups = [run_and_rank(step) for step in steps_in(steps)]
    return question.ask_together(steps, lambda recordings: _by_op(recordings, groups, pattern, first_apart=first_apart))


class _Steps(NamedTuple):
    """The steps of a recording, in order of time."""

    names: list[str]
    """Names of their marks; one empty name: the step is the whole recording."""
    starts: Numbers
    ends: Numbers
    """The first moment after each step."""
    marks: frozenset[str]
    """Paths of the marks."""

    @classmethod
    def of(cls, recording: Recording, mark: re.Pattern[str]) -> _Steps:
        """Find the marks."""
        paths, index = annotation_paths(recording)
        rows = step_rows(recording, paths, index, mark)
        if not len(rows):
            clock = recording.clock
            return cls([""], np.array([clock.cupti_start_ns]), np.array([clock.cupti_stop_ns + 1]), frozenset())
        table = recording.all_annotations
        names = [recording.strings[name_id] for name_id in table.name_id[rows].tolist()]
        marks = frozenset(paths[index[row]] for row in rows.tolist())
        return cls(names, table.start_ns[rows], table.end_ns[rows], marks)

    def places(self, times: Numbers) -> Numbers:
        """For each time the index of its step; -1: it is in none."""
        place = np.searchsorted(self.starts, times, side="right") - 1
        found: Numbers = np.where((place >= 0) & (times < self.ends[np.maximum(place, 0)]), place, -1)
        return found

    def windows(self) -> list[Window]:
        """The times of the steps; a recording as a whole ends with its clock."""
        ends = self.ends if self.marks else self.ends - 1
        return [Window("step", *bounds) for bounds in zip(self.starts.tolist(), ends.tolist(), strict=True)]


class _Changes(NamedTuple):
    """Allocations and releases as changes of the held memory."""

    row: Numbers
    """Row of ``memory_operations``; -1: memory at an address that was allocated again, whose release was not seen."""
    step: Numbers
    """Index of its step; -1: in none."""
    place: Numbers
    """Index of its kind of memory and pool."""
    is_release: npt.NDArray[np.bool_]
    num_bytes: Numbers
    """Negative for releases."""
    allocated_by: Numbers
    """Row of the allocation; -1: not recorded."""

    @classmethod
    def of(cls, recording: Recording, lifetimes: Lifetimes, places: Numbers, steps: _Steps) -> _Changes:
        """Find the changes; ``places`` are those of the rows of ``memory_operations``."""
        table = recording.memory_operations
        sizes = table.num_bytes.astype(np.int64)
        freed = np.flatnonzero(lifetimes.freed_by >= 0)
        reused = np.flatnonzero((lifetimes.freed_by < 0) & lifetimes.is_freed)
        released = lifetimes.allocated[np.concatenate([freed, reused])]
        released_ns = lifetimes.freed_ns[np.concatenate([freed, reused])]
        unknown = lifetimes.unknown_frees
        none = np.full(len(reused), -1)
        is_release = np.ones(len(lifetimes.allocated) + len(released) + len(unknown), bool)
        is_release[: len(lifetimes.allocated)] = False
        times = np.concatenate([table.start_ns[lifetimes.allocated], released_ns, table.start_ns[unknown]])
        return cls(
            np.concatenate([lifetimes.allocated, lifetimes.freed_by[freed], none, unknown]),
            steps.places(times),
            places[np.concatenate([lifetimes.allocated, released, unknown])],
            is_release,
            np.concatenate([sizes[lifetimes.allocated], -sizes[released], -sizes[unknown]]),
            np.concatenate([lifetimes.allocated, released, np.full(len(unknown), -1)]),
        )


def _by_step(recording: Recording, mark: re.Pattern[str]) -> Part:
    lifetimes, losses = Lifetimes.of(recording)
    places, place_of_row = memory_places(recording)
    steps = _Steps.of(recording, mark)
    changes = _Changes.of(recording, lifetimes, place_of_row, steps)
    none = np.zeros(len(lifetimes.unknown_frees), bool)
    numbers, codes = distinct_codes(changes.place)
    curves = [
        lifetimes.where(place_of_row[lifetimes.allocated] == number, none).changes(recording) for number in numbers
    ]
    held = [_held_between(*curve, steps.starts, steps.ends) for curve in curves]
    # The changes in no step are the first ones.
    order, bounds = grouped_rows((changes.step + 1) * len(numbers) + codes, (len(steps.names) + 1) * len(numbers))
    row, is_release, num_bytes = changes.row[order], changes.is_release[order], changes.num_bytes[order]
    rows: list[tuple[Any, ...]] = []
    evidence = []
    for step, name in enumerate(steps.names):
        for at, number in enumerate(numbers.tolist()):
            group = (step + 1) * len(numbers) + at
            own = slice(int(bounds[group]), int(bounds[group + 1]))
            released, sizes, is_known = is_release[own], num_bytes[own], row[own] >= 0
            counts = (int((~released).sum()), int(released.sum()))
            sums = (int(sizes[~released].sum()), -int(sizes[released].sum()))
            most, at_end = held[at]
            rows.append(
                (step, name, *places[number], *counts, *sums, sums[0] - sums[1], int(most[step]), int(at_end[step]))
            )
            evidence.append({"memory_operations": np.unique(row[own][is_known])})
    windows = steps.windows()
    notes = cut_steps((recording, window) for window in windows) + unmarked(mark, is_marked=bool(steps.marks))
    return Part(rows, windows, evidence, losses, notes)


def _held_between(times: Numbers, held: Numbers, starts: Numbers, ends: Numbers) -> tuple[Numbers, Numbers]:
    """The largest amount in each period, and the amount at its end. An amount is held up to the time of the next."""
    first, after = (np.searchsorted(times, each, side="left") for each in (starts, ends))
    holds_at_start = np.searchsorted(times, starts, side="right") == first
    until = np.append(held, 0)  # nothing is held before the first time, at the place -1
    inside = np.maximum.reduceat(until, np.stack([first, after], axis=1).reshape(-1))[::2]
    before = np.where(holds_at_start, until[first - 1], 0)
    return np.maximum(before, np.where(after > first, np.maximum(inside, 0), 0)), until[after - 1]


def _by_op(
    recordings: Sequence[Recording], groups: Sequence[tuple[str, int]], mark: re.Pattern[str], *, first_apart: bool
) -> Part:
    losses: list[str] = []
    windows: list[tuple[Recording, Window]] = []
    found: dict[tuple[Any, ...], _Growth] = {}
    compared = 0
    is_alone, is_marked = len(recordings) == 1, False
    number_in_group = Counter(groups)
    begun: set[tuple[str, int]] = set()
    for number, (recording, group) in enumerate(zip(recordings, groups, strict=True)):
        lifetimes, own_losses = Lifetimes.of(recording)
        losses += own_losses if is_alone else [f"step {number}: {loss}" for loss in own_losses]
        places, place_of_row = memory_places(recording)
        steps = _Steps.of(recording, mark)
        changes = _Changes.of(recording, lifetimes, place_of_row, steps)
        is_marked = is_marked or bool(steps.marks)
        has_others = len(steps.names) > 1 or number_in_group[group] > 1
        first = int(first_apart and has_others and (group not in begun or bool(steps.marks)))
        begun.add(group)
        compared += len(steps.names) - first
        windows += [(recording, window) for window in steps.windows()[first:]]
        paths, path_of_row = allocating_paths(recording)
        inner = [*(path_within(path, steps.marks) or NO_ANNOTATION for path in paths), BEFORE]
        path_of_change = np.where(
            changes.allocated_by >= 0, np.append(path_of_row, 0)[changes.allocated_by], len(paths)
        )
        chosen = np.flatnonzero(changes.step >= first)
        keys = Keys.of_values(inner, path_of_change[chosen])
        for place, path, growth in _growths(changes, chosen, keys):
            found.setdefault((*places[place], path), _Growth()).add(growth)
    rows = [_row(key, growth, compared) for key, growth in found.items()]
    evidence = [{"memory_operations": np.unique(np.concatenate(growth.rows))} for growth in found.values()]
    part = Part.ordered(rows, evidence, lambda row: (-row[4], *row[:4]))
    evidence_of_one = part.evidence if is_alone else ()
    notes = cut_steps(windows) + unmarked(mark, is_marked=is_marked)
    return Part(part.rows, [window for _, window in windows], evidence_of_one, losses, notes)


@dataclass
class _Growth:
    """The growth of steps under one annotation, in one place."""

    num_bytes: int = 0
    growing: int = 0
    """Number of steps that grew."""
    rows: list[Numbers] = field(default_factory=list)
    """Rows of ``memory_operations``, of each recording."""

    def add(self, other: _Growth) -> None:
        """Add the growth of other steps."""
        self.num_bytes += other.num_bytes
        self.growing += other.growing
        self.rows += other.rows


def _growths(changes: _Changes, chosen: Numbers, keys: Keys) -> Iterator[tuple[int, str, _Growth]]:
    """The growth of some changes by place and path; ``keys`` are their paths."""
    columns = [changes.place[chosen], keys.codes, changes.step[chosen]]
    first_of_step, step = distinct_rows(columns)  # of a place and path
    sums = np.zeros(len(first_of_step), np.int64)
    np.add.at(sums, step, changes.num_bytes[chosen])
    first, of_step = distinct_rows([column[first_of_step] for column in columns[:2]])
    growth = np.zeros(len(first), np.int64)
    np.add.at(growth, of_step, sums)
    growing = np.bincount(of_step[sums > 0], minlength=len(first))
    order, bounds = grouped_rows(of_step[step], len(first))
    rows = changes.row[chosen][order]
    for place, code, num_bytes, count, begin, end in zip(
        *(column[first_of_step[first]].tolist() for column in columns[:2]),
        growth.tolist(),
        growing.tolist(),
        bounds[:-1].tolist(),
        bounds[1:].tolist(),
        strict=True,
    ):
        own = rows[begin:end]
        yield place, keys.values[code], _Growth(num_bytes, count, [own[own >= 0]])


def _row(key: tuple[Any, ...], growth: _Growth, compared: int) -> tuple[Any, ...]:
    verdict = "every step" if growth.growing == compared else "some steps" if growth.growing else "no step"
    per_step = growth.num_bytes // compared
    return (*key, growth.num_bytes, growth.growing, compared, per_step, verdict if compared > 1 else "")
