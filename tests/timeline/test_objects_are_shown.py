"""Devices, contexts, streams and CUDA events, which are not activities, reach drawn and written files."""

from __future__ import annotations

import json

import pytest
from support.xspaces import xspace

import collector
from collector import analysis
from collector.dataset import Dataset, DatasetWriter
from collector.options import KINDS, KINDS_ON_REQUEST
from collector.stepstats.from_recording import run_metadata, serialized
from collector.stepstats.object_tables import object_rows, object_rows_of
from collector.testing import SimulatedGpu
from collector.web.report_lanes import lanes_of

pytestmark = pytest.mark.simulator

DEVICE_LABEL = "Simulated GPU, 132 SMs, compute capability 9.0, 85.9 GB at 3.35 TB/s"


@pytest.fixture(scope="module")
def step():
    with SimulatedGpu() as gpu, collector.trace(strict=True, kinds=(*KINDS, *KINDS_ON_REQUEST)) as traced:
        gpu.launch("a", stream=7)
        gpu.launch("b", stream=9)
        gpu.record_event(stream=9)
        gpu.synchronize()
    return traced


def names_and_labels(events):
    threads = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    return threads, {event["args"]["labels"] for event in events if event["name"] == "process_labels"}


def test_wire_bytes_have_the_rows_of_the_recording(step):
    rows = object_rows(step.recording)
    assert set(rows) == {"devices", "contexts", "streams", "cuda_events"}
    assert object_rows_of(serialized(step.recording)) == rows
    assert rows["devices"][0]["name"] == "Simulated GPU"
    program, driver = [7, 9], 7  # each context has streams of the driver's own
    assert [row["stream_id"] for row in rows["streams"]][:2] == program
    assert len(rows["streams"]) == len(program) + driver


@pytest.mark.parametrize("window", [{}, {"window_ns": (None, 9_000)}])
def test_a_trace_of_chrome_labels_processes_and_tracks(step, window):
    trace = json.loads(collector.chrome_trace(step, **window))
    threads, labels = names_and_labels(trace["traceEvents"])
    assert {"stream 7 (default)", "stream 9 (priority -1)"} & threads
    assert labels == {DEVICE_LABEL}
    rows = object_rows(step.recording)
    assert {name: trace["otherData"][name] for name in ("devices", "contexts", "streams")} == {
        name: rows[name] for name in ("devices", "contexts", "streams")
    }


def test_objects_come_back_from_a_trace_of_chrome(step, tmp_path):
    collector.chrome_trace(step, tmp_path / "step.json")
    assert object_rows(collector.load(tmp_path / "step.json").recording) == object_rows(step.recording)


@pytest.mark.parametrize(
    "devices",
    [5, "five", [5], [{"device_id": "five", "name": 5}], [{"device_id": 1 << 70}], [{"name": "\ud800"}], [{}]],
)
def test_damaged_objects_of_a_trace_of_chrome_are_none_or_zeros(step, tmp_path, devices):
    trace = json.loads(collector.chrome_trace(step))
    trace["otherData"]["devices"] = devices
    (tmp_path / "step.json").write_text(json.dumps(trace))
    rows = object_rows(collector.load(tmp_path / "step.json").recording).get("devices", [])
    assert [row["device_id"] for row in rows] in ([], [0])


def test_the_label_of_the_caller_comes_first(step):
    _, labels = names_and_labels(json.loads(collector.chrome_trace(step, label="step 3"))["traceEvents"])
    assert labels == {f"step 3, {DEVICE_LABEL}", "step 3"}


def test_without_a_table_of_devices_the_label_is_their_name():
    with SimulatedGpu() as gpu, collector.trace(strict=True) as traced:
        gpu.launch("a", stream=9)
    threads, labels = names_and_labels(json.loads(collector.chrome_trace(traced))["traceEvents"])
    assert "stream 9" in threads
    assert labels == {"Simulated GPU"}


def test_streams_on_which_nothing_ran_are_shown_nowhere(step, tmp_path):
    streams = step.recording.streams.stream_id.tolist()
    assert len(streams) == 9
    shown = sorted({7, 9} & set(streams))
    threads, _ = names_and_labels(json.loads(collector.chrome_trace(step))["traceEvents"])
    assert sorted(name.split()[1] for name in threads if name.startswith("stream ")) == ["7", "9"]
    assert [row["stream_id"] for row in analysis.streams(step)] == shown
    assert [lane.stream_id for lane in lanes_of(step.recording).lanes if lane.kind == "stream"] == shown
    gpu = next(plane for plane in xspace(run_metadata(step.recording)).planes if plane.name == "/device:GPU:0")
    assert [stat for stat in stats_of(gpu, gpu.stats) if stat.startswith("stream ")] == [
        "stream 7 of context 1",
        "stream 9 of context 1",
    ]
    assert {line.name for line in gpu.lines} == {"Stream #7(Compute)", "Stream #9(Compute)"}
    pytest.importorskip("duckdb")
    with DatasetWriter(tmp_path / "runs", run="one") as writer:
        writer.write(step.recording)
    rows = Dataset(tmp_path / "runs").sql("SELECT stream_id FROM answer_streams ORDER BY stream_id")
    assert rows["stream_id"].tolist() == shown


