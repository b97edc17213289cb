"""Paths of annotations: the names of the enclosing annotations and the own name, joined by slashes.

`annotation_paths` gives the paths of annotations, `launch_paths` those of the activities that were launched in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collector.analysis.answer import Column
from collector.recording.first_rows import distinct_rows
from collector.recording.graph_paths import path_with_capture
from collector.recording.nesting import nested_annotations
from collector.recording.recorder_name import recorder_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]

NO_ANNOTATION = "(no annotation)"
"""The path, in answers, of activities that were launched outside of annotations."""
OP = Column(
    "op",
    "text",
    "Innermost annotation of its launch, and behind it that of its capture in a CUDA graph; empty: none.",
)
"""The column with the annotation of `Recording.annotation_ids`, as the timeline and StepStats show it."""
_OWN_SOURCES = ("native", "cupti-python", "replay")
"""Sources whose annotations have their whole path as their name, as `collector.annotate` records them."""
_MOST_CHARACTERS = 4096
"""The length of a joined path, as of a recorded one: that of ranges which enclose each other without end is cut."""


def annotation_paths(recording: Recording) -> tuple[list[str], Numbers]:
    """The distinct paths of a recording's annotations, and for each row of `Recording.all_annotations` its path.

    A path joins the names of the annotations that enclose each other on a thread with slashes. An annotation whose name
    begins with the path of the enclosing annotation has that name as its path. Annotations without length enclose
    nothing. A joined path of more than 4,096 characters ends in ``…`` there, and stands for all that is inside it.
    """
    table = recording.all_annotations
    names = list(recording.strings)
    if has_whole_paths(recording) or not len(table):
        ids, index = np.unique(table.name_id, return_inverse=True)
        return [names[name_id] for name_id in ids.tolist()], index.astype(np.int64)
    parents, depths = nested_annotations(table)
    paths: dict[str, int] = {}
    index = np.full(len(table), -1, np.int64)
    by_depth = np.argsort(depths, kind="stable")
    for rows in np.split(by_depth, np.flatnonzero(np.diff(depths[by_depth])) + 1):  # enclosing annotations come first
        around = np.where(parents[rows] >= 0, index[parents[rows]], -1)
        keys, places = np.unique(around * len(names) + table.name_id[rows], return_inverse=True)
        known = list(paths)
        found = []
        for key in keys.tolist():
            outer, name_id = divmod(key, len(names))
            found.append(paths.setdefault(_joined(known[outer] if outer >= 0 else "", names[name_id]), len(paths)))
        index[rows] = np.array(found, np.int64)[places]
    return list(paths), index


def launch_paths(
    recording: Recording, correlation_ids: npt.NDArray[Any], captured_ids: npt.NDArray[Any] | None = None
) -> tuple[list[str], Numbers]:
    """The paths under which activities were launched: distinct texts, and for each activity the index of its path.

    The path of a node of a CUDA graph is that of the graph's launch and that of the node's capture: see
    `collector.recording.graph_paths`. The first paths are those of `annotation_paths`, and ``""`` stands for activities
    that were launched outside of annotations.

    Args:
        recording: the recording of the activities.
        correlation_ids: the correlation ids of activities or calls.
        captured_ids: ``captured_external_id`` of each activity; None: none of them has a capture with an annotation.
    """
    paths, index = annotation_paths(recording)
    rows = recording.annotation_rows(correlation_ids)
    launched: Numbers = np.where(rows >= 0, np.append(index, 0)[rows], len(paths))
    paths = [*paths, ""]
    if captured_ids is None or not captured_ids.any():
        return paths, launched
    captures = recording.capture_annotation_rows(captured_ids)
    own = captures >= 0
    outer, inner = launched[own], index[captures[own]]
    first, codes = distinct_rows([outer, inner])
    launched[own] = len(paths) + codes
    pairs = zip(outer[first].tolist(), inner[first].tolist(), strict=True)
    return [*paths, *(path_with_capture(paths[place], paths[within]) for place, within in pairs)], launched


def is_own_recording(recording: Recording) -> bool:
    """Whether this package recorded it, and no format of other programs lies between."""
    return recording.environment.get("source") in _OWN_SOURCES


def has_whole_paths(recording: Recording) -> bool:
    """Whether the names of a recording's annotations are whole paths."""
    return recorder_of(recording.environment) in _OWN_SOURCES


def _joined(around: str, name: str) -> str:
    if not around or name.startswith(f"{around}/"):
        return name
    path = f"{around}/{name}"
    return path if len(path) <= _MOST_CHARACTERS else f"{path[: _MOST_CHARACTERS - 1]}…"
