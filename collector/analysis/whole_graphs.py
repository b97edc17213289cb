"""Launches of CUDA graphs that were recorded as a whole, so that their kernels, copies and memsets are unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.activities import whole_graph_rows
from collector.text.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.recording.recording import Recording


_LAUNCHES = "{:,} launch[|es] of CUDA graphs [was|were] recorded as a whole"
COUNTED = f"{_LAUNCHES}: each counts as one activity, as the kernels, copies and memsets in it are not known."
NOT_COUNTED = f"{_LAUNCHES}: the kernels, copies and memsets in them are not counted."


def whole_graphs(recordings: Sequence[Recording], *, are_counted: bool) -> str:
    """A sentence about the launches whose kernels, copies and memsets an answer does not have; empty: there are none.

    Args:
        recordings: the recordings that were asked.
        are_counted: whether each launch counts as an activity in the answer.
    """
    number = sum(len(whole_graph_rows(recording)) for recording in recordings)
    return counted(COUNTED if are_counted else NOT_COUNTED, number) if number else ""


def graph_labels(recording: Recording) -> dict[int, str]:
    """Id of an executable graph -> its name and id, as timelines show them."""
    ids, first = np.unique(recording.graph_launches.graph_id, return_index=True)
    names = recording.graph_launches[first].names()
    return {
        graph: f"{name} (graph {graph})" if name else f"graph {graph}"
        for graph, name in zip(ids.tolist(), names, strict=True)
    }
