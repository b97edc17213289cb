"""Activities of CUDA graphs: the annotations at their capture and at their launch, and what is known of them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from captures import CaptureBuilder
from kept_tables import assert_equal, assert_kept

import collector
from collector.recording.capture import Part
from collector.recording.capture_window import FOREVER_NS, Span
from collector.recording.cupti_enums import (
    DEGREE_CAPTURED,
    DEGREE_LAUNCH,
    GRAPH_DEGREES,
    GRAPH_UPDATED,
    NODE_COPIED,
    NODE_CREATED,
)
from collector.recording.graph_attribution import attribute_graphs
from collector.recording.recording import Recording
from collector.recording.table import Table
from collector.testing import SimulatedGpu
from collector.testing.simulator.simulated_graph import SimulatedGraph

pytestmark = pytest.mark.simulator

VERSIONS = ["12.0", "12.3", "13.0", "13.4", "13.5"]


PERHAPS_UPDATED = (
    "1 CUDA graph may have been updated unseen: before CUDA 13.0 only records of API calls show updates, and not all "
    "calls were recorded. Its kernels and copies have only the annotation of the launch"
)


def captured(gpu: SimulatedGpu, name: str = "gemm", path: str = "model/layer") -> SimulatedGraph:
    with gpu.capture() as graph, collector.annotate(path):
        gpu.launch(name)
        gpu.memcpy("HtoD", 64)
        gpu.memset(32)
    return graph


def degrees(table: Table) -> list[str]:
    return [GRAPH_DEGREES[degree] for degree in table.graph_degree.tolist()]


def works(recording: Recording) -> list[Table]:
    return [recording.kernels, recording.memcpys, recording.memsets]


@pytest.mark.parametrize("cuda", VERSIONS)
def test_degree_captured(cuda: str, tmp_path: Path) -> None:
    with SimulatedGpu(cuda=cuda) as gpu, collector.trace(strict=True) as step:
        executable = captured(gpu).instantiate()
        with collector.annotate("step"):
            executable.launch()
        executable.launch()
        assert gpu.misuse() == {}
    for table in works(step.recording):
        assert degrees(table) == ["captured", "captured"]
        assert table.annotations() == ["step/<captured_at>/model/layer", "<captured_at>/model/layer"]
    assert step.ledger.complete
    assert_kept(step.recording, "kernels", tmp_path)
    assert_kept(step.recording, "graph_changes", tmp_path)
    assert_kept(step.recording, "graph_launches", tmp_path)


def test_nodes_of_unknown_launches_are_no_launch() -> None:
    build = CaptureBuilder()
    for start, correlation in ((100, 1), (200, 1), (300, 0), (9000, 0)):
        build.kernel("node", start, 50, graph_id=8, correlation_id=correlation)
    capture = build.capture()
    attribute_graphs(capture)
    launches = capture["tables"]["graph_launches"]
    assert [launches[column].tolist() for column in ("correlation_id", "num_nodes")] == [[1], [2]]


@pytest.mark.parametrize("cuda", ["12.0", "13.0", "13.4"])
def test_degree_rekeyed_after_a_clone(cuda: str) -> None:
    with SimulatedGpu(cuda=cuda) as gpu, collector.trace(strict=True) as step:
        graph = captured(gpu)
        copy = graph.clone()
        graph.destroy()
        copy.instantiate().launch()
    for table in works(step.recording):
        assert degrees(table) == ["rekeyed"]
        assert table.annotations() == ["<captured_at>/model/layer"]


def test_degree_rekeyed_after_an_update() -> None:
    with SimulatedGpu(cuda="13.0") as gpu, collector.trace(strict=True) as step:
        executable = captured(gpu, path="first").instantiate()
        executable.launch()
        executable.update(captured(gpu, path="second"))
        executable.launch()
    for table in works(step.recording):
        assert degrees(table) == ["captured", "rekeyed"]
        assert table.annotations() == ["<captured_at>/first", "<captured_at>/second"]
    assert step.ledger.complete


def layers(gpu: SimulatedGpu, path: str, *kernels: str, streams: tuple[int, ...] = (7, 7, 7)) -> SimulatedGraph:
    """A graph of kernels, each in a layer of its own under ``path``."""
    with gpu.capture() as graph, collector.annotate(path):
        for place, (kernel, stream) in enumerate(zip(kernels, streams, strict=False)):
            with collector.annotate(f"layer{place}"):
                gpu.launch(kernel, stream=stream)
    return graph


@pytest.mark.parametrize("cuda", ["13.0", "13.4"])
def test_every_update_names_the_nodes_that_it_changes_and_those_that_it_leaves(cuda: str) -> None:
    with SimulatedGpu(cuda=cuda) as gpu, collector.trace(strict=True) as step:
        graphs = [layers(gpu, "first", "a", "b"), layers(gpu, "second", "a", "c")]
        executable = graphs[0].instantiate()
        for number in (0, 1, 0, 1):
            executable.update(graphs[number])
            executable.launch()
        executable.set_kernel(graphs[0], 0, "d")
        executable.launch()
    first, second = ([f"<captured_at>/{path}/layer0", f"<captured_at>/{path}/layer1"] for path in ("first", "second"))
    kernels = step.recording.kernels
    assert [kernel.name for kernel in kernels] == ["a", "b", "a", "c", "a", "b", "a", "c", "d", "c"]
    assert kernels.annotations() == [*first, *second, *first, *second, *second]
    assert set(degrees(kernels)) == {"rekeyed"}
    assert step.ledger.complete


def test_an_update_is_one_row_for_the_calls_of_the_runtime_and_the_driver() -> None:
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        executable = layers(gpu, "first", "a").instantiate()
        other = layers(gpu, "second", "a")
        executable.update(other)
    changes = step.recording.graph_changes
    updates = changes[changes.graph_change == GRAPH_UPDATED]
    assert (updates.graph_id.tolist(), updates.original_graph_id.tolist()) == ([executable.id], [other.id])


@pytest.mark.parametrize("with_calls", [True, False])
@pytest.mark.filterwarnings("ignore:annotations name only the nodes of CUDA graphs")
def test_work_that_is_queued_during_an_update_has_the_names_before_it(with_calls: bool) -> None:
    kinds = ["kernels", "external_correlations", *(["runtime_api", "driver_api"] if with_calls else [])]
    with SimulatedGpu() as gpu, collector.trace(kinds=kinds, strict=True) as step:
        executable = layers(gpu, "first", "a", "b").instantiate()
        gpu.launch("long", duration_ns=1_000_000)
        executable.launch()
        executable.update(layers(gpu, "second", "a", "c"))
        executable.launch()
        updated_ns = gpu.now_ns
    assert min(kernel.start_ns for kernel in step.recording.kernels if kernel.name != "long") > updated_ns
    assert [(kernel.name, kernel.annotation) for kernel in step.recording.kernels if kernel.name != "long"] == [
        ("a", "<captured_at>/first/layer0"),
        ("b", "<captured_at>/first/layer1"),
        ("a", "<captured_at>/second/layer0"),
        ("c", "<captured_at>/second/layer1"),
    ]


def test_an_update_that_fails_leaves_the_names() -> None:
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        executable = layers(gpu, "first", "a").instantiate()
        with pytest.raises(collector.CollectorError, match="has other nodes"):
            executable.update(layers(gpu, "second", "a", "b"))
        executable.launch()
    assert step.recording.kernels.annotations() == ["<captured_at>/first/layer0"]
    assert degrees(step.recording.kernels) == ["captured"]
    assert step.ledger.complete


def test_an_update_names_a_graph_that_was_instantiated_before_the_trace() -> None:
    with SimulatedGpu() as gpu:
        executable = layers(gpu, "before", "a", "b").instantiate()
        with collector.trace(strict=True) as step:
            executable.launch()
            executable.update(layers(gpu, "during", "a", "b"))
            executable.launch()
    names = step.recording.kernels.annotations()
    assert names == ["", "", "<captured_at>/during/layer0", "<captured_at>/during/layer1"]
    assert step.ledger.graphs_before_trace == 1


def test_an_update_from_a_graph_that_was_captured_before_the_trace_leaves_the_annotation_of_the_launch() -> None:
    with SimulatedGpu() as gpu:
        before = layers(gpu, "before", "a", "b")
        with collector.trace(strict=True) as step:
            executable = layers(gpu, "during", "a", "b").instantiate()
            executable.update(before)
            executable.launch()
    assert step.recording.kernels.annotations() == ["", ""]
    assert degrees(step.recording.kernels) == ["launch", "launch"]
    assert step.ledger.graphs_before_trace == 1


def test_after_an_update_from_a_graph_in_another_order_only_reported_pairs_have_the_names_of_captures() -> None:
    """CUPTI names the pairs that an update changes; that of other nodes cannot be known from their places then."""
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        executable = layers(gpu, "first", "a", "b", "c", streams=(7, 8, 9)).instantiate()
        executable.update(layers(gpu, "second", "d", "a", "c", streams=(8, 7, 9)))
        executable.launch()
    found = {kernel.name: kernel.annotation for kernel in step.recording.kernels}
    assert found == {"d": "<captured_at>/second/layer0", "a": "", "c": ""}
    assert step.ledger.graphs_uncertain == 1
    assert step.ledger.losses() == [
        "1 CUDA graph has nodes whose capture is not certain, in child graphs, bodies of conditional nodes or after an "
        "update: their kernels and copies have only the annotation of the launch"
    ]


def named_kernels(step: collector.Session) -> dict[str, str]:
    return {kernel.name: kernel.annotation for kernel in step.recording.kernels}


def children(gpu: SimulatedGpu) -> tuple[SimulatedGraph, SimulatedGraph, SimulatedGraph]:
    """A graph of a kernel and two child graphs, and the two graphs of which these are copies."""
    parent, left, right = (
        layers(gpu, path, *kernels)
        for path, kernels in (("parent", ["p"]), ("left", ["l0", "l1"]), ("right", ["r0", "r1"]))
    )
    parent.add_child(left)
    parent.add_child(right)
    return parent, left, right


NAMES_OF_CHILDREN = {
    "p": "step/<captured_at>/parent/layer0",
    "l0": "step/<captured_at>/left/layer0",
    "l1": "step/<captured_at>/left/layer1",
    "r0": "step/<captured_at>/right/layer0",
    "r1": "step/<captured_at>/right/layer1",
}


@pytest.mark.parametrize("cuda", VERSIONS)
def test_the_nodes_of_child_graphs_have_the_names_of_their_captures(cuda: str) -> None:
    with SimulatedGpu(cuda=cuda) as gpu, collector.trace(strict=True) as step:
        parent, *originals = children(gpu)
        for graph in originals:
            graph.destroy()
        executable = parent.instantiate()
        parent.destroy()
        with collector.annotate("step"):
            executable.launch()
        assert gpu.misuse() == {}
    assert named_kernels(step) == NAMES_OF_CHILDREN
    assert degrees(step.recording.kernels) == ["captured", *["rekeyed"] * 4]
    assert step.ledger.complete


def test_child_graphs_may_come_before_the_nodes_of_their_parent_and_have_children_of_their_own() -> None:
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        inner, middle, last = (layers(gpu, name, f"{name}0", f"{name}1") for name in ("inner", "middle", "last"))
        middle.add_child(inner)
        with gpu.capture() as parent:
            pass
        parent.add_child(middle)
        parent.add_child(last)
        with gpu.capture(into=parent), collector.annotate("parent"):
            gpu.launch("p")
        clone = parent.clone()
        for graph in (parent, clone):
            graph.instantiate().launch()
    expected = {
        f"{name}{place}": f"<captured_at>/{name}/layer{place}"
        for name in ("inner", "middle", "last") for place in (0, 1)
    } | {"p": "<captured_at>/parent"}  # fmt: skip
    assert named_kernels(step) == expected
    assert len(step.recording.kernels) == 14
    assert step.ledger.complete


def test_a_child_graph_that_is_replaced_in_an_executable_graph_has_the_annotation_of_the_launch() -> None:
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        parent, *_ = children(gpu)
        executable = parent.instantiate()
        other = layers(gpu, "other", "l0", "l1")
        with pytest.raises(collector.CollectorError, match="no child graph at place 0"):
            executable.set_child(parent, 0, other)
        executable.set_child(parent, 1, other)
        with collector.annotate("step"):
            executable.launch()
    # CUPTI does not tell which places are those of the child graph.
    assert named_kernels(step) == {"p": NAMES_OF_CHILDREN["p"]} | dict.fromkeys(("l0", "l1", "r0", "r1"), "step")
    assert step.ledger.graphs_uncertain == 1


def test_a_child_graph_that_is_replaced_right_after_the_instantiation_leaves_the_other_nodes_their_names() -> None:
    """CUPTI may report nothing between the two."""
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        parent, *_ = children(gpu)
        other = layers(gpu, "other", "l0", "l1")
        executable = parent.instantiate()
        executable.set_child(parent, 1, other)
        with collector.annotate("step"):
            executable.launch()
    assert named_kernels(step)["p"] == NAMES_OF_CHILDREN["p"]
    assert step.ledger.graphs_uncertain == 1


@pytest.mark.parametrize("runs", [True, False])
def test_the_bodies_of_conditional_nodes_have_the_names_of_their_captures(runs: bool) -> None:
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        graph = layers(gpu, "graph", "a")
        for path in ("first", "second"):
            with gpu.capture(into=graph.add_conditional(runs=runs)), collector.annotate(path):
                gpu.launch(path)
        graph.instantiate().launch()
    bodies = {path: f"<captured_at>/{path}" for path in ("first", "second")}
    assert named_kernels(step) == {"a": "<captured_at>/graph/layer0"} | (bodies if runs else {})
    assert step.ledger.complete


def test_an_empty_node_of_a_child_graph_moves_no_name() -> None:
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        child = layers(gpu, "child", "a")
        child.add_empty_node()
        with gpu.capture(into=child), collector.annotate("later"):
            gpu.launch("b")
        parent = layers(gpu, "parent", "p")
        parent.add_child(child)
        parent.instantiate().launch()
    assert named_kernels(step) == {
        "p": "<captured_at>/parent/layer0",
        "a": "<captured_at>/child/layer0",
        "b": "<captured_at>/later",
    }


def test_without_the_callbacks_of_an_instantiation_the_nodes_of_child_graphs_are_uncertain() -> None:
    """The trace begins after the child graphs were added, and their copies are not followed."""
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        parent, *_ = children(gpu)
        executable = parent.instantiate()
        with collector.annotate("step"):
            executable.launch()
    capture = step.recording.to_capture()
    changes = capture["tables"]["graph_changes"]
    is_moved = (changes["graph_id"] == executable.id) & (changes["original_graph_id"] > parent.id)
    assert is_moved.sum() == 4
    capture["tables"]["graph_changes"] = {name: column[~is_moved] for name, column in changes.items()}
    capture["tables"]["graph_launches"] = {
        name: column[:0] for name, column in capture["tables"]["graph_launches"].items()
    }
    attribute_graphs(capture)
    assert [GRAPH_DEGREES[degree] for degree in capture["tables"]["kernels"]["graph_degree"]] == [
        "captured", *["launch"] * 4
    ]  # fmt: skip
    assert capture["counters"]["graphs_uncertain"] == 1
    assert "graphs_before_trace" not in capture["counters"]


def test_nodes_that_are_copies_of_each_other_have_no_capture() -> None:
    """Damaged rows say so."""
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        executable = captured(gpu).clone().instantiate()
        executable.launch()
    capture = step.recording.to_capture()
    changes = {name: column.copy() for name, column in capture["tables"]["graph_changes"].items()}
    capture["tables"]["graph_changes"] = changes
    is_copied = changes["graph_change"] == NODE_COPIED
    (executable_nodes,) = np.nonzero(is_copied & (changes["graph_id"] == executable.id))
    for row in executable_nodes:
        is_original = is_copied & (changes["graph_node_id"] == changes["original_node_id"][row])
        assert is_original.sum() == 1
        changes["original_node_id"][is_original] = changes["graph_node_id"][row]
    del capture["tables"]["graph_launches"]
    attribute_graphs(capture)
    for table in ("kernels", "memcpys", "memsets"):
        assert capture["tables"][table]["graph_degree"].tolist() == [GRAPH_DEGREES.index("launch")]
    assert capture["counters"]["graphs_before_trace"] == 1


def test_without_callbacks_of_updates_graphs_have_the_annotation_of_the_launch_only() -> None:
    with SimulatedGpu() as gpu:
        gpu.inject("error", target="cuptiEnableCallback")
        with collector.trace(strict=True) as step:
            executable = layers(gpu, "first", "a").instantiate()
            executable.update(layers(gpu, "second", "a"))
            executable.launch()
    assert degrees(step.recording.kernels) == ["launch"]


@pytest.mark.parametrize("cuda", ["12.4", "13.0", "13.4"])
def test_an_empty_node_changes_no_degree(cuda: str) -> None:
    with SimulatedGpu(cuda=cuda) as gpu, collector.trace(strict=True) as step:
        with gpu.capture() as graph, collector.annotate("model"):
            gpu.launch("first")
            graph.add_empty_node()
            gpu.launch("second")
        graph.instantiate().launch()
        copy = graph.clone()
        copy.instantiate().launch()
    kernels = step.recording.kernels
    assert [kernel.name for kernel in kernels] == ["first", "second"] * 2
    assert [node & 0xFFFFFFFF for node in kernels.graph_node_id.tolist()] == [0, 2, 0, 2]
    assert degrees(kernels) == ["captured"] * 2 + ["rekeyed"] * 2
    assert kernels.annotations() == ["<captured_at>/model"] * 4
    assert step.recording.graph_launches.num_nodes.tolist() == [2, 2]
    assert step.ledger.complete


@pytest.mark.parametrize("cuda", ["13.0", "13.5"])
def test_degree_rekeyed_after_the_parameters_of_a_node_were_set(cuda: str, tmp_path: Path) -> None:
    with SimulatedGpu(cuda=cuda) as gpu, collector.trace(strict=True) as step:
        graph = captured(gpu)
        executable = graph.instantiate()
        executable.launch()
        executable.set_kernel(graph, 0, "other")
        executable.launch()
    kernels = step.recording.kernels
    assert [kernel.name for kernel in kernels] == ["gemm", "other"]
    assert degrees(kernels) == ["captured", "rekeyed"]
    assert kernels.annotations() == ["<captured_at>/model/layer"] * 2
    for table in (step.recording.memcpys, step.recording.memsets):
        assert degrees(table) == ["captured", "captured"]
    assert step.ledger.complete
    assert_kept(step.recording, "graph_changes", tmp_path)


def test_parameters_set_before_cuda_13_leave_the_node_as_captured() -> None:
    with SimulatedGpu(cuda="12.4") as gpu, collector.trace(strict=True) as step:
        graph = captured(gpu)
        executable = graph.instantiate()
        executable.set_kernel(graph, 0, "other")
        executable.launch()
    assert [kernel.name for kernel in step.recording.kernels] == ["other"]
    assert degrees(step.recording.kernels) == ["captured"]  # CUPTI does not report it; the node is the captured one
    assert step.ledger.complete


@pytest.mark.parametrize("change", ["empty node", "parameters"])
def test_whole_graphs_and_graphs_before_the_trace_with_such_nodes(change: str) -> None:
    with SimulatedGpu() as gpu:
        graph = captured(gpu)
        graph.add_empty_node()
        executable = graph.instantiate()
        if change == "parameters":
            executable.set_kernel(graph, 0, "other")
        with collector.trace(strict=True) as before:
            executable.launch()
        with collector.trace(strict=True, graphs="whole") as whole:
            second = graph.instantiate()
            if change == "parameters":
                second.set_kernel(graph, 0, "third")
            second.launch()
    for table in works(before.recording):
        assert degrees(table) == ["launch"]
    assert degrees(whole.recording.graph_launches) == ["whole graph"]


def test_an_update_that_cupti_does_not_report_leaves_the_annotation_of_the_launch() -> None:
    with SimulatedGpu(cuda="12.4") as gpu, collector.trace(strict=True) as step:
        executable = captured(gpu, path="first").instantiate()
        executable.launch()
        executable.update(captured(gpu, path="second"))
        with collector.annotate("step"):
            executable.launch()
    for table in works(step.recording):
        assert degrees(table) == ["captured", "launch"]
        assert table.annotations() == ["<captured_at>/first", "step"]
    assert step.ledger.graph_updates_unseen == 1
    assert [line for line in step.ledger.losses() if "could not be followed before CUDA 13.0" in line]


def test_degree_launch_for_a_graph_that_was_built_before_the_trace() -> None:
    with SimulatedGpu() as gpu:
        executable = captured(gpu).instantiate()
        with collector.trace(strict=True) as step, collector.annotate("step"):
            executable.launch()
            executable.launch()
    for table in works(step.recording):
        assert degrees(table) == ["launch", "launch"]
        assert table.annotations() == ["step", "step"]
    assert step.ledger.losses() == [
        "1 CUDA graph was captured before this trace (or this window of its schedule): its kernels and copies have "
        "only the annotation of the launch"
    ]


def test_a_graph_without_an_id_beside_captured_ones_has_an_id_of_its_own() -> None:
    with SimulatedGpu(cuda="13.0") as gpu, collector.trace() as step:
        with gpu.capture() as graph, collector.annotate("layer1"):
            gpu.launch("gemm", duration_ns=1_000)
            gpu.launch("relu", duration_ns=1_000)
        graph.instantiate()
        for name in ("old", "older"):
            gpu.launch_graph([name, name])
    assert {(kernel.name, kernel.annotation) for kernel in step.recording.kernels} == {("old", ""), ("older", "")}
    assert len(set(step.recording.kernels.graph_id.tolist())) == 2


def test_a_graph_that_was_captured_before_the_trace_and_instantiated_in_it_is_counted() -> None:
    with SimulatedGpu() as gpu:
        graph = captured(gpu)
        with collector.trace(strict=True) as step:
            executable = graph.instantiate()
            with collector.annotate("step"):
                executable.launch()
    for table in works(step.recording):
        assert degrees(table) == ["launch"]
        assert table.annotations() == ["step"]
    assert step.ledger.graphs_before_trace == 1
    assert not step.ledger.complete


def test_a_graph_that_was_captured_in_an_earlier_window_is_counted_in_each_that_launches_it() -> None:
    counts = []
    with SimulatedGpu() as gpu:
        schedule = collector.schedule(active=1, repeat=3)

        def count(window: collector.Session) -> None:
            counts.append(window.ledger.graphs_before_trace)

        with collector.trace(schedule=schedule, on_window=count, strict=True) as session:
            graph = captured(gpu)
            session.step()
            executable = graph.instantiate()
            executable.launch()
            session.step()
            executable.launch()
            session.step()
    assert counts == [0, 1, 1]


def with_unseen_update(gpu: SimulatedGpu) -> None:
    executable = captured(gpu, path="first").instantiate()
    executable.update(captured(gpu, path="second"))
    with collector.annotate("step"):
        executable.launch()


@pytest.mark.parametrize("cuda", ["12.4", "13.0"])
def test_without_records_of_calls_an_update_may_have_been_missed_before_cuda_13(cuda: str) -> None:
    kinds = ["kernels", "memcpys", "memsets"]
    with (
        SimulatedGpu(cuda=cuda) as gpu,
        collector.trace(kinds=kinds, strict=True) as step,
        pytest.warns(collector.CollectorWarning, match="name only the nodes of CUDA graphs"),
    ):
        with_unseen_update(gpu)
    is_seen = cuda == "13.0"
    for table in works(step.recording):
        assert degrees(table) == (["rekeyed"] if is_seen else ["launch"])
        assert table.annotations() == (["<captured_at>/second"] if is_seen else [""])
    assert step.ledger.graphs_perhaps_updated == (0 if is_seen else 1)
    assert step.ledger.losses() == ([] if is_seen else [PERHAPS_UPDATED])


@pytest.mark.parametrize("kind", ["runtime_api", "driver_api"])
def test_records_of_one_kind_of_calls_show_updates(kind: str) -> None:
    kinds = ["kernels", "memcpys", "memsets", "external_correlations", kind]
    with SimulatedGpu(cuda="12.4") as gpu, collector.trace(kinds=kinds, strict=True) as step:
        captured(gpu).instantiate().launch()
    assert degrees(step.recording.kernels) == ["captured"]
    assert step.ledger.complete


def test_after_calls_were_left_out_an_update_may_have_been_missed_before_cuda_13() -> None:
    with SimulatedGpu(cuda="12.4") as gpu, collector.trace(strict=True) as step:
        executable = captured(gpu).instantiate()
        executable.launch()
        executable.launch()
    capture = step.recording.to_capture()
    tables: dict[str, dict[str, Any]] = capture["tables"]
    shed_ns = int(np.sort(np.unique(step.recording.kernels.correlation_id))[-1])  # the calls of the second launch
    kept = tables["api_calls"]["correlation_id"] < shed_ns
    tables["api_calls"] = {name: column[kept] for name, column in tables["api_calls"].items()}
    tables["graph_launches"] = {name: column[:0] for name, column in tables["graph_launches"].items()}
    attribute_graphs(capture)
    assert tables["kernels"]["graph_degree"].tolist() == [DEGREE_CAPTURED, DEGREE_LAUNCH]
    assert capture["counters"]["graphs_perhaps_updated"] == 1


@pytest.mark.parametrize("begin", ["before", "after"])
@pytest.mark.parametrize("part", ["range", "window"])
def test_between_recorded_parts_an_update_may_have_been_missed_before_cuda_13(begin: str, part: str) -> None:
    """Calls are recorded inside the part alone, which begins before or after the graph is instantiated."""
    with SimulatedGpu(cuda="12.4") as gpu, collector.trace(strict=True) as step:
        graph = captured(gpu)
        before_ns = gpu.now_ns
        gpu.advance(1_000)
        executable = graph.instantiate()
        gpu.advance(1_000)
        after_ns = gpu.now_ns
        executable.launch()
    capture = step.recording.to_capture()
    begin_ns = before_ns if begin == "before" else after_ns
    if part == "window":
        capture["part"] = Part(begin_ns, 1, is_continued=False)
    attribute_graphs(capture, ranges=[Span(begin_ns, FOREVER_NS)] if part == "range" else None)
    degree = DEGREE_CAPTURED if begin == "before" else DEGREE_LAUNCH
    tables: dict[str, dict[str, Any]] = capture["tables"]
    assert tables["kernels"]["graph_degree"].tolist() == [degree]
    assert capture["counters"].get("graphs_perhaps_updated", 0) == int(begin == "after")


@pytest.mark.parametrize("cuda", VERSIONS)
def test_degree_whole_graph(cuda: str, tmp_path: Path) -> None:
    with SimulatedGpu(cuda=cuda) as gpu, collector.trace(graphs="whole", strict=True) as step:
        executable = captured(gpu).instantiate()
        with collector.annotate("step"):
            executable.launch(stream=9)
        gpu.launch("beside")
    launches = step.recording.graph_launches
    assert degrees(launches) == ["whole graph"]
    assert launches.annotations() == ["step"]
    assert (launches.num_nodes.tolist(), launches.stream_id.tolist()) == ([0], [9])
    assert [kernel.name for kernel in step.recording.kernels] == ["beside"]
    assert step.ledger.complete
    assert_kept(step.recording, "graph_launches", tmp_path)


def test_a_part_of_a_recording_keeps_the_call_and_the_name_of_a_whole_graph() -> None:
    with SimulatedGpu() as gpu, collector.trace(graphs="whole", strict=True) as step:
        executable = captured(gpu).instantiate()
        with collector.annotate("step"):
            executable.launch()
    (launch,) = step.recording.graph_launches
    calls = step.recording.api_calls
    called_ns = int(calls.end_ns[calls.correlation_id == launch.correlation_id].max())
    assert called_ns < launch.end_ns
    part = step.recording.between(called_ns + 1)
    assert part.graph_launches.annotations() == ["step"]
    assert launch.correlation_id in part.api_calls.correlation_id


def test_whole_graphs_built_before_the_trace_are_launches_without_a_record() -> None:
    with SimulatedGpu() as gpu:
        executable = captured(gpu).instantiate()
        with collector.trace(graphs="whole", strict=True) as step:
            executable.launch()
    assert step.ledger.launches_without_kernel == 1


def test_each_launch_is_a_row_with_its_nodes() -> None:
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        executable = captured(gpu).instantiate()
        correlations = [executable.launch(), executable.launch()]
    launches = step.recording.graph_launches
    assert launches.correlation_id.tolist() == correlations
    assert launches.num_nodes.tolist() == [3, 3]
    assert launches.graph_id.tolist() == [executable.id] * 2
    tables = works(step.recording)
    for row in launches:
        own = [table[table.correlation_id == row.correlation_id] for table in tables]
        assert row.start_ns == min(table.start_ns.min() for table in own)
        assert row.end_ns == max(table.end_ns.max() for table in own)


def test_a_launch_has_the_name_of_the_annotation_around_the_instantiation(tmp_path: Path) -> None:
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        graph = captured(gpu)
        with collector.annotate("decode"):
            named = graph.instantiate()
        unnamed = graph.instantiate()
        for executable in (named, unnamed, named):
            executable.launch()
    assert step.recording.graph_launches.names() == ["decode", "", "decode"]
    assert [node.node_name for node in nodes_of(step, "/gpu:0/graphs")] == [
        f"decode (graph {named.id})",
        f"graph {unnamed.id}",
        f"decode (graph {named.id})",
    ]
    for suffix in (".pb", ".json", ".gpurec"):
        step.save(tmp_path / f"step{suffix}")
        read = collector.load(tmp_path / f"step{suffix}").recording
        assert read.graph_launches.names() == step.recording.graph_launches.names()
        assert read.graph_launches.graph_id.tolist() == [named.id, unnamed.id, named.id]


def nodes_of(step: collector.Session, device: str) -> list[Any]:
    return [node for each in step.step_stats.dev_stats if each.device == device for node in each.node_stats]


def test_two_instantiations_of_one_capture_have_its_annotation() -> None:
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        graph = captured(gpu)
        for _ in range(2):
            graph.instantiate().launch()
    kernels = step.recording.kernels
    assert len(set(kernels.graph_id.tolist())) == 2
    assert degrees(kernels) == ["captured", "captured"]


def test_graphs_that_are_destroyed_while_recording_keep_their_names() -> None:
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        for path in ("first", "second"):  # the driver uses the handles of the first graph again
            graph = captured(gpu, path=path)
            executable = graph.instantiate()
            executable.launch()
            executable.destroy()
            graph.destroy()
    assert step.recording.kernels.annotations() == ["<captured_at>/first", "<captured_at>/second"]


def test_a_capture_without_an_annotation_is_known_as_that() -> None:
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        with gpu.capture() as graph:
            gpu.launch("gemm")
        executable = graph.instantiate()
        with collector.annotate("step"):
            executable.launch()
    assert degrees(step.recording.kernels) == ["captured"]
    assert step.recording.kernels.annotations() == ["step"]


def test_a_graph_in_a_file_that_lacks_the_columns_reads_as_before(tmp_path: Path) -> None:
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        gpu.launch_graph(["gemm"])
    capture = step.recording.to_capture()
    for name in ("captured_external_id", "graph_degree", "source_graph_node_id"):
        del capture["tables"]["kernels"][name]
    assert degrees(Recording.from_capture(capture).kernels) == [""]


@pytest.mark.medium
def test_the_journal_of_a_program_that_died_has_the_same_names(tmp_path: Path) -> None:
    journal, copy = tmp_path / "step.journal", tmp_path / "copy.journal"
    with SimulatedGpu() as gpu, collector.trace(journal=journal, strict=True) as step:
        executable = captured(gpu).instantiate()
        executable.launch()
        gpu.synchronize()
        for _ in itertools.repeat(None):
            copy.write_bytes(journal.read_bytes())
            if len(read := collector.load(copy).recording.kernels) == 1:
                break
    assert read.annotations() == step.recording.kernels.annotations() == ["<captured_at>/model/layer"]
    assert_equal(collector.load(copy).recording.graph_changes, step.recording.graph_changes)


def test_a_shared_subscription_knows_launches_only() -> None:
    with SimulatedGpu() as gpu:
        gpu.inject("second_subscriber", target="Kineto")
        options = collector.options.TraceOptions(share_subscription=True, strict=True)
        with collector.Session(options) as step:
            captured(gpu).instantiate().launch()
    assert degrees(step.recording.kernels) == ["launch"]


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="graphs is 'some'"):
        collector.trace(graphs="some")


def test_a_copied_node_has_one_row_although_cupti_also_reports_it_as_created(tmp_path: Path) -> None:
    with SimulatedGpu(cuda="13.0") as gpu, collector.trace() as step:
        graph = captured(gpu)
        graph.clone().instantiate().launch()
        gpu.synchronize()
    changes = step.recording.graph_changes
    created, copied = (changes.graph_node_id[changes.graph_change == each] for each in (NODE_CREATED, NODE_COPIED))
    assert len(copied) == 2 * len(created) > 0
    assert not set(created.tolist()) & set(copied.tolist())