@pytest.mark.medium
@pytest.mark.viewer
def test_perfetto_shows_labels(perfetto, step, tmp_path):
    collector.chrome_trace(step, tmp_path / "step.pftrace")
    view = perfetto(
        tmp_path / "step.pftrace",
        "select name from thread where name like 'stream%' order by name",
        "select display_value from args where key = 'chrome.process_label[0]'",
    )
    assert (view.load_errors, view.problems) == ([], {})
    assert view.answers == [[["stream 7 (default)"], ["stream 9 (priority -1)"]], [[DEVICE_LABEL]]]


def test_merged_traces_have_the_labels_of_every_rank(step, tmp_path):
    for rank in (0, 1):
        (tmp_path / f"{rank}.pb").write_bytes(serialized(step.recording, f"/job:worker/replica:0/task:{rank}"))
    collector.merge([tmp_path / "0.pb", tmp_path / "1.pb"], tmp_path / "both.json")
    threads, labels = names_and_labels(json.loads((tmp_path / "both.json").read_text())["traceEvents"])
    assert {"stream 7 (default)", "stream 9 (priority -1)"} <= threads
    assert labels == {DEVICE_LABEL}


def stats_of(plane, stats):
    keys = {number: entry.name for number, entry in plane.stat_metadata.items()}
    return {
        keys[stat.metadata_id]: keys[stat.ref_value]
        if stat.WhichOneof("value") == "ref_value"
        else getattr(stat, stat.WhichOneof("value"))
        for stat in stats
    }


def test_an_xspace_says_what_the_gpu_could_reach(step):
    space = xspace(run_metadata(step.recording))
    gpu = next(plane for plane in space.planes if plane.name.startswith("/device:GPU:0"))
    assert stats_of(gpu, gpu.stats) == {
        "device_vendor": "Nvidia",
        "device_name": "Simulated GPU",
        "memory_bandwidth": 3_350_000_000_000,
        "clock_rate": 1_980_000,
        "core_count": 132,
        "memory_size": 85_899_345_920,
        "compute_cap_major": 9,
        "compute_cap_minor": 0,
        "context 1": "default stream 7, 132 SMs",
        "stream 7 of context 1": "default",
        "stream 9 of context 1": "priority -1",
    }
    host = next(plane for plane in space.planes if plane.name == "/host:CPU")
    names = {number: entry.name for number, entry in host.event_metadata.items()}
    recorded = [
        stats_of(host, event.stats)
        for line in host.lines
        for event in line.events
        if names[event.metadata_id] == "cudaEventRecord"
    ]
    event_id = step.recording.cuda_events.event_id[0]
    assert [(each["event"], each["stream"]) for each in recorded] == [(event_id, 9)]


@pytest.mark.parametrize(
    ("name", "vendor"),
    [("AMD Instinct MI300X", "AMD"), ("Intel(R) Data Center GPU Max 1550", "Intel"), ("NVIDIA B200", "Nvidia")],
)
def test_an_xspace_says_the_vendor_of_the_gpu(tmp_path, name, vendor):
    trace = {
        "deviceProperties": [{"id": 0, "name": name, "numSms": 304}],
        "traceEvents": [
            {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 0, "ts": 1, "dur": 1, "args": {"device": 0}}
        ],
    }
    (tmp_path / "trace.json").write_text(json.dumps(trace))
    gpu = xspace(collector.load(tmp_path / "trace.json").run_metadata).planes[0]
    found = stats_of(gpu, gpu.stats)
    assert (found["device_vendor"], found["device_name"]) == (vendor, name)


def test_arrow_tables_have_every_row(step):
    pytest.importorskip("pyarrow")
    for name, rows in object_rows(step.recording).items():
        table = getattr(step.recording, name).to_arrow()
        beside = {"annotation": ""} if "annotation" in table.column_names else {}  # of rows that calls caused
        assert table.to_pylist() == [{**row, **beside} for row in rows]
