"""GPU time of PyTorch's ops and of their backward passes, by the number that autograd gives both."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.analysis.activities import Activities
from collector.analysis.annotation_paths import annotation_paths
from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question
from collector.analysis.device_times import ratio
from collector.analysis.named_question import named_question
from collector.analysis.step_marks import MARK, mark_pattern, mark_rows, path_within
from collector.recording.distinct import distinct_codes
from collector.recording.nesting import NestedRanges
from collector.text.wording import counted

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]

UNRECORDED_OPS = "{:,} backward pass[|es] of ops that were not recorded"
AMBIGUOUS_OPS = "{:,} backward pass[|es] whose number ops of several threads have"
"""Losses of the answer."""
_EVALUATION = "autograd::engine::evaluate_function: "
_BACKWARD = re.compile(rf"{_EVALUATION}.*|\w*Backward\w*|torch::autograd::.*")
"""The names of ranges around nodes of the backward pass, of which the outermost has autograd's prefix."""
_UNKNOWN = "(not recorded)"
_PASSES = ("forward", "backward")
QUESTION = Question(
    "backward",
    "GPU time of ops and of their backward passes. PyTorch numbers the ops that autograd follows, and states the "
    "number for the op's backward pass, too (emit_nvtx: seq): the op is the range with this number that began last "
    "before the backward pass. Times are sums of durations of the work launched in the ranges, or inside.",
    (
        Column("path", "text", f"Path of the op inside its step; {_UNKNOWN}: it ran before the recording."),
        Column("node", "text", "Name of the backward pass: AddmmBackward0, …"),
        Column("runs", "count", "Number of backward passes."),
        Column("forward_activities", "count", "Number of kernels, copies and memsets launched in the ops."),
        Column("backward_activities", "count", "Number of these launched in the backward passes."),
        Column("forward_ns", "ns", "Sum of the durations of the activities of the ops."),
        Column("backward_ns", "ns", "Sum of the durations of the activities of the backward passes."),
        Column("backward_ratio", "ratio", "backward_ns divided by forward_ns."),
    ),
    summed=("runs", "backward_activities", "backward_ns"),
    tables=("annotations",),
    otherwise="No annotation is a backward pass with a number of autograd (emit_nvtx: seq).",
)


@named_question(QUESTION)
def backward(steps: Asked) -> Answer:
    """GPU time of PyTorch's ops and of their backward passes, which autograd's numbers link.

    The numbers are in ranges of ``torch.autograd.profiler.emit_nvtx``, see `collector.adapters.annotate_torch_ops`, and
    in traces of PyTorch's profiler.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
    """
    return QUESTION.ask(steps, _part)


class Links(NamedTuple):
    """Backward passes and the ops that they belong to, as rows of `Recording.all_annotations`."""

    backward: Numbers
    """In order of time."""
    forward: Numbers
    """-1: the op is not recorded, or is ambiguous among ops of several threads."""
    num_ambiguous: int
    """Backward passes whose number ops of several threads have; each thread counts for itself."""


def backward_links(recording: Recording) -> Links:
    """The backward passes of a recording.

    The passes of one op follow each other; all of them belong to the op that began last before the first of them.
    """
    table = recording.all_annotations
    rows = np.flatnonzero(table.op_sequence)
    is_node = are_backward_passes(recording, table.name_id[rows])
    order = np.lexsort((-table.end_ns[rows], table.start_ns[rows], table.op_sequence[rows]))
    found: list[tuple[int, int]] = []
    ambiguous = 0
    number, reached, forward, threads = -1, 0, -1, set[int]()
    sequences, starts, ends, thread_ids = (
        column[rows[order]].tolist() for column in (table.op_sequence, table.start_ns, table.end_ns, table.thread_id)
    )
    for place, row in enumerate(rows[order].tolist()):
        if sequences[place] != number:
            number, reached, forward, threads = sequences[place], -(1 << 63), -1, set()
        if not is_node[order[place]]:
            forward = row
            threads.add(thread_ids[place])
        elif starts[place] >= reached:  # not inside another range of the same pass
            reached = ends[place]
            ambiguous += len(threads) > 1
            found.append((row, forward if len(threads) <= 1 else -1))
    found.sort(key=lambda pair: (int(table.start_ns[pair[0]]), pair[0]))
    pairs = np.array(found, np.int64).reshape(-1, 2)
    return Links(pairs[:, 0], pairs[:, 1], ambiguous)


