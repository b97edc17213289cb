"""Many steps and many ranks in one trace.

>>> import collector
>>> collector.merge(["step1.pb", "step2.pb", "step3.pb"], "all.json")  # doctest: +SKIP
>>> collector.merge(["rank0.pb", "rank1.pb"], "all.pftrace", clock_offsets="estimate")  # doctest: +SKIP

The inputs are read one after the other, and twice: to find the time of each step, and to draw it. Memory is therefore
bounded by the largest input, for any number of inputs.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from zlib import crc32

from collector.checked_arguments import check_function, regular_expression
from collector.errors import CollectorError, InvalidFileError
from collector.files.atomic_files import atomic_write, check_writable, expanded
from collector.files.path_kinds import mode_at
from collector.formats.loading import load
from collector.formats.named_steps import named_steps
from collector.formats.registry import merged_format
from collector.formats.step import Step, TracedStep
from collector.formats.step_sources import RecordingSource
from collector.merging.clocks import (
    COLLECTIVE,
    ClockOffset,
    ClockOffsets,
    Markers,
    checked_offsets,
    collective_moments,
    estimate_offsets,
    joined,
)
from collector.merging.merged_files import MergedFile, Placed, merged_file
from collector.merging.rank_numbers import rank_number, step_number, tasks_of
from collector.merging.stated_collectives import RankMoments, comparable, moments_of, moments_of_step
from collector.recording.recording import Recording
from collector.runtime.extension import convert_extension
from collector.stepstats.node_times import UNTIMED_NODES
from collector.stepstats.to_recording import has_recording, recording_of
from collector.stepstats.wire import provenance_of, step_stats_of
from collector.timeline.drawing import wire_of

if TYPE_CHECKING:
    from collector.protos.run_metadata_pb2 import Provenance

Progress = Callable[[str, int, int], None]
"""Called with the current activity, the number of finished inputs, and the number of inputs."""

_Process = tuple[bool, str, int, str]
"""Whether it has a rank, its run, its rank and its name."""
_Offsets = Mapping[str, Mapping[int, ClockOffset]]
"""Run -> rank -> the offset of its clock."""
_UNTIMED = "inputs without a timed node"
_LONGEST_NS = 1 << 53
"""The largest time that a viewer's number represents exactly: 104 days."""
_LARGEST_ID = (1 << 32) - 1


@dataclass(frozen=True)
class MergedInput:
    """One input of a merge and its position."""

    name: str
    rank: int | None
    """From the devices' names, else from the trace's metadata, else from the file's name; None if unknown."""
    step: int
    """From the file's name, else counted within the rank in the order of time, from 0, except numbers that names state.
    Of overlaid steps of a rank whose names state one number, only the first one has it."""
    start_ns: int
    """First start, in ns of the rank's own clock."""
    end_ns: int
    shift_ns: int = 0
    """Added to its times."""
    added_to_correlations: int = 0
    """Added to its correlation ids in a drawn trace, where an earlier input on the same tracks uses some of them."""
    slices: int = 0
    """Number of its nodes that were drawn."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Reason -> number of parts that could not be read or drawn."""
    warning: str = ""
    ledger: Mapping[str, int] = field(default_factory=dict, repr=False)
    """The ledger of the recording, if the file contains it."""
    unread: Mapping[str, int] = field(default_factory=dict)
    """Reason -> number of missing or repaired parts of the input, and of files that it was made of."""
    simulated: bool = False
    """Whether the input states that its GPU was simulated, so that its times are made up."""
    run: str = ""
    """The run of a dataset that its step is of; empty for other inputs."""


