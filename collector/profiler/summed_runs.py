"""Profiles without start times as models: frames are the name scopes, and kernels the nodes inside of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.profiler.execution import Execution
from collector.profiler.op_details import node_path
from collector.profiler.recorded_steps import describe
from collector.protos import AnnotationDetails
from collector.recording.kernel_names import short_name
from collector.runtime.garbage import no_garbage_collection

if TYPE_CHECKING:
    from collector.formats.call_sums import CallSum, CallSums
    from collector.profiler.model import Model, Node


@no_garbage_collection()
def add_sums(model: Model, step: int, sums: CallSums) -> None:
    """Adds the sums of one step to ``model``; the same step again adds to it."""
    model.steps.add(step)
    model.generation += 1
    for row in sums.rows:
        node = _node_of(model, row)
        execution = node.executions.setdefault(step, Execution())
        if row.runs:
            placed_on = f"/gpu:{row.device_id}"
            if not node.device:
                node.device = node.host_device = placed_on
                node.op_types.add(placed_on)
            execution.add_accelerator_sum(f"{placed_on}/stream:all", row.runs, max((row.total_ns + 500) // 1000, 1))
        describe(node, step, AnnotationDetails(flops=row.flops, num_bytes=row.num_bytes, runs=row.runs))


def _node_of(model: Model, row: CallSum) -> Node:
    """The node of a kernel or a frame, which consumes the nodes of those inside of it."""
    names = [node_path(frame) for frame in row.path]
    if row.runs:
        names[-1] = short_name(row.path[-1])
    around = None
    for depth, name in enumerate(names, 1):
        path = "/".join(names[:depth])
        node = model.nodes.get(path) or model.add_node(path, name)
        if around is not None:
            around.consume(path)
        around = node
    return node
