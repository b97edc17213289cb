"""The order of CUPTI's callbacks while CUDA graphs are built and updated, and the ids in the records of their launches.

The notation: 9 is the id of the callback in the domain RESOURCE, ``g0`` a graph by the order of its first appearance,
``n0`` a node. ``20(n2←n0)`` is a node that was copied from another one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graph_sessions import BOUNDARIES, graph_sessions
from notes import Notes
from raw_cupti import FORCE, RESOURCE_DOMAIN, SUCCESS, RawCupti
from record_questions import HostNodeParams, host_function
from simulated_graph_programs import SimulatedGraphs

if TYPE_CHECKING:
    from asked_card import Card

CREATED, DESTROYED, CLONED = 9, 10, 11
NODE_STARTING, NODE_CREATED, NODE_DESTROYED = 12, 13, 14
EXECUTABLE_STARTING, EXECUTABLE_CREATED, EXECUTABLE_DESTROYED = 17, 18, 19
NODE_CLONED, NODE_UPDATED, NODE_SET = 20, 22, 23
GRAPH_CALLBACKS = (*range(CREATED, 21), NODE_UPDATED, NODE_SET)
CONDITIONAL_NODE, IF, WHILE = 13, 0, 1
NODE_PARAMETER_BYTES, NODE_PARAMETERS_BEGIN = 256, 16


class _GraphData(ctypes.Structure):
    """CUpti_GraphData."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("graph", "original_graph", "node", "original_node")),
        ("node_type", ctypes.c_uint64),
        ("dependency", ctypes.c_void_p), ("executable", ctypes.c_void_p),
    )  # fmt: skip


class _KernelNodeParams(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = (
        ("function", ctypes.c_void_p), ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint), ("parameters", ctypes.c_void_p), ("extra", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p), ("context", ctypes.c_void_p),
    )  # fmt: skip


class _ConditionalParams(ctypes.Structure):
    """CUDA_CONDITIONAL_NODE_PARAMS."""

    _fields_ = (
        ("handle", ctypes.c_uint64), ("type", ctypes.c_int), ("size", ctypes.c_uint),
        ("bodies", ctypes.POINTER(ctypes.c_void_p)), ("context", ctypes.c_void_p),
    )  # fmt: skip


@dataclass
class Sequence:
    """The callbacks since it was begun, in the notation of this module."""

    cupti: RawCupti
    texts: list[str] = field(default_factory=list)
    graphs: dict[int, str] = field(default_factory=dict)
    nodes: dict[int, str] = field(default_factory=dict)

    def called(self, _domain: int, callback_id: int, data: int) -> None:
        """Add a callback."""
        graph = _GraphData.from_address(ctypes.c_void_p.from_address(data + 16).value or 0)
        text = str(callback_id)
        if callback_id in (CREATED, DESTROYED):
            text += f"({self._graph(graph.graph)})"
        elif callback_id == CLONED:
            text += f"({self._graph(graph.graph)}←{self._graph(graph.original_graph)})"
        elif callback_id in (NODE_CREATED, NODE_DESTROYED):
            text += f"({self._node(graph.node)})"
        elif callback_id in (NODE_CLONED, NODE_UPDATED, NODE_SET):
            text += f"({self._node(graph.node)}←{self._node(graph.original_node)})"
        elif callback_id == NODE_STARTING:
            text += f"[type {graph.node_type & 0xFFFFFFFF}]" if graph.node_type & 0xFFFFFFFF else ""
        elif callback_id in (EXECUTABLE_CREATED, EXECUTABLE_DESTROYED):
            text += f"(graph={self._graph(graph.graph)}, exec={self._executable(graph.executable)})"
        self.texts.append(text)

    def _graph(self, handle: int | None) -> str:
        number = ctypes.c_uint32()
        result = self.cupti.call("cuptiGetGraphId", ctypes.c_void_p(handle), ctypes.byref(number)) if handle else 1
        return self._graph_of_id(number.value) if result == SUCCESS else "-"

    def _executable(self, handle: int | None) -> str:
        number = ctypes.c_uint32()
        result = self.cupti.call("cuptiGetGraphExecId", ctypes.c_void_p(handle), ctypes.byref(number)) if handle else 1
        return self._graph_of_id(number.value) if result == SUCCESS else "-"

    def _graph_of_id(self, number: int) -> str:
        return self.graphs.setdefault(number, f"g{len(self.graphs)}")

    def _node(self, handle: int | None) -> str:
        number = ctypes.c_uint64()
        result = self.cupti.call("cuptiGetGraphNodeId", ctypes.c_void_p(handle), ctypes.byref(number)) if handle else 1
        return self.nodes.setdefault(number.value, f"n{len(self.nodes)}") if result == SUCCESS else "-"

    def place(self, node_id: int) -> str:
        """A node's id as graph and place, with its name where it has one."""
        graph, place = node_id >> 32, node_id & 0xFFFFFFFF
        name = self.nodes.get(node_id)
        return f"{self.graphs.get(graph, graph)}:{place}" + (f" ({name})" if name else "")

    def taken(self) -> str:
        """The callbacks since the last call."""
        texts, self.texts = self.texts, []
        return " ".join(texts) or "no callback"

    def legend(self) -> str:
        """The ids of the graphs and nodes."""
        graphs = ", ".join(f"{name}={number}" for number, name in self.graphs.items())
        nodes = ", ".join(f"{name}={number >> 32}:{number & 0xFFFFFFFF}" for number, name in self.nodes.items())
        return f"graphs {graphs or 'none'}; nodes (graph:place) {nodes or 'none'}"


