"""The part of a recording that a view draws, selected by its columns before StepStats are made.

The rows left out are counted: the figures of the drawing are those of the whole recording.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.recording.first_rows import distinct_rows
from collector.recording.possible_times import FAR_NS
from collector.recording.schema import ACTIVITY_TABLES, SCHEMA
from collector.stepstats.host_devices import HostDevices
from collector.stepstats.shown_tables import SIDE_TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from collector.recording.journal_facts import Extent
    from collector.recording.recording import Recording
    from collector.recording.table import Table

    Mask = npt.NDArray[np.bool_]

_OF_THREADS = ("annotations", "api_calls", "other_ranges")
_SLICES = {
    **dict.fromkeys((*SIDE_TABLES, *_OF_THREADS, "kernels"), 1),
    "memcpys": 2,
    "memsets": 2,
    "graph_launches": 1,
}
"""Table -> number of slices per row: copies are drawn on their stream and among the copies of their GPU."""

_HOST_TRACKS = {**dict.fromkeys(_OF_THREADS, "ops"), **{table: side.device for table, side in SIDE_TABLES.items()}}
_HOST_ORDER = {table: sorted(set(_HOST_TRACKS.values())).index(track) for table, track in _HOST_TRACKS.items()}
"""Tables of the host -> the order in which their tracks are drawn."""

_GRAPHS_ROW, _COPIES_ROW = 1, 2
"""Order of a GPU's rows behind its streams, which come first."""


@dataclass(frozen=True)
class RecordingPart:
    """The part of a recording that is drawn, and the figures of the whole."""

    recording: Recording
    thread_processes: Mapping[int, int]
    """Thread -> process, as the first calls of the whole state them."""
    base_ns: int
    """Wall time of the first start."""
    end_ns: int
    """The last end after the base."""
    cut: int
    """Slices of the whole that are outside the view's times."""
    left_out: int
    """Slices that pass the view's filters but are not among the longest; their durations follow."""
    left_out_ns: int
    longest_left_out_ns: int
    filtered: int | None
    """Slices of the whole that do not pass the filters; None if other filters than times apply."""

    def figures(self, drawn: Mapping[str, int]) -> dict[str, int]:
        """The figures of the whole, computed from those of the part's drawing."""
        left_out = {name: getattr(self, name) for name in ("left_out", "left_out_ns", "longest_left_out_ns")}
        filtered = drawn["filtered"] + self.cut if self.filtered is None else self.filtered
        return {**drawn, **(left_out if self.left_out else {}), "filtered": filtered, "end_ns": self.end_ns}


def part_of(
    recording: Recording,
    *,
    window_ns: tuple[int | None, int | None],
    min_duration_ns: int,
    max_slices: int | None,
    times_decide: bool,
    with_memory: bool,
    extent: Extent | None = None,
) -> RecordingPart | None:
    """Return the part to draw; None if that is all or most of the recording, or if its columns do not select it.

    Args:
        recording: the whole.
        window_ns: start and end of the drawing, since the beginning of the whole.
        min_duration_ns: minimum duration of slices.
        max_slices: maximum number of slices, the longest ones; None: all.
        times_decide: whether times alone select the slices.
        extent: the extent of the whole, of which ``recording`` is a part; None: it is the whole.
        with_memory: keep all allocations and releases of memory, which a counter shows.
    """
    tables: dict[str, Table] = {name: getattr(recording, name) for name in _SLICES}
    filled = [table for table in tables.values() if len(table)]
    if not filled:
        return None
    first_ns, last_ns = min(int(each.start_ns.min()) for each in filled), max(int(_ends(each).max()) for each in filled)
    began_ns = recording.clock.cupti_start_ns
    if extent is not None:
        began_ns, first_ns, last_ns = extent.session_start_ns, extent.first_ns, extent.last_ns
    base_ns = first_ns + recording.clock.offset_ns
    if base_ns <= 0 or last_ns - first_ns > FAR_NS:
        return None
    if max_slices is not None and not HostDevices(recording).is_single:
        return None  # of equally long slices the first ones are kept, and these devices are not known here
    start_ns, end_ns = (
        default_ns if side_ns is None else began_ns + min(max(side_ns, -FAR_NS), FAR_NS)
        for default_ns, side_ns in zip((first_ns, last_ns), window_ns, strict=True)
    )
    masks: dict[str, Mask] = {name: np.zeros(len(getattr(recording, name)), bool) for name in SCHEMA}
    durations = {name: _ends(table) - table.start_ns for name, table in tables.items()}
    for name, table in tables.items():
        if start_ns <= first_ns and end_ns >= last_ns:
            masks[name] = np.ones(len(table), bool)
        else:
            masks[name] = (table.start_ns <= end_ns) & (_ends(table) >= start_ns)
        if min_duration_ns > 0:
            masks[name] &= durations[name] >= min_duration_ns
    num_slices = _num_slices(tables)
    passing = sum(_SLICES[name] * int(masks[name].sum()) for name in tables)
    left_out, left_out_ns, longest_ns = 0, 0, 0
    if times_decide and max_slices is not None and passing > max_slices:
        left_out = passing - max_slices
        left_out_ns, longest_ns = _keep_longest(tables, durations, masks, max_slices)
    if with_memory:
        masks["memory_operations"][:] = True
        rows = recording.launch_rows(recording.memory_operations.correlation_id)
        masks["api_calls"][rows[rows >= 0]] = True
    if extent is None and 2 * sum(int(mask.sum()) for mask in masks.values()) > num_slices:
        return None
    part = recording.part(masks)
    return RecordingPart(
        recording=part,
        thread_processes=_thread_processes(recording.api_calls),
        base_ns=base_ns,
        end_ns=last_ns - first_ns,
        cut=num_slices - _num_slices({name: getattr(part, name) for name in _SLICES}),
        left_out=left_out,
        left_out_ns=left_out_ns,
        longest_left_out_ns=longest_ns,
        filtered=num_slices - passing if times_decide else None,
    )


