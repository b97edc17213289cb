"""The annotations at the captures of CUDA graphs' activities, and the activities of each launch of a graph.

The records of a launch name the node of the executable graph. That node is a copy of the captured one, perhaps by way
of a clone, and CUPTI reports each copy while graphs are built (``graph_changes``); from CUDA 13.4 on the records name
the captured node themselves. A graph that was captured before the step is not reported: for its activities only the
annotation at the launch is known. The nodes of child graphs and of bodies of conditional nodes are copies, too: see
native/capture/inlined_graphs.h.

An update gives the nodes of an executable graph the parameters of another graph's. From CUDA 13.0 on CUPTI reports the
nodes that are changed by it, and only these (measured on an H100 with CUPTI 13.0.85): the tracer notes the call, too,
and the other nodes are paired by their places in the two graphs. If a reported pair has two different places, or the
graphs differ in their number of nodes, the captures of the other nodes are not known. Before CUDA 13.0 no update is
reported: only the records of API calls show that there was one, and where these are incomplete the capture is not
known.
"""

from __future__ import annotations

from collections import defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.recording.api_functions import ApiRole, have_role
from collector.recording.capture_window import FOREVER_NS, Span, parts_of
from collector.recording.cupti_enums import (
    DEGREE_CAPTURED,
    DEGREE_LAUNCH,
    DEGREE_REKEYED,
    DEGREE_WHOLE_GRAPH,
    GRAPH_INSTANTIATED,
    GRAPH_UPDATED,
    NODE_COPIED,
    NODE_CREATED,
    NODE_UPDATED,
    PARAMETERS_SET,
)
from collector.recording.distinct import combination_codes, distinct_values, grouped_rows
from collector.recording.first_rows import first_rows, look_up
from collector.recording.possible_times import is_possible
from collector.recording.schema import ACTIVITY_TABLES, SCHEMA
from collector.runtime.extension import convert_extension

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from collector.recording.capture import Capture

    Columns = dict[str, npt.NDArray[Any]]