@dataclass(frozen=True)
class MergeReport:
    """The result of a merge."""

    output: Path
    layout: str
    inputs: tuple[MergedInput, ...]
    """In the order of drawing: by run, rank and time, followed by inputs without any time."""
    clock_offsets: Mapping[int | tuple[str, int], ClockOffset]
    """By rank, or by run and rank if the inputs are of several runs; empty if no offsets were requested."""
    base_ns: int
    """Wall time of the trace's time 0."""

    def metadata(self) -> dict[str, Any]:
        """The metadata of the trace file: layout, inputs, clocks. Times are ns; names are without folders."""
        inputs = [{**asdict(each), "name": Path(each.name).name} for each in self.inputs]
        for each in inputs:
            del each["warning"]  # it contains the folder's name
            if not each["run"]:
                del each["run"]
        unread: Counter[str] = Counter()
        for merged in self.inputs:
            unread.update(merged.unread)
        clocks = {
            str(rank) if isinstance(rank, int) else _label_of(*rank): asdict(offset)
            for rank, offset in self.clock_offsets.items()
        }
        # Times are text, because JSON readers store numbers in doubles.
        about = {
            "base_time_ns": str(self.base_ns),
            "layout": self.layout,
            "inputs": inputs,
            "clock_offsets": clocks,
            "unread": unread,
        }
        return {**about, "simulated": True} if any(each.simulated for each in self.inputs) else about


@dataclass
class _Source:
    """An input that can be read repeatedly."""

    given: Any
    name: str
    is_of_several_runs: bool = False
    """Whether other inputs are steps of another run."""

    @property
    def run(self) -> str:
        """The run of a dataset that a step is of; empty for anything else."""
        return self.given.run if isinstance(self.given, Step) else ""

    @property
    def is_file(self) -> bool:
        """Whether it is a file's name, as opposed to an object."""
        return isinstance(self.given, (str, os.PathLike))

    def read(self) -> _Read:
        """The step's bytes and the warnings from reading them."""
        if self.is_file and stat.S_ISFIFO(mode_at(self.given)):
            raise InvalidFileError(f"{self.name}: a pipe can be read only once", "Write it to a file first")
        given = load(self.given) if self.is_file else self.given
        if self.is_of_several_runs and self.run:
            given = _in_job(given)
        skipped = given.skipped if isinstance(given, Step) else {}
        message, whole = wire_of(given)
        return _Read(
            bytes(message),
            whole,
            given,
            getattr(given, "rank", None),
            getattr(given, "process_name", ""),
            dict(skipped),
            given.warning if isinstance(given, Step) else "",
        )


class _Read(NamedTuple):
    message: bytes
    is_run_metadata: bool
    given: Any
    """The step in whatever form it was given or loaded."""
    stated_rank: int | None
    process_name: str
    skipped: dict[str, int]
    warning: str

    def moments(self, number: int, pattern: re.Pattern[str]) -> RankMoments:
        """The collectives of the step, which drawing does not need; by the labels of nodes only without columns."""
        if isinstance(self.given, (Recording, TracedStep)):
            return moments_of_step(self.given, number, pattern)
        if self.is_run_metadata and has_recording(self.message):
            return moments_of(recording_of(self.message), number, pattern)
        step = step_stats_of(self.message, self.is_run_metadata)
        return RankMoments({}, collective_moments(step, number, pattern))


def _in_job(step: Step) -> Step:
    """A step of a run whose devices state the run and the rank, as those of a job of TensorFlow."""
    prefix = f"/job:{step.run}/replica:0/task:{step.rank or 0}"
    return Step(RecordingSource(step.recording, prefix), rank=step.rank, run=step.run)


def _label_of(run: str, rank: int) -> str:
    return f"run {run} rank {rank}" if run else f"rank {rank}"


@dataclass
class _Found:
    """An input after the first reading."""

    source: _Source
    rank: int | None
    process_name: str
    """The name of its process, where processes without ranks are merged."""
    rank_in_devices: bool
    """Whether the devices' names contain the rank."""
    devices: Sequence[bytes]
    """Their StepStats names."""
    number: int | None
    bounds_ns: tuple[int, int] | None
    """First start and last end on the rank's own clock; None if no node has a possible time."""
    correlation_ids: tuple[int, int] | None
    """The smallest and the largest correlation id; None if no node has one."""
    checksum: int
    """The checksum of the message, which the second reading must find again."""
    skipped: Mapping[str, int]
    warning: str
    provenance: Provenance | None
    """The provenance of an input that is not drawn, because no node has a possible time."""

    @property
    def start_ns(self) -> int:
        """First start, where there is any."""
        return self.bounds_ns[0] if self.bounds_ns else 0

    @property
    def end_ns(self) -> int:
        """Last end, where there is any."""
        return self.bounds_ns[1] if self.bounds_ns else 0

    @property
    def process(self) -> _Process:
        """The values that are equal for all steps of a process; in the order of drawing."""
        return self.rank is not None, self.source.run, self.rank or 0, self.process_name

    @property
    def label(self) -> str:
        """The name of its process among several."""
        if self.rank is None:
            return self.process_name
        return _label_of(self.source.run if self.source.is_of_several_runs else "", self.rank)


