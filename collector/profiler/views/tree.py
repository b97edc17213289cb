"""Trees of the scope and the graph view: the nodes as columns, and the answer to a question about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from collector.profiler import formatting
from collector.profiler.attributes import ORDER_COUNTERS, legend, selected_sizes, selected_times
from collector.profiler.model import Model, Node
from collector.profiler.node_fields import Ints
from collector.profiler.profile_options import Filters, Options
from collector.profiler.stats import FIGURES, Stats, table
from collector.profiler.views.preorder import Mask, Preorder
from collector.profiler.views.tree_message import encode_input_shapes, tree_message
from collector.protos import GraphNodeProto, TFProfTensorProto

if TYPE_CHECKING:
    from collector.profiler.values import Variables

_ROW = {name: row for row, name in enumerate(FIGURES)}


class NodeTree:
    """The nodes of a view in depth-first order, each once. Row 0 is the root, which is not a node of the model.

    Args:
        model: the nodes' model.
        nodes: the nodes, including the root and the folders that were added for the tree.
        depths: the depth of each node; the root has depth 0.
    """

    def __init__(self, model: Model, nodes: list[Node], depths: list[int]) -> None:
        self._model = model
        self.nodes = nodes
        self.names = [node.name for node in nodes]
        self.shape = Preorder.of_depths(depths)
        self.depth = max(depths)
        """Levels below the root."""
        self._own: tuple[tuple[int, int], Ints] | None = None

    def __len__(self) -> int:
        return len(self.nodes)

    def own(self, step: int) -> Ints:
        """Each node's own figures in a step (-1: averages), with one row for each of `FIGURES`."""
        of = (self._model.generation, step)
        if self._own is None or self._own[0] != of:
            figures = self._model.figures
            self._own = of, table([figures(node, step) for node in self.nodes])
        return self._own[1]

    @cached_property
    def name_ranks(self) -> Ints:
        """The rank of each node's name among all names."""
        ranks = np.empty(len(self), np.int64)
        ranks[sorted(range(len(self)), key=self.names.__getitem__)] = np.arange(len(self))
        return ranks

    @cached_property
    def encoded_inputs(self) -> list[bytes]:
        """Each node's ``input_shapes`` in wire format; many are equal."""
        nodes = self._model.nodes
        outputs = {name: tuple(node.output_shapes.get(0, ())) for name, node in nodes.items() if node.output_shapes}
        known: dict[tuple[object, ...], bytes] = {(): b""}
        found = []
        for node in self.nodes:
            key = (*node.inputs, *map(outputs.get, node.inputs.values()))
            encoded = known.get(key)
            if encoded is None:
                encoded = known[key] = encode_input_shapes(self._model.input_shapes(node))
            found.append(encoded)
        return found

    def matching(self, match: Callable[[str], bool]) -> Mask:
        """The nodes whose names match."""
        return np.fromiter(map(match, self.names), bool, len(self))

    def accounted(self, filters: Filters) -> Mask:
        """The nodes with an accounted type; never the root."""
        patterns = filters.account
        if patterns.everything:
            found = np.ones(len(self), bool)
        else:
            types = (node.op_types for node in self.nodes)
            found = np.fromiter((any(map(patterns.match, each)) for each in types), bool, len(self))
        found[0] = False
        return found


@dataclass
class Shown:
    """One displayed node, with the displayed nodes below it."""

    node: Node
    name: str
    account: bool
    own: Stats
    total: Stats
    shown: list[Shown] = field(default_factory=list)


@dataclass(frozen=True)
class TreeView:
    """A view whose answers are parts of one tree."""

    model: Model
    tree: NodeTree
    kept: Callable[[Preorder, Mask], Mask]
    """Returns the nodes that the tree keeps, given the accounted nodes; the children of others move up."""
    ends_at_depth: bool
    """Whether ``max_depth`` ends the walk; otherwise it only hides nodes."""

    @property
    def depth(self) -> int:
        """Levels below the root."""
        return self.tree.depth

    def answer(self, options: Options, variables: Variables | None = None) -> Answer:
        """Accounts, filters and sorts the tree by ``options``."""
        return Answer(self, options, variables)


