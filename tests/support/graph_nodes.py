"""The nodes of CUDA graphs in a recording: those of our own kernels, and sets and copies, whatever runs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from collector.recording.cupti_enums import GRAPH_DEGREES

OWN = ("empty_kernel", "other_empty_kernel", "spin")
"""Names of `cuda_program`'s kernels without arguments of templates."""
SETS, COPIES = "memset", "memcpy"
"""The beginnings of the names of kernels by which a driver may run a set or a copy of a graph, such as memset32."""


class GraphNodes:
    """The activities of a step: `kernels` are ours alone; `sets` and `copies` are those of both kinds of records."""

    def __init__(self, step: Any) -> None:
        names = step.kernels.names()
        self.kernels = step.kernels[[row for row, name in enumerate(names) if name in OWN]]
        self._by_kernels = {
            what: step.kernels[[row for row, name in enumerate(names) if name.lower().lstrip("_").startswith(what)]]
            for what in (SETS, COPIES)
        }
        self._tables = {SETS: step.memsets, COPIES: step.memcpys}
        known = [*OWN, *self._by_kernels[SETS].names(), *self._by_kernels[COPIES].names()]
        self.unknown = Counter(names) - Counter({name: len(names) for name in known})
        """Kernels that are neither ours nor sets or copies: the name of each, and how many."""

    def sets_and_copies(self) -> Iterator[tuple[Counter[str], Counter[str]]]:
        """Of the sets, then of the copies: how many have each annotation, and how many each degree."""
        for what, table in self._tables.items():
            both = (table, self._by_kernels[what])
            yield (
                Counter(name for each in both for name in each.annotations()),
                Counter(GRAPH_DEGREES[degree] for each in both for degree in each.graph_degree.tolist()),
            )

    def counts(self) -> tuple[int, int, int]:
        """The number of our kernels, of sets and of copies."""
        sets, copies = (names.total() for names, _ in self.sets_and_copies())
        return len(self.kernels), sets, copies

    def remark(self) -> str:
        """What ran the sets and copies; empty if there are records of their own for all of them."""
        found = Counter(name for table in self._by_kernels.values() for name in table.names())
        return f"the driver ran nodes as kernels of its own: {dict(found)}" if found else ""


def nodes_by_graph(kernels: Any) -> dict[int, Counter[tuple[int, str]]]:
    """Graph id -> (node id, name) -> the number of its kernels; graphs in the order of their first kernel."""
    found: dict[int, Counter[tuple[int, str]]] = {}
    rows = zip(
        kernels.start_ns.tolist(),
        kernels.graph_id.tolist(),
        kernels.graph_node_id.tolist(),
        kernels.names(),
        strict=True,
    )
    for _, graph, node, name in sorted(rows):
        found.setdefault(graph, Counter())[node, name] += 1
    return found


def assert_graphs(kernels: Any, wanted: dict[str, dict[str, int]], launches: int, what: str = "") -> None:
    """Assert the nodes of every graph by themselves.

    Args:
        kernels: the kernels of a step.
        wanted: for each graph, in the order of the first launches, how many nodes have each name of a kernel.
        launches: of each graph.
        what: added to the message.
    """
    found = nodes_by_graph(kernels)
    problems = []
    for label, graph in zip(wanted, [*found, *[None] * len(wanted)], strict=False):
        counts = found[graph] if graph is not None else Counter()
        nodes = Counter(name for _, name in counts)
        short = {node: count for node, count in counts.items() if count != launches}
        if nodes != Counter(wanted[label]) or short:
            problems.append(
                f"{label} (graph {graph}): nodes {dict(nodes)} of {wanted[label]}; nodes that are not recorded "
                f"{launches} times: {short}"
            )
    if len(found) != len(wanted):
        problems.append(f"{len(found)} graphs instead of {len(wanted)}")
    shown = {graph: dict(counts) for graph, counts in found.items()} if problems else {}
    assert not problems, "\n".join([*problems, what, f"kernels by graph and node: {shown}"])
