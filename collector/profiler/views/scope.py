"""The scope view: nodes in a tree of their names, like files in folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.profiler.model import ROOT_NAME, SCOPE_PARENT, Model, Node
from collector.profiler.profile_options import Options
from collector.profiler.views.preorder import Mask, Preorder
from collector.profiler.views.tree import Answer, NodeTree

if TYPE_CHECKING:
    from collector.profiler.values import Variables


class ScopeView:
    """Folders that are not nodes themselves are added without own figures."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._tree = _build(model)

    @property
    def depth(self) -> int:
        """Levels below the root."""
        return self._tree.depth

    def answer(self, options: Options, variables: Variables | None = None) -> Answer:
        """Accounts, filters and sorts the tree by ``options``."""
        return Answer("scope", self._model, self._tree, options, _kept, ends_at_depth=True, variables=variables)


def _build(model: Model) -> NodeTree:
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
