"""Waits of ranks for each other in collectives: ``collector.analysis.ranks([rank0, rank1, ...])``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question, question_by, steps_in
from collector.analysis.named_question import named_question
from collector.errors import CollectorError
from collector.merging.clocks import ClockOffset, ClockOffsets, Markers, checked_offsets, estimate_offsets, joined
from collector.merging.collectives import Collective, matched_collectives
from collector.merging.rank_numbers import rank_number, step_number, tasks_of
from collector.merging.stated_collectives import comparable, moments_of_step
from collector.recording.recording import Recording
from collector.text.wording import counted

if TYPE_CHECKING:
    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.formats.step import TracedStep

_STATED = "Collectives are those that the traces state, with their process groups, and other kernels named like one."
_NAMED = "Collectives are recognised by the names of kernels and ops: the traces state no process groups."
_NAMED_IN_SOME = "Collectives are recognised by names of kernels and ops, because some of the traces do not state them."
_DEFINITION = (
    "Ranks begin a collective together: those that arrive early wait for the last one, the straggler. Waits are "
    "counted where they are longer than the error of the clocks of both ranks."
)
QUESTIONS = {
    "rank": Question(
        "ranks",
        _DEFINITION,
        (
            Column("rank", "number", "Number of the rank."),
            Column("collectives", "count", "Collectives that it ran with other ranks of those that were asked."),
            Column("last", "count", "Those in which others waited for it."),
            Column("caused_ns", "ns", "Sum of the waits of other ranks for it."),
            Column("wait_ns", "ns", "Sum of its own waits for others."),
            Column("clock_offset_ns", "ns", "How far its clock is ahead, which is taken off its times."),
            Column(
                "clock_error_ns",
                "ns",
                "How certain that is; half of the common moments agree within it. 0 where it is not known.",
            ),
            Column("clock", "text", "Where the offset is from: reference, estimated, given or believed."),
        ),
        summed=("caused_ns", "wait_ns"),
        tables=("kernels",),
        otherwise="No two ranks ran the same collective.",
    ),
    "collective": Question(
        "ranks",
        _DEFINITION,
        (
            Column("step", "number", "Number of the step, as the names of files state it."),
            Column("name", "text", "Name of the collective, with the launch shape and details that distinguish it."),
            Column("ordinal", "number", "Which of those with this name it is, counted from 0."),
            Column("ranks", "count", "Ranks that ran it, of those that were asked."),
            Column("straggler", "number", "Rank that began it last."),
            Column("skew_ns", "ns", "From the first rank's beginning to the last one's."),
            Column("cost_ns", "ns", "Sum of the waits for the straggler."),
            Column("transfer_ns", "ns", "Shortest duration on any rank: that of the one that did not wait."),
        ),
        summed=("cost_ns",),
        tables=("kernels",),
        otherwise="No two ranks ran the same collective.",
    ),
}


@named_question(QUESTIONS, of_ranks=True, aliases={"potential_stragglers": ""}, by_alone={"rank": "rank"})
def ranks(steps: Asked, *, by: str = "rank", clock_offsets: ClockOffsets = "estimate") -> Answer:
    """Waits in collectives, and which rank caused them.

    The rank of a recording is taken from its trace, its devices or the name of its file. Recordings in memory that
    state no rank are numbered in the order in which they are given. Each run of a dataset has ranks, clocks and
    collectives of its own; the rows of several runs begin with a column ``run``.

    Args:
        steps: the steps of at least two ranks.
        by: ``rank``, or ``collective`` for each of them, those that cost most first.
        clock_offsets: ``estimate``: from the ends of collectives; rank -> ns that the wall clock of its machine is
            ahead; None: the clocks are taken to be equal, as on one machine.

    Raises:
        collector.CollectorError: no run has two ranks whose clocks can be related; the message says why.
        ValueError: ``by`` or ``clock_offsets`` has another value.
        TypeError: ``clock_offsets`` has a value of a wrong type.
    """
    question = question_by(QUESTIONS, by, "waits are")
    clock_offsets = checked_offsets(clock_offsets)
    of_runs: dict[str, list[Recording | TracedStep]] = defaultdict(list)
    for step in steps_in(steps):
        of_runs[getattr(step, "run", "")].append(step)
    parts: dict[str, Part] = {}
    refused: dict[str, CollectorError] = {}
    for run, given in (of_runs or {"": []}).items():
        try:
            parts[run] = _part(given, by, clock_offsets)
        except CollectorError as error:
            refused[run] = error
    if not parts:
        run, refusal = next(iter(refused.items()))
        raise refusal if len(refused) == 1 else CollectorError(f"run {run}: {refusal.cause}", refusal.remedy)
    if len(of_runs) < 2:
        (part,) = parts.values()
        return question.ask_together(steps, lambda _: part)
    question = replace(question, columns=(_RUN, *question.columns))
    together = _together(parts, refused, question)
    return question.ask_together(steps, lambda _: together)


_RUN = Column("run", "text", "Run of the dataset; ranks and clocks are those of one run.")


def _part(given: Sequence[Recording | TracedStep], by: str, clock_offsets: ClockOffsets) -> Part:
    """The answer about the steps of one run.

    Raises:
        CollectorError: there are no two ranks whose clocks can be related.
    """
    markers, unknown, found_by = _markers(given)
    offsets, losses = _offsets(markers, clock_offsets)
    if unknown:
        losses.append(counted("{} step[|s] [is|are] left out: the rank is not known", unknown))
    collectives, alone = matched_collectives(markers, offsets)
    if alone:
        losses.append(counted("{} collective[|s] [is|are] left out: no other rank has a partner of [it|theirs]", alone))
    waits = [_Waits.of(collective, offsets) for collective in collectives]
    rows = _by_rank(waits, offsets) if by == "rank" else _by_collective(waits)
    return Part(rows, losses=losses, notes=[found_by, *_uncertain(offsets)])


def _uncertain(offsets: Mapping[int, ClockOffset]) -> list[str]:
    """The note about estimated offsets whose error is not known."""
    found = [f"rank {rank}" for rank, each in offsets.items() if each.source == "estimated" and each.error_ns is None]
    why = "Where one collective in common determines the offset of a clock, its error is not known and counts as 0"
    return [f"{why}: {', '.join(found)}."] if found else []


def _together(parts: Mapping[str, Part], refused: Mapping[str, CollectorError], question: Question) -> Part:
    """The parts of several runs in one, whose rows begin with the run."""
    rows = [(run, *row) for run, part in parts.items() for row in part.rows]
    cost = [column.name for column in question.columns].index(question.summed[0])
    rows.sort(key=lambda row: (-row[cost], row[:4]))
    losses = [f"run {run}: {loss}" for run, part in parts.items() for loss in part.losses]
    losses += [f"run {run} is left out: {error}" for run, error in refused.items()]
    of_runs = {run: tuple(part.notes) for run, part in parts.items()}
    is_one = len(set(of_runs.values())) == 1
    notes = [note if is_one else f"Run {run}: {note}" for run, stated in of_runs.items() for note in stated]
    return Part(rows, losses=losses, notes=notes)


class _Waits(NamedTuple):
    """Waits of the ranks in a collective."""

    collective: Collective
    straggler: int
    wait_ns: Mapping[int, int]
    """Rank -> its wait; 0 where it is within the error of the clocks."""

    @classmethod
    def of(cls, collective: Collective, offsets: Mapping[int, ClockOffset]) -> _Waits:
        """The waits for the rank that arrived last; of several at once, for the lowest rank."""
        starts = collective.start_ns
        straggler = min(starts, key=lambda rank: (-starts[rank], rank))
        waits = {rank: starts[straggler] - start for rank, start in starts.items()}
        errors = {rank: (offsets[rank].error_ns or 0) + (offsets[straggler].error_ns or 0) for rank in starts}
        return cls(collective, straggler, {rank: wait if wait > errors[rank] else 0 for rank, wait in waits.items()})


def _markers(given: Sequence[Recording | TracedStep]) -> tuple[dict[int, Markers], int, str]:
    """The collectives of each rank, the number of steps whose rank is unknown, and how the collectives were found."""
    numbers = [step_number(str(getattr(step, "path", None) or "")) or 0 for step in given]
    found_by = [moments_of_step(step, number) for step, number in zip(given, numbers, strict=True)]
    moments, is_stated = comparable(found_by)
    note = _STATED if is_stated else _NAMED_IN_SOME if any(each.stated for each in found_by) else _NAMED
    found = [(rank_of(step), own) for step, own in zip(given, moments, strict=True)]
    # Files of unknown ranks may be of different runs.
    has_files = len(given) > 1 and any(getattr(step, "path", None) for step in given)
    if not has_files and all(rank is None for rank, _ in found):
        found = [(place, own) for place, (_, own) in enumerate(found)]
    markers: dict[int, Markers] = {rank: {} for rank, _ in found if rank is not None}
    for rank, own in found:
        if rank is not None:
            of_rank = markers[rank]
            of_rank |= {key: joined(of_rank.get(key), moments) for key, moments in own.items()}
    return markers, sum(rank is None for rank, _ in found), note


def rank_of(step: Recording | TracedStep) -> int | None:
    """The rank of a step; None where it is not known."""
    if isinstance(step, Recording):
        return None
    name = str(step.path or "")
    return rank_number(tasks_of(step.device_names()), getattr(step, "rank", None), name)


def run_and_rank(step: Recording | TracedStep) -> tuple[str, int]:
    """The run and the rank of a step; a step without a rank has rank 0, as in a dataset."""
    return getattr(step, "run", ""), rank_of(step) or 0


def _offsets(markers: Mapping[int, Markers], clock_offsets: ClockOffsets) -> tuple[dict[int, ClockOffset], list[str]]:
    """The offsets of the ranks whose clocks are known to each other, and which ranks are left out.

    Raises:
        CollectorError: there are no two such ranks.
    """
    if len(markers) < 2:
        raise CollectorError(
            f"waits between ranks need the steps of at least two ranks: {counted('{} [was|were] given', len(markers))}",
            "Give one file of each rank, which the trace, its devices or the name of the file states (step.rank1.json)",
        )
    if clock_offsets == "estimate":
        offsets = estimate_offsets(markers)
        remedy = (
            "Give the offsets (clock_offsets={1: 0}; --clock-offset 1=0), "
            "or None (--same-clock) where the clocks are one and the same"
        )
    elif clock_offsets is None:
        return {rank: ClockOffset(0, None, 0, "believed") for rank in markers}, []
    else:
        offsets = {
            rank: ClockOffset(clock_offsets.get(rank, 0), None, 0, "given" if rank in clock_offsets else "none")
            for rank in markers
        }
        remedy = "Give the offset of each rank, 0 for the one that the others are measured by"
    unaligned = [rank for rank, offset in offsets.items() if offset.source == "none"]
    known = {rank: offset for rank, offset in offsets.items() if offset.source != "none"}
    if len(known) < 2:
        raise CollectorError(
            f"the clocks of the ranks {', '.join(map(str, markers))} cannot be related: no collectives that they have "
            "in common determine an offset",
            remedy,
        )
    return known, [
        f"rank {rank} is left out: no collectives in common with other ranks determine how far its clock is ahead"
        for rank in unaligned
    ]


def _by_rank(waits: Sequence[_Waits], offsets: Mapping[int, ClockOffset]) -> list[tuple[Any, ...]]:
    rows = []
    for rank, offset in offsets.items():
        own = [each for each in waits if rank in each.wait_ns]
        caused = [sum(each.wait_ns.values()) for each in own if each.straggler == rank]
        rows.append(
            (
                rank,
                len(own),
                sum(cost > 0 for cost in caused),
                sum(caused),
                sum(each.wait_ns[rank] for each in own),
                offset.offset_ns,
                offset.error_ns or 0,
                offset.source,
            )
        )
    return sorted(rows, key=lambda row: (-row[3], row[0]))


def _by_collective(waits: Sequence[_Waits]) -> list[tuple[Any, ...]]:
    rows = []
    for each in waits:
        starts, ends = each.collective.start_ns, each.collective.end_ns
        rows.append(
            (
                each.collective.step,
                each.collective.name,
                each.collective.ordinal,
                len(starts),
                each.straggler,
                max(starts.values()) - min(starts.values()),
                sum(each.wait_ns.values()),
                min(ends[rank] - start for rank, start in starts.items()),
            )
        )
    return sorted(rows, key=lambda row: (-row[6], row[:3]))
