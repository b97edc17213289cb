"""The graph view: from nodes without consumers along the inputs."""

from __future__ import annotations

from collector.profiler.model import GRAPH_PARENT, ROOT_NAME, Model, Node
from collector.profiler.views import scope
from collector.profiler.views.preorder import Mask, Preorder
from collector.profiler.views.tree import NodeTree, TreeView
from collector.profiler.views.view import View
from collector.protos import GraphNodeProto


def graph_view(model: Model) -> TreeView:
    """Every node is displayed once, on the first path that leads to it. Cycles without an entry are not displayed."""
    return TreeView(model, _tree(model), _kept, ends_at_depth=False)


def _tree(model: Model) -> NodeTree:
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


VIEW = View(
    name="graph",
    help="by graph: from nodes without consumers along the inputs",
    doc=scope.VIEW.doc,  # as in tfprof
    of=graph_view,
    message=GraphNodeProto,
)
