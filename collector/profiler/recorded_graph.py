"""The op log and the graph of a recorded step, in the form for TensorFlow's tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from collector.profiler.model import Frame
from collector.profiler.step_reader import read_step
from collector.protos import CodeDef, GraphDef, OpLogProto


def op_log(source: Any) -> OpLogProto:
    """The op log of a recorded step, for TensorFlow's tools: flops of one run, types, and stacks.

    Args:
        source: any argument for ``Profiler.add_recorded_step``.

    Raises:
        InvalidFileError: there is no step in it.
    """
    step = read_step(source)
    log = OpLogProto()
    log.id_to_string[0] = "none"
    ids = {"none": 0}
    for path, details in sorted(step.op_details.items()):
        entry = log.log_entries.add(name=path, float_ops=details.flops // max(details.runs, 1))
        if details.op:
            entry.types.append(details.op)
        if path in step.stacks:
            entry.code_def.CopyFrom(_code(step.stacks[path], lambda text: ids.setdefault(text, len(ids))))
    for text, id_ in ids.items():
        log.id_to_string[id_] = text
    return log


def graph(source: Any) -> GraphDef:
    """The ops of a recorded step that have details, with their types and inputs.

    Args:
        source: any argument for ``Profiler.add_recorded_step``.

    Raises:
        InvalidFileError: there is no step in it.
    """
    found = GraphDef()
    for path, details in sorted(read_step(source).op_details.items()):
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
