"""What the scope and the graph view share: a displayed node, its filters, its line, its message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from collector.profiler import formatting
from collector.profiler.attributes import COUNTERS, ORDER_COUNTERS, selected_sizes, selected_times
from collector.profiler.model import ROOT_NAME, Model, Node
from collector.profiler.profile_options import Filters, Options
from collector.profiler.stats import NOTHING, Stats, int64
from collector.protos import GraphNodeProto, MultiGraphNodeProto, TFProfTensorProto


class TreeNode:
    """A node of a view's tree, and how the question being answered sees it."""

    __slots__ = (
        "account",
        "children",
        "columns",
        "devices",
        "input_shapes",
        "kept",
        "name",
        "node",
        "own",
        "shown",
        "tensor",
        "text",
        "total",
    )

    def __init__(self, node: Node, input_shapes: dict[int, list[int]] | None = None) -> None:
        self.node = node
        self.name = node.name
        self.children: list[TreeNode] = []
        self.account = False
        """Whether its own figures count (its type is accounted)."""
        self.own = self.total = NOTHING
        self.kept: list[TreeNode] = []
        """Children that accounting left."""
        self.shown: list[TreeNode] = []
        """Children that take part: after accounting the kept ones, after display the printed ones."""
        self.columns: tuple[frozenset[str], bool, Stats, str] | None = None
        """Of the last line: what was selected, whether the node counted, its total, and the figures as text."""
        self.text = ""
        self.tensor: TFProfTensorProto | None = None
        self.devices = [node.device] if node.device else []
        self.input_shapes = input_shapes or {}

    def restart_total(self, parts: Sequence[TreeNode]) -> None:
        """Makes the total the node's own figures and the totals of ``parts``."""
        self.total = self.own.plus(part.total for part in parts)


@dataclass
class Answer:
    """A view's answer before it goes anywhere."""

    text: str
    """Header and tree."""
    root: TreeNode
    broken: list[str] = field(default_factory=list)


class Question:
    """The options, compiled, and what they mean for tree nodes."""

    def __init__(self, model: Model, options: Options) -> None:
        self.model = model
        self.options = options
        self.filters = Filters(options)
        self._measured = measured(options)
        self._order = ORDER_COUNTERS.get(options.order_by)

    def account(self, shown: TreeNode) -> None:
        """Works out the node's own figures and whether they count."""
        node = shown.node
        shown.own = self.model.figures(node, self.options.step)
        shown.tensor = None
        patterns = self.filters.account
        shown.account = patterns.everything or any(map(patterns.match, node.op_types))

    def shows(self, shown: TreeNode, depth: int) -> bool:
        """Whether the node is displayed. The root always is."""
        if shown.name == ROOT_NAME:
            return True
        options, own = self.options, shown.own
        return (
            own.parameters >= options.min_params
            and own.float_ops >= options.min_float_ops
            and own.run_count >= options.min_occurrence
            and self.filters.shows(shown.name, shown.total, depth)
        )

    def trims(self, shown: TreeNode) -> bool:
        """Whether display stops below the node."""
        return self.filters.trim.match(shown.name)

    def sort(self, nodes: list[TreeNode]) -> None:
        """Sorts siblings by ``order_by``: names ascending, figures by their total, largest first.

        ``""`` leaves them as they are.
        """
        counter = self._order
        if not self.options.order_by:
            return
        if counter is None:
            nodes.sort(key=lambda shown: shown.name.encode())
        else:
            nodes.sort(key=lambda shown: getattr(shown.total, counter), reverse=True)

    def line(self, shown: TreeNode, indent: int) -> str:
        """The node's line of the report."""
        select, account, total = self.options.select, shown.account, shown.total
        last = shown.columns
        if last is None or last[2] is not total or last[1] != account or last[0] != select:
            last = shown.columns = (select, account, total, self._columns(shown))
        return f"{' ' * indent}{shown.name} ({last[3]})\n"

    def _columns(self, shown: TreeNode) -> str:
        select, node, own, total = self.options.select, shown.node, shown.own, shown.total

        def part(text: str, of: str) -> str:
            return f"{text if shown.account else '--'}/{of}"

        columns: list[str] = []
        if "params" in select:
            if node.shape:
                columns.append(formatting.shape(node.shape))
            columns.append(part(formatting.number(own.parameters), f"{formatting.number(total.parameters)} params"))
        if "float_ops" in select:
            columns.append(part(formatting.number(own.float_ops), f"{formatting.number(total.float_ops)} flops"))
        for counter, text in self._measured:
            mine, all_ = getattr(own, counter), getattr(total, counter)
            of = text(all_)
            columns.append(part(of if mine == all_ else text(mine), of))
        if "device" in select and shown.devices:
            columns.append("|".join(shown.devices))
        if "op_types" in select:
            columns.append("|".join(sorted(node.op_types)))
        if "occurrence" in select:
            runs = part(formatting.number(own.run_count), formatting.number(total.run_count))
            columns.append(f"{runs}|{part('1', formatting.number(total.definition_count))}")
        if "input_shapes" in select:
            columns.append("|".join(formatting.input_shapes(shown.input_shapes)))
        return ", ".join(columns)


