"""CUDA graphs by the executable graph that was launched: ``collector.analysis.graphs(step)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from collector.analysis.activities import Activities, whole_graph_rows
from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question
from collector.analysis.duration_groups import DurationGroups, Keys
from collector.analysis.evidence import Evidence
from collector.analysis.named_question import named_question
from collector.recording.cupti_enums import GRAPH_DEGREES, GRAPH_INSTANTIATED
from collector.recording.distinct import combination_codes, grouped_rows
from collector.recording.intervals import covered_by_group
from collector.recording.schema import LAUNCHED_TABLES
from collector.text.wording import counted

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]

QUESTION = Question(
    "graphs",
    "A launch of a CUDA graph lasts from the start of its first kernel, copy or memset on a device to the end of its "
    "last one there, and is busy while at least one of them runs. Activities without a correlation id are of no known "
    "launch, and are not counted.",
    (
        Column("device_id", "number", "CUDA device ordinal."),
        Column("graph_id", "number", "Id of the executable graph."),
        Column(
            "name",
            "text",
            "Name of the graph: as the program gave it, else the annotation in which it was instantiated; empty: none.",
        ),
        Column("source_id", "number", "Id of the graph that was instantiated; 0: it was before the trace."),
        Column("launches", "count", "Number of launches that have work on the device."),
        Column(
            "activities", "count", "Most kernels, copies and memsets of a launch; 0: the graph was recorded as a whole."
        ),
        Column("total_ns", "ns", "Sum of the durations of the launches."),
        Column("median_ns", "ns", "Median duration of a launch, the lower middle one if their number is even."),
        Column("max_ns", "ns", "Longest duration of a launch."),
        Column("busy_share", "share", "Busy time divided by total_ns; NaN if the graph was recorded as a whole."),
        Column(
            "annotated",
            "text",
            "The annotations that are known of its activities: captured, rekeyed, launch or whole graph, that of the "
            "activity of which least is known; empty in files of other tools.",
        ),
    ),
    summed=("launches", "total_ns"),
    tables=LAUNCHED_TABLES,
    otherwise="No kernel, copy or memset belongs to a known launch of a CUDA graph.",
)
_NOT_KNOWN = -1
_UNKNOWN = (
    "The launch[|es] of {:,} kernel[|s], cop[y|ies] or memset[|s] of CUDA graphs [is|are] not known (correlation id "
    "0): [it is|they are] not counted."
)


@named_question(QUESTION)
def graphs(steps: Asked) -> Answer:
    """Launches of CUDA graphs by executable graph: their number, durations, and busy time.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
    """
    return QUESTION.ask(steps, _part)


class _Launches(NamedTuple):
    """Launches of graphs on one device each."""

    device_id: Numbers
    graph_id: Numbers
    duration_ns: Numbers
    busy_ns: Numbers
    """-1: not known."""
    activities: Numbers
    degree: Numbers

    def joined(self, others: _Launches) -> _Launches:
        return _Launches(*(np.concatenate(pair) for pair in zip(self, others, strict=True)))


def _part(recording: Recording) -> Part:
    nodes = Activities.of(recording)
    nodes = nodes.where(nodes.column("graph_id") != 0)
    is_launched = nodes.correlation_id != 0
    num_unknown = int((~is_launched).sum())
    nodes = nodes.where(is_launched)
    launch_of = combination_codes([nodes.device_id, nodes.column("graph_id"), nodes.correlation_id])
    order, bounds = grouped_rows(launch_of, int(launch_of.max(initial=-1)) + 1)
    whole_rows = whole_graph_rows(recording)
    launches = _from_nodes(nodes, launch_of, order, bounds).joined(_recorded_whole(recording, whole_rows))
    num_traced = len(bounds) - 1
    ids, first = np.unique(recording.graph_launches.graph_id, return_index=True)
    names = dict(zip(ids.tolist(), recording.graph_launches[first].names(), strict=True))
    changes = recording.graph_changes[recording.graph_changes.graph_change == GRAPH_INSTANTIATED]
    sources = dict(zip(changes.graph_id.tolist(), changes.original_graph_id.tolist(), strict=True))
    groups = DurationGroups([Keys.of(launches.device_id), Keys.of(launches.graph_id)], launches.duration_ns)
    graph_ids = groups.keys[1].tolist()
    busy_ns, least_busy_ns = (groups.reduced(reduce, launches.busy_ns) for reduce in (np.add, np.minimum))
    has_share = (least_busy_ns != _NOT_KNOWN) & (groups.total_ns != 0)
    degrees = np.minimum(groups.reduced(np.maximum, launches.degree), len(GRAPH_DEGREES) - 1)
    columns = groups.named_keys(QUESTION.columns[:2]) | groups.figures()
    columns |= {
        "name": np.array([names.get(graph_id, "") for graph_id in graph_ids], object),
        "source_id": np.array([sources.get(graph_id, 0) for graph_id in graph_ids], np.int64),
        "launches": groups.num_rows,
        "activities": groups.reduced(np.maximum, launches.activities),
        "busy_share": np.where(has_share, busy_ns, np.nan) / np.where(has_share, groups.total_ns, 1),
        "annotated": np.array(GRAPH_DEGREES, object)[degrees],
    }

    def evidence(row: int) -> dict[str, Numbers]:
        own = groups.rows(row)
        traced = [order[bounds[launch] : bounds[launch + 1]] for launch in own[own < num_traced].tolist()]
        found = nodes.at(np.concatenate(traced)).rows_by_table() if traced else {}
        whole = whole_rows[own[own >= num_traced] - num_traced]
        return {**found, "graph_launches": whole} if len(whole) else found

    notes = (counted(_UNKNOWN, num_unknown),) if num_unknown else ()
    return Part(columns, (), Evidence(len(groups), evidence), notes=notes)


def _from_nodes(nodes: Activities, launch_of: Numbers, order: Numbers, bounds: Numbers) -> _Launches:
    """The launches whose activities were recorded one by one."""
    count = len(bounds) - 1
    if not count:
        return _Launches(*(np.zeros(0, np.int64) for _ in _Launches._fields))
    first = order[bounds[:-1]]
    degrees = nodes.column("graph_degree")[order]
    starts, ends = (
        reduce.reduceat(times[order], bounds[:-1])
        for reduce, times in ((np.minimum, nodes.start_ns), (np.maximum, nodes.end_ns))
    )
    return _Launches(
        nodes.device_id[first].astype(np.int64),
        nodes.column("graph_id")[first].astype(np.int64),
        ends - starts,
        covered_by_group(launch_of, nodes.start_ns, nodes.end_ns, count),
        np.diff(bounds),
        np.maximum.reduceat(degrees, bounds[:-1]).astype(np.int64),
    )


def _recorded_whole(recording: Recording, rows: Numbers) -> _Launches:
    """The launches that were recorded as one activity each."""
    table = recording.graph_launches[rows]
    return _Launches(
        table.device_id.astype(np.int64),
        table.graph_id.astype(np.int64),
        table.duration_ns.astype(np.int64),
        np.full(len(table), _NOT_KNOWN, np.int64),
        np.zeros(len(table), np.int64),
        table.graph_degree.astype(np.int64),
    )
