"""The scope view: nodes in a tree of their names, like files in folders."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from collector.profiler.attributes import legend
from collector.profiler.model import ROOT_NAME, SCOPE_PARENT, Model, Node
from collector.profiler.patterns import Patterns
from collector.profiler.profile_options import Options
from collector.profiler.stats import Stats
from collector.profiler.views.tree import Accounting, Answer, Question, TreeNode, lines_of
from collector.profiler.walk import fold

if TYPE_CHECKING:
    from collector.profiler.values import Variables


class ScopeView:
    """Folders that are no nodes themselves are made up, with no figures of their own."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.root = _build(model)
        self._accounting = Accounting()

    def answer(self, options: Options, variables: Variables | None = None) -> Answer:
        """Accounts, filters and sorts the tree by ``options``."""
        question = Question(self._model, options)
        kept = self._accounting.top(question, lambda nodes: _account(self.root.children, question, nodes))
        self.root.total = Stats.total(node.total for node in kept)
        self.root.shown = kept if question.filters.start.everything else find_starts(kept, question.filters.start)
        _display(self.root, question, variables)
        lines = [legend("scope", options.select), *lines_of(self.root)]
        return Answer("".join(lines), self.root, question.filters.broken)


def _build(model: Model) -> TreeNode:
    tree: dict[str, TreeNode] = {}
    for node in model.sorted_nodes():
        tree[node.name] = TreeNode(node, model.input_shapes(node))
    for name in list(tree):
        parent, slash, _ = name.rpartition("/")
        while slash and parent not in tree:
            tree[parent] = TreeNode(Node(parent, SCOPE_PARENT))
            parent, slash, _ = parent.rpartition("/")
    root = TreeNode(Node(ROOT_NAME, SCOPE_PARENT))
    root.own = root.node.stats(-1)
    for name in sorted(tree, key=str.encode):
        parent, slash, _ = name.rpartition("/")
        (tree[parent] if slash else root).children.append(tree[name])
    return root


def _account(roots: Iterable[TreeNode], question: Question, accounted: list[TreeNode]) -> list[TreeNode]:
    """Own figures and totals, children first. Kept is what is accounted or has something accounted below."""

    def leave(node: TreeNode, kept: list[TreeNode], _: int) -> list[TreeNode]:
        question.account(node)
        if not node.account and not kept:
            return []
        node.kept = node.shown = kept
        node.restart_total(kept)
        accounted.append(node)
        return [node]

    return fold(roots, lambda node, depth, indent: (node.children, indent), leave)


def find_starts(roots: Iterable[TreeNode], patterns: Patterns) -> list[TreeNode]:
    """The topmost nodes that match."""

    def enter(node: TreeNode, depth: int, indent: int) -> tuple[list[TreeNode], int]:
        return ([] if patterns.match(node.name) else node.shown), indent

    def leave(node: TreeNode, found: list[TreeNode], _: int) -> list[TreeNode]:
        return [node] if patterns.match(node.name) else found

    return fold(roots, enter, leave)


def _display(root: TreeNode, question: Question, variables: Variables | None) -> None:
    """Leaves in ``shown`` what is printed and gives it its text. Children of a hidden node move up."""
    displayed: set[int] = set()

    def enter(node: TreeNode, depth: int, indent: int) -> tuple[list[TreeNode], int]:
        shows = question.shows(node, depth)
        if shows:
            displayed.add(id(node))
        expands = not question.trims(node) and depth <= question.options.max_depth
        return (node.shown if expands else []), indent + 2 * shows

    def leave(node: TreeNode, below: list[TreeNode], indent: int) -> list[TreeNode]:
        if id(node) not in displayed:
            return below
        question.sort(below)
        node.shown = below
        if question.options.account_displayed_op_only:
            node.restart_total(below)
        node.text = question.line(node, indent)
        if variables is not None and "tensor_value" in question.options.select:
            node.text += variables.show(node)
        return [node]

    fold([root], enter, leave)
