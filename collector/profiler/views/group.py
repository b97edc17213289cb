"""What the op and the code view share: a displayed group of graph nodes, its filters, its message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from collector.profiler.attributes import ORDER_COUNTERS
from collector.profiler.model import ROOT_NAME, Model, Node
from collector.profiler.profile_options import Filters, Options
from collector.profiler.stats import NOTHING, Stats
from collector.profiler.views.tree import TreeNode, fill, fill_figures, measured
from collector.protos import MultiGraphNodeProto


class Group:
    """Some graph nodes under one name, and how the question being answered sees them."""

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
        self.members: list[TreeNode] = []
        """The nodes that count, in name order."""
        self.op_types: list[str] = []
        self.devices: list[str] = []
        """Of the members; ``""`` for those that never ran."""
        self.shown: list[Group] = []
        self.text = ""
        self._leaves: list[TreeNode] | None = None

    def leaves(self, model: Model) -> list[TreeNode]:
        """The nodes in name order, as a tree has them; made at first use."""
        if self._leaves is None:
            nodes = sorted(self.nodes.values(), key=lambda node: node.name.encode())
            self._leaves = [TreeNode(node, model.input_shapes(node)) for node in nodes]
        return self._leaves

    def restart_total(self, parts: Sequence[Group]) -> None:
        """Makes the total the group's own figures and the totals of ``parts``."""
        self.total = self.own.plus(part.total for part in parts)


class GroupQuestion:
    """The options, compiled, and what they mean for groups."""

    def __init__(self, model: Model, options: Options) -> None:
        self.model = model
        self.options = options
        self.filters = Filters(options)
        self.measured = measured(options)
        self._order = ORDER_COUNTERS.get(options.order_by)

    def account(self, group: Group) -> None:
        """Works out which nodes count, the group's own figures, and whether the group itself counts.

        A group without nodes (a line that only calls others) counts only when every type does.
        """
        patterns = self.filters.account
        picked = group.leaves(self.model)
        if not patterns.everything:
            picked = [leaf for leaf in picked if any(map(patterns.match, leaf.node.op_types))]
        group.account = bool(picked) or patterns.everything
        group.members = picked
        for member in picked:
            member.own = self.model.figures(member.node, self.options.step)
            member.restart_total(())
        group.own = Stats.total(member.own for member in picked for _ in range(self._weight(member.node)))
        group.op_types = sorted(set().union(*(member.node.op_types for member in picked)))
        group.devices = sorted({member.node.device for member in picked})

    def _weight(self, node: Node) -> int:
        """How often the node's figures count: as in tfprof, once per expression that matches one of its types."""
        patterns = self.filters.account
        return 1 if patterns.everything else patterns.count(node.op_types)

    def shows(self, group: Group, depth: int) -> bool:
        """Whether the group is displayed, ``min_occurrence`` aside. The root always is."""
        if group.name == ROOT_NAME:
            return True
        options, total = self.options, group.total
        return (
            total.parameters >= options.min_params
            and total.float_ops >= options.min_float_ops
            and self.filters.shows(group.name, total, depth)
        )

    def sort(self, groups: list[Group]) -> None:
        """Sorts by ``order_by``: names ascending, everything else largest first; ``""`` leaves them."""
        counter = self._order
        if not self.options.order_by:
            return
        if self.options.order_by == "occurrence":
            groups.sort(key=lambda group: len(group.members), reverse=True)
        elif counter is None:
            groups.sort(key=lambda group: group.name.encode())
        else:
            groups.sort(key=lambda group: getattr(group.total, counter), reverse=True)


def to_proto(root: Group) -> MultiGraphNodeProto:
    """The displayed tree as a message."""
    answer = MultiGraphNodeProto()
    pending: list[tuple[Group, MultiGraphNodeProto]] = [(root, answer)]
    while pending:
        group, proto = pending.pop()
        proto.name = group.name
        fill_figures(proto, group.own, group.total)
        for member in group.members:
            fill(proto.graph_nodes.add(), member)
        pending.extend((child, proto.children.add()) for child in group.shown)
    return answer


def lines_of(root: Group) -> Iterable[str]:
    """The texts of what is displayed, in printing order."""
    pending = [root]
    while pending:
        group = pending.pop()
        yield group.text
        pending.extend(reversed(group.shown))
