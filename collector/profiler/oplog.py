"""The op log of tfprof's Python functions: flops of ops with known shapes, trainable variables, the user's entries."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from collector.profiler import flops
from collector.profiler.model import TRAINABLE
from collector.protos import CodeDef, GraphDef, OpLogEntry, OpLogProto, RunMetadata, TensorShapeProto

log = logging.getLogger("collector.profiler")


_NO_CODES: Mapping[str, CodeDef] = {}


def default_entries(
    graph: GraphDef, trainable: Iterable[str], codes: Mapping[str, CodeDef] = _NO_CODES
) -> dict[str, OpLogEntry]:
    """Entries of ops with flops or a stack, in graph order, followed by other trainable variables."""
    entries: dict[str, OpLogEntry] = {}
    shapes = flops.Shapes(graph)
    incomplete = 0
    for node in graph.node:
        try:
            count = flops.of(node, shapes)
        except flops.IncompleteShapeError:
            incomplete += 1
            count = 0
        if count or node.name in codes:
            entries[node.name] = OpLogEntry(name=node.name, float_ops=count, code_def=codes.get(node.name))
    if incomplete:
        log.warning("%d ops no flops stats due to incomplete shapes.", incomplete)
    for name in trainable:
        entries.setdefault(name, OpLogEntry(name=name)).types.append(TRAINABLE)
    return entries


def merge_default(
    graph: GraphDef,
    user: OpLogProto | None = None,
    trainable: Iterable[str] = (),
    codes: Mapping[str, CodeDef] = _NO_CODES,
) -> OpLogProto:
    """The user's log merged with the default entries: types are added, and flops and stacks if the user gave none."""
    merged = (
        {entry.name: OpLogEntry.FromString(entry.SerializeToString()) for entry in user.log_entries} if user else {}
    )
    for name, entry in default_entries(graph, trainable, codes).items():
        given = merged.get(name)
        if given is None:
            merged[name] = entry
            continue
        given.types.extend(entry.types)
        given.float_ops = given.float_ops or entry.float_ops
        if not given.code_def.traces and entry.code_def.traces:
            given.code_def.CopyFrom(entry.code_def)
    result = OpLogProto(log_entries=merged.values())
    result.id_to_string[0] = "none"
    if user is not None:
        for id_, text in user.id_to_string.items():
            result.id_to_string[id_] = text
    return result


def fill_shapes(graph: GraphDef, run_metadata: RunMetadata) -> GraphDef:
    """A copy of ``graph`` in which unknown output shapes are those of the recorded step, if the two agree."""
    filled = GraphDef()
    filled.CopyFrom(graph)
    nodes = {node.name: node for node in filled.node}
    for device in run_metadata.step_stats.dev_stats:
        for stats in device.node_stats:
            node = nodes.get(stats.node_name)
            if node is None or not stats.output or "_output_shapes" not in node.attr:
                continue
            shapes = node.attr["_output_shapes"].list.shape
            if len(shapes) != len(stats.output):
                continue
            for shape, output in zip(shapes, stats.output, strict=True):
                _fill(shape, [dim.size for dim in output.tensor_description.shape.dim], stats.node_name)
    return filled


def _fill(shape: TensorShapeProto, recorded: list[int], name: str) -> None:
    sizes = [dim.size for dim in shape.dim]
    if not shape.unknown_rank and all(size >= 0 for size in sizes):
        return
    if not shape.unknown_rank:
        agree = len(sizes) == len(recorded) and all(
            size in (-1, seen) for size, seen in zip(sizes, recorded, strict=True)
        )
        if not agree:
            log.warning("node %s: recorded shape %s does not fit %s", name, recorded, sizes)
            return
    del shape.dim[:]
    shape.unknown_rank = False
    for size in recorded:
        shape.dim.add(size=size)