def are_backward_passes(recording: Recording, name_ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """Whether these names of annotations are those of nodes of the backward pass."""
    known, codes = distinct_codes(name_ids)
    names = [recording.strings[name_id].rpartition("/")[2] for name_id in known.tolist()]
    return np.array([_BACKWARD.fullmatch(name) is not None for name in names], bool)[codes]


def _part(recording: Recording) -> Part:
    links = backward_links(recording)
    paths, index = annotation_paths(recording)
    marks = {paths[index[row]] for row in mark_rows(recording, paths, index, mark_pattern(MARK)).tolist()}
    work = Activities.of(recording)
    launched_in = {
        "forward": _launched_in(recording, work, links.forward),
        "backward": _launched_in(recording, work, links.backward),
    }
    runs: dict[tuple[str, str], list[int]] = {}
    for link, (node, op) in enumerate(zip(links.backward.tolist(), links.forward.tolist(), strict=True)):
        name = recording.strings[recording.all_annotations.name_id[node]].rpartition("/")[2]
        key = (path_within(paths[index[op]], marks) if op >= 0 else _UNKNOWN, name.removeprefix(_EVALUATION))
        runs.setdefault(key, []).append(link)
    rows: list[tuple[Any, ...]] = []
    evidence = []
    for key, own in runs.items():
        launched = {side: _of_links(launched_in[side], own) for side in _PASSES}
        counts = [len(places) for places in launched.values()]
        spent = [int((work.end_ns - work.start_ns)[places].sum()) for places in launched.values()]
        rows.append((*key, len(own), *counts, *spent, ratio(spent[1], spent[0]) if spent[0] else np.nan))
        places = np.unique(np.concatenate(list(launched.values())))
        evidence.append(work.at(places).rows_by_table())
    lost = {
        UNRECORDED_OPS: int((links.forward < 0).sum()) - links.num_ambiguous,
        AMBIGUOUS_OPS: links.num_ambiguous,
    }
    losses = [counted(text, count) for text, count in lost.items() if count]
    part = Part.ordered(rows, evidence, lambda row: (-row[6], -row[5], row[:2]))
    return Part(part.rows, (), part.evidence, losses)


def _launched_in(recording: Recording, work: Activities, ranges: Numbers) -> dict[int, Numbers]:
    """Index among the given ranges -> the places of the activities launched in it; the innermost of them counts."""
    table = recording.all_annotations
    owner = np.full(len(table) + 1, -1, np.int64)
    known = np.flatnonzero(ranges >= 0)
    owner[ranges[known][::-1]] = known[::-1]  # of several passes of one op the first has its activities
    nested = NestedRanges(table.thread_id.astype(np.int64), table.start_ns, table.end_ns)
    by_depth = np.argsort(nested.depths, kind="stable")
    bounds = np.flatnonzero(np.diff(nested.depths[by_depth])) + 1
    for inside in np.split(by_depth, bounds)[1:]:  # enclosing ranges come first
        without = inside[owner[inside] < 0]
        owner[without] = owner[nested.parents[without]]
    of_activity = owner[recording.annotation_rows(work.correlation_id)]
    order = np.argsort(of_activity, kind="stable")
    distinct, firsts = np.unique(of_activity[order], return_index=True)
    return dict(zip(distinct.tolist(), np.split(order, firsts[1:]), strict=True)) if len(order) else {}


def _of_links(launched: dict[int, Numbers], links: list[int]) -> Numbers:
    none = np.zeros(0, np.int64)
    return np.concatenate([launched.get(link, none) for link in links])
