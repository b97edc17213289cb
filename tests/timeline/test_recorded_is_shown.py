"""Recorded waits, overheads, memory operations and every column with a meaning reach the drawn files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support.xspaces import xspace

import collector
from collector.formats.loading import load
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource
from collector.stepstats.from_recording import run_metadata, serialized
from tests.support.profiler_times import times_by_scope


@pytest.fixture
def recording(build, start_ns):
    def at(start, duration, **values):
        return {"start_ns": start_ns + start, "end_ns": start_ns + start + duration, **values}

    build.launch(1, 1000).annotation("layer", 900, 3000, 77, 1)
    build.kernel(
        "_Z3addIfEvPT_i",
        5000,
        2000,
        correlation_id=1,
        registers_per_thread=16,
        static_shared_bytes=1024,
        dynamic_shared_bytes=512,
        local_bytes_per_thread=8,
        cluster_x=2,
        cluster_y=1,
        cluster_z=1,
        launch_type=1,
        priority=-2,
        graph_id=3,
        graph_node_id=2**40,
    )
    build.memcpy(9000, 1024, is_async=1).memset(12_000, 512, value=255, stream_id=9)
    build.call("cudaStreamSynchronize", 20_000, 5000, correlation_id=4, return_value=700)
    none = 2**32 - 1
    on_stream = {"stream_id": 7, "context_id": 1, "correlation_id": 4, "event_id": none}
    build.raw("synchronizations", **at(20_100, 4000, sync_type=3, **on_stream))
    build.raw("synchronizations", **at(30_000, 10, sync_type=1, stream_id=none, context_id=1, event_id=12))
    build.raw("synchronizations", **at(31_000, 10, sync_type=4, stream_id=none, context_id=2, event_id=none))
    build.raw("overheads", **at(40_000, 700, overhead_kind=1 << 16, object_kind=2, process_id=5, thread_id=6))
    jit = {"jit_operation_type": 1, "jit_entry_type": 1, "device_id": 1, "jit_id": 8, "cache_bytes": 512}
    build.raw("jit_operations", **at(45_000, 300, correlation_id=10, process_id=5, thread_id=6, **jit))
    build.raw(
        "memory_operations",
        start_ns=start_ns + 50_000,
        operation=1,
        memory_kind=3,
        address=0x7F00,
        num_bytes=4096,
        correlation_id=9,
    )
    return build.recording()


KERNEL = {
    "kernel": "void add<float>(float*, int)",
    "op": "layer",
    "registers": 16,
    "shared_bytes": 1536,
    "grid": [1, 1, 1],
    "block": [32, 1, 1],
    "static_shared_bytes": 1024,
    "dynamic_shared_bytes": 512,
    "local_bytes_per_thread": 8,
    "cluster": [2, 1, 1],
    "launch_type": "cooperative",
    "priority": -2,
    "graph": 3,
    "graph_node": 2**40,
    "correlation": 1,
    "waited_ns": 4000,
}
COPY = {"bytes": 4096, "from": "Pageable", "to": "Device", "is_async": 1}
MEMSET = {"bytes": 4096, "to": "Device", "value": 255, "is_async": 0}
SIDES = {
    ("waits", "Stream Synchronize"): {"waited_for": "stream 7", "stream": 7, "context": 1, "correlation": 4},
    ("waits", "Event Synchronize"): {"waited_for": "event 12", "event": 12, "context": 1},
    ("waits", "Context Synchronize"): {"waited_for": "context 2", "context": 2},
    ("overheads", "Buffer Flush"): {"process": 5, "thread": 6},
    ("jit", "JIT Cache Load"): {
        "code": "PTX to cubin",
        "device": 1,
        "bytes": 512,
        "jit": 8,
        "process": 5,
        "thread": 6,
        "correlation": 10,
    },
    ("memory", "Allocation"): {
        "bytes": 4096,
        "memory": "Device",
        "device": 0,
        "address": "0x7f00",
        "correlation": 9,
    },
}


def test_a_trace_of_chrome_has_them_on_tracks_of_their_own(recording):
    events = json.loads(collector.chrome_trace(serialized(recording)))["traceEvents"]
    tracks = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
    drawn = [(tracks[event["pid"], event["tid"]], event) for event in events if event["ph"] == "X"]
    shown = {(track, event["name"]): event.get("args") for track, event in drawn}
    assert shown["stream 7", "add<float>"] == KERNEL
    assert shown["stream 7", "MEMCPYHtoD"] == shown["copies", "MEMCPYHtoD"] == COPY
    assert shown["stream 9", "MEMSET"] == MEMSET
    assert {key: shown[key] for key in SIDES} == SIDES
    assert next(args for (_, name), args in shown.items() if name == "cudaStreamSynchronize")["return_value"] == 700
    categories = {event["name"]: event["cat"] for _, event in drawn}
    assert (categories["Stream Synchronize"], categories["Buffer Flush"]) == ("sync", "overhead")


@pytest.mark.medium
def test_perfetto_shows_them(perfetto, recording, tmp_path):
    query = """select thread_track.name, slice.name, args.key, args.display_value from slice
               join thread_track on slice.track_id = thread_track.id join args using (arg_set_id)"""
    collector.chrome_trace(serialized(recording), tmp_path / "step.pftrace")
    view = perfetto(tmp_path / "step.pftrace", query.replace("thread_track", "track"))
    assert (view.load_errors, view.problems) == ([], {})
    shown: dict[str, dict[str, str]] = {}
    for _, name, key, value in view.answers[0]:
        shown.setdefault(name, {})[key.rpartition(".")[2]] = value
    for (_, name), arguments in SIDES.items():
        assert shown[name].items() >= {key: str(value) for key, value in arguments.items()}.items()
    kernel = shown["add<float>"]
    wanted = {"launch_type": "cooperative", "priority": "-2", "graph": "3", "graph_node": str(2**40)}
    assert kernel.items() >= wanted.items()


def test_an_xspace_has_them_as_stats(recording):
    space = xspace(run_metadata(recording))
    shown = {}
    for plane in space.planes:
        names = {number: entry.name for number, entry in plane.event_metadata.items()}
        keys = {number: entry.name for number, entry in plane.stat_metadata.items()}
        for line in plane.lines:
            for event in line.events:
                shown[line.name.partition("(")[0], names[event.metadata_id]] = {
                    keys[stat.metadata_id]: keys[stat.ref_value]
                    if stat.WhichOneof("value") == "ref_value"
                    else getattr(stat, stat.WhichOneof("value"))
                    for stat in event.stats
                }
    kernel = shown["Stream #7", "void add<float>(float*, int)"]
    assert kernel["kernel_details"] == "regs:16 static_shared:1024 dynamic_shared:512 grid:1,1,1 block:32,1,1 occ_pct:0"
    wanted = {"cluster": "2,1,1", "launch_type": "cooperative", "priority": -2, "graph": 3, "graph_node": 2**40}
    assert kernel.items() >= wanted.items()
    details = "kind:HtoD kind_src:pageable kind_dst:device size:4096 dest:0 async:1"
    assert shown["Stream #7", "MemcpyH2D"]["memcpy_details"] == details
    for (line, name), arguments in SIDES.items():
        beside = {key: value for key, value in arguments.items() if key != "correlation"}
        assert shown[line, name].items() >= beside.items()


def test_the_profilers_times_are_the_same_without_them(recording):
    whole, plain = run_metadata(recording), run_metadata(recording)
    for device in list(plain.step_stats.dev_stats):
        if device.device.startswith("/cpu:0/"):
            plain.step_stats.dev_stats.remove(device)
        for node in device.node_stats:
            node.ClearField("activity")
    assert len(whole.step_stats.dev_stats) == len(plain.step_stats.dev_stats) + 4
    assert times_by_scope(whole) == times_by_scope(plain)


def test_a_window_and_a_limit_keep_the_columns(recording):
    """Which node has which columns does not depend on what is drawn."""
    data = serialized(recording)
    for view in ({"max_events": 6}, {"min_duration_ns": 1500}, {"devices": "/gpu:0/stream:7"}):
        events = json.loads(collector.chrome_trace(data, **view))["traceEvents"]
        kernels = [event for event in events if event.get("cat") == "kernel"]
        assert [{**event["args"], "waited_ns": 4000} for event in kernels] == [KERNEL]


def test_nodes_that_do_not_match_those_of_all_streams_are_read_by_their_labels(recording):
    """Somebody took a node out of one device: columns of another node would be wrong."""
    metadata = run_metadata(recording)
    all_streams = next(device for device in metadata.step_stats.dev_stats if device.device == "/gpu:0/stream:all")
    del all_streams.node_stats[1]
    events = json.loads(collector.chrome_trace(metadata.SerializeToString()))["traceEvents"]
    shown = {event["name"]: event["args"] for event in events if event["ph"] == "X" and "args" in event}
    assert shown["MEMCPYHtoD"] == {"bytes": 4096, "from": "Pageable", "to": "Device"}
    assert "cluster" not in shown["add<float>"]
    assert np.array_equal(shown["add<float>"]["grid"], [1, 1, 1])


@pytest.mark.medium
def test_columns_are_found_for_each_of_many_streams_of_two_contexts(build):
    for stream in range(100):
        for context in (2, 1):
            at = 100 * stream + 10 * context
            build.kernel(f"k{stream}_{context}", at, stream_id=stream, context_id=context, registers_per_thread=at + 1)
    events = json.loads(collector.chrome_trace(serialized(build.recording())))["traceEvents"]
    found = {event["name"]: event["args"]["registers"] for event in events if event["ph"] == "X"}
    assert found == {f"k{s}_{c}": 100 * s + 10 * c + 1 for s in range(100) for c in (1, 2)}


@pytest.mark.medium
def test_a_modules_variable_is_shown_and_comes_back(build, start_ns, tmp_path):
    """CUPTI names the variable of an allocation of static memory."""
    for place, (memory_kind, name) in enumerate(((6, "lookup_table"), (3, ""))):
        times = {"start_ns": start_ns + 1000 * place}
        build.raw("memory_operations", **times, operation=1, memory_kind=memory_kind, name_id=build.text(name))
    path = tmp_path / "step.json"
    Step(RecordingSource(build.recording())).save(path)
    drawn = [event["args"] for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
    assert [each.get("variable") for each in drawn] == ["lookup_table", None]
    assert load(path).recording.memory_operations.recorded_names() == ["lookup_table", ""]
    shown = {
        plane.stat_metadata[stat.ref_value].name
        for plane in xspace(run_metadata(build.recording())).planes
        for line in plane.lines
        for event in line.events
        for stat in event.stats
        if stat.ref_value
    }
    assert "lookup_table" in shown