class Answer:
    """The displayed part of a view's tree.

    Args:
        view: the view.
        options: the question.
        variables: the variables whose values are shown, if any.
    """

    def __init__(self, view: TreeView, options: Options, variables: Variables | None) -> None:
        tree = view.tree
        self._model, self._tree, self._options = view.model, tree, options
        filters = Filters(options)
        self._own = tree.own(options.step)
        self._variables = variables if "tensor_value" in options.select else None
        self.accounted = tree.accounted(filters)
        """Whether each node's own figures count."""
        self._kept = view.kept(tree.shape, self.accounted)
        self._kept[0] = True
        own = np.where(self._kept, self._own, 0)
        self._total = tree.shape.below(own)
        self._total[:, 0] -= own[:, 0]
        self._walk(filters, view.ends_at_depth)
        is_displayed = self._walked & self._passes(filters)
        is_displayed[0] = True
        self._displayed = is_displayed
        if options.account_displayed_op_only:
            self._total = tree.shape.below(np.where(is_displayed, own, 0))
        self._order()

    def _walk(self, filters: Filters, ends_at_depth: bool) -> None:
        """The nodes that display reaches: from the starts down to the trimmed nodes."""
        tree, options, kept = self._tree, self._options, self._kept
        is_node = kept.copy()
        is_node[0] = False
        depth = tree.shape.above(kept.astype(np.int64)) + 1
        if filters.start.everything:
            starts = is_node & (depth == 2)
            self._walked = kept.copy()
        else:
            matches = is_node & tree.matching(filters.start.match)
            starts = matches & (tree.shape.above(matches.astype(np.int64)) == 0)
            outside = np.where(starts, depth - 2, 0)
            depth -= outside + tree.shape.above(outside)
            self._walked = is_node & (starts | (tree.shape.above(starts.astype(np.int64)) > 0))
            self._walked[0] = True
            depth[0] = 1
        self._starts = np.flatnonzero(starts)
        self._depth = depth
        if filters.trim.expressions:
            trimmed = self._walked & tree.matching(filters.trim.match)
            self._walked &= tree.shape.above(trimmed.astype(np.int64)) == 0
        if ends_at_depth:
            self._walked &= depth <= options.max_depth + 1

    def _passes(self, filters: Filters) -> Mask:
        """The nodes that pass all limits and name filters."""
        options, total, own = self._options, self._total, self._own
        passes: Mask = self._depth <= options.max_depth
        for figures, figure, least in (
            (own, "parameters", options.min_params),
            (own, "float_ops", options.min_float_ops),
            (own, "run_count", options.min_occurrence),
            (total, "requested_bytes", options.min_bytes),
            (total, "peak_bytes", options.min_peak_bytes),
            (total, "residual_bytes", options.min_residual_bytes),
            (total, "output_bytes", options.min_output_bytes),
            (total, "exec_micros", options.min_micros),
            (total, "accelerator_exec_micros", options.min_accelerator_micros),
            (total, "cpu_exec_micros", options.min_cpu_micros),
        ):
            passes &= figures[_ROW[figure]] >= least
        if not filters.show.everything:
            passes &= self._tree.matching(filters.show.match)
        if filters.hide.expressions:
            passes &= ~self._tree.matching(filters.hide.match)
        return passes

    def _order(self) -> None:
        """Sorts siblings: names ascending, figures by their total, largest first."""
        rows = np.flatnonzero(self._displayed)
        shape = self._tree.shape.part(self._displayed)
        if self._options.order_by:
            counter = ORDER_COUNTERS.get(self._options.order_by)
            key = self._tree.name_ranks if counter is None else ~self._total[_ROW[counter]]
            order = shape.sorted_by(key[rows])
            rows, sizes = rows[order], (shape.ends - np.arange(len(shape)))[order]
            shape = Preorder(np.arange(len(rows)) + sizes)
        self._rows = rows
        self._shape = shape

    @cached_property
    def _own_shown(self) -> Ints:
        return self._own[:, self._rows]

    @cached_property
    def _total_shown(self) -> Ints:
        return self._total[:, self._rows]

    @cached_property
    def _nodes(self) -> list[Node]:
        nodes = self._tree.nodes
        return [nodes[row] for row in self._rows.tolist()]

    @cached_property
    def _values(self) -> dict[int, tuple[str, TFProfTensorProto]]:
        """Displayed row -> the value of the variable, as text and as message."""
        if self._variables is None:
            return {}
        found = ((row, self._variables.value_of(node.name)) for row, node in enumerate(self._nodes[1:], 1))
        return {row: value for row, value in found if value is not None}

    # --- as text

    def text(self) -> str:
        """The view's legend and a line for each displayed node."""
        counted = ["".join(cells)[2:] for cells in zip(*self._columns(), strict=True)] or [""] * len(self._rows)
        indents = (2 * self._shape.depths).tolist()
        names = (node.name for node in self._nodes)
        lines = [
            f"{' ' * indent}{name} ({columns})\n" for indent, name, columns in zip(indents, names, counted, strict=True)
        ]
        for row, (value, _) in self._values.items():
            lines[row] += value
        return "".join([legend(self._options.select, of_tree=True), *lines])

    def _columns(self) -> Iterator[list[str]]:
        """The selected columns, with one cell per displayed node: empty, or after a comma."""
        select, nodes = self._options.select, self._nodes
        if "params" in select:
            yield [f", {formatting.shape(node.shape)}" if node.shape else "" for node in nodes]
            yield self._pairs("parameters", formatting.number, " params")
        if "float_ops" in select:
            yield self._pairs("float_ops", formatting.number, " flops")
        for counter, write in measured(self._options):
            yield self._pairs(counter, write)
        if "device" in select:
            yield [f", {node.device}" if node.device else "" for node in nodes]
        if "op_types" in select:
            yield [f", {'|'.join(sorted(node.op_types))}" for node in nodes]
        if "occurrence" in select:
            yield self._pairs("run_count", formatting.number)
            definitions = _texts(self._total_shown[_ROW["definition_count"]], formatting.number)
            is_accounted = self.accounted[self._rows].tolist()
            yield [f"|{'1' if own else '--'}/{of}" for own, of in zip(is_accounted, definitions, strict=True)]
        if "input_shapes" in select:
            shapes = (formatting.input_shapes(self._model.input_shapes(node)) for node in nodes)
            yield [f", {'|'.join(each)}" for each in shapes]

    def _pairs(self, figure: str, write: Callable[[int], str], unit: str = "") -> list[str]:
        """``own/total`` of each displayed node."""
        own = _texts(self._own_shown[_ROW[figure]], write)
        total = _texts(self._total_shown[_ROW[figure]], write)
        is_accounted = self.accounted[self._rows].tolist()
        return [
            f", {mine if counts else '--'}/{all_}{unit}"
            for mine, all_, counts in zip(own, total, is_accounted, strict=True)
        ]

    # --- as a tree of objects

    def root(self) -> Shown:
        """The root, with all displayed nodes below it."""
        own, total = self._own_shown.T.tolist(), self._total_shown.T.tolist()
        is_accounted = self.accounted[self._rows].tolist()
        made = [
            Shown(node, node.name, counts, Stats(mine), Stats(all_))
            for node, counts, mine, all_ in zip(self._nodes, is_accounted, own, total, strict=True)
        ]
        for below, parent in zip(made[1:], self._shape.parents[1:].tolist(), strict=True):
            made[parent].shown.append(below)
        return made[0]

    def accounted_nodes(self) -> dict[str, Node]:
        """The nodes whose own figures count, by name."""
        nodes = (self._tree.nodes[row] for row in np.flatnonzero(self.accounted).tolist())
        return {node.name: node for node in nodes}

    def placed(self) -> Iterable[Node]:
        """The nodes in a timeline of the answer, parents first.

        As in tfprof, the walk begins at the starts, displayed or not. Below displayed nodes it visits displayed nodes
        in their order, and below other nodes all nodes that accounting kept.
        """
        displayed = _children(self._rows, self._shape.parents)
        kept_rows = np.flatnonzero(self._kept)
        kept = _children(kept_rows, self._tree.shape.part(self._kept).parents)
        pending = self._starts[::-1].tolist()
        while pending:
            row = pending.pop()
            yield self._tree.nodes[row]
            pending.extend(reversed((displayed if self._displayed[row] else kept).get(row, [])))

    # --- as a message

    def message(self) -> GraphNodeProto:
        """The displayed tree as TensorFlow's message."""
        inputs = self._tree.encoded_inputs
        further = [inputs[row] for row in self._rows.tolist()]
        for row, (_, value) in self._values.items():
            further[row] += GraphNodeProto(tensor_value=value).SerializeToString()
        own, total = (dict(zip(FIGURES, figures, strict=True)) for figures in (self._own_shown, self._total_shown))
        numbers = {"run_count": own.pop("run_count"), "total_definition_count": total.pop("definition_count")}
        del own["definition_count"]
        return tree_message(
            self._shape,
            {**numbers, **own, **{f"total_{name}": values for name, values in total.items()}},
            {"name": [node.name for node in self._nodes], "devices": [node.device for node in self._nodes]},
            further,
        )


def _children(rows: Ints, parents: Ints) -> dict[int, list[int]]:
    """Row of the tree -> its children among ``rows``; ``parents`` are indices into ``rows``."""
    found: dict[int, list[int]] = {}
    for row, parent in zip(rows[1:].tolist(), rows[parents[1:]].tolist(), strict=True):
        found.setdefault(parent, []).append(row)
    return found


def measured(options: Options) -> list[tuple[str, Callable[[int], str]]]:
    """(counter, formatting function) of the selected memory and time columns."""
    counters = (*selected_sizes(options.select), *selected_times(options.select))
    return [(counter, formatting.UNITS.get(counter, formatting.memory)) for counter, _ in counters]


def _texts(values: Ints, write: Callable[[int], str]) -> list[str]:
    """Each value as text; many are equal."""
    distinct, places = np.unique(values, return_inverse=True)
    texts = [write(value) for value in distinct.tolist()]
    return [texts[place] for place in places.reshape(-1).tolist()]
