"""The annotations at the captures of CUDA graphs' activities, and the activities of each launch of a graph.

The records of a launch name the node of the executable graph. That node is a copy of the captured one, perhaps by way
of a clone, and CUPTI reports each copy while graphs are built (``graph_changes``); from CUDA 13.4 on the records name
the captured node themselves. A graph that was captured before the step is not reported: for its activities only the
annotation at the launch is known. Before CUDA 13.0 the updates of a graph are not reported either: only the records of
API calls show that there was one, and where these are incomplete the capture is not known.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.recording.api_functions import ApiRole, ids_with_role
from collector.recording.capture_window import FOREVER_NS, Span, parts_of
from collector.recording.cupti_enums import (
    DEGREE_CAPTURED,
    DEGREE_LAUNCH,
    DEGREE_REKEYED,
    DEGREE_WHOLE_GRAPH,
    GRAPH_INSTANTIATED,
    NODE_COPIED,
    NODE_CREATED,
    NODE_UPDATED,
)
from collector.recording.distinct import combination_codes, distinct_values, grouped_rows
from collector.recording.first_rows import first_rows, look_up
from collector.recording.possible_times import is_possible
from collector.recording.schema import ACTIVITY_TABLES, SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from collector.recording.capture import Capture

    Columns = dict[str, npt.NDArray[Any]]

_UPDATES_REPORTED_SINCE = 13000
"""The CUDA version from which CUPTI reports that an executable graph was updated."""
_PLACE_BITS = 32
"""The bits of a node's id that are its place in the graph; the other bits are the graph's id."""


def attribute_graphs(
    capture: Capture, names: Mapping[int, str] | None = None, ranges: Sequence[Span] | None = None
) -> None:
    """Fill the columns about graphs of a source's capture, add its ``graph_launches``, and count what is not known.

    Args:
        capture: the capture that a source returned.
        names: the names that the program gave to executable graphs. Other graphs have the name of the annotation in
            which they were instantiated.
        ranges: the parts of the session in which API calls were recorded; None: all, or those from the begin of the
            capture's part on.
    """
    tables = capture["tables"]
    if "graph_changes" not in tables:  # a source, or an older journal, that follows no graphs
        return
    works = [tables[name] for name in ACTIVITY_TABLES if name in tables and _in_graphs(tables[name]).any()]
    recorded = tables.get("graph_launches") or {}
    num_recorded = len(recorded["start_ns"]) if recorded else 0
    if not works and not num_recorded:
        return
    graphs = _Graphs.of(capture, ranges)
    before = set()
    for columns in works:
        before |= graphs.attribute(columns)
    if before:
        capture["counters"]["graphs_before_trace"] = len(before)
    if graphs.num_unseen_updates:
        capture["counters"]["graph_updates_unseen"] = graphs.num_unseen_updates
    if graphs.perhaps_updated:
        capture["counters"]["graphs_perhaps_updated"] = len(graphs.perhaps_updated)
    whole = {
        column: np.asarray(recorded.get(column, np.zeros(num_recorded, dtype))) for column, dtype in _LAUNCH.items()
    }
    whole["graph_degree"] = np.full(num_recorded, DEGREE_WHOLE_GRAPH, _LAUNCH["graph_degree"])
    derived = _launches(works)
    launches = {column: np.concatenate([whole[column], derived[column]]) for column in _LAUNCH}
    launches["name_id"] = _name_ids(capture, launches["graph_id"], graphs.instantiated_in, names or {})
    tables["graph_launches"] = launches


def _name_ids(
    capture: Capture, graph_ids: npt.NDArray[Any], instantiated_in: Mapping[int, int], given: Mapping[int, str]
) -> npt.NDArray[np.uint32]:
    """The numbers of graphs' names in the capture's strings, to which new ones are added."""
    annotations = capture["tables"]["annotations"]
    by_id = first_rows(annotations["external_id"], annotations["start_ns"])
    strings = {text: number for number, text in enumerate(capture["strings"])}
    known, places = np.unique(graph_ids, return_inverse=True)
    rows = look_up(np.array([instantiated_in.get(graph, 0) for graph in known.tolist()], "u8"), *by_id).tolist()
    paths = ["" if row < 0 else capture["strings"][annotations["name_id"][row]] for row in rows]
    names = [given.get(graph, path) for graph, path in zip(known.tolist(), paths, strict=True)]
    number = len(capture["strings"])
    new = {name: number + place for place, name in enumerate(sorted(set(names) - strings.keys()))}
    capture["strings"] = [*capture["strings"], *new]
    return np.array([strings[name] if name in strings else new[name] for name in names], "u4")[places]


_LAUNCH = SCHEMA["graph_launches"]


class _Graphs:
    """The changes of a capture's graphs by node."""

    def __init__(self) -> None:
        self.annotation_of: dict[int, int] = {}
        """Node -> the annotation around its capture, 0: none."""
        self.original_of: dict[int, int] = {}
        """Node -> the node that it is a copy of."""
        self.updates_of: dict[int, list[tuple[int, int]]] = defaultdict(list)
        """Node of an executable graph -> time of each update and the node whose parameters it took over."""
        self.source_of: dict[int, int] = {}
        """Executable graph -> the graph that was instantiated."""
        self.instantiated_in: dict[int, int] = {}
        """Executable graph -> the annotation around its instantiation, 0: none."""
        self.instantiated_at: dict[int, int] = {}
        """Executable graph -> the time of its instantiation."""
        self.seen: Sequence[Span] | None = None
        """The parts of the session in which an update would have been seen; None: all of it."""
        self.perhaps_updated: set[int] = set()
        """Executable graphs that may have been updated before a launch while updates were not seen."""
        self.num_unseen_updates = 0
        self.updated_unseen_ns: int | None = None
        """The first update that was not reported: later on, captures may be those of other graphs."""
        self.launch_times: tuple[npt.NDArray[Any], npt.NDArray[Any]] = np.zeros(0, "u4"), np.zeros(0, "i8")
        """Correlation ids and the starts of their calls."""

    @classmethod
    def of(cls, capture: Capture, ranges: Sequence[Span] | None) -> _Graphs:
        graphs = cls()
        changes = capture["tables"].get("graph_changes") or {}
        columns = ("start_ns", "graph_change", "graph_id", "graph_node_id", "original_graph_id", "original_node_id")
        rows = zip(*(changes[column].tolist() for column in (*columns, "external_id")), strict=True) if changes else ()
        for at_ns, change, graph, node, source, original, annotation in rows:
            if change == NODE_CREATED:
                graphs.annotation_of[node] = annotation
            elif change == NODE_COPIED:
                graphs.original_of[node] = original
            elif change == NODE_UPDATED:
                graphs.updates_of[node].append((at_ns, original))
            elif change == GRAPH_INSTANTIATED:
                graphs.source_of[graph] = source
                graphs.instantiated_in[graph] = annotation
                graphs.instantiated_at[graph] = at_ns
        calls = capture["tables"]["api_calls"]
        first_ids, first = first_rows(calls["correlation_id"], calls["start_ns"])
        graphs.launch_times = first_ids, calls["start_ns"][first]
        graphs._note_unseen_updates(capture, ranges)
        return graphs

    def _note_unseen_updates(self, capture: Capture, ranges: Sequence[Span] | None) -> None:
        if int(capture["environment"].get("cuda_version", 0)) >= _UPDATES_REPORTED_SINCE:
            return
        part = capture.get("part")
        begin_ns = 0 if part is None or part.begin_ns is None else part.begin_ns
        self.seen = [Span(begin_ns, FOREVER_NS)] if ranges is None else ranges
        calls = capture["tables"]["api_calls"]
        updating = np.isin(calls["name_id"], ids_with_role(capture["strings"], ApiRole.GRAPH_UPDATE))
        updating &= calls["return_value"] == 0
        if updating.any():
            self.num_unseen_updates = len(distinct_values(calls["correlation_id"][updating]))
            self.updated_unseen_ns = int(calls["start_ns"][updating].min())

    def attribute(self, columns: Columns) -> set[int]:
        """Fill the columns of a table; return the graphs of which only the launches are known."""
        num_rows = len(columns["graph_id"])
        captured = columns["captured_external_id"] = np.zeros(num_rows, "u8")
        degrees = columns["graph_degree"] = np.zeros(num_rows, "u1")
        rows = np.flatnonzero(_in_graphs(columns))
        nodes = columns["graph_node_id"][rows]
        sources = columns.get("source_graph_node_id", np.zeros(num_rows, "u8"))[rows]
        called_ns = look_up(columns["correlation_id"][rows], *self.launch_times)
        launched_ns = np.where(called_ns < 0, columns["start_ns"][rows], called_ns)
        codes = combination_codes([nodes, sources])
        order, bounds = grouped_rows(codes, int(codes.max(initial=-1)) + 1)
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            own = order[begin:end]
            for part, annotation, degree in self._found(int(nodes[own[0]]), int(sources[own[0]]), launched_ns[own]):
                captured[rows[own[part]]] = annotation
                degrees[rows[own[part]]] = degree
        unknown = distinct_values(columns["graph_id"][rows][degrees[rows] == DEGREE_LAUNCH])
        if self.updated_unseen_ns is not None:
            unsure = rows[launched_ns >= self.updated_unseen_ns]
            captured[unsure], degrees[unsure] = 0, DEGREE_LAUNCH
        if self.seen is not None:
            unsure = rows[~self._is_followed(columns["graph_id"][rows], called_ns, self.seen)]
            named = unsure[degrees[unsure] != DEGREE_LAUNCH]
            captured[named], degrees[named] = 0, DEGREE_LAUNCH
            self.perhaps_updated.update(distinct_values(columns["graph_id"][named]).tolist())
        return set(unknown.tolist())

    def _is_followed(
        self, graph_ids: npt.NDArray[Any], called_ns: npt.NDArray[np.int64], seen: Sequence[Span]
    ) -> npt.NDArray[np.bool_]:
        """Whether updates were seen from each graph's instantiation to its launch.

        A launch that was not recorded (-1) shows that calls were not: one kind of calls is left out before the others.
        """
        known, place = np.unique(graph_ids, return_inverse=True)
        built_ns = np.array([self.instantiated_at.get(graph, -1) for graph in known.tolist()], "i8")[place]
        part = parts_of(called_ns, seen)
        followed: npt.NDArray[np.bool_] = (called_ns >= 0) & (part >= 0) & (parts_of(built_ns, seen) == part)
        return followed

    def _found(
        self, node: int, source: int, launched_ns: npt.NDArray[np.int64]
    ) -> list[tuple[npt.NDArray[Any], int, int]]:
        """Of a node's activities: which, their annotation, and their degree. Updates divide them by time."""
        starts = [(-1, self._copied_from(node, source)), *sorted(self.updates_of.get(node, ()))]
        ages = np.searchsorted([at_ns for at_ns, _ in starts], launched_ns, side="right") - 1
        found = []
        for age, (at_ns, original) in enumerate(starts):
            part = np.flatnonzero(ages == age)
            if not len(part):
                continue
            captured_node, is_rekeyed = original, at_ns >= 0
            while captured_node in self.original_of:
                captured_node, is_rekeyed = self.original_of[captured_node], True
            if captured_node in self.annotation_of:
                degree = DEGREE_REKEYED if is_rekeyed else DEGREE_CAPTURED
                found.append((part, self.annotation_of[captured_node], degree))
            else:
                found.append((part, 0, DEGREE_LAUNCH))
        return found

    def _copied_from(self, node: int, source: int) -> int:
        """The node of the instantiated graph, of which the node of the executable graph is a copy."""
        if source:
            return source
        if node in self.original_of:
            return self.original_of[node]
        graph = self.source_of.get(node >> _PLACE_BITS)
        return node if graph is None else graph << _PLACE_BITS | node & (1 << _PLACE_BITS) - 1


