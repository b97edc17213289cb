"""The graph view: from nodes without consumers along the inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.profiler.model import GRAPH_PARENT, ROOT_NAME, Model, Node
from collector.profiler.profile_options import Options
from collector.profiler.views.preorder import Mask, Preorder
from collector.profiler.views.tree import Answer, NodeTree

if TYPE_CHECKING:
    from collector.profiler.values import Variables


class GraphView:
    """Every node is displayed once, on the first path that leads to it. Cycles without an entry are not displayed."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._tree = _build(model)

    @property
    def depth(self) -> int:
        """Levels below the root."""
        return self._tree.depth

    def answer(self, options: Options, variables: Variables | None = None) -> Answer:
        """Accounts, filters and sorts the graph by ``options``."""
        return Answer("graph", self._model, self._tree, options, _kept, ends_at_depth=False, variables=variables)


def _build(model: Model) -> NodeTree:
    graph = model.nodes
    inputs = {name: [source for source in node.producers() if source in graph] for name, node in graph.items()}
    consumed = set().union(*inputs.values())
    nodes, depths = [Node(ROOT_NAME, GRAPH_PARENT)], [0]
    pending = [(name, 1) for name in sorted(graph.keys() - consumed, reverse=True)]
    while pending:
        name, depth = pending.pop()
        below = inputs.pop(name, None)
        if below is None:  # it was visited before
            continue
        nodes.append(graph[name])
        depths.append(depth)
        pending.extend((source, depth + 1) for source in reversed(below))
    return NodeTree(model, nodes, depths)


def _kept(shape: Preorder, accounted: Mask) -> Mask:
    """The accounted nodes; the inputs of other nodes move up."""
    return accounted.copy()