@dataclass
class _Placed(Placed):
    """An input with its position on the axis."""

    found: _Found


def merge(
    inputs: Iterable[Any],
    output: str | os.PathLike[str],
    *,
    layout: Literal["sequence", "overlay"] = "sequence",
    clock_offsets: ClockOffsets = None,
    marker: str = COLLECTIVE.pattern,
    progress: Progress | None = None,
) -> MergeReport:
    """Draw several steps into one trace.

    Each rank's devices are separate processes, with ``rank N`` before the name if there are several ranks. The steps of
    one rank follow each other on the same tracks; the process "steps" marks the begin and end of each step. Each run of
    a dataset has ranks, steps and clocks of its own; with several runs, ``RUN N`` is before the name of a process.

    Args:
        inputs: files (in any format that `collector.load` reads), or StepStats, RunMetadata, recordings and sessions.
        output: ``.json``, ``.pftrace`` (both also with ``.gz``) or ``.xplane.pb``; written completely or not at all.
        layout: ``sequence`` keeps the steps at their times; ``overlay`` moves all steps to the same start, each with
            processes of its own, to compare them.
        clock_offsets: rank (of each run) -> ns that its clock is ahead, or ``estimate``: derive the offsets from the
            ends of collectives that the ranks of a run ran together. None: the clocks are assumed to agree.
        marker: regular expression for the names of nodes that ranks run together, for the estimate.
        progress: called after each input.

    Raises:
        TypeError: ``inputs`` is a single input, or another argument has a wrong type.
        collector.InvalidFileError: an input cannot be read, or all of them are empty.
        collector.UnknownFormatError: no format for several steps has the output's suffix.
        collector.OutputError: the output cannot be written.
        ValueError: ``layout`` or ``clock_offsets`` has another value.
        collector.CollectorError: there are no inputs, an offset is given for a missing rank, the marker is not a
            regular expression or matches nothing, steps are too far apart for one axis, or a file changed meanwhile.
    """
    if isinstance(inputs, (str, bytes, os.PathLike)) or not isinstance(inputs, Iterable):
        raise TypeError(f"merge takes several inputs, not one: write [{inputs!r}]")
    if layout not in ("sequence", "overlay"):
        raise ValueError(f"layout={layout!r}: sequence or overlay")
    clock_offsets = checked_offsets(clock_offsets)
    pattern = _pattern(marker)
    if progress is not None:
        check_function("progress", progress)
    target = Path(output)
    merged_format(target)  # an unknown format is reported before anything is read
    sources = [_source(given, at) for at, given in enumerate(inputs)]
    check_writable(target, *(source.given for source in sources if source.is_file))
    if not sources:
        raise CollectorError("nothing to merge", "Name at least one file")
    return _merge(sources, target, layout, clock_offsets, pattern, progress or (lambda _what, _done, _of: None))


def merge_windows(files: Sequence[Path], output: Path) -> None:
    """Draw the windows of a schedule; without any work in them, the file states their ledgers alone.

    Raises:
        collector.CollectorError: as for `merge`, except that all of them may be empty.
    """
    sources = [_source(file, at) for at, file in enumerate(files)]
    check_writable(output, *files)
    _merge(sources, output, "sequence", None, None, lambda _what, _done, _of: None, may_be_empty=True)


