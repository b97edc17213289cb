"""Launches of CUDA graphs by executable graph, counted by hand, on the simulated GPU, and against a plain count."""

from __future__ import annotations

import math
from collections import defaultdict

import pytest

import collector
from collector.analysis import graphs
from collector.analysis.step_marks import MarkedSteps
from collector.recording.cupti_enums import DEGREE_CAPTURED, DEGREE_LAUNCH
from collector.testing import SimulatedGpu


def launched(build, graph, correlation, *nodes, device=0, degree=DEGREE_CAPTURED):
    """A launch of a graph with nodes of these starts and ends."""
    place = {"device_id": device, "context_id": device + 1, "graph_id": graph, "graph_degree": degree}
    for start, end in nodes:
        build.kernel("node", start, end - start, correlation_id=correlation, **place)
    return build


def test_durations_and_busy_time_counted_by_hand(build):
    launched(build, 8, 1, (100, 150), (140, 200))  # 100 ns, all of it busy
    launched(build, 8, 2, (300, 310), (350, 360), (380, 400), degree=DEGREE_LAUNCH)  # 100 ns, 40 of it busy
    launched(build, 9, 3, (500, 530))
    build.kernel("of no graph", 600, 50)
    answer = graphs(build.recording())
    assert list(answer) == [
        {"device_id": 0, "graph_id": 8, "name": "", "source_id": 0, "launches": 2, "activities": 3, "total_ns": 200,
         "median_ns": 100, "max_ns": 100, "busy_share": 0.7, "annotated": "launch"},
        {"device_id": 0, "graph_id": 9, "name": "", "source_id": 0, "launches": 1, "activities": 1, "total_ns": 30,
         "median_ns": 30, "max_ns": 30, "busy_share": 1.0, "annotated": "captured"},
    ]  # fmt: skip
    assert answer.totals == {"launches": 3, "total_ns": 230}
    assert [rows["kernels"].tolist() for rows in answer.evidence] == [[0, 1, 2, 3, 4], [5]]


def test_the_table_says_that_activities_are_those_of_a_launch(build):
    launched(build, 8, 1, (100, 150), (140, 200))
    answer = graphs(build.recording())
    assert "activities per launch" in answer.text(color=False)
    assert "activities" in answer.to_csv().splitlines()[0].split(",")


def test_a_launch_on_two_devices_has_a_duration_on_each(build):
    launched(build, 8, 1, (100, 150))
    launched(build, 8, 1, (400, 480), device=1)
    assert [(row["device_id"], row["launches"], row["total_ns"]) for row in graphs(build.recording())] == [
        (1, 1, 80),
        (0, 1, 50),
    ]


def test_copies_and_memsets_belong_to_a_launch(build):
    build.memcpy(100, 50, graph_id=8, correlation_id=1).memset(200, 50, graph_id=8, correlation_id=1)
    (row,) = graphs(build.recording())
    assert (row["activities"], row["total_ns"], row["busy_share"]) == (2, 150, 100 / 150)


def test_nodes_of_unknown_launches_are_not_counted_as_one_launch(build):
    launched(build, 8, 1, (100, 150))
    launched(build, 8, 0, (1000, 1050), (9000, 9050))
    answer = graphs(build.recording())
    assert [(row["launches"], row["activities"], row["total_ns"]) for row in answer] == [(1, 1, 50)]
    assert answer.evidence[0]["kernels"].tolist() == [0]
    assert "The launches of 2 kernels, copies or memsets of CUDA graphs are not known" in "".join(answer.notes)


def test_nodes_of_unknown_launches_alone_are_explained(build):
    answer = graphs(launched(build, 8, 0, (100, 150)).recording())
    assert len(answer) == 0
    assert answer.notes == (
        "The launch of 1 kernel, copy or memset of CUDA graphs is not known (correlation id 0): it is not counted.",
        "No kernel, copy or memset belongs to a known launch of a CUDA graph.",
    )