def _in_graphs(columns: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
    in_graphs: npt.NDArray[np.bool_] = columns["graph_id"] != 0
    return in_graphs


def _launches(works: list[Columns]) -> Columns:
    """One row for each launch on each device, from the activities of graphs that were recorded one by one."""
    if not works:
        return {column: np.zeros(0, dtype) for column, dtype in _LAUNCH.items()}
    masks = [_in_graphs(columns) & is_possible(columns["start_ns"], columns["end_ns"]) for columns in works]

    def joined(column: str) -> npt.NDArray[Any]:
        return np.concatenate([columns[column][mask] for columns, mask in zip(works, masks, strict=True)])

    order = np.lexsort([joined(column) for column in ("start_ns", "device_id", "graph_id", "correlation_id")])
    rows = {column: joined(column)[order] for column in (*_FROM_FIRST, "end_ns", "graph_degree")}
    is_first = np.ones(len(order), bool)
    keys = [rows[column] for column in ("correlation_id", "graph_id", "device_id")]
    is_first[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    first = np.flatnonzero(is_first)
    found = {column: rows[column][first] for column in _FROM_FIRST}
    found["end_device_id"] = found["device_id"]
    found["num_nodes"] = np.diff([*first.tolist(), len(order)])
    found["name_id"] = np.zeros(len(first), "u4")  # see _name_ids
    for column in ("end_ns", "graph_degree"):  # the last degree is that of which least is known
        found[column] = np.maximum.reduceat(rows[column], first) if len(first) else rows[column]
    return {column: found[column].astype(dtype) for column, dtype in _LAUNCH.items()}


_FROM_FIRST = ("start_ns", "device_id", "context_id", "stream_id", "correlation_id", "graph_id")
