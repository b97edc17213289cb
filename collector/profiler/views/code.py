"""The code view: each node at the end of the Python call stack that created it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from collector.profiler import formatting
from collector.profiler.attributes import legend
from collector.profiler.model import ROOT_NAME, Frame, Model, Node
from collector.profiler.patterns import Patterns
from collector.profiler.profile_options import Options
from collector.profiler.profiler_errors import ViewError
from collector.profiler.stats import Stats
from collector.profiler.views.group import Group, GroupAnswer, GroupQuestion, lines_of
from collector.profiler.views.view import View
from collector.profiler.walk import fold
from collector.protos import MultiGraphNodeProto

if TYPE_CHECKING:
    from collector.profiler.values import Variables

log = logging.getLogger("collector.profiler")

GRADIENT_SUFFIX = " (gradient)"


class CodeNode(Group):
    """A line of a call stack, below the line that called it."""

    __slots__ = ("by_name", "frame", "suffix")

    def __init__(self, name: str, frame: Frame | None, suffix: str) -> None:
        super().__init__(name)
        self.frame = frame
        self.suffix = suffix
        self.by_name: dict[str, CodeNode] = {}

    def descend(self, stack: Iterable[Frame], suffix: str) -> CodeNode:
        """The line at the end of ``stack`` below this one, created if it does not exist."""
        line = self
        for frame in stack:
            name = line_name(frame) + suffix
            child = line.by_name.get(name)
            if child is None:
                child = line.by_name[name] = CodeNode(name, frame, suffix)
                line.children.append(child)
            line = child
        return line


class CodeView:
    """Gradients are below the stack of their op, marked ``(gradient)``."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.root = _build(model)

    @cached_property
    def depth(self) -> int:
        """Levels below the root."""
        deepest = 0
        pending: list[tuple[Group, int]] = [(self.root, 0)]
        while pending:
            group, depth = pending.pop()
            deepest = max(deepest, depth)
            pending.extend((child, depth + 1) for child in group.children)
        return deepest

    def answer(self, options: Options, variables: Variables | None = None) -> GroupAnswer:
        """Accounts, filters and sorts the stacks by ``options``; lines have no values of ``variables``."""
        if options.account_displayed_op_only:
            log.warning("Note: code view ignores account_displayed_op_only")
        if "tensor_value" in options.select:
            log.warning("code view has no tensor value to show")
        question = GroupQuestion(self._model, options)
        kept = _account(self.root.children, question)
        self.root.total = Stats.total(node.total for node in kept)
        self.root.shown = kept if question.filters.start.everything else _find_starts(kept, question.filters.start)
        if not _display(self.root, question):
            raise ViewError("max_depth or trim_name_regexes leave nothing of the code view, not even its root")
        return GroupAnswer(self.root, legend(options.select) + "".join(lines_of(self.root)))


def line_name(frame: Frame) -> str:
    """``file:line:function``, without folders; a long function is truncated to 17 characters."""
    function = frame.function if len(frame.function.encode()) < 20 else f"{frame.function[:17]}..."
    return f"{frame.file.rpartition('/')[2]}:{frame.line}:{function}"


def forward_name(name: str) -> str | None:
    """The op whose gradient a node ``…gradients/<op>_grad/…`` belongs to, or None."""
    before, is_gradient, rest = name.partition("gradients/")
    end = name.find("_grad/")
    if not is_gradient or end < 0:
        return None
    start = len(before) + len("gradients/")
    return (rest if end < start else name[start:end]) or None


def _build(model: Model) -> CodeNode:
    root = CodeNode(ROOT_NAME, None, "")
    forward: dict[str, Node] = {}
    gradients: dict[str, list[Node]] = {}
    for (name, stack), node in sorted(model.call_sites.items(), key=lambda item: item[0][0].encode()):
        root.descend(stack, "").nodes[name] = node
    for node in model.sorted_nodes():
        if not node.stack:
            continue
        of = forward_name(node.name)
        if of is not None:
            gradients.setdefault(of, []).append(node)
            continue
        forward[node.name] = node
        root.descend(node.stack, "").nodes[node.name] = node
    lost = 0
    for of in sorted(gradients, key=str.encode):
        if of not in forward:
            lost += 1
            continue
        leaf = root.descend(forward[of].stack, GRADIENT_SUFFIX)
        leaf.nodes.update((node.name, node) for node in gradients[of])
    if lost:
        log.warning("%d gradient nodes not accounted", lost)
    return root


def _account(roots: Iterable[Group], question: GroupQuestion) -> list[Group]:
    """Own figures and totals, called lines first. Lines are kept if they or lines below them count."""

    def leave(node: Group, kept: list[Group], _: int) -> list[Group]:
        question.account(node)
        if not node.account and not kept:
            return []
        node.shown = kept
        node.restart_total(kept)
        return [node]

    return fold(roots, lambda node, depth, indent: (node.children, indent), leave)


def _find_starts(roots: Iterable[Group], patterns: Patterns) -> list[Group]:
    """The topmost lines that match."""

    def enter(node: Group, depth: int, indent: int) -> tuple[list[Group], int]:
        return ([] if patterns.match(node.name) else node.shown), indent

    def leave(node: Group, found: list[Group], _: int) -> list[Group]:
        return [node] if patterns.match(node.name) else found

    return fold(roots, enter, leave)


def _display(root: Group, question: GroupQuestion) -> bool:
    """Reduces ``shown`` to the printed lines and sets their texts. Trimmed and too deep lines go with all below.

    Returns whether the root is left.
    """
    displayed: set[int] = set()

    def enter(node: Group, depth: int, indent: int) -> tuple[list[Group], int] | None:
        if question.filters.trim.match(node.name) or depth > question.options.max_depth:
            return None
        shows = question.shows(node, depth)
        if shows:
            displayed.add(id(node))
        return node.shown, indent + 2 * shows

    def leave(node: Group, below: list[Group], indent: int) -> list[Group]:
        if id(node) not in displayed:
            return below
        question.sort(below)
        node.shown = below
        node.text = _line(node, question, indent)
        return [node]

    return bool(fold([root], enter, leave))


def _line(node: Group, question: GroupQuestion, indent: int) -> str:
    select, own, total = question.options.select, node.own, node.total

    def part(text: str, of: str) -> str:
        return f"{text if node.account else '--'}/{of}"

    columns = []
    for counter, text in question.measured:
        mine, all_ = getattr(own, counter), getattr(total, counter)
        of = text(all_)
        columns.append(part(of if mine == all_ else text(mine), of))
    if "params" in select:
        columns.append(part(formatting.number(own.parameters), f"{formatting.number(total.parameters)} params"))
    if "float_ops" in select:
        columns.append(part(formatting.number(own.float_ops), f"{formatting.number(total.float_ops)} flops"))
    if "device" in select and node.devices:
        columns.append("|".join(node.devices))
    if "op_types" in select:
        columns.append("|".join(node.op_types))
    columns.extend(f"{name} N/A in code view" for name in ("occurrence", "input_shapes") if name in select)
    return f"{' ' * indent}{node.name} ({', '.join(columns)})\n"


VIEW = View(
    name="code",
    help="by line of code: the call stacks that created the ops",
    doc=(
        "code: When python trace is available, the nodes are python lines and their are organized by the python call "
        "stack."
    ),
    of=CodeView,
    message=MultiGraphNodeProto,
)