def _merge(
    sources: Sequence[_Source],
    target: Path,
    layout: str,
    clock_offsets: ClockOffsets,
    pattern: re.Pattern[str] | None,
    report_progress: Progress,
    *,
    may_be_empty: bool = False,
) -> MergeReport:
    is_of_several_runs = len({source.run for source in sources}) > 1
    for source in sources:
        source.is_of_several_runs = is_of_several_runs
    found, markers = _survey(sources, pattern if clock_offsets == "estimate" else None, report_progress)
    if not may_be_empty:
        _check_times(found)
    offsets = _offsets(clock_offsets, markers, found)
    base_ns, steps = _place(found, offsets, layout)
    with atomic_write(target) as file, merged_file(file, target, steps, layout, base_ns) as trace:
        drawn = [_draw(trace, step, at, len(steps), report_progress) for at, step in enumerate(steps)]
        untimed = [_not_drawn(each) for each in found if each.bounds_ns is None]
        clocks = {
            (run, rank) if is_of_several_runs else rank: offset
            for run, own in offsets.items()
            for rank, offset in own.items()
        }
        report = MergeReport(target, layout, (*drawn, *untimed), clocks, base_ns)
        trace.finish(report.metadata())
    return report


def _pattern(marker: str) -> re.Pattern[str]:
    try:
        return regular_expression("marker", marker, re.IGNORECASE)
    except ValueError as error:
        raise CollectorError(str(error)) from error


def _source(given: Any, at: int) -> _Source:
    if not isinstance(given, (str, os.PathLike)):
        return _Source(given, f"input {at}")
    is_in_dataset = named_steps(expanded(given)) is not None
    return _Source(load(given) if is_in_dataset else given, os.fspath(given))


def _survey(
    sources: Sequence[_Source], pattern: re.Pattern[str] | None, report_progress: Progress
) -> tuple[list[_Found], dict[str, dict[int, Markers]]]:
    """The time of each input, and the markers of the ranks of each run."""
    found: list[_Found] = []
    moments: dict[str, list[tuple[int, RankMoments]]] = defaultdict(list)
    for at, source in enumerate(sources):
        report_progress(f"reading {source.name}", at, len(sources))
        read = source.read()
        bounds = convert_extension.survey(read.message, is_run_metadata=read.is_run_metadata)
        if bounds is None:
            read.skipped[_UNTIMED] = 1
        devices = convert_extension.devices(read.message, is_run_metadata=read.is_run_metadata)
        tasks = tasks_of(device.decode(errors="replace") for device in devices)
        rank = read.stated_rank if source.run else rank_number(tasks, read.stated_rank, source.name)
        number = step_number(source.name)
        ids = convert_extension.correlation_ids(read.message, is_run_metadata=read.is_run_metadata)
        of, notes = (source, rank, read.process_name, bool(tasks)), (read.skipped, read.warning)
        provenance = provenance_of(read.message) if bounds is None and read.is_run_metadata else None
        found.append(_Found(*of, devices, number, bounds, ids, crc32(read.message), *notes, provenance))
        if pattern is not None and rank is not None:
            moments[source.run].append((rank, read.moments(number or 0, pattern)))
        del read  # before the next file is read
    report_progress("reading", len(sources), len(sources))
    is_asked = pattern is not None and pattern.pattern != COLLECTIVE.pattern
    all_moments = [each for of_run in moments.values() for _, each in of_run]
    if pattern is not None and is_asked and moments and not any(each.stated or each.named for each in all_moments):
        raise CollectorError(
            f"nothing in the inputs matches the marker {pattern.pattern!r}",
            "Without a marker, the collectives (all-reduce, ...) relate the clocks",
        )
    return found, {run: _markers_of(own) for run, own in moments.items()}


def _check_times(found: Sequence[_Found]) -> None:
    """Raise `collector.InvalidFileError` if no input has a time."""
    if any(each.bounds_ns is not None for each in found):
        return
    reasons = "".join(f" ({reason}: {count})" for reason, count in found[0].skipped.items() if reason != _UNTIMED)
    others = ", nor in the others" * (len(found) > 1)
    raise InvalidFileError(f"{found[0].source.name}: nothing in it has a time{reasons}{others}")


