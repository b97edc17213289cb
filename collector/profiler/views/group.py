"""Groups of graph nodes in the op and the code view: display, filters, message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

from collector.profiler.attributes import COUNTERS, ORDER_COUNTERS
from collector.profiler.model import ROOT_NAME, Model, Node
from collector.profiler.profile_options import Filters, Options
from collector.profiler.stats import NOTHING, Stats, int64
from collector.profiler.views.tree import measured
from collector.protos import GraphNodeProto, MultiGraphNodeProto


class Member:
    """One graph node of a group."""

    __slots__ = ("input_shapes", "name", "node", "own")

    def __init__(self, node: Node, input_shapes: dict[int, list[int]]) -> None:
        self.node = node
        self.name = node.name
        self.own = NOTHING
        self.input_shapes = input_shapes


class Group:
    """Graph nodes under one name, and their state for the current question."""

    __slots__ = (
        "_leaves",
        "account",
        "children",
        "devices",
        "members",
        "name",
        "nodes",
        "op_types",
        "own",
        "shown",
        "text",
        "total",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: dict[str, Node] = {}
        self.children: list[Group] = []
        self.account = False
        self.own = self.total = NOTHING
        self.members: list[Member] = []
        """The nodes that count, sorted by name."""
        self.op_types: list[str] = []
        self.devices: list[str] = []
        """Devices of the members; ``""`` for those that never ran."""
        self.shown: list[Group] = []
        self.text = ""
        self._leaves: list[Member] | None = None

    def leaves(self, model: Model) -> list[Member]:
        """The nodes sorted by name, with their shapes; made at first use."""
        if self._leaves is None:
            nodes = sorted(self.nodes.values(), key=lambda node: node.name.encode())
            self._leaves = [Member(node, model.input_shapes(node)) for node in nodes]
        return self._leaves

    def restart_total(self, parts: Sequence[Group]) -> None:
        """Sets the total to the sum of the group's own figures and the totals of ``parts``."""
        self.total = self.own.plus(part.total for part in parts)


class GroupQuestion:
    """The compiled options, and their meaning for groups."""

    def __init__(self, model: Model, options: Options) -> None:
        self.model = model
        self.options = options
        self.filters = Filters(options)
        self.measured = measured(options)
        self._order = ORDER_COUNTERS.get(options.order_by)

    def account(self, group: Group) -> None:
        """Determines the nodes that count, the group's own figures, and whether the group itself counts.

        A group without nodes (a line that only calls others) counts only if every type does.
        """
        patterns = self.filters.account
        picked = group.leaves(self.model)
        if not patterns.everything:
            picked = [leaf for leaf in picked if any(map(patterns.match, leaf.node.op_types))]
        group.account = bool(picked) or patterns.everything
        group.members = picked
        for member in picked:
            member.own = Stats(self.model.figures(member.node, self.options.step))
        group.own = Stats.total(member.own for member in picked for _ in range(self._weight(member.node)))
        group.op_types = sorted(set().union(*(member.node.op_types for member in picked)))
        group.devices = sorted({member.node.device for member in picked})

    def _weight(self, node: Node) -> int:
        """The factor of the figures: as in tfprof, once per expression that matches one of the types."""
        patterns = self.filters.account
        return 1 if patterns.everything else patterns.count(node.op_types)

    def shows(self, group: Group, depth: int) -> bool:
        """Whether the group is displayed, apart from ``min_occurrence``. The root always is."""
        if group.name == ROOT_NAME:
            return True
        options, total = self.options, group.total
        return (
            total.parameters >= options.min_params
            and total.float_ops >= options.min_float_ops
            and self.filters.shows(group.name, total, depth)
        )

    def sort(self, groups: list[Group]) -> None:
        """Sorts by ``order_by``: names ascending, figures largest first; ``""`` keeps the order."""
        counter = self._order
        if not self.options.order_by:
            return
        if self.options.order_by == "occurrence":
            groups.sort(key=lambda group: len(group.members), reverse=True)
        elif counter is None:
            groups.sort(key=lambda group: group.name.encode())
        else:
            groups.sort(key=lambda group: getattr(group.total, counter), reverse=True)


class GroupAnswer:
    """The displayed groups of a view, valid until the next question."""

    def __init__(self, root: Group, text: str) -> None:
        self._root = root
        self._text = text
        self._message = _to_proto(root)

    def text(self) -> str:
        """The view's legend and a line for each displayed group."""
        return self._text

    def root(self) -> Group:
        """The root, with all displayed groups below it."""
        return self._root

    def message(self) -> MultiGraphNodeProto:
        """The displayed groups as TensorFlow's message."""
        return self._message


def _to_proto(root: Group) -> MultiGraphNodeProto:
    answer = MultiGraphNodeProto()
    pending: list[tuple[Group, MultiGraphNodeProto]] = [(root, answer)]
    while pending:
        group, proto = pending.pop()
        proto.name = group.name
        _fill_figures(proto, group.own, group.total)
        for member in group.members:
            _fill(proto.graph_nodes.add(), member)
        pending.extend((child, proto.children.add()) for child in group.shown)
    return answer


_figures = attrgetter(*COUNTERS)
_TOTALS = tuple(f"total_{counter}" for counter in COUNTERS)


def _fill_figures(proto: GraphNodeProto | MultiGraphNodeProto, own: Stats, total: Stats) -> None:
    """Writes both figures of each counter into a new message. Most are 0, which is its default."""
    for names, stats in ((COUNTERS, own), (_TOTALS, total)):
        for name, value in zip(names, _figures(stats), strict=True):
            if value:
                setattr(proto, name, value if -(2**63) <= value < 2**63 else int64(value))


def _fill(proto: GraphNodeProto, member: Member) -> None:
    """Writes a member's fields. Its total equals its own figures, because it has no children."""
    proto.name = member.name
    if member.node.device:
        proto.devices.append(member.node.device)
    _fill_figures(proto, member.own, member.own)
    proto.run_count = proto.total_run_count = member.own.run_count
    proto.total_definition_count = member.own.definition_count
    for index, dims in member.input_shapes.items():
        shape = proto.input_shapes[index]
        shape.unknown_rank = not dims
        for size in dims:
            shape.dim.add(size=size)


def lines_of(root: Group) -> Iterable[str]:
    """The texts of the displayed groups, in printing order."""
    pending = [root]
    while pending:
        group = pending.pop()
        yield group.text
        pending.extend(reversed(group.shown))
