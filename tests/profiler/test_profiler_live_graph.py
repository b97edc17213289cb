"""A ``tf.Graph`` and TensorFlow's messages as stand-ins; `test_tensorflow_users.py` uses TensorFlow itself."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from google.protobuf import descriptor_pool, message_factory, text_format

from collector import profiler
from collector.errors import InvalidFileError
from collector.profiler.inputs import load
from collector.protos import GraphDef, OpLogProto, RunMetadata

GRAPH = """
node { name: "w" op: "VariableV2"
       attr { key: "shape" value { shape { dim { size: 4 } dim { size: 3 } } } }
       attr { key: "_output_shapes" value { list { shape { dim { size: 4 } dim { size: 3 } } } } } }
node { name: "x" op: "Placeholder"
       attr { key: "_output_shapes" value { list { shape { dim { size: -1 } dim { size: 4 } } } } } }
node { name: "y" op: "MatMul" input: "x" input: "w"
       attr { key: "transpose_a" value { b: false } }
       attr { key: "_output_shapes" value { list { shape { dim { size: -1 } dim { size: 3 } } } } } }
"""
STEP = """
step_stats { dev_stats { device: "/cpu:0"
  node_stats { node_name: "x" output { tensor_description { shape { dim { size: 5 } dim { size: 4 } } } } }
  node_stats { node_name: "y" all_start_micros: 1 op_end_rel_micros: 9 all_end_rel_micros: 9
               output { tensor_description { shape { dim { size: 5 } dim { size: 3 } } } } } } }
"""
FLOPS = 2 * 5 * 4 * 3
QUIET = profiler.ProfileOptionBuilder().with_empty_output()


class Graph:
    """A ``tf.Graph``."""

    def as_graph_def(self, *, add_shapes: bool) -> GraphDef:
        assert add_shapes
        return text_format.Parse(GRAPH, GraphDef())

    def get_operations(self):
        return [
            SimpleNamespace(name="w", traceback=[("model.py", 3, "build", "w = variable()")]),
            SimpleNamespace(name="x", traceback=None),
            SimpleNamespace(
                name="y", traceback=[("model.py", 4, "build", "y = x @ w"), ("ops.py", None, "matmul", None)]
            ),
        ]

    def get_collection(self, name):
        assert name == "trainable_variables"
        return [SimpleNamespace(op=SimpleNamespace(name="w"))]


def _step() -> RunMetadata:
    return text_format.Parse(STEP, RunMetadata())


def _foreign(message: Any) -> Any:
    """The message, of a class of another pool, as TensorFlow's are."""
    pool = descriptor_pool.DescriptorPool()
    pending, done = [message.DESCRIPTOR.file], []
    while pending:
        file = pending.pop()
        pending.extend(file.dependencies)
        done.insert(0, file)
    for file in {file.name: file for file in done}.values():
        pool.AddSerializedFile(file.serialized_pb)
    descriptor = pool.FindMessageTypeByName(message.DESCRIPTOR.full_name)
    if hasattr(message_factory, "GetMessageClass"):
        kind = message_factory.GetMessageClass(descriptor)
    else:  # protobuf 4.21
        kind = message_factory.MessageFactory(pool).GetPrototype(descriptor)
    return kind.FromString(message.SerializeToString())


def test_messages_of_tensorflow_are_taken():
    theirs = _foreign(_step())
    assert not isinstance(theirs, RunMetadata)
    assert load(theirs, RunMetadata) == _step()
    with pytest.raises(InvalidFileError, match="a RunMetadata was given where a GraphDef is expected"):
        load(theirs, GraphDef)


def test_a_graph_knows_its_variables_its_flops_and_where_it_was_made():
    profile = profiler.Profiler(Graph())
    assert profile.add_step(1, _foreign(_step())) == pytest.approx(2 / 3)
    parameters = QUIET.with_accounted_types(["_trainable_variables"]).select(["params"]).build()
    assert profile.profile_name_scope(parameters).total_parameters == 12
    everything = profiler.ProfileOptionBuilder().with_empty_output().select(["float_ops"]).build()
    assert profile.profile_name_scope(everything).total_float_ops == FLOPS
    lines = profile.profile_python(everything)
    assert [child.name for child in lines.children] == ["model.py:3:build", "model.py:4:build"]


def test_the_op_log_of_a_graph(tmp_path):
    user = OpLogProto(id_to_string={1: "mine.py", 5: "build"})
    user.log_entries.add(name="y", types=["mine"], float_ops=7)
    entry = user.log_entries.add(name="x")
    entry.code_def.traces.add(file_id=1, lineno=1, function_id=5)
    written = OpLogProto.FromString(profiler.write_op_log(Graph(), tmp_path, user, _step()).read_bytes())
    assert user.log_entries[0].types == ["mine"]  # the caller's is as it was
    entries = {entry.name: entry for entry in written.log_entries}
    assert (entries["y"].float_ops, list(entries["w"].types)) == (7, ["_trainable_variables"])
    text = written.id_to_string

    def lines(name):
        return [
            (text[t.file_id], t.lineno, text[t.function_id], text[t.line_id]) for t in entries[name].code_def.traces
        ]

    assert lines("y") == [("model.py", 4, "build", "y = x @ w"), ("ops.py", -1, "matmul", "none")]
    assert lines("x") == [("mine.py", 1, "build", "none")]
    plain = profiler.write_op_log(Graph(), tmp_path, None, _step(), False).read_bytes()
    assert [(e.name, e.float_ops, e.HasField("code_def")) for e in OpLogProto.FromString(plain).log_entries] == [
        ("y", FLOPS, False),
        ("w", 0, False),
    ]


@pytest.fixture
def tensorflow(monkeypatch):
    """TensorFlow in graph mode, with a default graph."""
    module: Any = ModuleType("tensorflow")
    v1 = SimpleNamespace(is_eager=False, graph=Graph())
    v1.executing_eagerly = lambda: v1.is_eager
    v1.get_default_graph = lambda: v1.graph
    module.compat = SimpleNamespace(v1=v1)
    monkeypatch.setitem(sys.modules, "tensorflow", module)
    return v1


def test_where_no_graph_is_given_it_is_tensorflows(tensorflow, tmp_path):
    options = QUIET.build()
    assert profiler.profile(options=options).total_parameters == 12
    assert profiler.write_op_log(None, tmp_path).stat().st_size > 0
    recorded = profiler.profile(run_meta=_step(), options=options)  # of our own: it needs no graph
    assert recorded.total_parameters == 0
    profile = profiler.Profiler()
    profile.add_step(0, _step())
    assert profile.profile_name_scope(options).total_parameters == 0
    tensorflow.is_eager = True
    assert profiler.profile(options=options).total_parameters == 0
    with pytest.raises(ValueError, match="there is no graph"):
        profiler.write_op_log(None, tmp_path)