def test_a_step_without_graphs_has_no_rows(example):
    assert len(graphs(example)) == 0


@pytest.mark.simulator
@pytest.mark.parametrize("level", ["nodes", "whole"])
def test_graphs_have_their_names_and_sources(level):
    with SimulatedGpu() as gpu, collector.trace(strict=True, graphs=level) as step:
        with gpu.capture() as graph:
            gpu.launch("a")
        with collector.annotate("decode"):
            first = graph.instantiate()
        for executable in (first, graph.instantiate(), first):
            executable.launch()
    assert {row["graph_id"]: (row["name"], row["source_id"], row["launches"]) for row in graphs(step)} == {
        first.id: ("decode", graph.id, 2),
        first.id + 2: ("", graph.id, 1),
    }


@pytest.mark.simulator
@pytest.mark.parametrize("level", ["nodes", "whole"])
def test_graphs_recorded_as_a_whole_have_the_same_durations(level):
    with SimulatedGpu() as gpu, collector.trace(strict=True, graphs=level) as step:
        with gpu.capture() as graph:
            gpu.launch("a", duration_ns=1000)
            gpu.launch("b", duration_ns=2000)
        executable = graph.instantiate()
        for _ in range(3):
            executable.launch()
    answer = graphs(step)
    (row,) = answer
    assert (row["launches"], row["total_ns"]) == (3, step.recording.graph_launches.duration_ns.sum())
    if level == "nodes":
        assert row["activities"] == 2
        assert row["busy_share"] == 9000 / row["total_ns"]
        assert answer.evidence[0]["kernels"].tolist() == list(range(6))
    else:
        assert (row["activities"], row["annotated"]) == (0, "whole graph")
        assert math.isnan(row["busy_share"])
        assert answer.evidence[0]["graph_launches"].tolist() == [0, 1, 2]


@pytest.mark.medium
def test_any_launches_are_counted_as_plainly():
    hypothesis = pytest.importorskip("hypothesis")
    from captures import CaptureBuilder

    integers = hypothesis.strategies.integers
    nodes = hypothesis.strategies.tuples(integers(1, 3), integers(1, 4), integers(0, 60), integers(0, 20))

    @hypothesis.given(hypothesis.strategies.lists(nodes, max_size=12))
    def check(rows):
        build, launches = CaptureBuilder(), defaultdict(list)
        for graph, correlation, start, duration in rows:
            launched(build, graph, correlation, (start, start + duration))
            launches[graph, correlation].append((start, start + duration))
        plain = defaultdict(lambda: [0, 0, 0])
        for (graph, _), spans in launches.items():
            total = max(end for _, end in spans) - min(start for start, _ in spans)
            busy = len({time for start, end in spans for time in range(start, end)})
            plain[graph] = [each + more for each, more in zip(plain[graph], (1, total, busy), strict=True)]
        found = {row["graph_id"]: row for row in graphs(build.recording())}
        assert {graph: [row["launches"], row["total_ns"]] for graph, row in found.items()} == {
            graph: figures[:2] for graph, figures in plain.items()
        }
        for graph, (_, total, busy) in plain.items():
            share = found[graph]["busy_share"]
            assert share == busy / total if total else math.isnan(share)

    check()


@pytest.mark.simulator
@pytest.mark.parametrize("level", ["nodes", "whole"])
def test_a_graph_belongs_to_the_marked_step_that_launched_it(level):
    with SimulatedGpu() as gpu, collector.trace(graphs=level, strict=True) as step:
        with gpu.capture() as graph:
            gpu.launch("node", duration_ns=1_000_000)
        executable = graph.instantiate()
        for number in range(3):
            with collector.annotate(f"step {number}"):
                executable.launch()
    launched = step.recording.graph_launches
    marks = [f"step {number}" for number in MarkedSteps(step.recording).launched_in("graph_launches").tolist()]
    assert launched.annotations() == marks == ["step 0", "step 1", "step 2"]
