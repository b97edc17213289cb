"""CUDA graphs of the simulator: ids and order of callbacks are those that NVIDIA's libcupti 13.0 printed on a GPU."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from cupti_client import CONCURRENT_KERNEL, MEMCPY, MEMCPY2, RUNTIME, SUCCESS, CuptiClient

from collector.errors import CollectorError
from collector.testing import SimulatedGpu
from collector.testing.simulator.simulated_graph import SimulatedGraph

pytestmark = pytest.mark.simulator

RESOURCE_DOMAIN = 3
GRAPH_TRACE = 51
(
    GRAPH_CREATED,
    GRAPH_DESTROY,
    GRAPH_CLONED,
    NODE_STARTING,
    NODE_CREATED,
    NODE_DESTROY,
    EDGE_CREATED,
) = range(9, 16)
EXEC_STARTING, EXEC_CREATED, EXEC_DESTROY, NODE_CLONED, NODE_UPDATED, NODE_SET_PARAMS = 17, 18, 19, 20, 22, 23
EMPTY = 5
"""``CU_GRAPH_NODE_TYPE_EMPTY``."""


class GraphData(ctypes.Structure):
    """CUpti_GraphData."""

    _fields_ = (
        ("graph", ctypes.c_void_p),
        ("original_graph", ctypes.c_void_p),
        ("node", ctypes.c_void_p),
        ("original_node", ctypes.c_void_p),
        ("node_type", ctypes.c_uint32),
        ("dependency", ctypes.c_void_p),
        ("executable", ctypes.c_void_p),
    )


class ResourceData(ctypes.Structure):
    """CUpti_ResourceData."""

    _fields_ = (
        ("context", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
        ("descriptor", ctypes.POINTER(GraphData)),
    )


CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.POINTER(ResourceData))


class GraphWatcher:
    """A subscriber that notes every callback about graphs, with the ids that CUPTI gives to its handles."""

    def __init__(self, client: CuptiClient) -> None:
        self._client = client
        self.seen: list[tuple[int, ...]] = []
        self.contexts: set[int] = set()
        self.types: list[int] = []
        """The type of the node in each callback."""
        self._callback = CALLBACK(self._notice)
        self._subscriber = ctypes.c_void_p()
        client.check("cuptiSubscribe", ctypes.byref(self._subscriber), self._callback, None)
        client.check("cuptiEnableDomain", 1, self._subscriber, RESOURCE_DOMAIN)

    def _id(self, function: str, handle: int | None, kind: Any = ctypes.c_uint32) -> int:
        found = kind()
        self._client.check(function, ctypes.c_void_p(handle), ctypes.byref(found))
        return int(found.value)

    def _notice(self, _: int, domain: int, callback: int, data: Any) -> None:
        graph = data.contents.descriptor.contents
        if data.contents.context:
            self.contexts.add(callback)
        node = lambda handle: self._id("cuptiGetGraphNodeId", handle, ctypes.c_uint64)  # noqa: E731
        ids: tuple[int, ...] = ()
        if callback in (GRAPH_CREATED, GRAPH_DESTROY):
            ids = (self._id("cuptiGetGraphId", graph.graph),)
        elif callback in (NODE_CREATED, NODE_DESTROY):
            ids = (node(graph.node),)
        elif callback in (NODE_CLONED, NODE_UPDATED, NODE_SET_PARAMS):
            ids = (node(graph.node), node(graph.original_node))
        elif callback == EXEC_CREATED:
            ids = (self._id("cuptiGetGraphId", graph.graph), self._id("cuptiGetGraphExecId", graph.executable))
        elif callback == EXEC_DESTROY:
            ids = (self._id("cuptiGetGraphExecId", graph.executable),)
        self.seen.append((callback, *ids))
        self.types.append(int(graph.node_type))

    def take(self) -> list[tuple[int, ...]]:
        seen, self.seen = self.seen, []
        return seen


def node_id(graph: int, place: int) -> int:
    return graph << 32 | place


def captured(gpu: SimulatedGpu) -> SimulatedGraph:
    with gpu.capture() as graph:
        gpu.launch("first")
        gpu.launch("second")
    return graph


@pytest.fixture
def watched() -> Any:
    with SimulatedGpu() as gpu:
        yield gpu, GraphWatcher(CuptiClient())


def test_a_capture_of_two_kernels_calls_back_in_this_order(watched: Any) -> None:
    gpu, watcher = watched
    captured(gpu)
    assert watcher.take() == [
        (GRAPH_CREATED, 1),
        (NODE_STARTING,),
        (NODE_CREATED, node_id(1, 0)),
        (NODE_STARTING,),
        (EDGE_CREATED,),
        (NODE_CREATED, node_id(1, 1)),
    ]


def test_instantiating_takes_two_ids_and_reports_every_node_as_created_and_as_copied(watched: Any) -> None:
    gpu, watcher = watched
    graph = captured(gpu)
    watcher.take()
    executable = graph.instantiate()
    assert watcher.take() == [
        (GRAPH_CREATED, 2),
        (NODE_STARTING,),
        (NODE_CREATED, node_id(2, 0)),
        (NODE_CLONED, node_id(2, 0), node_id(1, 0)),
        (NODE_STARTING,),
        (NODE_CREATED, node_id(2, 1)),
        (NODE_CLONED, node_id(2, 1), node_id(1, 1)),
        (EDGE_CREATED,),
        (GRAPH_CREATED, 3),
        (NODE_STARTING,),
        (NODE_STARTING,),
        (EDGE_CREATED,),
        (EXEC_STARTING,),
        (EXEC_CREATED, 1, 2),
    ]
    assert watcher.contexts == {EXEC_STARTING, EXEC_CREATED}
    assert (graph.id, executable.id, graph.clone().id) == (1, 2, 4)


def test_a_clone_takes_one_id_and_reports_every_node_as_created_and_as_copied(watched: Any) -> None:
    gpu, watcher = watched
    graph = captured(gpu)
    watcher.take()
    copy = graph.clone()
    seen = watcher.take()
    assert seen[0] == (GRAPH_CREATED, 2)
    assert [each for each in seen if each[0] in (NODE_CREATED, NODE_CLONED)] == [
        (NODE_CREATED, node_id(2, 0)),
        (NODE_CLONED, node_id(2, 0), node_id(1, 0)),
        (NODE_CREATED, node_id(2, 1)),
        (NODE_CLONED, node_id(2, 1), node_id(1, 1)),
    ]
    assert seen[-1] == (GRAPH_CLONED,)
    assert (copy.id, captured(gpu).id) == (2, 3)


def test_destroying_an_executable_graph_reports_both_of_its_graphs_and_then_the_nodes_of_the_second_and_the_first(
    watched: Any,
) -> None:
    gpu, watcher = watched
    executable = captured(gpu).instantiate()
    watcher.take()
    executable.destroy()
    assert watcher.take() == [
        (EXEC_DESTROY, 2),
        (GRAPH_DESTROY, 2),
        (GRAPH_DESTROY, 3),
        (NODE_DESTROY, node_id(3, 0)),
        (NODE_DESTROY, node_id(3, 1)),
        (NODE_DESTROY, node_id(2, 0)),
        (NODE_DESTROY, node_id(2, 1)),
    ]


def test_launching_a_graph_calls_nothing_back(watched: Any) -> None:
    gpu, watcher = watched
    executable = captured(gpu).instantiate()
    watcher.take()
    executable.launch()
    assert watcher.take() == []


def test_handles_come_back_and_ids_do_not(watched: Any) -> None:
    gpu, _ = watched
    graph = captured(gpu)
    handle, first = graph.handle, graph.id
    graph.destroy()
    again = captured(gpu)
    assert again.handle == handle
    assert again.id > first
    with pytest.raises(CollectorError, match="was destroyed before"):
        graph.destroy()


@pytest.mark.parametrize("cuda", ["12.4", "13.0"])
def test_an_update_is_reported_from_cuda_13_for_the_nodes_that_it_changes(cuda: str) -> None:
    with SimulatedGpu(cuda=cuda) as gpu:
        watcher = GraphWatcher(CuptiClient())
        executable = captured(gpu).instantiate()
        same = captured(gpu)
        with gpu.capture() as other:
            gpu.launch("first")
            gpu.launch("replaced")
        watcher.take()
        executable.update(same)
        assert watcher.take() == []
        executable.update(other)
        expected = [
            (NODE_UPDATED, node_id(other.id, 1), node_id(2, 1)),
            (NODE_SET_PARAMS, node_id(2, 1), node_id(1, 1)),
        ]
        assert watcher.take() == (expected if cuda == "13.0" else [])
        with gpu.capture() as smaller:
            gpu.launch("alone")
        with pytest.raises(CollectorError, match="has other nodes"):
            executable.update(smaller)


def test_records_of_a_launch_have_the_executable_graph_and_one_correlation_id() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(CONCURRENT_KERNEL, MEMCPY, RUNTIME)
        executable = captured(gpu).instantiate()
        correlation = executable.launch(stream=9)
        gpu.synchronize()
        client.flush()
        kernels = client.records(CONCURRENT_KERNEL)
    assert [(kernel.graph, kernel.graph_node) for kernel in kernels] == [(2, node_id(2, 0)), (2, node_id(2, 1))]
    assert {kernel.correlation for kernel in kernels} == {correlation}
    assert {kernel.stream for kernel in kernels} == {9}


@pytest.mark.parametrize("cuda", ["12.0", "12.4", "13.5"])
def test_graph_trace_replaces_the_records_of_nodes(cuda: str) -> None:
    with SimulatedGpu(cuda=cuda) as gpu:
        client = CuptiClient().open(CONCURRENT_KERNEL, GRAPH_TRACE)
        executable = captured(gpu).instantiate()
        executable.launch()
        gpu.synchronize()
        assert gpu.statistics().records == {GRAPH_TRACE: 1}
        client.check("cuptiActivityDisable", GRAPH_TRACE)
        executable.launch()  # node records do not come back for a graph that was instantiated meanwhile
        captured(gpu).instantiate().launch()
        gpu.synchronize()
        client.flush()
        assert gpu.statistics().records == {GRAPH_TRACE: 1, CONCURRENT_KERNEL: 2}


def test_graph_trace_has_nothing_of_a_graph_that_cupti_did_not_see() -> None:
    with SimulatedGpu() as gpu:
        executable = captured(gpu).instantiate()
        CuptiClient().open(CONCURRENT_KERNEL, GRAPH_TRACE)
        executable.launch()
        gpu.launch_graph(["unknown"])
        gpu.synchronize()
        assert gpu.statistics().records == {}


def test_a_second_capture_of_a_thread_is_refused() -> None:
    refused = pytest.raises(CollectorError, match="captures a graph already")
    with SimulatedGpu() as gpu, gpu.capture(), refused, gpu.capture():
        pass


def test_captured_work_runs_only_when_the_graph_is_launched() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(CONCURRENT_KERNEL)
        captured(gpu)
        gpu.synchronize()
        client.flush()
        assert client.records(CONCURRENT_KERNEL) == []


def test_ids_of_unknown_handles_are_refused() -> None:
    with SimulatedGpu():
        client = CuptiClient()
        found = ctypes.c_uint64()
        for function in ("cuptiGetGraphId", "cuptiGetGraphNodeId", "cuptiGetGraphExecId"):
            assert client(function, ctypes.c_void_p(0x1234), ctypes.byref(found)) != SUCCESS


def test_a_peer_copy_without_access_is_one_record_on_each_device() -> None:
    with SimulatedGpu(devices=2) as gpu:
        client = CuptiClient().open(MEMCPY, MEMCPY2)
        correlation = gpu.memcpy_peer(0, 1, 4096, access=False)
        gpu.synchronize()
        client.flush()
        copies = client.records(MEMCPY, MEMCPY2)
    assert [(copy.device, copy.copy_kind, copy.bytes, copy.correlation) for copy in copies] == [
        (0, 2, 4096, correlation),
        (1, 1, 4096, correlation),
    ]
    assert copies[0].end <= copies[1].start


def test_an_empty_node_is_of_its_type_only_while_it_is_created_and_executable_graphs_drop_it(watched: Any) -> None:
    gpu, watcher = watched
    with gpu.capture() as graph:
        gpu.launch("first")
    watcher.take()
    watcher.types.clear()
    graph.add_empty_node()
    assert watcher.take() == [(NODE_STARTING,), (NODE_CREATED, node_id(1, 1))]
    assert watcher.types == [EMPTY, 0]
    executable = graph.instantiate()
    assert watcher.take()[-3:] == [(EXEC_STARTING,), (NODE_DESTROY, node_id(2, 1)), (EXEC_CREATED, 1, 2)]
    executable.destroy()
    destroyed = [each for each in watcher.take() if each[0] == NODE_DESTROY]
    assert node_id(2, 1) not in [each[1] for each in destroyed]
    assert node_id(2, 0) in [each[1] for each in destroyed]


def test_parameters_of_a_node_that_are_set_call_back_with_both_nodes(watched: Any) -> None:
    gpu, watcher = watched
    graph = captured(gpu)
    executable = graph.instantiate()
    watcher.take()
    executable.set_kernel(graph, 1, "other")
    assert watcher.take() == [(NODE_SET_PARAMS, node_id(2, 1), node_id(1, 1))]
    with pytest.raises(CollectorError, match="no kernel at place 5"):
        executable.set_kernel(graph, 5, "other")
