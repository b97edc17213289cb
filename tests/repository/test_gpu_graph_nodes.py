"""How the GPU tests count the nodes of graphs, where a driver may run sets and copies as kernels of its own."""

import pytest
from graph_nodes import GraphNodes, assert_graphs, nodes_by_graph

import collector
from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator


def traced(*names):
    """A step with two launches of a graph whose nodes are kernels of these names, and a set and a copy."""
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        with gpu.capture() as graph, collector.annotate("model"):
            for name in names:
                gpu.launch(name)
            gpu.memset(16)
            gpu.memcpy("DtoD", 16)
        executable = graph.instantiate()
        for _ in range(2):
            executable.launch()
    return step


def test_sets_that_are_kernels_are_counted_as_sets():
    nodes = GraphNodes(traced("empty_kernel", "memset32_post", "spin"))
    assert nodes.counts() == (4, 4, 2)
    assert nodes.remark() == "the driver ran nodes as kernels of its own: {'memset32_post': 2}"
    assert nodes.unknown == {}
    (sets, degrees), (copies, _) = nodes.sets_and_copies()
    assert sets == {"<captured_at>/model": 4}
    assert degrees == {"captured": 4}
    assert copies == {"<captured_at>/model": 2}


def test_a_kernel_that_is_neither_ours_nor_a_set_or_copy_is_named():
    assert GraphNodes(traced("empty_kernel", "surprise")).unknown == {"surprise": 2}


def test_each_graph_is_judged_by_itself_and_what_is_missing_is_shown():
    kernels = traced("empty_kernel", "spin").kernels
    assert_graphs(kernels, {"one": {"empty_kernel": 1, "spin": 1}}, 2)
    (graph_id,) = nodes_by_graph(kernels)
    with pytest.raises(AssertionError) as caught:
        assert_graphs(kernels[[0, 1, 2]], {"one": {"empty_kernel": 1, "spin": 1}, "two": {"spin": 1}}, 2, "losses")
    message = str(caught.value)
    assert f"one (graph {graph_id}): nodes" in message
    assert "nodes that are not recorded 2 times: {(" in message
    assert "two (graph None): nodes {} of {'spin': 1}" in message
    assert "1 graphs instead of 2\nlosses\nkernels by graph and node: " in message
