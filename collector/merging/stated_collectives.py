"""The collectives of a recording under names that are equal on all ranks, from its columns.

PyTorch's profiler states group and sequence number of a collective, in the table ``collectives``. The collectives of
all other recordings are known by the names of kernels, ops and ranges.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.merging.clocks import COLLECTIVE, collective_moments, in_order, shared_collective_name
from collector.recording.collective_rows import collective_rows
from collector.recording.kernel_names import demangle
from collector.recording.kind_names import copy_kind_name, memory_kind_name
from collector.recording.recording import Recording
from collector.recording.schema import ACTIVITY_TABLES
from collector.stepstats.labels import copy_label, memset_label
from collector.stepstats.to_recording import has_recording

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from collector.formats.step import TracedStep
    from collector.merging.clocks import Markers
    from collector.recording.table import Table

    Mask = npt.NDArray[np.bool_]
    Found = dict[str, list[tuple[int, int]]]

_NAMES = {"collective": "name_id", "group": "group_name_id", "dtype": "type_name_id"}
_FIGURES = {"seq": "sequence", "elements": "num_in_elements"}
"""Detail of a collective -> its column."""
_SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_HOST_TABLES = ("annotations", "api_calls", "nvtx_ranges", "other_ranges")


class RankMoments(NamedTuple):
    """The markers of one step on one rank, see `collector.merging.clocks.Markers`."""

    stated: Markers
    """Markers from the recording's collectives; empty if it states none."""
    named: Markers
    """Markers by names alone, as for a rank that states no collectives."""


def moments_of(recording: Recording, step_number: int, marker: re.Pattern[str] = COLLECTIVE) -> RankMoments:
    """The markers of a recording: its GPU work whose name or op contains `marker`.

    If GPUs ran no such work, ranges of the host with such names are used. All collectives that the recording states are
    markers, unless a `marker` other than the standard one selects some of them.
    """
    matches = _Matches(recording, marker)
    named = _of_work(recording, matches) or _of_host(recording, matches)
    stated: Found = {}
    if len(recording.collectives):
        rows = collective_rows(recording)
        chosen = matches.of_kernels() | (
            (rows >= 0) if marker.pattern == COLLECTIVE.pattern else matches.of_collectives()[rows]
        )
        stated = _of_kernels(recording, chosen, rows)
    return RankMoments(*(_markers(found, step_number) for found in (stated, named)))


def moments_of_step(
    step: Recording | TracedStep, step_number: int, marker: re.Pattern[str] = COLLECTIVE
) -> RankMoments:
    """The markers of a step: from the labels of its nodes only if it has no columns."""
    if isinstance(step, Recording):
        return moments_of(step, step_number, marker)
    recording = step.recorded
    if recording is None and (step.has_more_columns or has_recording(step.wire()[0])):
        recording = step.recording
    if recording is None:
        return RankMoments({}, collective_moments(step.step_stats, step_number, marker))
    return moments_of(recording, step_number, marker)


def comparable(moments: Sequence[RankMoments]) -> tuple[list[Markers], bool]:
    """The markers of several steps under names that can be compared, and whether these are stated ones.

    If one of the steps states nothing of its collectives, those of all steps are known by their names.
    """
    is_stated = any(each.stated for each in moments) and all(each.stated or not each.named for each in moments)
    return [each.stated if is_stated else each.named for each in moments], is_stated


def _markers(found: Found, step_number: int) -> Markers:
    return {(step_number, name): in_order(moments) for name, moments in found.items()}


class _Matches:
    """The rows whose names contain a marker."""

    def __init__(self, recording: Recording, marker: re.Pattern[str]) -> None:
        self._recording = recording
        # The last place is that of -1: no name.
        self._strings = np.array([bool(marker.search(text)) for text in recording.strings] + [False], bool)
        self._kernels = self._strings.copy()
        for name_id in np.unique(recording.kernels.name_id).tolist():
            self._kernels[name_id] |= bool(marker.search(demangle(recording.strings[name_id])))

    def of_kernels(self) -> Mask:
        """The kernels with such a name or op."""
        kernels = self._recording.kernels
        found: Mask = self._kernels[kernels.name_id] | self.of_ops(kernels)
        return found

    def of_ops(self, work: Table) -> Mask:
        """The work with such an op."""
        found: Mask = self._strings[self._recording.annotation_ids(work.correlation_id)]
        return found

    def of_names(self, table: Table) -> Mask:
        """The rows with such a name."""
        found: Mask = self._strings[table.name_id]
        return found

    def of_collectives(self) -> Mask:
        """The stated collectives with such a name; one place more for kernels without any."""
        found: Mask = np.concatenate([self.of_names(self._recording.collectives), [False]])
        return found


def _of_work(recording: Recording, matches: _Matches) -> Found:
    found = _of_kernels(recording, matches.of_kernels())
    for table in ACTIVITY_TABLES[1:]:
        work: Table = getattr(recording, table)
        chosen = work[matches.of_ops(work)]
        _add(found, recording, chosen, map(_copy_name if table == "memcpys" else _memset_name, chosen))
    return found


def _of_kernels(recording: Recording, chosen: Mask, rows: npt.NDArray[np.int64] | None = None) -> Found:
    """The chosen kernels; `rows` are those of ``collectives`` about them, -1: none."""
    strings, table = recording.strings, recording.collectives
    kernels = recording.kernels[chosen]
    of_table = np.full(len(kernels), -1, np.int64) if rows is None else rows[chosen]
    names = []
    for row, name_id, *shape in zip(
        of_table.tolist(), *(kernels[column].tolist() for column in ("name_id", *_SHAPE)), strict=True
    ):
        details = {"grid": _sizes(shape[:3]), "block": _sizes(shape[3:])}
        if row >= 0:
            details |= {key: strings[table[column][row]] for key, column in _NAMES.items()}
            details |= {key: str(table[column][row] or "") for key, column in _FIGURES.items()}
        stated = {key: value for key, value in details.items() if value}
        names.append(shared_collective_name(demangle(strings[name_id]), stated))
    found: Found = defaultdict(list)
    _add(found, recording, kernels, names)
    return found


def _of_host(recording: Recording, matches: _Matches) -> Found:
    found: Found = defaultdict(list)
    for name in _HOST_TABLES:
        table: Table = getattr(recording, name)
        chosen = table[matches.of_names(table)]
        _add(found, recording, chosen, chosen.recorded_names())
    return found


def _add(found: Found, recording: Recording, table: Table, names: Iterable[str]) -> None:
    offset_ns = recording.clock.offset_ns
    for name, start_ns, end_ns in zip(names, table.start_ns.tolist(), table.end_ns.tolist(), strict=True):
        found[name].append((start_ns + offset_ns, end_ns + offset_ns))


def _copy_name(copy: Any) -> str:
    source, target = memory_kind_name(copy.src_kind), memory_kind_name(copy.dst_kind)
    return copy_label(
        copy_kind_name(copy.copy_kind), copy.num_bytes, source, target, copy.src_device_id, copy.dst_device_id
    )


def _memset_name(memset: Any) -> str:
    return memset_label(memset.num_bytes, memory_kind_name(memset.memory_kind))


def _sizes(sizes: list[int]) -> str:
    return ",".join(map(str, sizes)) if any(sizes) else ""