class Accounting:
    """What a view's last question counted, for the next one: a user asks on about the same types and the same step."""

    def __init__(self) -> None:
        self._of: tuple[object, ...] | None = None
        self._top: list[TreeNode] = []
        self._nodes: list[TreeNode] = []

    def top(self, question: Question, account: Callable[[list[TreeNode]], list[TreeNode]]) -> list[TreeNode]:
        """The topmost nodes that are left, all below in the state that ``account`` leaves them in.

        Args:
            question: what is asked.
            account: asked if that was not counted last; puts all that are left into the list it is given, and answers
                the topmost.
        """
        options = question.options
        of = (options.step, options.account_type_regexes)
        if self._of == of:
            for node in self._nodes:
                node.shown, node.tensor = node.kept, None
        else:
            self._nodes = []
            self._top = account(self._nodes)
        self._of = None if options.account_displayed_op_only else of  # which changes totals
        return self._top


def lines_of(root: TreeNode) -> Iterable[str]:
    """The texts of what is displayed, in printing order."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node.text
        pending.extend(reversed(node.shown))


def to_proto(root: TreeNode) -> GraphNodeProto:
    """The displayed tree as a message."""
    answer = GraphNodeProto()
    pending = [(root, answer)]
    while pending:
        shown, proto = pending.pop()
        fill(proto, shown)
        pending.extend((child, proto.children.add()) for child in shown.shown)
    return answer


def measured(options: Options) -> list[tuple[str, Callable[[int], str]]]:
    """(counter, how its figure is written) of the memory and time columns that are selected."""
    counters = (*selected_sizes(options.select), *selected_times(options.select))
    return [(counter, formatting.UNITS.get(counter, formatting.memory)) for counter, _ in counters]


_figures = attrgetter(*COUNTERS)
_TOTALS = tuple(f"total_{counter}" for counter in COUNTERS)


def fill_figures(proto: GraphNodeProto | MultiGraphNodeProto, own: Stats, total: Stats) -> None:
    """Writes both figures of each counter into a new message. Most are 0, which it has already."""
    for names, stats in ((COUNTERS, own), (_TOTALS, total)):
        for name, value in zip(names, _figures(stats), strict=True):
            if value:
                setattr(proto, name, value if -(2**63) <= value < 2**63 else int64(value))


def fill(proto: GraphNodeProto, shown: TreeNode) -> None:
    """Writes the node's own fields, children excepted."""
    proto.name = shown.name
    proto.devices.extend(shown.devices)
    fill_figures(proto, shown.own, shown.total)
    proto.run_count = shown.own.run_count
    proto.total_run_count = shown.total.run_count
    proto.total_definition_count = shown.total.definition_count
    for index, dims in shown.input_shapes.items():
        shape = proto.input_shapes[index]
        shape.unknown_rank = not dims
        for size in dims:
            shape.dim.add(size=size)
    if shown.tensor is not None:
        proto.tensor_value.CopyFrom(shown.tensor)
