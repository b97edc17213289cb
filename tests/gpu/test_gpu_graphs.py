"""CUDA graphs: how many activities each launch has, and which annotations name them.

Our own kernels are counted by name: a driver may run the sets and copies of a graph as kernels of its own.
"""

import contextlib
import ctypes
import functools
import json
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import simulated_cuda
from graph_nodes import GraphNodes, assert_graphs, nodes_by_graph
from timed_programs import EndedAtLimitError, run_timed

import collector
from collector.options import KINDS
from collector.recording.cupti_enums import GRAPH_DEGREES

KILOBYTE = 1 << 10
PROCESSES_OF_COPIES = 3
FIGURES_OF_MATCHES = ("launches_without_kernel", "kernels_without_launch", "correlations_unmatched")


def degrees(table):
    return Counter(GRAPH_DEGREES[degree] for degree in table.graph_degree.tolist())


def names(table):
    """How often each annotation stands at a kernel, a copy or a set."""
    return Counter(table.annotations())


def assert_all_is_matched(step):
    assert {name: getattr(step.ledger, name) for name in FIGURES_OF_MATCHES} == dict.fromkeys(FIGURES_OF_MATCHES, 0)


@pytest.fixture
def nodes_of(show):
    """The nodes of a step's graphs; shows what is recorded in another way than is usual."""

    def find(step):
        nodes = GraphNodes(step)
        assert nodes.unknown == Counter()
        if remark := nodes.remark():
            show(remark)
        return nodes

    return find


def answer_of(part, folder, question="graphs"):
    """The notes of a part of a question about graphs, which scripts/gpu_questions.py asks in another process."""
    script = Path(__file__).resolve().parents[2] / "scripts" / "gpu_questions.py"
    notes = folder / "answer"
    command = [sys.executable, script, "--ask", question, "--part", part, "--notes", notes]
    with contextlib.suppress(EndedAtLimitError):
        run_timed([*command, *(["--simulated"] if simulated_cuda.asked_for() else [])], seconds=20, cwd=folder)
    return notes.read_text() if notes.exists() else "no answer"


