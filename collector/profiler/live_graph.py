"""A ``tf.Graph`` for tfprof's Python functions: unlike its GraphDef, it knows where ops were created.

TensorFlow is not imported: any object with a graph's methods is a graph.
"""

from __future__ import annotations

import itertools
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeGuard

from collector.profiler import oplog
from collector.protos import CodeDef, GraphDef, OpLogProto, RunMetadata


class LiveGraph(Protocol):
    """The part of a ``tf.Graph``'s interface that is used here."""

    def as_graph_def(self, *, add_shapes: bool) -> Any:
        """The ``tf.GraphDef``."""

    def get_operations(self) -> Iterable[Any]:
        """Its operations, each with a name and a traceback."""

    def get_collection(self, name: str) -> Iterable[Any]:
        """The values of the collection with that name."""


def is_live(graph: object) -> TypeGuard[LiveGraph]:
    """Whether it is a ``tf.Graph``."""
    return all(hasattr(graph, method) for method in ("as_graph_def", "get_operations", "get_collection"))


def default_graph(run_metadata: object = None) -> LiveGraph | None:
    """The default graph of TensorFlow's functions; None if TensorFlow has not built one.

    Also None if ``run_metadata`` is given and is not TensorFlow's own: steps recorded here have no graph.
    """
    if run_metadata is not None and not type(run_metadata).__module__.startswith("tensorflow."):
        return None
    v1 = getattr(getattr(sys.modules.get("tensorflow"), "compat", None), "v1", None)
    if v1 is None or v1.executing_eagerly():
        return None
    graph: LiveGraph = v1.get_default_graph()
    return graph if any(True for _ in graph.get_operations()) else None


def definition_of(graph: LiveGraph, run_metadata: RunMetadata | None = None) -> GraphDef:
    """Its GraphDef with shapes; unknown shapes are taken from the recorded step."""
    definition = GraphDef.FromString(graph.as_graph_def(add_shapes=True).SerializeToString())
    return definition if run_metadata is None else oplog.fill_shapes(definition, run_metadata)


def op_log_of(
    graph: LiveGraph, definition: GraphDef, user: OpLogProto | None = None, *, with_traces: bool = True
) -> OpLogProto:
    """The user's op log merged with the graph's facts: flops, trainable variables, and stacks of ops.

    Args:
        graph: the graph.
        definition: see `definition_of`.
        user: the user's op log, whose entries take precedence.
        with_traces: include the Python stack of every op, for the code view.
    """
    given = {"none": 0} | ({text: number for number, text in user.id_to_string.items()} if user is not None else {})
    ids = defaultdict(itertools.count(max(given.values()) + 1).__next__, given)
    codes = {op.name: _code_of(op, ids) for op in graph.get_operations()} if with_traces else {}
    trainable = [variable.op.name for variable in graph.get_collection("trainable_variables")]
    merged = oplog.merge_default(definition, user, trainable, codes)
    for text, number in ids.items():
        merged.id_to_string[number] = text
    return merged


def _code_of(op: Any, ids: Mapping[str, int]) -> CodeDef:
    """The stack at which ``op`` was created; ``ids`` numbers new texts."""
    code = CodeDef()
    for file, line_number, function, line in op.traceback or ():
        code.traces.add(
            file_id=ids[file] if file else 0,
            lineno=line_number or -1,
            function_id=ids[function] if function else 0,
            line_id=ids[line] if line else 0,
            func_start_line=-1,
        )
    return code
