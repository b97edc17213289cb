"""The graph view: from what nobody consumes, along the inputs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from collector.profiler.attributes import legend
from collector.profiler.model import GRAPH_PARENT, ROOT_NAME, Model, Node
from collector.profiler.patterns import Patterns
from collector.profiler.profile_options import Options
from collector.profiler.stats import Stats
from collector.profiler.views.tree import Accounting, Answer, Question, TreeNode, lines_of
from collector.profiler.walk import fold

if TYPE_CHECKING:
    from collector.profiler.values import Variables


class GraphView:
    """Every node comes once, on the first path that leads to it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.root = _build(model)
        self.starts: list[TreeNode] = []
        """Where the last answer's display started."""
        self._accounting = Accounting()

    def answer(self, options: Options, variables: Variables | None = None) -> Answer:
        """Accounts, filters and sorts the graph by ``options``."""
        question = Question(self._model, options)
        kept = self._accounting.top(question, lambda nodes: _account(self.root.children, question, nodes))
        self.root.total = Stats.total(node.total for node in kept)
        self.starts = kept if question.filters.start.everything else _find_starts(kept, question.filters.start)
        self.root.shown = self.starts
        _display(self.root, question, variables)
        lines = [legend("graph", options.select), *lines_of(self.root)]
        return Answer("".join(lines), self.root, question.filters.broken)


def _build(model: Model) -> TreeNode:
    graph = {node.name: TreeNode(node, model.input_shapes(node)) for node in model.sorted_nodes()}
    consumed: set[str] = set()
    for shown in graph.values():
        for _, name in sorted(shown.node.inputs.items()):
            consumed.add(name)
            if name in graph:
                shown.children.append(graph[name])
    root = TreeNode(Node(ROOT_NAME, GRAPH_PARENT))
    root.own = root.node.stats(-1)
    root.children = [shown for name, shown in graph.items() if name not in consumed]
    return root


def _account(roots: Iterable[TreeNode], question: Question, accounted: list[TreeNode]) -> list[TreeNode]:
    """Own figures and totals, inputs first. What is not accounted vanishes, its inputs move up."""
    visited: set[str] = set()

    def enter(node: TreeNode, depth: int, indent: int) -> tuple[list[TreeNode], int] | None:
        if node.name in visited:
            return None
        visited.add(node.name)
        return node.children, indent

    def leave(node: TreeNode, inputs: list[TreeNode], _: int) -> list[TreeNode]:
        question.account(node)
        if not node.account:
            return inputs
        node.kept = node.shown = inputs
        node.restart_total(inputs)
        accounted.append(node)
        return [node]

    return fold(roots, enter, leave)


def _find_starts(roots: Iterable[TreeNode], patterns: Patterns) -> list[TreeNode]:
    """The first match on every path."""
    visited: set[str] = set()

    def enter(node: TreeNode, depth: int, indent: int) -> tuple[list[TreeNode], int] | None:
        if node.name in visited:
            return None
        visited.add(node.name)
        return ([] if patterns.match(node.name) else node.shown), indent

    def leave(node: TreeNode, found: list[TreeNode], _: int) -> list[TreeNode]:
        return [node] if patterns.match(node.name) else found

    return fold(roots, enter, leave)


def _display(root: TreeNode, question: Question, variables: Variables | None) -> None:
    """Leaves in ``shown`` what is printed and gives it its text. Inputs of a hidden node move up."""
    visited: set[str] = set()
    displayed: set[str] = set()

    def enter(node: TreeNode, depth: int, indent: int) -> tuple[list[TreeNode], int] | None:
        if node.name in visited:
            return None
        visited.add(node.name)
        shows = question.shows(node, depth)
        if shows:
            displayed.add(node.name)
        return ([] if question.trims(node) else node.shown), indent + 2 * shows

    def leave(node: TreeNode, below: list[TreeNode], indent: int) -> list[TreeNode]:
        if node.name not in displayed:
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
