"""The answer of the scope or graph view as TensorFlow's message, without an object for each field of each node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from collector.profiler.node_fields import Ints
from collector.profiler.views.preorder import Preorder
from collector.protos import GraphNodeProto
from collector.runtime.extension import convert_extension

_LEVELS = 90
"""Levels of messages that are parsed at once: protobuf's limit is 100, which includes the levels of a node's shapes."""
_FIELDS = GraphNodeProto.DESCRIPTOR.fields_by_name


def tree_message(
    shape: Preorder, numbers: Mapping[str, Ints], texts: Mapping[str, Sequence[str]], encoded: Sequence[bytes]
) -> GraphNodeProto:
    """The message of the first row, which contains those of all others.

    Args:
        shape: the shape of the tree.
        numbers: a value for each row, by field.
        texts: a text for each row, by field; empty texts are left out.
        encoded: further fields of each row, in wire format.
    """
    answer = GraphNodeProto()
    pending = [(answer, 0)]
    while pending:
        message, top = pending.pop()
        rows = np.arange(top, shape.ends[top])
        depths = shape.depths[rows] - shape.depths[top]
        rest = rows[depths == _LEVELS]
        if len(rest):
            rows, depths = rows[depths < _LEVELS], depths[depths < _LEVELS]
        chosen = rows.tolist()
        message.MergeFromString(
            convert_extension.message_tree(
                depths,
                [(_FIELDS[name].number, np.ascontiguousarray(values[rows])) for name, values in numbers.items()],
                [(_FIELDS[name].number, [values[row] for row in chosen]) for name, values in texts.items()],
                [encoded[row] for row in chosen],
                children=_FIELDS["children"].number,
            )
        )
        pending.extend((_added(message, shape, top, row), row) for row in rest.tolist())
    return answer


def _added(message: GraphNodeProto, shape: Preorder, top: int, row: int) -> GraphNodeProto:
    """A message for ``row`` after those of its elder siblings; ``message`` is that of ``top``, an ancestor."""
    above = []
    parent = int(shape.parents[row])
    while parent != top:
        above.append(parent)
        parent = int(shape.parents[parent])
    for ancestor in reversed(above):
        message = message.children[int(shape.ranks[ancestor])]
    return message.children.add()


def encode_input_shapes(shapes: Mapping[int, Sequence[int]]) -> bytes:
    """The field ``input_shapes``: index of the input -> its dimensions; no dimensions mean an unknown rank."""
    message = GraphNodeProto()
    for index, dims in shapes.items():
        shape = message.input_shapes[index]
        shape.unknown_rank = not dims
        for size in dims:
            shape.dim.add(size=size)
    return message.SerializeToString(deterministic=True)
