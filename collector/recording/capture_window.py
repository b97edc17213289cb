"""The last part of a capture, for sessions that recorded before their result begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.recording.capture import Part
from collector.recording.distinct import are_among
from collector.recording.schema import ACTIVITY_TABLES

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.recording.capture import Capture

    Columns = dict[str, npt.NDArray[Any]]

_OBJECT_TABLES = ("contexts", "streams", "devices", "graph_changes")
"""Tables of objects, which stay until they are destroyed: those from before the part are of use in it."""


class Instant(NamedTuple):
    """One instant of an open session, on CUPTI's clock and on the wall clock."""

    cupti_ns: int
    wall_ns: int
    uncertainty_ns: int


def begin_at(capture: Capture, begin: Instant) -> None:
    """Let a capture begin at a later instant: rows that start before, or whose call did, are removed.

    Annotations that are open at the instant begin there, and so do those of which only names are needed, because a
    graph was captured in them. Of work whose call is not recorded the start decides; the ledger counts it under
    ``launches_cut``. `collector.recording.graph_attribution` has to come before.
    """
    tables: dict[str, Columns] = capture["tables"]
    calls = tables["api_calls"]
    is_later = calls["start_ns"] >= begin.cupti_ns
    earlier, later = calls["correlation_id"][~is_later], calls["correlation_id"][is_later]
    earlier = earlier[~are_among(earlier, later)]
    for table, columns in tables.items():
        if "start_ns" in columns and table not in (*_OBJECT_TABLES, "annotations"):
            kept = columns["start_ns"] >= begin.cupti_ns
            if "correlation_id" in columns:  # damaged times must stay in the ledger
                kept |= (columns["start_ns"] <= 0) & are_among(columns["correlation_id"], later)
                kept &= ~are_among(columns["correlation_id"], earlier)
            _select(columns, kept)
    if (links := tables.get("external_correlations")) is not None:
        _select(links, are_among(links["correlation_id"], tables["api_calls"]["correlation_id"]))
    if (annotations := tables.get("annotations")) is not None:
        is_open = (annotations["end_ns"] == 0) | (annotations["end_ns"] > begin.cupti_ns)
        _select(annotations, is_open | are_among(annotations["external_id"], _needed_names(tables)))
    for table in ("annotations", "graph_changes"):
        columns = tables.get(table) or {}
        if columns:
            columns["start_ns"] = np.maximum(columns["start_ns"], begin.cupti_ns)
            if "end_ns" in columns:
                columns["end_ns"] = np.where(
                    columns["end_ns"] == 0, 0, np.maximum(columns["end_ns"], columns["start_ns"])
                )
    clock = capture["clock"]
    clock["cupti_start_ns"], clock["wall_start_ns"] = begin.cupti_ns, begin.wall_ns
    clock["uncertainty_ns"] = max(clock["uncertainty_ns"], begin.uncertainty_ns)
    capture["part"] = Part(begin.cupti_ns, 1, is_continued=False)


def _select(columns: Columns, kept: npt.NDArray[np.bool_]) -> None:
    for name, column in columns.items():
        columns[name] = column[kept]


def _needed_names(tables: dict[str, Columns]) -> npt.NDArray[Any]:
    """The annotations that rows refer to."""
    found = [tables[name]["captured_external_id"] for name in ACTIVITY_TABLES if "captured_external_id" in tables[name]]
    if "external_correlations" in tables:
        found.append(tables["external_correlations"]["external_id"])
    return np.concatenate(found) if found else np.zeros(0, "u8")
