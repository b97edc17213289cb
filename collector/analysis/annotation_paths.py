"""Paths of annotations: the names of the enclosing annotations and the own name, joined by slashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.recording.nesting import NestedRanges

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]

_WHOLE_PATHS = ("native", "cupti-python", "replay")
"""Sources whose annotations have their whole path as their name, as `collector.annotate` records them."""


def annotation_paths(recording: Recording) -> tuple[list[str], Numbers]:
    """The distinct paths of a recording's annotations, and for each row of `Recording.all_annotations` its path.

    A path joins the names of the annotations that enclose each other on a thread with slashes. An annotation whose name
    begins with the path of the enclosing annotation has that name as its path. Annotations without length, which stand
    for ops whose times are unknown, enclose nothing.
    """
    table = recording.all_annotations
    names = list(recording.strings)
    if has_whole_paths(recording) or not len(table):
        ids, index = np.unique(table.name_id, return_inverse=True)
        return [names[name_id] for name_id in ids.tolist()], index.astype(np.int64)
    has_length = np.flatnonzero(table.end_ns > table.start_ns)
    nested = NestedRanges(
        table.thread_id[has_length].astype(np.int64), table.start_ns[has_length], table.end_ns[has_length]
    )
    parents = np.full(len(table), -1, np.int64)
    parents[has_length] = np.where(nested.parents >= 0, has_length[nested.parents], -1)
    depths = np.zeros(len(table), np.int64)
    depths[has_length] = nested.depths
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


def has_whole_paths(recording: Recording) -> bool:
    """Whether the names of a recording's annotations are whole paths."""
    return recording.environment.get("source") in _WHOLE_PATHS


def _joined(around: str, name: str) -> str:
    return name if not around or name.startswith(f"{around}/") else f"{around}/{name}"
