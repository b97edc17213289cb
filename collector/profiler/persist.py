"""Profiles on disk: a model as ``ProfileProto`` and back."""

from __future__ import annotations

from collector.profiler.execution import Execution
from collector.profiler.model import Model, Node, read_stack
from collector.protos import CodeDef, ProfileNode, ProfileProto


def to_proto(model: Model) -> ProfileProto:
    """Everything except the checkpoint and the coverage. A profile read back gives equal reports."""
    proto = ProfileProto(
        has_trace=model.has_traces, miss_accelerator_stream=model.misses_stream, steps=sorted(model.steps)
    )
    strings = _Strings(model.strings)
    for node in model.nodes.values():
        _write_node(proto.nodes[node.id], node, model, strings)
    proto.id_to_string.update(strings.by_id)
    return proto


class _Strings:
    """The string table, which grows when a stack contains a new string."""

    def __init__(self, by_id: dict[int, str]) -> None:
        self.by_id = dict(by_id)
        self._ids = {text: id_ for id_, text in reversed(by_id.items())}

    def __getitem__(self, text: str) -> int:
        if text not in self._ids:
            id_ = max(self.by_id, default=0) + 1
            self.by_id[id_] = text
            self._ids[text] = id_
        return self._ids[text]


def _write_node(proto: ProfileNode, node: Node, model: Model, strings: _Strings) -> None:
    proto.name, proto.op, proto.id = node.name, node.op, node.id
    proto.op_types.extend(sorted(node.op_types))
    proto.canonical_device, proto.host_device = node.device, node.host_device
    proto.float_ops = node.static_float_ops
    proto.shape.extend(node.shape)
    for index, dims in node.output_shapes.items():
        proto.output_shapes[index].int64_values.extend(dims)
    for index, name in node.inputs.items():
        if name in model.nodes:
            proto.inputs[index] = model.nodes[name].id
            proto.src_output_index[model.nodes[name].id] = 0
    for name, value in node.attrs.items():
        proto.attrs[name].CopyFrom(value)
    if node.stack:
        proto.trace.CopyFrom(_code(node, strings))
    for step, execution in node.executions.items():
        proto.execs[step].CopyFrom(execution.to_proto())


def _code(node: Node, strings: _Strings) -> CodeDef:
    code = CodeDef()
    for frame in node.stack:
        trace = code.traces.add(lineno=frame.line, func_start_line=frame.first_line)
        trace.file_id, trace.function_id = strings[frame.file], strings[frame.function]
        if frame.source:
            trace.line_id = strings[frame.source]
    return code


def from_proto(proto: ProfileProto) -> Model:
    """The model of a profile. As in tfprof, it no longer records that the accelerator's stream was missing."""
    model = Model()
    model.has_traces = proto.has_trace
    model.steps = set(proto.steps)
    model.strings = dict(proto.id_to_string)
    for id_, record in sorted(proto.nodes.items()):
        node = model.nodes[record.name] = _read_node(record, id_, model)
        for index, source in record.inputs.items():
            if source in proto.nodes:
                node.inputs[index] = proto.nodes[source].name
    return model


def _read_node(proto: ProfileNode, id_: int, model: Model) -> Node:
    node = Node(proto.name, proto.op, id_)
    node.op_types = set(proto.op_types)
    node.device, node.host_device = proto.canonical_device, proto.host_device
    node.static_float_ops = proto.float_ops
    node.shape = list(proto.shape)
    node.output_shapes = {index: list(dims.int64_values) for index, dims in proto.output_shapes.items()}
    node.attrs = dict(proto.attrs.items())
    node.stack = read_stack(proto.trace, model.strings)
    node.executions = {step: Execution.from_proto(execution) for step, execution in sorted(proto.execs.items())}
    return node
