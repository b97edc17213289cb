"""GPU time by annotation: ``collector.analysis.ops(step)``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from collector.analysis.activities import Activities
from collector.analysis.annotation_paths import NO_ANNOTATION, annotation_paths, launch_paths
from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question, sums_in
from collector.analysis.evidence import Evidence
from collector.analysis.named_question import named_question

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.formats.call_sums import CallSums
    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]

QUESTION = Question(
    "ops",
    "GPU time by annotation, as sums of durations: self time belongs to activities whose innermost annotation it is, "
    "total time includes the activities of annotations inside it; self times add up to all GPU time.",
    (
        Column("path", "text", "Path of the annotation; (no annotation) for launches outside of annotations."),
        Column("depth", "number", "Number of annotations around it on its path."),
        Column("runs", "count", "Number of times that it was entered and left in the step."),
        Column("host_ns", "ns", "Time of the host between entering and leaving it, summed."),
        Column(
            "activities", "count", "Number of kernels, copies and memsets launched in it and in annotations inside it."
        ),
        Column("self_activities", "count", "Number of these whose innermost annotation it is."),
        Column("self_ns", "ns", "Sum of the durations of activities whose innermost annotation it is."),
        Column("total_ns", "ns", "Sum of the durations of activities launched in it and in annotations inside it."),
        Column("share", "share", "total_ns divided by the sum of all durations."),
    ),
    summed=("self_activities", "self_ns"),
)
SUMS_QUESTION = Question(
    "ops",
    "GPU time by call path, from sums without start times: self time belongs to kernels whose innermost frame it is, "
    "total time includes the kernels of frames inside it; self times add up to all GPU time.",
    (
        Column("path", "text", "Names of the frames around kernels; (no annotation) for kernels outside of frames."),
        Column("depth", "number", "Number of frames around it on its path."),
        Column("activities", "count", "Number of kernels launched in it and in frames inside it."),
        Column("self_activities", "count", "Number of these whose innermost frame it is."),
        Column("self_ns", "ns", "Sum of the durations of kernels whose innermost frame it is."),
        Column("total_ns", "ns", "Sum of the durations of kernels in it and in frames inside it."),
        Column("share", "share", "total_ns divided by the sum of all durations."),
        Column("num_bytes", "bytes", "Bytes that the program stated for it and all frames inside it."),
        Column("flops", "count", "Floating-point operations that the program stated for it and all frames inside it."),
    ),
    summed=("self_activities", "self_ns"),
)


@named_question(
    QUESTION,
    in_overview=True,
    of_sums=True,
    aliases={"nvtx_gpu_proj_sum": "", "gpu_user_annotation_breakdown": ""},
    by_alone={"op": ""},
)
def ops(steps: Asked) -> Answer:
    """GPU time by annotation: its own, and with the annotations inside it.

    The rows are a tree: each annotation is followed by the annotations inside it, longest total first. An outer
    annotation has a row even if the program named only the inner one (``layer1/conv``). Annotations in which nothing
    was launched have no row.

    A profile without start times is answered from its sums, with the columns that these allow.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
    """
    if sums := sums_in(steps):
        return SUMS_QUESTION.ask_each(sums, _sums_part, is_one=not isinstance(steps, Sequence))
    return QUESTION.ask(steps, _part)


def _part(recording: Recording) -> Part:
    work = Activities.of(recording)
    _, index = annotation_paths(recording)
    paths, launched_under = launch_paths(recording, work.correlation_id, work.captured_external_id)
    paths = [path or NO_ANNOTATION for path in paths]
    scopes = _Scopes.of(paths, launched_under, work.end_ns - work.start_ns)
    place_of_path = np.array([scopes.places[path] for path in paths], np.int64)
    entered = place_of_path[index[: len(recording.annotations)]]  # those that are set apart follow, for their names
    runs = np.bincount(entered, minlength=len(scopes.paths))
    host_ns = np.zeros(len(scopes.paths), np.int64)
    np.add.at(host_ns, entered, recording.annotations.duration_ns)
    place = place_of_path[launched_under]
    order = np.argsort(place, kind="stable")
    firsts = np.searchsorted(place[order], np.arange(len(scopes.paths)))
    ends = np.searchsorted(place[order], scopes.ends)
    used = np.flatnonzero(ends > firsts)
    own = np.searchsorted(place[order], np.arange(len(scopes.paths)), side="right")
    self_ns, total_ns = scopes.own_and_total(place, work.end_ns - work.start_ns)
    columns = {
        "path": np.array(scopes.paths, object),
        "depth": scopes.depths,
        "runs": runs,
        "host_ns": host_ns,
        "activities": ends - firsts,
        "self_activities": own - firsts,
        "self_ns": self_ns,
        "total_ns": total_ns,
        "share": _shares(total_ns, self_ns),
    }
    bounds = np.stack([firsts[used], ends[used]], axis=1)
    evidence = Evidence(len(bounds), lambda row: work.at(order[slice(*bounds[row].tolist())]).rows_by_table())
    return Part({name: values[used] for name, values in columns.items()}, (), evidence)


def _sums_part(sums: CallSums) -> Part:
    """The frames that have kernels, or for which the program stated figures."""
    paths = ["/".join(row.path[:-1] if row.runs else row.path) or NO_ANNOTATION for row in sums.rows]
    figures = np.array([row[3:] for row in sums.rows], np.int64).reshape(-1, 4)
    scopes = _Scopes.of(paths, np.arange(len(paths)), figures[:, 1])
    place = np.array([scopes.places[path] for path in paths], np.int64)
    names = ("activities", "total_ns", "num_bytes", "flops")
    found = {name: scopes.own_and_total(place, figures[:, column]) for column, name in enumerate(names)}
    columns = {
        "path": np.array(scopes.paths, object),
        "depth": scopes.depths,
        "self_activities": found["activities"][0],
        "self_ns": found["total_ns"][0],
        "share": _shares(found["total_ns"][1], found["total_ns"][0]),
        **{name: total for name, (_, total) in found.items()},
    }
    return Part(columns)


def _shares(total_ns: Numbers, self_ns: Numbers) -> npt.NDArray[np.float64]:
    whole = int(self_ns.sum())
    return total_ns / whole if whole else np.zeros(len(total_ns))


class _Scopes(NamedTuple):
    """Paths as a tree: each path is followed by the paths inside it."""

    paths: list[str]
    depths: Numbers
    ends: Numbers
    """For each path the index after that of the last path inside it."""
    places: Mapping[str, int]
    """Path -> its index."""

    @classmethod
    def of(cls, paths: list[str], path_index: Numbers, durations: Numbers) -> _Scopes:
        """The tree of these paths and their enclosing paths, in order of total time at each level."""
        own = np.zeros(len(paths), np.int64)
        np.add.at(own, path_index, durations)
        total: dict[str, int] = defaultdict(int)
        inside: dict[str, list[str]] = defaultdict(list)
        for path, spent in zip(paths, own.tolist(), strict=True):
            within = path
            while within:
                if within not in total:
                    inside[_around(within)].append(within)
                total[within] += spent
                within = _around(within)
        ordered: list[str] = []
        depths: list[int] = []
        ends: dict[str, int] = {}
        waiting = [(path, 0) for path in _longest_last(inside[""], total)]
        open_: list[str] = []
        while waiting:
            path, depth = waiting.pop()
            for over in open_[depth:]:
                ends[over] = len(ordered)
            open_[depth:] = [path]
            ordered.append(path)
            depths.append(depth)
            waiting += [(each, depth + 1) for each in _longest_last(inside[path], total)]
        for over in open_:
            ends[over] = len(ordered)
        places = {path: place for place, path in enumerate(ordered)}
        return cls(ordered, np.array(depths, np.int64), np.array([ends[path] for path in ordered], np.int64), places)

    def own_and_total(self, places: Numbers, values: Numbers) -> tuple[Numbers, Numbers]:
        """For each path the sum of its own values, and the sum that includes the paths inside it."""
        own = np.zeros(len(self.paths), np.int64)
        np.add.at(own, places, values)
        until = np.concatenate([[0], np.cumsum(own)])
        return own, until[self.ends] - until[:-1]


def _around(path: str) -> str:
    """The path of the enclosing annotation; ``""``: there is none."""
    return "" if path == NO_ANNOTATION else path.rpartition("/")[0]


def _longest_last(paths: list[str], total: Mapping[str, int]) -> list[str]:
    return sorted(sorted(paths, reverse=True), key=total.__getitem__)
