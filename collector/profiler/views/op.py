"""The op view: one row per op type, with its share and the share of the rows from it to the end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from collector.profiler import formatting
from collector.profiler.attributes import legend, selected_sizes, selected_times
from collector.profiler.model import ROOT_NAME, Model
from collector.profiler.patterns import Patterns
from collector.profiler.profile_options import Options
from collector.profiler.stats import Stats
from collector.profiler.views.group import Group, GroupAnswer, GroupQuestion, Member
from collector.profiler.views.view import View
from collector.protos import MultiGraphNodeProto

if TYPE_CHECKING:
    from collector.profiler.values import Variables


class OpView:
    """The answer is a chain: each row is the only child of the previous row, so totals add up from the bottom."""

    def __init__(self, model: Model) -> None:
        self._model = model
        groups: dict[str, Group] = {}
        for node in model.sorted_nodes():
            groups.setdefault(node.op, Group(node.op)).nodes[node.name] = node
        self._groups = [groups[op] for op in sorted(groups, key=str.encode)]
        self.root = Group(ROOT_NAME)

    @property
    def depth(self) -> int:
        """Levels below the root: rows are siblings until an answer chains them."""
        return 0

    def answer(self, options: Options, variables: Variables | None = None) -> GroupAnswer:
        """Accounts, sorts and filters the rows by ``options``; rows have no values of ``variables``."""
        question = GroupQuestion(self._model, options)
        if not self._groups:
            return GroupAnswer(self.root, _row(self.root, self.root.total, options))
        accounted = _account(self._groups, question)
        self.root.total = Stats.total(group.total for group in accounted[:1])
        shown = _display(accounted, question)
        if options.account_displayed_op_only:
            _chain_totals(shown)
            self.root.total = Stats.total(group.total for group in shown[:1])
        for group, following in zip([self.root, *shown], [*shown, None], strict=True):
            group.shown = [following] if following else []
        text = legend(options.select) + "".join(_row(group, self.root.total, options) for group in shown)
        return GroupAnswer(self.root, text)


def _account(groups: Iterable[Group], question: GroupQuestion) -> list[Group]:
    rows = list(groups)
    for group in rows:
        question.account(group)
        group.restart_total(())
    question.sort(rows)
    rows = [group for group in rows if group.account]
    _chain_totals(rows)
    return rows


def _chain_totals(rows: list[Group]) -> None:
    """Gives each row its own figures and those of all rows below."""
    below: list[Group] = []
    for group in reversed(rows):
        group.restart_total(below)
        below = [group]


def _display(rows: list[Group], question: GroupQuestion) -> list[Group]:
    """The rows from the first start on, up to the first that is trimmed."""
    shown: list[Group] = []
    for depth, group in enumerate(rows[_start(rows, question.filters.start) :]):
        if question.filters.trim.match(group.name) or depth > question.options.max_depth:
            break
        if question.shows(group, depth) and len(group.members) >= question.options.min_occurrence:
            shown.append(group)
    return shown


def _start(rows: list[Group], patterns: Patterns) -> int:
    if not patterns.expressions or patterns.everything:
        return 0
    return next((index for index, group in enumerate(rows) if patterns.match(group.name)), len(rows))


def _row(group: Group, root: Stats, options: Options) -> str:
    select, own, total = options.select, group.own, group.total
    columns = []
    for counter, _ in (*selected_sizes(select), *selected_times(select)):
        mine = getattr(own, counter)
        shares = (getattr(total, counter), mine, getattr(root, counter))
        known = mine > 0 if counter.endswith("_bytes") else shares[0] > 0
        columns.append(_cell(formatting.measure(counter, mine), *shares, known=known))
    for name, counter, unit in (("params", "parameters", "params"), ("float_ops", "float_ops", "float_ops")):
        if name in select:
            mine, all_ = getattr(own, counter), getattr(total, counter)
            shares = (all_, mine, getattr(root, counter))
            columns.append(_cell(f"{formatting.number(mine)} {unit}", *shares, known=all_ > 0))
    if "device" in select:
        columns.append("|".join(group.devices))
    if "op_types" in select:
        columns.append("|".join(group.op_types))
    if "occurrence" in select:
        runs = sum(member.own.run_count for member in group.members)
        columns.append(f"{runs}|{len(group.members)}".rjust(10))
    row = f"{group.name:<25}{', '.join(columns)}\n"
    if "input_shapes" in select and group.members:
        row = f"{row}\n{_input_types(group.members)}\n\n"
    return row


def _cell(figure: str, total: int, own: int, root: int, *, known: bool) -> str:
    """A figure with two percentages of the root's: of this row and all below, and of this row alone."""
    tail, part = (100.0 * total / root, 100.0 * own / root) if known else (0.0, 0.0)
    return f"{figure} ({tail:.2f}%, {part:.2f}%)".rjust(30)


def _input_types(members: list[Member]) -> str:
    """One line per distinct set of input shapes, most runs first."""
    kinds: dict[str, list[int]] = {}
    for member in members:
        kind = kinds.setdefault(",\t".join(formatting.input_shapes(member.input_shapes)), [0, 0, 0])
        kind[0] += member.own.run_count
        kind[1] += 1
        kind[2] += member.own.exec_micros
    ranked = sorted(sorted(kinds.items()), key=lambda item: item[1][0], reverse=True)
    return "\n".join(
        f"input_type: {shapes}\t(run*{runs}|defined*{defined})\texec_time: {formatting.time(micros)}"
        for shapes, (runs, defined, micros) in ranked
    )


VIEW = View(
    name="op",
    help="by op type: one row per type, with its share",
    doc=(
        "op: The nodes are operation kernel type, such as MatMul, Conv2D. Graph nodes belonging to the same type are "
        "aggregated together."
    ),
    of=OpView,
    message=MultiGraphNodeProto,
)
