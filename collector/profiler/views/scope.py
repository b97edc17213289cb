"""The scope view: nodes in a tree of their names, like files in folders."""

from __future__ import annotations

from collector.profiler.model import ROOT_NAME, SCOPE_PARENT, Model, Node
from collector.profiler.views.preorder import Mask, Preorder
from collector.profiler.views.tree import NodeTree, TreeView
from collector.profiler.views.view import View
from collector.protos import GraphNodeProto


def scope_view(model: Model) -> TreeView:
    """Folders that are not nodes themselves are added without own figures."""
    return TreeView(model, _tree(model), _kept, ends_at_depth=True)


def _tree(model: Model) -> NodeTree:
    names = set(model.nodes)
    for name in model.nodes:
        parent, slash, _ = name.rpartition("/")
        while slash and parent not in names:
            names.add(parent)
            parent, slash, _ = parent.rpartition("/")
    # Sorts a folder's nodes right after it, before all other names that begin like the folder's name.
    ordered = sorted(names, key=lambda name: name.replace("\0", "\0\1").replace("/", "\0\0"))
    nodes = [model.nodes.get(name) or Node(name, SCOPE_PARENT) for name in ordered]
    depths = [name.count("/") + 1 for name in ordered]
    return NodeTree(model, [Node(ROOT_NAME, SCOPE_PARENT), *nodes], [0, *depths])


def _kept(shape: Preorder, accounted: Mask) -> Mask:
    """The nodes that are accounted or have an accounted node below."""
    return shape.below(accounted.astype(int)) > 0


VIEW = View(
    name="scope",
    help="by name scope: a tree of names, like files in folders",
    doc="scope: The nodes in the model graph are organized by their names, which is hierarchical like filesystem.",
    of=scope_view,
    message=GraphNodeProto,
)