def _markers_of(moments: Sequence[tuple[int, RankMoments]]) -> dict[int, Markers]:
    """The markers of each rank of a run."""
    markers: dict[int, Markers] = defaultdict(dict)
    for (rank, _), own in zip(moments, comparable([each for _, each in moments])[0], strict=True):
        for key, rows in own.items():
            markers[rank][key] = joined(markers[rank].get(key), rows)
    return markers


def _offsets(
    asked: Mapping[int, int] | Literal["estimate"] | None,
    markers: Mapping[str, Mapping[int, Markers]],
    found: Sequence[_Found],
) -> dict[str, dict[int, ClockOffset]]:
    """The offsets of the ranks of each run."""
    if asked is None:
        return {}
    ranks_of: dict[str, set[int]] = defaultdict(set)
    for each in found:
        if each.rank is not None:
            ranks_of[each.source.run].add(each.rank)
    if asked == "estimate":
        return {
            run: estimate_offsets({rank: markers.get(run, {}).get(rank, {}) for rank in ranks})
            for run, ranks in sorted(ranks_of.items())
        }
    ranks = set().union(*ranks_of.values())
    unknown = sorted(set(asked) - ranks)
    if unknown:
        there = f"there are {', '.join(map(str, sorted(ranks)))}" if ranks else "none of them has a rank"
        raise CollectorError(f"a clock offset is given for rank {unknown[0]}, of which there is no input: {there}")
    given = {rank: ClockOffset(offset_ns, None, 0, "given") for rank, offset_ns in sorted(asked.items())}
    return {
        run: {rank: offset for rank, offset in given.items() if rank in own} for run, own in sorted(ranks_of.items())
    }