@contextlib.contextmanager
def answered(part, folder):
    """Add the answer of a part of the question about graphs to the message of a failure."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{error}\n\nThe card's answer ({part}):\n{answer_of(part, folder)}") from error


@pytest.fixture
def stream(cuda):
    return cuda.stream()


@pytest.fixture
def memory(cuda):
    address = cuda.allocate(2 * KILOBYTE)
    yield address
    cuda.synchronize()
    cuda.free(address)


def capture_model(cuda, stream, memory, path="model"):
    """A graph with three kernels, a set and a copy; the kernel ``spin`` is in a layer of its own."""
    with cuda.captured_graph(stream) as graphs, collector.annotate(path):
        cuda.launch_empty(2, stream)
        with collector.annotate("layer"):
            cuda.launch("spin", ctypes.c_longlong(1000), stream=stream)
            cuda.fill(memory, 1, KILOBYTE, stream)
            cuda.copy_on_device(memory + KILOBYTE, memory, KILOBYTE, stream)
    return graphs[0]


def test_no_graph_fails_after_a_session_with_copies(cuda, tmp_path):
    """With MEMCPY2 among the kinds, the first launch failed with error 719 in most processes (13.0.85)."""
    folders = [tmp_path / str(number) for number in range(PROCESSES_OF_COPIES)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(len(folders)) as pool:
        ask = functools.partial(answer_of, "collector, default kinds", question="graph_after_copies")
        answers = list(pool.map(ask, folders))
    assert "no answer" not in answers
    assert [json.loads(answer)["figures"] for answer in answers] == [{"failure": ""}] * len(folders), answers


def test_kernels_copies_and_sets_of_a_graph_have_the_names_of_their_capture_and_of_the_launch(
    cuda, stream, memory, nodes_of
):
    launches = 30
    with collector.trace(strict=True) as step:
        executable = cuda.instantiate(capture_model(cuda, stream, memory))
        with collector.annotate("decode"):
            for _ in range(launches):
                cuda.launch_graph(executable, stream)
    nodes = nodes_of(step)
    assert Counter(zip(nodes.kernels.names(), nodes.kernels.annotations(), strict=True)) == {
        ("empty_kernel", "decode/<captured_at>/model"): 2 * launches,
        ("spin", "decode/<captured_at>/model/layer"): launches,
    }
    assert degrees(nodes.kernels) == {"captured": 3 * launches}
    for annotations, found in nodes.sets_and_copies():
        assert annotations == {"decode/<captured_at>/model/layer": launches}
        assert found == {"captured": launches}
    assert_all_is_matched(step)
    assert step.ledger.complete, step.ledger.losses()


def test_each_launch_of_a_graph_is_a_row_with_all_its_nodes(cuda, stream, memory):
    launches = 20
    with collector.trace(strict=True) as step:
        executable = cuda.instantiate(capture_model(cuda, stream, memory))
        for _ in range(launches):
            cuda.launch_graph(executable, stream)
    rows = step.recording.graph_launches
    assert rows.num_nodes.tolist() == [5] * launches
    assert len(set(rows.graph_id.tolist())) == 1
    assert set(rows.graph_id.tolist()) == set(step.kernels.graph_id.tolist())
    assert sorted(rows.correlation_id.tolist()) == sorted(set(step.kernels.correlation_id.tolist()))
    assert step.ledger.launches_seen >= launches
    assert_all_is_matched(step)


def test_a_graph_that_was_captured_before_the_trace_has_the_name_of_the_launch_and_is_counted(
    cuda, stream, memory, nodes_of
):
    before = cuda.instantiate(capture_model(cuda, stream, memory))
    cuda.launch_graph(before, stream)
    cuda.synchronize()
    with collector.trace(strict=True) as step:
        during = cuda.instantiate(capture_model(cuda, stream, memory, "inside"))
        with collector.annotate("decode"):
            for _ in range(10):
                cuda.launch_graph(before, stream)
                cuda.launch_graph(during, stream)
    kernels = nodes_of(step).kernels
    graph = {"empty_kernel": 2, "spin": 1}
    assert_graphs(kernels, {"captured before": graph, "captured inside": graph}, 10, str(step.ledger.losses()))
    before_id, during_id = nodes_by_graph(kernels)
    assert names(kernels[kernels.graph_id == before_id]) == {"decode": 30}
    assert names(kernels[kernels.graph_id == during_id]) == {
        "decode/<captured_at>/inside": 20,
        "decode/<captured_at>/inside/layer": 10,
    }
    assert degrees(kernels) == {"launch": 30, "captured": 30}
    assert step.ledger.graphs_before_trace == 1
    assert len(step.ledger.losses()) == 1, step.ledger.losses()
    assert_all_is_matched(step)


def test_two_executables_of_one_capture_have_its_names(cuda, stream, memory, nodes_of):
    with collector.trace(strict=True) as step:
        graph = capture_model(cuda, stream, memory)
        executables = [cuda.instantiate(graph) for _ in range(2)]
        cuda.destroy_graph(graph)
        for name, executable, count in zip(("prefill", "decode"), executables, (3, 7), strict=True):
            with collector.annotate(name):
                for _ in range(count):
                    cuda.launch_graph(executable, stream)
    kernels = nodes_of(step).kernels
    assert names(kernels) == {
        "prefill/<captured_at>/model": 6,
        "prefill/<captured_at>/model/layer": 3,
        "decode/<captured_at>/model": 14,
        "decode/<captured_at>/model/layer": 7,
    }
    assert degrees(kernels) == {"captured": 30}
    assert sorted(Counter(kernels.graph_id.tolist()).values()) == [9, 21]
    assert step.ledger.complete, step.ledger.losses()


def test_a_clone_has_the_names_of_the_graph_that_it_was_copied_from(cuda, stream, memory, nodes_of):
    with collector.trace(strict=True) as step:
        graph = capture_model(cuda, stream, memory)
        clone = cuda.clone_graph(graph)
        cuda.destroy_graph(graph)
        executable = cuda.instantiate(clone)
        for _ in range(10):
            cuda.launch_graph(executable, stream)
    kernels = nodes_of(step).kernels
    assert names(kernels) == {"<captured_at>/model": 20, "<captured_at>/model/layer": 10}
    assert degrees(kernels) == {"rekeyed": 30}
    assert_all_is_matched(step)
    assert step.ledger.complete, step.ledger.losses()


def test_after_an_update_kernels_have_the_names_of_the_new_capture(cuda, stream, memory, nodes_of, show, tmp_path):
    with collector.trace(strict=True) as step:
        executable = cuda.instantiate(capture_model(cuda, stream, memory, "first"))
        for _ in range(4):
            cuda.launch_graph(executable, stream)
        cuda.update_graph(executable, capture_model(cuda, stream, memory, "second"))
        for _ in range(6):
            cuda.launch_graph(executable, stream)
    kernels = nodes_of(step).kernels
    # Whether the nodes of an updated graph keep their ids, and thereby the degree, depends on the driver.
    show(f"after cuGraphExecUpdate: {dict(degrees(kernels))}")
    with answered("cuGraphExecUpdate", tmp_path):
        assert names(kernels) == {
            "<captured_at>/first": 8,
            "<captured_at>/first/layer": 4,
            "<captured_at>/second": 12,
            "<captured_at>/second/layer": 6,
        }
        assert degrees(kernels).keys() <= {"captured", "rekeyed"}
        assert_all_is_matched(step)
        assert step.ledger.complete, step.ledger.losses()


def test_a_node_whose_kernel_was_replaced_is_recorded_under_the_new_kernel_and_the_old_name(cuda, stream):
    with collector.trace(strict=True) as step:
        with cuda.captured_graph(stream) as graphs, collector.annotate("model"):
            cuda.launch("empty_kernel", stream=stream)
            cuda.launch("spin", ctypes.c_longlong(1000), stream=stream)
        executable = cuda.instantiate(graphs[0])
        cuda.launch_graph(executable, stream)
        cuda.set_first_kernel(executable, graphs[0], "other_empty_kernel")
        cuda.launch_graph(executable, stream)
    assert step.kernels.names() == ["empty_kernel", "spin", "other_empty_kernel", "spin"]
    assert names(step.kernels) == {"<captured_at>/model": 4}
    assert degrees(step.kernels[[0, 1, 3]]) == {"captured": 3}
    assert degrees(step.kernels[[2]]) == {"rekeyed": 1}
    assert step.ledger.complete, step.ledger.losses()


def test_graphs_that_are_destroyed_while_the_trace_goes_on_keep_their_names(cuda, stream, memory, nodes_of):
    rounds = 20
    with collector.trace(strict=True) as step:
        for number in range(rounds):
            graph = capture_model(cuda, stream, memory, f"round{number}")
            executable = cuda.instantiate(graph)
            cuda.launch_graph(executable, stream)
            cuda.synchronize()
            cuda.destroy_executable(executable)
            cuda.destroy_graph(graph)
    assert names(nodes_of(step).kernels) == {
        f"<captured_at>/round{number}{layer}": count
        for number in range(rounds)
        for layer, count in (("", 2), ("/layer", 1))
    }
    assert step.ledger.complete, step.ledger.losses()


def test_a_whole_graph_is_one_record_for_each_launch(cuda, stream, memory):
    with collector.trace(strict=True, graphs="whole") as step:
        executable = cuda.instantiate(capture_model(cuda, stream, memory))
        with collector.annotate("decode"):
            for _ in range(50):
                cuda.launch_graph(executable, stream)
        cuda.launch_empty(1, stream)
    rows = step.recording.graph_launches
    assert degrees(rows) == {"whole graph": 50}
    assert names(rows) == {"decode": 50}
    assert (rows.end_ns > rows.start_ns).all()
    assert step.kernels.names() == ["empty_kernel"]
    assert step.ledger.complete, step.ledger.losses()


def captured_layers(cuda, stream, path, *kernels):
    """A graph of kernels without arguments, or ``spin``, each in a layer of its own under ``path``."""
    with cuda.captured_graph(stream) as graphs:
        add_layers(cuda, stream, path, *kernels)
    return graphs[0]


def add_layers(cuda, stream, path, *kernels):
    for place, kernel in enumerate(kernels):
        with collector.annotate(f"{path}/layer{place}"):
            cuda.launch(kernel, *([ctypes.c_longlong(1000)] if kernel == "spin" else []), stream=stream)


def named_kernels(step):
    """How often each kernel has each annotation."""
    return Counter(zip(step.kernels.names(), step.kernels.annotations(), strict=True))


def test_the_kernels_of_equal_child_graphs_are_all_recorded_and_none_has_a_wrong_name(
    cuda, stream, memory, show, nodes_of
):
    launches = 10
    with collector.trace(strict=True) as step:
        child = capture_model(cuda, stream, memory, "child")
        parent = cuda.graph_with_children([child, child])
        executable = cuda.instantiate(parent)
        with collector.annotate("decode"):
            for _ in range(launches):
                cuda.launch_graph(executable, stream)
    show(f"child graphs: {dict(degrees(step.kernels))}, {dict(names(step.kernels))}, {step.ledger.losses()}")
    nodes = nodes_of(step)
    assert nodes.counts() == (6 * launches, 2 * launches, 2 * launches)
    assert Counter(nodes.kernels.names()) == {"empty_kernel": 4 * launches, "spin": 2 * launches}
    named = {"empty_kernel": "decode/<captured_at>/child", "spin": "decode/<captured_at>/child/layer"}
    for kernel in nodes.kernels:
        is_launch = GRAPH_DEGREES[kernel.graph_degree] == "launch"
        assert kernel.annotation == ("decode" if is_launch else named[kernel.name])
    assert_all_is_matched(step)


def test_the_kernels_of_two_child_graphs_have_the_names_of_their_own_captures(cuda, stream, show, tmp_path):
    """No callback tells the places of their nodes: this is the test of the rule in native/capture/inlined_graphs.h."""
    launches = 10
    with collector.trace(strict=True) as step:
        parent = captured_layers(cuda, stream, "parent", "spin")
        left = captured_layers(cuda, stream, "left", "empty_kernel", "other_empty_kernel", "empty_kernel")
        right = captured_layers(cuda, stream, "right", "other_empty_kernel", "empty_kernel")
        cuda.add_children(parent, [left, right])
        executable = cuda.instantiate(parent)
        for _ in range(launches):
            cuda.launch_graph(executable, stream)
    show(f"two child graphs: {dict(degrees(step.kernels))}, {dict(named_kernels(step))}, {step.ledger.losses()}")
    with answered("two child graphs", tmp_path):
        assert named_kernels(step) == {
            ("spin", "<captured_at>/parent/layer0"): launches,
            ("empty_kernel", "<captured_at>/left/layer0"): launches,
            ("other_empty_kernel", "<captured_at>/left/layer1"): launches,
            ("empty_kernel", "<captured_at>/left/layer2"): launches,
            ("other_empty_kernel", "<captured_at>/right/layer0"): launches,
            ("empty_kernel", "<captured_at>/right/layer1"): launches,
        }
        assert degrees(step.kernels) == {"captured": launches, "rekeyed": 5 * launches}
        assert_all_is_matched(step)
        assert step.ledger.complete, step.ledger.losses()


def assert_none_is_wrong(step, expected, launches):
    """Every kernel has the name of its capture, or else only that of the launch, and the ledger counts the graph."""
    found = named_kernels(step)
    unnamed = {kernel: count for (kernel, annotation), count in found.items() if not annotation}
    assert {key: count for key, count in found.items() if key[1]}.items() <= dict.fromkeys(expected, launches).items()
    assert found.total() == len(expected) * launches
    assert step.ledger.graphs_uncertain == (1 if unnamed else 0)
    assert step.ledger.graphs_before_trace == 0


def test_no_kernel_of_nested_child_graphs_has_a_wrong_name(cuda, stream, show, tmp_path):
    launches = 10
    with collector.trace(strict=True) as step:
        inner = captured_layers(cuda, stream, "inner", "other_empty_kernel")
        middle = captured_layers(cuda, stream, "middle", "empty_kernel")
        cuda.add_children(middle, [inner])
        parent = cuda.graph_with_children([middle])
        cuda.add_children(parent, [captured_layers(cuda, stream, "last", "spin")])
        executable = cuda.instantiate(parent)
        for _ in range(launches):
            cuda.launch_graph(executable, stream)
    show(f"nested child graphs: {dict(degrees(step.kernels))}, {dict(named_kernels(step))}, {step.ledger.losses()}")
    expected = {
        ("other_empty_kernel", "<captured_at>/inner/layer0"),
        ("empty_kernel", "<captured_at>/middle/layer0"),
        ("spin", "<captured_at>/last/layer0"),
    }
    with answered("nested child graphs", tmp_path):
        assert_none_is_wrong(step, expected, launches)


def test_no_kernel_of_an_updated_graph_with_a_child_graph_has_a_wrong_name(cuda, stream, show, tmp_path, real_gpu):
    launches = 5
    with collector.trace(strict=True) as step:
        graphs = []
        for path in ("first", "second"):
            graphs.append(captured_layers(cuda, stream, path, "spin"))
            cuda.add_children(graphs[-1], [captured_layers(cuda, stream, f"{path}/child", "empty_kernel")])
        executable = cuda.instantiate(graphs[0])
        for update in (False, True):
            if update:
                cuda.update_graph(executable, graphs[1])
            for _ in range(launches):
                cuda.launch_graph(executable, stream)
    show(f"an updated child graph: {dict(degrees(step.kernels))}, {dict(named_kernels(step))}, {step.ledger.losses()}")
    with answered("update of a child graph", tmp_path):
        found = named_kernels(step)
        assert found["spin", "<captured_at>/first/layer0"] == found["spin", "<captured_at>/second/layer0"] == launches
        of_child = [
            kernel.annotation
            for kernel in sorted(step.kernels, key=lambda kernel: kernel.correlation_id)
            if kernel.name != "spin"
        ]
        assert set(of_child[:launches]) <= {"<captured_at>/first/child/layer0", ""}
        assert set(of_child[launches:]) <= {"<captured_at>/second/child/layer0", ""}
        assert step.ledger.graphs_uncertain == ("" in of_child)


# -- Nodes that the simulator does not have


@pytest.mark.parametrize("num_bodies", [1, 2], ids=["if", "if and else"])
def test_no_kernel_in_the_body_of_a_conditional_node_has_a_wrong_name(
    cuda, stream, show, tmp_path, num_bodies, real_gpu
):
    launches = 10
    with collector.trace(strict=True) as step:
        graph = captured_layers(cuda, stream, "graph", "spin")
        bodies = cuda.add_conditional(graph, num_bodies)
        for path, kernel, body in zip(("then", "else"), ("empty_kernel", "other_empty_kernel"), bodies, strict=False):
            with cuda.captured_into(stream, body):
                add_layers(cuda, stream, path, kernel)
        executable = cuda.instantiate(graph)
        for _ in range(launches):
            cuda.launch_graph(executable, stream)
    show(f"{num_bodies} bodies: {dict(degrees(step.kernels))}, {dict(named_kernels(step))}, {step.ledger.losses()}")
    expected = {("spin", "<captured_at>/graph/layer0"), ("empty_kernel", "<captured_at>/then/layer0")}
    with answered("conditional IF" if num_bodies == 1 else "conditional IF and ELSE", tmp_path):
        assert_none_is_wrong(step, expected, launches)


def test_memory_nodes_of_a_graph_hide_none_of_its_kernels(cuda, stream, show, nodes_of, real_gpu):
    launches = 10
    with collector.trace(strict=True, kinds=[*KINDS, "memory_operations"]) as step:
        with cuda.captured_graph(stream) as graphs, collector.annotate("model"):
            address = cuda.allocate_in_order(KILOBYTE, stream)
            cuda.fill(address, 1, KILOBYTE, stream)
            cuda.launch_empty(3, stream)
            cuda.free_in_order(address, stream)
        executable = cuda.instantiate(graphs[0])
        for _ in range(launches):
            cuda.launch_graph(executable, stream)
            cuda.synchronize()
    show(f"memory nodes: {len(step.recording.memory_operations)} operations, {step.ledger.losses()}")
    nodes = nodes_of(step)
    assert names(nodes.kernels) == {"<captured_at>/model": 3 * launches}
    assert degrees(nodes.kernels) == {"captured": 3 * launches}
    (sets, _), _ = nodes.sets_and_copies()
    assert sets == {"<captured_at>/model": launches}
    assert_all_is_matched(step)
    assert step.ledger.complete, step.ledger.losses()


def test_a_host_node_of_a_graph_hides_none_of_its_kernels(cuda, stream, real_gpu):
    launches = 10
    with collector.trace(strict=True) as step:
        with cuda.captured_graph(stream) as graphs, collector.annotate("model"):
            cuda.launch_empty(3, stream)
        cuda.add_host_node(graphs[0])
        executable = cuda.instantiate(graphs[0])
        for _ in range(launches):
            cuda.launch_graph(executable, stream)
    assert names(step.kernels) == {"<captured_at>/model": 3 * launches}
    assert degrees(step.kernels) == {"captured": 3 * launches}
    assert_all_is_matched(step)
    assert step.ledger.complete, step.ledger.losses()
