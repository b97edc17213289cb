"""Launches of CUDA graphs and NVTX ranges in drawn files: slices, arguments, arrows, and tfprof's figures."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import collector
import collector.analysis
from collector import _native
from collector.recording.recording import Recording
from collector.stepstats.from_recording import run_metadata, serialized
from collector.testing import SimulatedGpu
from tests.support.nvtx_copy import NvtxCopy, attributes
from tests.support.profiler_times import times_by_scope

pytestmark = pytest.mark.simulator


@pytest.fixture
def recording() -> Recording:
    nvtx = NvtxCopy(_native.capture_library())
    domain = nvtx.DomainCreateA(b"serving")
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        with gpu.capture(stream=9) as graph, collector.annotate("model"):
            gpu.launch("gemm", stream=9, duration_ns=4_000)
            gpu.memcpy("HtoD", 4096, stream=9)
            gpu.launch("relu", stream=9, duration_ns=2_000)
        with collector.annotate("decode"):
            executable = graph.instantiate()
        for request in range(2):
            nvtx.DomainRangePushEx(domain, attributes(b"request", payload_type=1, payload=request))
            executable.launch(stream=9)
            nvtx.DomainRangePop(domain)
        nvtx.DomainMarkEx(domain, attributes(b"done"))
    return step.recording


def slices(recording: Recording) -> list[tuple[str, dict[str, Any]]]:
    """The track of each slice, and the slice."""
    events = json.loads(collector.chrome_trace(serialized(recording)))["traceEvents"]
    tracks = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
    return [(tracks[event["pid"], event["tid"]], event) for event in events if event["ph"] == "X"]


def test_a_graph_s_slice_encloses_the_nodes_of_its_launch(recording: Recording) -> None:
    drawn = slices(recording)
    launches = [event for track, event in drawn if track == "graphs" and event["cat"] == "other"]
    assert [event["name"] for event in launches] == [f"decode (graph {recording.kernels.graph_id[0]})"] * 2
    for launch in launches:
        arguments = launch["args"]
        assert (arguments["graph_name"], arguments["nodes"], arguments["graph_degree"]) == ("decode", 3, "captured")
        own = [
            event
            for track, event in drawn
            if track == "stream 9" and event["args"]["correlation"] == arguments["correlation"]
        ]
        assert [event["name"] for event in own] == ["gemm", "MEMCPYHtoD", "relu"]
        assert {event["args"]["graph"] for event in own} == {arguments["graph"]}
        assert len({event["args"]["graph_node"] for event in own}) == 3
        assert {event["args"]["op"] for event in own} == {"request/<captured_at>/model"}
        assert launch["ts"] == own[0]["ts"]
        assert launch["ts"] + launch["dur"] == pytest.approx(own[-1]["ts"] + own[-1]["dur"])


def inside(launch: dict[str, Any], drawn: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, str, str]]:
    """Track, name and stream of a graph's nodes inside the slice of a launch."""
    start, end = launch["ts"], launch["ts"] + launch["dur"]
    return [
        (track, event["name"], event["args"]["stream"])
        for track, event in drawn
        if track.startswith("graphs")
        and event["cat"] != "other"
        and start <= event["ts"]
        and event["ts"] + event["dur"] <= end + 1e-6
    ]