def _place(found: Sequence[_Found], offsets: _Offsets, layout: str) -> tuple[int, list[_Placed]]:
    """Wall time of the axis' time 0, and the position of each step in the order of drawing: by run, rank and time."""
    timed = [each for each in found if each.bounds_ns is not None]
    corrected = {id(each): each.start_ns - _offset(each, offsets) for each in timed}
    base_ns = min(corrected.values(), default=0)
    timed.sort(key=lambda each: (each.process, corrected[id(each)]))
    numbers = _numbers(timed, are_apart=layout == "overlay")
    like: Counter[tuple[_Process, int]] = Counter()
    together: dict[int, tuple[str, int, int]] = {}  # on all ranks of a run; a rank's second step of one number is apart
    first: dict[tuple[str, int, int], int] = {}  # step -> its start on the rank that was first
    for each, number in zip(timed, numbers, strict=True):
        step = together[id(each)] = each.source.run, number, like[each.process, number]
        like[each.process, number] += 1
        first[step] = min(first.get(step, corrected[id(each)]), corrected[id(each)])
    several = len({each.process for each in timed}) > 1
    added = _added_to_correlations(timed) if layout == "sequence" else [0] * len(timed)
    placed = []
    for each, number, added_to_ids in zip(timed, numbers, added, strict=True):
        start_ns = corrected[id(each)]
        if layout == "overlay":
            begin_ns = first[together[id(each)]]
            # Clocks this far apart are unrelated.
            moved = base_ns - (begin_ns if start_ns - begin_ns <= _LONGEST_NS // 2 else start_ns)
        else:
            moved = 0
        shift_ns = moved - _offset(each, offsets)
        if each.end_ns + shift_ns - base_ns > _LONGEST_NS:
            days = (each.start_ns + shift_ns - base_ns) // (24 * 3600 * 10**9)
            raise CollectorError(
                f"{each.source.name} begins {days} days after the first step: too far for one time axis",
                "Overlay the steps (--overlay; in Python layout='overlay'), or correct the ranks' clocks",
            )
        rank = each.label if several else ""
        named = "" if each.rank_in_devices else rank
        owner = f"{named} step {number}".strip() if layout == "overlay" else named
        length_ns = each.end_ns - each.start_ns
        times = (shift_ns, added_to_ids, each.start_ns, length_ns)
        run = each.source.run if each.source.is_of_several_runs else ""
        placed.append(_Placed(number, run, rank, owner, *times, each.devices, each))
    return base_ns, placed


def _numbers(found: Sequence[_Found], *, are_apart: bool) -> list[int]:
    """The number of each step: that of its file's name, else the next one of its process that no name states.

    Args:
        found: the inputs, those of a process in the order of time.
        are_apart: no two steps of a process have one number, because the names of what is drawn have it; of those whose
            names state one number, the first one keeps it, and the others get numbers that no name states.
    """
    taken = {(each.process, each.number) for each in found}
    greatest = max((each.number for each in found if each.number is not None), default=-1)
    unnamed: dict[_Process, Iterator[int]] = defaultdict(count)
    further: dict[_Process, Iterator[int]] = defaultdict(lambda: count(greatest + 1))
    named: set[tuple[_Process, int]] = set()
    numbers = []
    for each in found:
        number = each.number
        if number is None or (are_apart and (each.process, number) in named):
            free = unnamed if number is None else further
            number = next(other for other in free[each.process] if (each.process, other) not in taken)
            taken.add((each.process, number))
        named.add((each.process, number))
        numbers.append(number)
    return numbers


def _added_to_correlations(found: Sequence[_Found]) -> list[int]:
    """The number added to the correlation ids of each input: 0 unless an earlier one of its process uses some of them.

    Steps of one process have different ids. Files of several runs, or of processes that nothing names, may share some.
    """
    used: dict[_Process, list[tuple[int, int]]] = defaultdict(list)
    added = []
    for each in found:
        least, greatest = each.correlation_ids or (0, 0)
        before = used[each.process]
        above = max((last for _, last in before), default=0)
        shares = least <= above and any(first <= greatest and least <= last for first, last in before)
        above = above if greatest and shares and above + greatest <= _LARGEST_ID else 0
        before.append((least + above, greatest + above))
        added.append(above)
    return added


def _offset(each: _Found, offsets: _Offsets) -> int:
    known = offsets.get(each.source.run, {}).get(each.rank) if each.rank is not None else None
    return known.offset_ns if known else 0


def _not_drawn(found: _Found) -> MergedInput:
    """An input without any time. Its ledger says whether nothing happened in it or everything was lost."""
    provenance = found.provenance
    ledger = dict(sorted(provenance.ledger.items())) if provenance else {}
    return MergedInput(
        name=found.source.name,
        rank=found.rank,
        step=found.number or 0,
        start_ns=0,
        end_ns=0,
        skipped=found.skipped,
        warning=found.warning,
        ledger=ledger,
        unread=dict(provenance.unread) if provenance and ledger else found.skipped,
        simulated=provenance is not None and provenance.simulated,
        run=found.source.run,
    )


def _draw(trace: MergedFile, step: _Placed, at: int, of: int, report_progress: Progress) -> MergedInput:
    found = step.found
    report_progress(f"drawing {found.source.name}", at, of)
    read = found.source.read()
    if found.source.is_file and crc32(read.message) != found.checksum:  # its position would be that of another content
        raise CollectorError(f"{found.source.name} changed while it was read", "Merge again, or merge a copy of it")
    provenance = provenance_of(read.message) if read.is_run_metadata else None
    try:
        slices, untimed = trace.add(
            read.message, step, is_run_metadata=read.is_run_metadata, provenance=provenance, given=read.given
        )
    except InvalidFileError as error:
        raise error.of_file(found.source.name) from error
    skipped = dict(found.skipped)
    unread = Counter(found.skipped if provenance is None else provenance.unread)
    if untimed:
        skipped[UNTIMED_NODES] = untimed
        unread[UNTIMED_NODES] += untimed
    report_progress("drawing", at + 1, of)
    return MergedInput(
        name=found.source.name,
        rank=found.rank,
        step=step.number,
        start_ns=found.start_ns,
        end_ns=found.end_ns,
        shift_ns=step.shift_ns,
        added_to_correlations=step.added_to_correlations,
        slices=slices,
        skipped=skipped,
        warning=found.warning,
        ledger=dict(sorted(provenance.ledger.items())) if provenance else {},
        unread=dict(unread),
        simulated=provenance is not None and provenance.simulated,
        run=found.source.run,
    )
