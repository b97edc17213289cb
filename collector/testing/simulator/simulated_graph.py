"""CUDA graphs of the simulated program: captured, copied, made executable, updated and launched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.errors import CollectorError

if TYPE_CHECKING:
    import ctypes


class _Handle:
    """The driver's handle of a graph. After the graph is destroyed the driver may use it for another one."""

    def __init__(self, library: ctypes.CDLL, handle: int) -> None:
        self._library = library
        self.handle = handle
        self.id = int(library.sim_graph_id(handle))
        """CUPTI's id, which never comes back."""

    def destroy(self) -> None:
        """Destroy the graph.

        Raises:
            CollectorError: the graph was destroyed before.
        """
        if self._library.sim_graph_id(self.handle) != self.id or self._library.sim_destroy_graph(self.handle) != 0:
            raise CollectorError(f"graph {self.id} was destroyed before")


class SimulatedGraph(_Handle):
    """A graph that was captured or cloned."""

    def instantiate(self) -> ExecutableGraph:
        """Make an executable graph of it."""
        return ExecutableGraph(self._library, self._library.sim_instantiate(self.handle))

    def add_empty_node(self) -> None:
        """Add a node that does nothing and that no other depends on; executable graphs have no such nodes."""
        self._library.sim_add_empty_node(self.handle)

    def add_child(self, child: SimulatedGraph) -> None:
        """Add a node that stands for a copy of another graph; no other node depends on it.

        Raises:
            CollectorError: the graph was destroyed before.
        """
        if self._library.sim_add_child_graph(self.handle, child.handle) != 0:
            raise CollectorError(f"graph {child.id} was destroyed before")

    def add_conditional(self, *, runs: bool = True) -> SimulatedGraph:
        """Add a conditional node, and return its body, to which a capture can add nodes.

        Args:
            runs: whether the body runs in each launch, as that of IF with a true condition, or never.
        """
        return SimulatedGraph(self._library, self._library.sim_add_conditional(self.handle, int(runs)))

    def clone(self) -> SimulatedGraph:
        """Copy it."""
        return SimulatedGraph(self._library, self._library.sim_clone_graph(self.handle))


class ExecutableGraph(_Handle):
    """A graph that can be launched."""

    def launch(self, *, stream: int = 7) -> int:
        """Launch it into a stream; returns the correlation id that all its activities have."""
        return int(self._library.sim_launch_executable(self.handle, stream))

    def update(self, graph: SimulatedGraph) -> None:
        """Let its nodes take over the parameters of another graph's.

        Raises:
            CollectorError: the two graphs differ in their nodes.
        """
        if self._library.sim_update_graph(self.handle, graph.handle) != 0:
            raise CollectorError(f"graph {self.id} has other nodes than graph {graph.id}")

    def set_kernel(self, graph: SimulatedGraph, place: int, name: str, *, duration_ns: int = 10_000) -> None:
        """Set the parameters of one kernel.

        Args:
            graph: the graph of which this is an executable one.
            place: the index of the node in the graph, from 0.
            name: the name of the kernel from now on.
            duration_ns: the time that the kernel takes.

        Raises:
            CollectorError: there is no kernel at that place.
        """
        if self._library.sim_set_kernel(self.handle, graph.handle, place, name.encode(), duration_ns) != 0:
            raise CollectorError(f"graph {self.id} has no kernel at place {place}")

    def set_child(self, graph: SimulatedGraph, place: int, child: SimulatedGraph) -> None:
        """Let the nodes of a child graph take over the parameters of another graph's.

        Args:
            graph: the graph of which this is an executable one.
            place: the index of the node that stands for the child graph, from 0.
            child: the other graph, with as many nodes.

        Raises:
            CollectorError: there is no child graph with as many nodes at that place.
        """
        if self._library.sim_set_child_graph(self.handle, graph.handle, place, child.handle) != 0:
            raise CollectorError(f"graph {self.id} has no child graph at place {place}")


class Capture:
    """The with block in which a thread's calls become nodes of a graph; its value is the graph."""

    def __init__(self, library: ctypes.CDLL, stream: int, into: SimulatedGraph | None = None) -> None:
        self._library = library
        self._stream = stream
        self._into = into

    def __enter__(self) -> SimulatedGraph:
        handle = self._library.sim_begin_capture(self._stream, self._into.handle if self._into else None)
        if not handle:
            raise CollectorError("this thread captures a graph already", "End that capture first")
        return SimulatedGraph(self._library, handle)

    def __exit__(self, *_: object) -> None:
        self._library.sim_end_capture()