@dataclass
class Builder:
    """Builds graphs with the driver, and notes the callbacks of each step."""

    card: Card
    notes: Notes
    sequence: Sequence
    kept: list[Any] = field(default_factory=list)
    """The memory of the kernels' parameters, which the driver reads when a node is added."""

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Note the callbacks of a step, also of one that fails."""
        try:
            yield
        finally:
            callbacks = self.sequence.taken()
            self.notes.saw(f"{text}: `{callbacks}`", **{text: callbacks})

    def graph(self, *kernels: str) -> ctypes.c_void_p:
        """A graph of kernels one after another."""
        graph, last = ctypes.c_void_p(), None
        self.card.driver.must("cuGraphCreate", ctypes.byref(graph), 0)
        for kernel in kernels:
            last = self.add_kernel(graph, kernel, last)
        return graph

    def add_kernel(self, graph: ctypes.c_void_p, kernel: str, after: ctypes.c_void_p | None = None) -> ctypes.c_void_p:
        """Add a kernel node; returns it."""
        node, parameters = ctypes.c_void_p(), self.kernel(kernel)
        self.card.driver.must(
            "cuGraphAddKernelNode_v2", ctypes.byref(node), graph, None if after is None else ctypes.byref(after),
            ctypes.c_size_t(after is not None), ctypes.byref(parameters),
        )  # fmt: skip
        return node

    def add_child(self, graph: ctypes.c_void_p, child: ctypes.c_void_p) -> ctypes.c_void_p:
        """Add a child graph node that depends on no other; returns it."""
        node = ctypes.c_void_p()
        self.card.driver.must("cuGraphAddChildGraphNode", ctypes.byref(node), graph, None, ctypes.c_size_t(0), child)
        return node

    def add_empty(self, graph: ctypes.c_void_p) -> None:
        """Add an empty node that depends on no other."""
        node = ctypes.c_void_p()
        self.card.driver.must("cuGraphAddEmptyNode", ctypes.byref(node), graph, None, ctypes.c_size_t(0))

    def kernel(self, name: str) -> _KernelNodeParams:
        """The parameters of a kernel node; of ``spin`` for a microsecond."""
        duration = ctypes.c_longlong(1_000)
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(duration))
        parameters = _KernelNodeParams(self.card.function(name).value, (1, 1, 1), (1, 1, 1))
        if name == "spin":
            parameters.parameters = ctypes.addressof(pointers)
            self.kept += [duration, pointers]
        return parameters

    def instantiate(self, graph: ctypes.c_void_p) -> ctypes.c_void_p:
        """Make an executable graph."""
        executable = ctypes.c_void_p()
        self.card.driver.must("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
        return executable

    def launch(self, executable: ctypes.c_void_p) -> None:
        """Launch twice, wait, and note the records."""
        stream = ctypes.c_void_p(self.card.stream())
        with self.step("two launches"):
            for _ in range(2):
                self.card.driver.must("cuGraphLaunch", executable, stream)
            self.card.cuda.synchronize()
        self.note_records()

    def note_records(self) -> None:
        """Note the ids in the records since the last call."""
        cupti = self.sequence.cupti
        cupti.flush()
        cupti.flush(FORCE)
        for record in cupti.records("CONCURRENT_KERNEL", "GRAPH_HOST_NODE"):
            if record.kind == 10:
                graph, node, name = record.u32(156), record.u64(144), record.text(104)
            else:
                graph, node, name = record.u32(20), record.u64(24), "host node"
            if graph:
                shown = self.sequence.graphs.get(graph, str(graph))
                self.notes.saw(f"record of {name}: graph {shown}, node {self.sequence.place(node)}", node=node)
        cupti.completed.clear()
        self.notes.saw(self.sequence.legend())


def graphs(notes: Notes, card: Card, part: str) -> None:
    """The callbacks of one way to build a graph, and the records of its launches; or the ids in several sessions."""
    if part in BOUNDARIES:
        graph_sessions(notes, card, part)
        return
    cupti = card.cupti
    cupti.collect("CONCURRENT_KERNEL")
    host_nodes = cupti.enable("GRAPH_HOST_NODE")["GRAPH_HOST_NODE"]
    sequence = Sequence(cupti)
    subscriber = cupti.subscribe(sequence.called)
    for callback_id in GRAPH_CALLBACKS:
        result = cupti.call("cuptiEnableCallback", 1, subscriber, RESOURCE_DOMAIN, callback_id)
        if result != SUCCESS:
            notes.saw(f"cuptiEnableCallback(RESOURCE, {callback_id}): {cupti.name_of(result)}")
    card.cuda.synchronize()
    sequence.taken()
    notes.did(
        f"Callbacks of the domain RESOURCE with the ids {GRAPH_CALLBACKS[0]} to {GRAPH_CALLBACKS[-1]}, and kernel "
        f"records; GRAPH_HOST_NODE: {cupti.name_of(host_nodes)}"
    )
    builder = Builder(card, notes, sequence)
    if card.is_simulated and (program := _simulated_programs(builder).get(part)):
        program()
    else:
        _PROGRAMS[part](builder)


def _simulated_programs(builder: Builder) -> dict[str, Callable[[], None]]:
    from collector.testing import SimulatedGpu

    return SimulatedGraphs(builder, SimulatedGpu.current()).programs()


def _capture(builder: Builder) -> None:
    """Two kernels, captured from a stream."""
    cuda, driver = builder.card.cuda, builder.card.driver
    stream, graph = ctypes.c_void_p(builder.card.stream()), ctypes.c_void_p()
    with builder.step("capture of two kernels"):
        driver.must("cuStreamBeginCapture_v2", stream, 1)
        cuda.launch_empty(2, stream.value)
        driver.must("cuStreamEndCapture", stream, ctypes.byref(graph))
    with builder.step("instantiate"):
        executable = builder.instantiate(graph)
    builder.launch(executable)
    clone = ctypes.c_void_p()
    with builder.step("clone"):
        driver.must("cuGraphClone", ctypes.byref(clone), graph)
    with builder.step("destroy the executable"):
        driver.must("cuGraphExecDestroy", executable)
    with builder.step("destroy the graph"):
        driver.must("cuGraphDestroy", graph)


def _child(builder: Builder) -> None:
    """A kernel, then a child graph of two."""
    with builder.step("child graph of two kernels"):
        child = builder.graph("empty_kernel", "spin")
    with builder.step("parent graph with one kernel"):
        parent = builder.graph("empty_kernel")
    with builder.step("add the child graph"):
        builder.add_child(parent, child)
    with builder.step("instantiate"):
        executable = builder.instantiate(parent)
    builder.launch(executable)


def _two_children(builder: Builder) -> None:
    """Child graphs of two kernels and of one, and then a kernel; and the ends of both."""
    with builder.step("child graphs"):
        first, second = builder.graph("empty_kernel", "spin"), builder.graph("other_empty_kernel")
    with builder.step("parent graph"):
        parent = builder.graph()
        for child in (first, second):
            builder.add_child(parent, child)
        builder.add_kernel(parent, "spin")
    with builder.step("instantiate"):
        executable = builder.instantiate(parent)
    builder.launch(executable)
    with builder.step("destroy the executable"):
        builder.card.driver.must("cuGraphExecDestroy", executable)
    with builder.step("destroy the parent"):
        builder.card.driver.must("cuGraphDestroy", parent)


def _nested_children(builder: Builder) -> None:
    """A kernel and a child graph; in it an empty node, a kernel and a child graph of a kernel."""
    with builder.step("inner graph"):
        inner = builder.graph("other_empty_kernel")
    with builder.step("middle graph"):
        middle = builder.graph()
        builder.add_empty(middle)
        builder.add_kernel(middle, "empty_kernel")
        builder.add_child(middle, inner)
    with builder.step("parent graph"):
        parent = builder.graph("spin")
        builder.add_child(parent, middle)
    with builder.step("instantiate"):
        executable = builder.instantiate(parent)
    builder.launch(executable)


def _updated_child(builder: Builder) -> None:
    """cuGraphExecUpdate_v2 where a kernel of the child graph differs, and cuGraphExecChildGraphNodeSetParams."""
    driver, parents, nodes = builder.card.driver, [], []
    for kernel in ("empty_kernel", "other_empty_kernel"):
        with builder.step(f"parent and child graph with {kernel}"):
            parents.append(builder.graph("spin"))
            nodes.append(builder.add_child(parents[-1], builder.graph("empty_kernel", kernel)))
    with builder.step("instantiate"):
        executable = builder.instantiate(parents[0])
    builder.launch(executable)
    info = (ctypes.c_uint64 * 3)()
    with builder.step("cuGraphExecUpdate_v2"):
        result = driver.call("cuGraphExecUpdate_v2", executable, parents[1], ctypes.byref(info))
    builder.notes.saw(f"it returned {driver.name_of(result)}, result of the update {info[0] & 0xFFFFFFFF}")
    builder.launch(executable)
    with builder.step("a graph of two kernels"):
        other = builder.graph("empty_kernel", "empty_kernel")
    with builder.step("cuGraphExecChildGraphNodeSetParams"):
        result = driver.call("cuGraphExecChildGraphNodeSetParams", executable, nodes[0], other)
    builder.notes.saw(f"it returned {driver.name_of(result)}")
    builder.launch(executable)


def _swapped(builder: Builder) -> None:
    """cuGraphExecUpdate_v2 with a graph in which two unconnected chains were added in the other order."""
    driver = builder.card.driver
    with builder.step("graph of two chains"):
        graph = builder.graph("empty_kernel", "spin")
        builder.add_kernel(graph, "other_empty_kernel")
    with builder.step("instantiate"):
        executable = builder.instantiate(graph)
    with builder.step("the same in the other order"):
        other = builder.graph("other_empty_kernel")
        builder.add_kernel(other, "spin", builder.add_kernel(other, "empty_kernel"))
    info = (ctypes.c_uint64 * 3)()
    with builder.step("cuGraphExecUpdate_v2"):
        result = driver.call("cuGraphExecUpdate_v2", executable, other, ctypes.byref(info))
    builder.notes.saw(f"it returned {driver.name_of(result)}, result of the update {info[0] & 0xFFFFFFFF}")
    builder.launch(executable)


def _conditional(kind: int, num_bodies: int = 1) -> Callable[[Builder], None]:
    """A kernel, and a conditional node whose bodies are kernels: IF runs the first one once, WHILE never."""

    def build(builder: Builder) -> None:
        driver = builder.card.driver
        with builder.step("graph of one kernel"):
            graph = builder.graph("empty_kernel")
        handle, context, node = ctypes.c_uint64(), ctypes.c_void_p(), ctypes.c_void_p()
        driver.must("cuCtxGetCurrent", ctypes.byref(context))
        driver.must("cuGraphConditionalHandleCreate", ctypes.byref(handle), graph, context, 1 - kind, 1)
        parameters = (ctypes.c_uint8 * NODE_PARAMETER_BYTES)()
        ctypes.c_int.from_buffer(parameters).value = CONDITIONAL_NODE
        conditional = _ConditionalParams.from_buffer(parameters, NODE_PARAMETERS_BEGIN)
        conditional.handle, conditional.type, conditional.size = handle.value, kind, num_bodies
        conditional.context = context.value
        with builder.step("add the conditional node"):
            driver.must(
                "cuGraphAddNode_v2", ctypes.byref(node), graph, None, None, ctypes.c_size_t(0), ctypes.byref(parameters)
            )
        for kernel, body in zip(("spin", "other_empty_kernel"), conditional.bodies[:num_bodies], strict=False):
            with builder.step("add a kernel to its body" if kernel == "spin" else "add a kernel to the other body"):
                builder.add_kernel(ctypes.c_void_p(body), kernel)
        with builder.step("instantiate"):
            executable = builder.instantiate(graph)
        builder.launch(executable)

    return build


def _updated(builder: Builder) -> None:
    """cuGraphExecUpdate_v2 with another graph of the same shape."""
    with builder.step("graph of two kernels"):
        graph = builder.graph("empty_kernel", "empty_kernel")
    with builder.step("instantiate"):
        executable = builder.instantiate(graph)
    builder.launch(executable)
    with builder.step("another graph, with spin in the second place"):
        other = builder.graph("empty_kernel", "spin")
    info = (ctypes.c_uint64 * 3)()
    with builder.step("cuGraphExecUpdate_v2"):
        result = builder.card.driver.call("cuGraphExecUpdate_v2", executable, other, ctypes.byref(info))
    builder.notes.saw(f"it returned {builder.card.driver.name_of(result)}, result of the update {info[0] & 0xFFFFFFFF}")
    builder.launch(executable)


def _parameters_set(builder: Builder) -> None:
    """cuGraphExecKernelNodeSetParams_v2 and cuGraphKernelNodeSetParams_v2."""
    driver = builder.card.driver
    with builder.step("graph of one kernel"):
        graph = builder.graph()
        node = builder.add_kernel(graph, "empty_kernel")
    with builder.step("instantiate"):
        executable = builder.instantiate(graph)
    builder.launch(executable)
    parameters = builder.kernel("spin")
    with builder.step("cuGraphExecKernelNodeSetParams_v2"):
        driver.must("cuGraphExecKernelNodeSetParams_v2", executable, node, ctypes.byref(parameters))
    builder.launch(executable)
    with builder.step("cuGraphKernelNodeSetParams_v2"):
        driver.must("cuGraphKernelNodeSetParams_v2", node, ctypes.byref(parameters))
    with builder.step("instantiate again"):
        builder.instantiate(graph)


def _memory_and_host(builder: Builder) -> None:
    """Captured allocation, kernel and release, with a host node and an empty one in front."""
    cuda, driver = builder.card.cuda, builder.card.driver
    stream, graph, node = ctypes.c_void_p(builder.card.stream()), ctypes.c_void_p(), ctypes.c_void_p()
    with builder.step("capture of an allocation, a kernel and a release"):
        driver.must("cuStreamBeginCapture_v2", stream, 1)
        address = cuda.allocate_in_order(1 << 20, stream.value)
        cuda.launch_empty(1, stream.value)
        cuda.free_in_order(address, stream.value)
        driver.must("cuStreamEndCapture", stream, ctypes.byref(graph))
    parameters = HostNodeParams(host_function(), None)
    with builder.step("add a host node"):
        driver.must("cuGraphAddHostNode", ctypes.byref(node), graph, None, ctypes.c_size_t(0), ctypes.byref(parameters))
    with builder.step("add an empty node"):
        builder.add_empty(graph)
    with builder.step("instantiate"):
        executable = builder.instantiate(graph)
    builder.launch(executable)


_PROGRAMS: dict[str, Callable[[Builder], None]] = {
    "capture": _capture,
    "child graph": _child,
    "conditional IF": _conditional(IF),
    "conditional WHILE": _conditional(WHILE),
    "two child graphs": _two_children,
    "nested child graphs": _nested_children,
    "conditional IF and ELSE": _conditional(IF, 2),
    "cuGraphExecUpdate": _updated,
    "update of a child graph": _updated_child,
    "update in another order": _swapped,
    "set parameters": _parameters_set,
    "memory and host nodes": _memory_and_host,
}
"""Part of the question -> its program."""
PARTS = (*BOUNDARIES, *_PROGRAMS)
"""All parts, in the order of their importance."""