def launches_in(drawn: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    return [(track, event) for track, event in drawn if track.startswith("graphs") and event["cat"] == "other"]


def test_the_nodes_of_a_graph_are_children_of_its_launch(recording: Recording) -> None:
    drawn = slices(recording)
    for _, launch in launches_in(drawn):
        assert inside(launch, drawn) == [("graphs", name, "9") for name in ("gemm", "MEMCPYHtoD", "relu")]


@pytest.fixture
def branching() -> Recording:
    """Two launches that overlap; in each two branches run at once."""
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        executables = []
        for stream in (9, 13):
            with gpu.capture(stream=stream) as graph:
                gpu.launch("first", stream=stream, duration_ns=4_000)
                gpu.launch("second", stream=stream, duration_ns=2_000)
            executables.append(graph.instantiate())
        executables[0].launch(stream=9)
        executables[1].launch(stream=13)
    recording = step.recording
    begin = int(recording.kernels.start_ns.min())
    for column, times in (
        (recording.kernels.start_ns, [0, 1_000, 2_000, 3_000]),
        (recording.kernels.end_ns, [4_000, 3_000, 6_000, 5_000]),
        (recording.graph_launches.start_ns, [0, 2_000]),
        (recording.graph_launches.end_ns, [4_000, 6_000]),
    ):
        column.setflags(write=True)
        column[:] = begin + np.array(times)
        column.setflags(write=False)
    return recording


def test_launches_and_nodes_that_overlap_have_lanes(branching: Recording) -> None:
    drawn = slices(branching)
    assert [track for track, _ in launches_in(drawn)] == ["graphs", "graphs lane 3"]
    nodes = [
        (track, event["name"], event["args"]["stream"])
        for track, event in drawn
        if track.startswith("graphs") and event["cat"] != "other"
    ]
    assert nodes == [
        ("graphs", "first", "9"),
        ("graphs lane 2", "second", "9"),
        ("graphs lane 3", "first", "13"),
        ("graphs lane 4", "second", "13"),
    ]


def test_drawn_nodes_are_not_recorded_again(recording: Recording, tmp_path: Any) -> None:
    collector.chrome_trace(serialized(recording), tmp_path / "step.json")
    again = collector.load(tmp_path / "step.json").recording
    for table in ("kernels", "memcpys", "graph_launches"):
        assert len(getattr(again, table)) == len(getattr(recording, table)) > 0
    assert again.ledger.losses() == recording.ledger.losses()
    rows = collector.analysis.graphs(again)
    assert [(row["launches"], row["total_ns"]) for row in rows] == [
        (row["launches"], row["total_ns"]) for row in collector.analysis.graphs(recording)
    ]


@pytest.mark.parametrize("more", [-1, 0])
def test_nodes_in_graphs_do_not_exceed_the_number_of_slices(recording: Recording, more: int, tmp_path: Any) -> None:
    whole = collector.chrome_trace(serialized(recording), tmp_path / "whole.json").slices
    drawn = collector.chrome_trace(serialized(recording), tmp_path / "part.json", max_events=whole + more)
    assert (drawn.slices, drawn.left_out) == (whole if more == 0 else whole - 6, 0)


def test_arrows_lead_from_the_call_to_the_graph_and_to_each_of_its_nodes(recording: Recording) -> None:
    events = json.loads(collector.chrome_trace(serialized(recording)))["traceEvents"]
    tracks = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
    ends: dict[int, list[str]] = {}
    for event in events:
        if event["ph"] in "sf" and event["name"] == "launch":
            ends.setdefault(event["id"], []).append(tracks[event["pid"], event["tid"]])
    to = sorted(track for _, track in ends.values())
    assert to == sorted(2 * ["graphs", *3 * ["stream 9"]])


def test_ranges_show_what_they_state(recording: Recording) -> None:
    drawn = slices(recording)
    requests = [event["args"] for _, event in drawn if event["name"] == "request"]
    assert [(each["domain"], each["payload"]) for each in requests] == [("serving", "0"), ("serving", "1")]
    (mark,) = [event["args"] for track, event in drawn if track == "nvtx"]
    assert (mark["kind"], mark["domain"]) == ("Mark", "serving")


@pytest.mark.parametrize(
    ("color", "name"),
    [
        (0xFFFF0000, "terrible"),
        (0xFF008000, "good"),
        (0xFF0000FF, "vsync_highlight_color"),
        (0x00010101, "black"),
        (0xFFF8F8F8, "white"),
    ],
)
def test_a_range_of_a_colour_has_the_nearest_one_that_chrome_knows(color: int, name: str) -> None:
    nvtx = NvtxCopy(_native.capture_library())
    with SimulatedGpu(), collector.trace(strict=True) as step:
        nvtx.RangePushEx(attributes(b"range", color_type=1, color=color))
        nvtx.RangePop()
        nvtx.MarkEx(attributes(b"mark", color_type=1, color=color))
        nvtx.RangePushEx(attributes(b"plain", color=color))  # of no type of colours
        nvtx.RangePop()
    shown = {event["name"]: event.get("cname") for _, event in slices(step.recording)}
    assert (shown["range"], shown["mark"], shown["plain"]) == (name, name, None)


@pytest.mark.medium
@pytest.mark.viewer
def test_perfetto_shows_the_same(perfetto: Any, recording: Recording, tmp_path: Any) -> None:
    query = """select track.name, slice.name, args.key, args.display_value from slice
               join track on slice.track_id = track.id join args using (arg_set_id)"""
    arrows = "select slice.name, count(*) from flow join slice on slice.id = slice_in group by 1"
    collector.chrome_trace(serialized(recording), tmp_path / "step.pftrace")
    children = """select parent.name, child.name, child.depth, child.dur <= parent.dur from slice child
                  join slice parent on child.parent_id = parent.id where parent.name like 'decode (graph%'"""
    view = perfetto(tmp_path / "step.pftrace", query, arrows, children)
    assert (view.load_errors, view.problems) == ([], {})
    shown: dict[str, dict[str, str]] = {}
    for _, slice_name, key, value in view.answers[0]:
        shown.setdefault(slice_name, {})[key.rpartition(".")[2]] = value
    name = f"decode (graph {recording.kernels.graph_id[0]})"
    graph = shown[name]
    assert graph.items() >= {"graph_name": "decode", "nodes": "3", "graph_degree": "captured"}.items()
    assert shown["request"].items() >= {"domain": "serving", "payload": "1"}.items()
    assert view.answers[2] == [[name, child, 1, 1] for child in ("gemm", "MEMCPYHtoD", "relu")] * 2
    assert dict(view.answers[1]) == {name: 2, "gemm": 2, "MEMCPYHtoD": 2, "relu": 2}


def test_the_profilers_times_are_the_same_without_graphs_and_ranges(recording: Recording) -> None:
    whole, plain = run_metadata(recording), run_metadata(recording)
    for device in list(plain.step_stats.dev_stats):
        if device.device in ("/gpu:0/graphs", "/cpu:0/nvtx"):
            plain.step_stats.dev_stats.remove(device)
        for node in device.node_stats:
            node.ClearField("activity")
    assert len(whole.step_stats.dev_stats) == len(plain.step_stats.dev_stats) + 2
    assert times_by_scope(whole) == times_by_scope(plain)