def _thread_processes(calls: Table) -> dict[int, int]:
    first, _ = distinct_rows([calls.thread_id])
    return dict(zip(calls.thread_id[first].tolist(), calls.process_id[first].tolist(), strict=True))


def _ends(table: Table) -> npt.NDArray[np.int64]:
    """The end of each row; memory operations have no duration."""
    ends: npt.NDArray[np.int64] = table.columns.get("end_ns", table.start_ns)
    return ends


def _num_slices(tables: Mapping[str, Table]) -> int:
    return sum(_SLICES[name] * len(table) for name, table in tables.items())


def _keep_longest(
    tables: Mapping[str, Table], durations: Mapping[str, npt.NDArray[np.int64]], masks: dict[str, Mask], count: int
) -> tuple[int, int]:
    """Let the masks select the longest slices; return the total and the longest duration of the others.

    Of equally long slices the first ones are kept, in the order of drawing.
    """
    passing = [durations[name] if masks[name].all() else durations[name][masks[name]] for name in tables]
    repeated = np.concatenate([each for each, name in zip(passing, tables, strict=True) for _ in range(_SLICES[name])])
    limit_ns = int(np.partition(repeated, len(repeated) - 1 - count)[len(repeated) - 1 - count])
    tied = {name: np.flatnonzero(masks[name] & (durations[name] == limit_ns)) for name in tables}
    for name in tables:
        masks[name] &= durations[name] > limit_ns
    kept_ns = sum(_SLICES[name] * int(durations[name][masks[name]].sum()) for name in tables)
    places = count - sum(_SLICES[name] * int(masks[name].sum()) for name in tables)
    keys = _drawing_order(tables, tied)
    first = np.lexsort(keys[::-1])[:places]
    for number, name in enumerate(tables):
        masks[name][keys[-1][first][keys[-2][first] == number]] = True
    return int(repeated.sum()) - kept_ns - places * limit_ns, limit_ns


def _drawing_order(tables: Mapping[str, Table], rows: Mapping[str, npt.NDArray[Any]]) -> list[npt.NDArray[np.int64]]:
    """Sort keys of the order of drawing, most significant first: hosts, per GPU its streams, graphs, copies; time.

    The last two keys are the number of the table and the row.
    """
    keys: list[list[npt.NDArray[Any]]] = [[] for _ in range(7)]
    for number, (name, table) in enumerate(tables.items()):
        part = table[rows[name]]
        none = np.zeros(len(part), np.int64)
        for is_copy in range(_SLICES[name]):
            if name not in _HOST_ORDER:
                row = _GRAPHS_ROW if name not in ACTIVITY_TABLES else _COPIES_ROW * is_copy
                group = len(_HOST_ORDER) + (_COPIES_ROW + 1) * part.device_id.astype(np.int64) + row
                place = [none, none] if row else [part.stream_id, part.context_id]
                times = [part.start_ns, part.end_ns]
            else:
                group, place = none + _HOST_ORDER[name], [none, none]
                times = [part.start_ns, -_ends(part)]
            for key, values in zip(keys, (group, *place, *times, none + number, rows[name]), strict=True):
                key.append(values.astype(np.int64))
    return [np.concatenate(key) for key in keys]
