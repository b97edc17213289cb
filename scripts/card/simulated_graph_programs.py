"""The programs of `graph_questions` on the simulator, whose driver has no functions for graphs: it builds its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager


class Builder(Protocol):
    """Notes the callbacks of each step, and the records of launches."""

    def step(self, text: str) -> AbstractContextManager[None]:
        """Note the callbacks of a step."""

    def note_records(self) -> None:
        """Note the ids in the records since the last call."""


class SimulatedGraphs:
    """Builds the simulator's graphs.

    Args:
        builder: notes what happens.
        gpu: the simulated GPU.
    """

    def __init__(self, builder: Builder, gpu: Any) -> None:
        self.step = builder.step
        self._note_records = builder.note_records
        self._gpu = gpu

    def graph(self, *kernels: str, into: Any = None) -> Any:
        """A graph of kernels one after another, or one to which they are added."""
        with self._gpu.capture(into=into) as graph:
            for kernel in kernels:
                self._gpu.launch(kernel)
        return graph

    def launch(self, executable: Any) -> None:
        """Launch twice, wait, and note the records."""
        with self.step("two launches"):
            executable.launch()
            executable.launch()
            self._gpu.synchronize()
        self._note_records()

    def capture(self) -> None:
        """Two kernels; a clone; the ends of both."""
        with self.step("capture of two kernels"):
            graph = self.graph("empty_kernel", "empty_kernel")
        with self.step("instantiate"):
            executable = graph.instantiate()
        self.launch(executable)
        with self.step("clone"):
            graph.clone()
        with self.step("destroy the executable"):
            executable.destroy()
        with self.step("destroy the graph"):
            graph.destroy()

    def child(self) -> None:
        """A kernel, then a child graph of two."""
        with self.step("child graph of two kernels"):
            child = self.graph("empty_kernel", "spin")
        with self.step("parent graph with one kernel"):
            parent = self.graph("empty_kernel")
        with self.step("add the child graph"):
            parent.add_child(child)
        with self.step("instantiate"):
            executable = parent.instantiate()
        self.launch(executable)

    def conditional(self, *, runs: bool) -> None:
        """A kernel, and a conditional node whose body is another."""
        with self.step("graph of one kernel"):
            graph = self.graph("empty_kernel")
        with self.step("add the conditional node"):
            body = graph.add_conditional(runs=runs)
        with self.step("add a kernel to its body"):
            self.graph("spin", into=body)
        with self.step("instantiate"):
            executable = graph.instantiate()
        self.launch(executable)

    def updated(self) -> None:
        """An update that changes the second of two kernels."""
        with self.step("graph of two kernels"):
            graph = self.graph("empty_kernel", "empty_kernel")
        with self.step("instantiate"):
            executable = graph.instantiate()
        self.launch(executable)
        with self.step("another graph, with spin in the second place"):
            other = self.graph("empty_kernel", "spin")
        with self.step("cuGraphExecUpdate_v2"):
            executable.update(other)
        self.launch(executable)

    def parameters_set(self) -> None:
        """The parameters of a kernel, set in the executable graph."""
        with self.step("graph of one kernel"):
            graph = self.graph("empty_kernel")
        with self.step("instantiate"):
            executable = graph.instantiate()
        self.launch(executable)
        with self.step("cuGraphExecKernelNodeSetParams_v2"):
            executable.set_kernel(graph, 0, "spin")
        self.launch(executable)
        with self.step("instantiate again"):
            graph.instantiate()

    def programs(self) -> dict[str, Callable[[], None]]:
        """Part of the question -> its program."""
        return {
            "capture": self.capture,
            "child graph": self.child,
            "conditional IF": lambda: self.conditional(runs=True),
            "conditional WHILE": lambda: self.conditional(runs=False),
            "cuGraphExecUpdate": self.updated,
            "set parameters": self.parameters_set,
        }
