"""What a step says of its ops besides their names: types, flops, bytes, inputs, and where in the program they are.

It comes from ``collector.annotate`` and travels in the step's provenance. A step without it, such as TensorFlow's, has
op types and inputs in its labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from collector.profiler.columns import DeviceColumns
from collector.profiler.model import Frame
from collector.protos import AnnotationDetails, CodeDef, GraphDef, OpLogProto, Provenance
from collector.timeline.tensorflow_rules import parse_op_label


def in_provenance(provenance: Provenance | None) -> dict[str, AnnotationDetails]:
    """What was said of annotations. Paths are names as nodes have them."""
    said: dict[str, AnnotationDetails] = {}
    for given in provenance.annotations if provenance else ():
        details = AnnotationDetails()
        details.CopyFrom(given)
        details.path = node_path(given.path)
        del details.inputs[:]
        details.inputs.extend(map(node_path, given.inputs))
        said[details.path] = details
    return said


def in_labels(device: DeviceColumns) -> Iterator[AnnotationDetails]:
    """Types and inputs from ``name = Op(input, …)``, for ops whose label says more than their name."""
    names, index = device.names
    name_ids, rows = np.unique(index, return_index=True)
    for name_id, label in zip(name_ids.tolist(), device.labels_at(rows), strict=True):
        name = names[name_id]
        op, inputs = parse_op_label(label) if f"{name} = " in label else ("", [])
        op = "" if op == name.rstrip("/").rpartition("/")[2] else op
        if op or inputs:
            paths = (reference.partition(":")[0].removeprefix("^") for reference in inputs)
            yield AnnotationDetails(path=node_path(name), op=op, inputs=filter(None, paths))


def node_path(path: str) -> str:
    """An annotation's path as a node's name; what tells a kernel from its op is not part of one."""
    return re.sub(r":+", ".", path)


def stack_of(details: AnnotationDetails, provenance: Provenance) -> list[Frame]:
    """Where the op is in the program, outermost frame first."""
    known = len(provenance.frames)
    frames = (provenance.frames[index] for index in details.stack if 0 <= index < known)
    return [Frame(frame.file, frame.line, frame.function, first_line=frame.first_line) for frame in frames]


def op_log(source: Any) -> OpLogProto:
    """The op log of a recorded step, for TensorFlow's tools: flops of one run, types, and stacks.

    Args:
        source: what ``Profiler.add_recorded_step`` takes.

    Raises:
        InvalidFileError: there is no step in it.
    """
    step = _read(source)
    log = OpLogProto()
    log.id_to_string[0] = "none"
    ids = {"none": 0}
    for path, details in sorted(step.said.items()):
        entry = log.log_entries.add(name=path, float_ops=details.flops // max(details.runs, 1))
        if details.op:
            entry.types.append(details.op)
        if path in step.stacks:
            entry.code_def.CopyFrom(_code(step.stacks[path], lambda text: ids.setdefault(text, len(ids))))
    for text, id_ in ids.items():
        log.id_to_string[id_] = text
    return log


def graph(source: Any) -> GraphDef:
    """The ops of a recorded step of which anything is said, with their types and what they take from each other.

    Args:
        source: what ``Profiler.add_recorded_step`` takes.

    Raises:
        InvalidFileError: there is no step in it.
    """
    found = GraphDef()
    for path, details in sorted(_read(source).said.items()):
        found.node.add(name=path, op=details.op or path.rpartition("/")[2], input=details.inputs)
    return found


def _code(stack: list[Frame], id_of: Callable[[str], int]) -> CodeDef:
    code = CodeDef()
    for frame in stack:
        code.traces.add(
            file_id=id_of(frame.file),
            function_id=id_of(frame.function),
            lineno=frame.line,
            func_start_line=frame.first_line,
        )
    return code


def _read(source: Any) -> Any:
    from collector.profiler.steps import read_step

    return read_step(source)