_PLACE_BITS = 32
_PLACE = (1 << _PLACE_BITS) - 1
"""The bits of a node's id that are its place in the graph; the other bits are the graph's id."""
_UNCERTAIN = -1
"""Instead of a node's id: it is not certain which node it is."""


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
    for columns in works:
        graphs.attribute(columns)
    if graphs.before_trace:
        capture["counters"]["graphs_before_trace"] = len(graphs.before_trace)
    if graphs.uncertain:
        capture["counters"]["graphs_uncertain"] = len(graphs.uncertain)
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
        """Node of an executable graph -> time of each reported update and the node whose parameters it took over."""
        self.reported_pairs: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
        """Executable graph and a graph whose parameters it took over -> places of the nodes that CUPTI reported."""
        self.parameters_set_at: dict[int, list[int]] = defaultdict(list)
        """Node of an executable graph -> the times at which the program set its parameters."""
        self.graph_updates: dict[int, list[tuple[int, int, bool]]] = defaultdict(list)
        """Executable graph -> time of each update, the graph whose parameters it took over, and whether only one of its
        child graphs was updated."""
        self.num_nodes: dict[int, int] = defaultdict(int)
        """Graph -> the number of its places for nodes that were seen."""
        self.num_copied: dict[int, int] = defaultdict(int)
        """Executable graph -> the number of its places for copies of nodes of the graph that was instantiated."""
        self._num_paired: dict[tuple[int, int], int] = {}
        """See _num_paired_by_place."""
        self.source_of: dict[int, int] = {}
        """Executable graph -> the graph that was instantiated."""
        self.instantiated_in: dict[int, int] = {}
        """Executable graph -> the annotation around its instantiation, 0: none."""
        self.instantiated_at: dict[int, int] = {}
        """Executable graph -> the time of its instantiation."""
        self.seen: Sequence[Span] | None = None
        """The parts of the session in which an update would have been seen; None: all of it."""
        self.before_trace: set[int] = set()
        """Graphs of which nodes were captured before the trace."""
        self.uncertain: set[int] = set()
        """Executable graphs of which it is not certain which nodes are copies of which."""
        self.perhaps_updated: set[int] = set()
        """Executable graphs that may have been updated before a launch while updates were not seen."""
        self.num_unseen_updates = 0
        self.updated_unseen_ns: int | None = None
        """The first update that was not reported: later on, captures may be those of other graphs."""
        self.update_times: tuple[npt.NDArray[Any], npt.NDArray[Any]] = np.zeros(0, "u4"), np.zeros(0, "i8")
        """Correlation ids of updates, in ascending order, and their times."""
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
                graphs.reported_pairs[graph, source][node & _PLACE] = original & _PLACE
            elif change == PARAMETERS_SET:
                graphs.parameters_set_at[node].append(at_ns)
            elif change == GRAPH_UPDATED:
                graphs.graph_updates[graph].append((at_ns, source, original != 0))
            elif change == GRAPH_INSTANTIATED:
                graphs.source_of[graph] = source
                graphs.instantiated_in[graph] = annotation
                graphs.instantiated_at[graph] = at_ns
        for node in (*graphs.annotation_of, *graphs.original_of):
            graph = node >> _PLACE_BITS
            graphs.num_nodes[graph] = max(graphs.num_nodes[graph], (node & _PLACE) + 1)
        for node in filter(graphs._is_copied_directly, graphs.original_of):
            graph = node >> _PLACE_BITS
            graphs.num_copied[graph] = max(graphs.num_copied[graph], (node & _PLACE) + 1)
        if (update_ids := changes.get("update_correlation_id")) is not None:
            order = np.lexsort([changes["start_ns"], update_ids])
            order = order[update_ids[order] != 0]
            graphs.update_times = update_ids[order], changes["start_ns"][order]
        calls = capture["tables"]["api_calls"]
        first_ids, first = first_rows(calls["correlation_id"], calls["start_ns"])
        graphs.launch_times = first_ids, calls["start_ns"][first]
        graphs._note_unseen_updates(capture, ranges)
        return graphs

    def _note_unseen_updates(self, capture: Capture, ranges: Sequence[Span] | None) -> None:
        if convert_extension.calls_back_for_graph_updates(int(capture["environment"].get("cuda_version", 0))):
            return
        part = capture.get("part")
        begin_ns = 0 if part is None or part.begin_ns is None else part.begin_ns
        self.seen = [Span(begin_ns, FOREVER_NS)] if ranges is None else ranges
        calls = capture["tables"]["api_calls"]
        updating = have_role(calls["name_id"], capture["strings"], ApiRole.GRAPH_UPDATE)
        updating &= calls["return_value"] == 0
        if updating.any():
            self.num_unseen_updates = len(distinct_values(calls["correlation_id"][updating]))
            self.updated_unseen_ns = int(calls["start_ns"][updating].min())

    def attribute(self, columns: Columns) -> None:
        """Fill the columns of a table."""
        num_rows = len(columns["graph_id"])
        captured = columns["captured_external_id"] = np.zeros(num_rows, "u8")
        degrees = columns["graph_degree"] = np.zeros(num_rows, "u1")
        rows = np.flatnonzero(_in_graphs(columns))
        nodes = columns["graph_node_id"][rows]
        sources = columns.get("source_graph_node_id", np.zeros(num_rows, "u8"))[rows]
        called_ns = look_up(columns["correlation_id"][rows], *self.launch_times)
        started_ns = self._before_later_updates(columns["correlation_id"][rows], columns["start_ns"][rows])
        launched_ns = np.where(called_ns < 0, started_ns, called_ns)
        codes = combination_codes([nodes, sources])
        order, bounds = grouped_rows(codes, int(codes.max(initial=-1)) + 1)
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            own = order[begin:end]
            for part, annotation, degree in self._found(int(nodes[own[0]]), int(sources[own[0]]), launched_ns[own]):
                captured[rows[own[part]]] = annotation
                degrees[rows[own[part]]] = degree
        if self.updated_unseen_ns is not None:
            unsure = rows[launched_ns >= self.updated_unseen_ns]
            captured[unsure], degrees[unsure] = 0, DEGREE_LAUNCH
        if self.seen is not None:
            unsure = rows[~self._is_followed(columns["graph_id"][rows], called_ns, self.seen)]
            named = unsure[degrees[unsure] != DEGREE_LAUNCH]
            captured[named], degrees[named] = 0, DEGREE_LAUNCH
            self.perhaps_updated.update(distinct_values(columns["graph_id"][named]).tolist())

    def _before_later_updates(
        self, correlation_ids: npt.NDArray[Any], start_ns: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Times of launches that are as late as the work began, but before the updates that were called later."""
        update_ids, update_ns = self.update_times
        if not len(update_ids):
            return start_ns
        later = np.searchsorted(update_ids, correlation_ids, side="right")
        bounds = np.append(np.minimum.accumulate(update_ns[::-1])[::-1], FOREVER_NS)
        bounded: npt.NDArray[np.int64] = np.minimum(start_ns, bounds[later] - 1)
        return bounded

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
        """Groups of a node's activities, divided by the times of its changes: indices, annotation, degree."""
        states = self._states(node, source)
        ages = np.searchsorted([at_ns for at_ns, _, _ in states], launched_ns, side="right") - 1
        order, bounds = grouped_rows(ages, len(states))
        found = []
        for age in distinct_values(ages).tolist():
            part, (_, captured_node, is_changed) = order[bounds[age] : bounds[age + 1]], states[age]
            passed: set[int] = set()  # in damaged rows nodes may be copies of each other
            while captured_node in self.original_of and captured_node not in passed:
                passed.add(captured_node)
                captured_node = self.original_of[captured_node]
            is_rekeyed = is_changed or bool(passed)
            if captured_node in self.annotation_of:
                degree = DEGREE_REKEYED if is_rekeyed else DEGREE_CAPTURED
                found.append((part, self.annotation_of[captured_node], degree))
                continue
            found.append((part, 0, DEGREE_LAUNCH))
            unnamed = self.uncertain if captured_node == _UNCERTAIN else self.before_trace
            unnamed.add(node >> _PLACE_BITS)
        return found

    def _states(self, node: int, source: int) -> list[tuple[int, int, bool]]:
        """The states of a node: begin, the node that it is a copy of or `_UNCERTAIN`, whether it was changed."""
        graph = node >> _PLACE_BITS
        changes: list[tuple[int, int | None]] = [*self.updates_of.get(node, ())]
        changes += [(at_ns, None) for at_ns in self.parameters_set_at.get(node, ())]
        for at_ns, updating, is_of_child in self.graph_updates.get(graph, ()):
            if not is_of_child:
                changes.append((at_ns, self._updated_from(node, updating)))
            elif not self._is_copied_directly(node):
                changes.append((at_ns, _UNCERTAIN))
        states = [(-1, self._copied_from(node, source), False)]
        for at_ns, original in sorted(changes, key=itemgetter(0)):
            states.append((at_ns, states[-1][1] if original is None else original, True))
        return states

    def _updated_from(self, node: int, updating: int) -> int:
        """The node of the graph `updating` whose parameters an update gave to a node of an executable graph."""
        graph, place = node >> _PLACE_BITS, node & _PLACE
        if (reported := self.reported_pairs.get((graph, updating), {}).get(place)) is not None:
            return updating << _PLACE_BITS | reported
        if (graph, updating) not in self._num_paired:
            self._num_paired[graph, updating] = self._num_paired_by_place(graph, updating)
        is_paired = place < self._num_paired[graph, updating] or updating not in self.num_nodes
        return updating << _PLACE_BITS | place if is_paired else _UNCERTAIN

    def _num_paired_by_place(self, graph: int, updating: int) -> int:
        """The number of first nodes of an executable graph that have a pair in `updating` at the same place."""
        num_nodes = self.num_nodes.get(updating, 0)
        if graph in self.source_of and num_nodes != self.num_copied.get(graph, 0):
            return 0
        pairs = self.reported_pairs.get((graph, updating), {})
        return num_nodes if all(place == other for place, other in pairs.items()) else 0

    def _is_copied_directly(self, node: int) -> bool:
        """Whether a node of an executable graph is a copy of one of the graph that was instantiated."""
        original = self.original_of.get(node)
        return original is not None and original >> _PLACE_BITS == self.source_of.get(node >> _PLACE_BITS)

    def _copied_from(self, node: int, source: int) -> int:
        """The node of the instantiated graph, of which the node of the executable graph is a copy."""
        if source:
            return source
        if node in self.original_of:
            return self.original_of[node]
        graph = node >> _PLACE_BITS
        if graph not in self.source_of:
            return node
        if self.num_copied.get(graph):  # CUPTI reported the copies of the others
            return _UNCERTAIN
        return self.source_of[graph] << _PLACE_BITS | node & _PLACE


def _in_graphs(columns: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
    in_graphs: npt.NDArray[np.bool_] = columns["graph_id"] != 0
    return in_graphs


def _launches(works: list[Columns]) -> Columns:
    """One row for each launch on each device, from the activities of graphs that were recorded one by one.

    Activities without a correlation id are left out: their launches are not known.
    """
    if not works:
        return {column: np.zeros(0, dtype) for column, dtype in _LAUNCH.items()}
    masks = [
        _in_graphs(columns) & (columns["correlation_id"] != 0) & is_possible(columns["start_ns"], columns["end_ns"])
        for columns in works
    ]

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
