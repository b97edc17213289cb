"""Recorded traces of other tools: intact files are read completely, damaged files up to the damage."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict

import numpy as np
import pytest

from collector.errors import InvalidFileError
from collector.formats.loading import load
from collector.protos.xplane_pb2 import XSpace
from collector.recording.cupti_enums import COPY_KINDS
from collector.timeline import Timeline

OPS = ("cpu_op", "operator", "user_annotation")
WORK = ("kernel", "gpu_memcpy", "memcpy", "gpu_memset", "memset")
QUICK_RECORDINGS = [
    ("hta/a100_alexnet.json.gz", 98),
    ("hta/a100_simple_add.json.gz", 98),
    ("hta/a100_triton_example.json.gz", 1),
]
"""Recording, how many of its activities have an op."""

BROKEN = {
    "truncated_mid_event": "from position",
    "truncated_gzip_stream": "gzip streams cut off",
    "missing_closers": "end of the file missing",
    "bare_event_list_no_closing_bracket": "",
    "string_timestamps": "",
    "nan_and_infinity": "arguments that are not numbers of JSON (NaN or Infinity): ",
    "negative_missing_dur_and_args": "negative durations (taken as 0): 28",
    "repeated_kernels": "",
    "invalid_utf8_names": "bytes that are not UTF-8 (the first at byte 113",
}
"""Broken file -> what the warning has to hold; empty: everything in it can be read."""


def gpu_work(trace):
    """Kind and device and stream -> count and nanoseconds."""
    counts, nanos = Counter(), Counter()
    for device in trace.step_stats.dev_stats:
        gpu, _, stream = device.device.partition("/stream:")
        if not stream or stream == "all":
            continue
        for node in device.node_stats:
            activity = node.node_name.rpartition(":")[2]
            kind = "memcpy" if activity.startswith("MEMCPY") else "memset" if activity == "MEMSET" else "kernel"
            counts[kind, gpu.removeprefix("/gpu:"), stream] += 1
            nanos[kind] += node.all_end_rel_nanos
    return counts, nanos


def expected(truth):
    """The same counts from the script that looked at the file first."""
    return Counter({
        (kind, row["device"], row["stream"]): row[f"{kind}_count"]
        for row in truth["gpu"]["per_stream"]
        for kind in ("kernel", "memcpy", "memset")
        if row.get(f"{kind}_count")
    })  # fmt: skip


@pytest.fixture(scope="module")
def counts(shared):
    return json.loads((shared / "data/gpu_traces/counts.json").read_text())


@pytest.mark.slow
def test_every_profilers_trace_keeps_every_activity(shared, counts):
    names = profilers_traces(counts)
    for name in names:
        truth = counts[name]
        trace = load(shared / "data/gpu_traces" / name)
        found, nanos = gpu_work(trace)
        assert found == expected(truth), name
        assert nanos["kernel"] == truth["gpu"]["kernel_sum_ns"], name
        assert trace.warning == "", name
    assert len(names) >= 20


def ops_by_the_rule(events, nanoseconds):
    """The op of each kernel, copy and memset in file order; None without any. By trying every op of the thread.

    It is the innermost host row that names an op and was open on the calling thread when the call with the same
    correlation id began. Only what has no call is told by its external id.
    """
    by_thread, by_external_id, calls, work = defaultdict(list), {}, {}, []
    for event in events:
        if event.get("ph") != "X":
            continue
        category, arguments = str(event.get("cat", "")).lower(), event.get("args") or {}
        thread, start = (str(event["pid"]), str(event["tid"])), nanoseconds(event["ts"])
        if category in OPS:
            by_thread[thread].append((start, start + nanoseconds(event.get("dur", 0)), event["name"]))
            if arguments.get("External id"):
                by_external_id[arguments["External id"]] = event["name"]
        elif ("runtime" in category or "driver" in category) and arguments.get("correlation"):
            calls.setdefault(arguments["correlation"], (thread, start))
        elif category in WORK:
            work.append(arguments)
    ranges = {thread: np.array([row[:2] for row in rows]) for thread, rows in by_thread.items()}
    found = []
    for arguments in work:
        if arguments.get("correlation") not in calls:
            found.append(by_external_id.get(arguments.get("External id")))
            continue
        thread, at = calls[arguments["correlation"]]
        rows = ranges.get(thread, np.zeros((0, 2), np.int64))
        is_open = np.flatnonzero((rows[:, 0] <= at) & (at < rows[:, 1]))
        innermost = max(is_open, key=lambda row: (rows[row, 0], -rows[row, 1], row), default=None)
        found.append(None if innermost is None else by_thread[thread][innermost][2])
    return found


def ops_as_loaded(trace):
    """Device -> correlation id and op of its work, None for none. Ids that a file lacks count from the largest on."""
    found = {}
    for device in trace.step_stats.dev_stats:
        if device.device.endswith("/stream:all"):
            of_device = found.setdefault(device.device, Counter())
            for node in device.node_stats:
                number = 0 if node.correlation_id > 1 << 31 else node.correlation_id
                of_device[number, node.node_name.encode()[: node.op_end].decode() if node.op_end else None] += 1
    return found


def profilers_traces(counts):
    """Names of the whole recordings that another profiler wrote as a Chrome trace and that hold GPU work."""
    return [
        name
        for name, truth in counts.items()
        if truth.get("format") == "chrome-json" and not name.startswith(("tf_", "broken_")) and truth.get("gpu")
    ]


def hold_to_the_rule(shared, recorded_traces, name):
    """How many activities of a recording have an op, each the one that the rule gives."""
    path = shared / "data/gpu_traces" / name
    events = recorded_traces.read_events(path)
    expected = ops_by_the_rule(events, recorded_traces.nanoseconds)
    work = [event for event in events if event.get("ph") == "X" and str(event.get("cat", "")).lower() in WORK]
    by_device = defaultdict(Counter)
    for event, op in zip(work, expected, strict=True):
        arguments = event.get("args", {})
        spelled = None if op is None else op.replace("::", ".").replace(":", ".")
        number = int(arguments.get("correlation", 0))
        by_device[f"/gpu:{arguments.get('device', event['pid'])}/stream:all"][number, spelled] += 1
    assert ops_as_loaded(load(path)) == by_device, name
    return sum(op is not None for op in expected)


@pytest.fixture(scope="module")
def recorded_traces(root, load_module):
    return load_module(root / "tests/support/recorded_traces.py")


@pytest.mark.parametrize(("name", "with_op"), QUICK_RECORDINGS)
def test_an_activitys_op_is_open_where_it_was_launched(shared, recorded_traces, name, with_op):
    assert hold_to_the_rule(shared, recorded_traces, name) == with_op


def hold_columns_to_the_step(trace):
    """Every kernel, copy and memset of the step is a row with the same place, time, name and op."""
    step, recording = Counter(), trace.recording
    for device in trace.step_stats.dev_stats:
        gpu, _, stream = device.device.partition("/stream:")
        if stream and stream != "all":
            for node in device.node_stats:
                op, _, activity = node.node_name.rpartition(":")
                times = node.all_start_nanos, node.all_end_rel_nanos, node.correlation_id
                step[(gpu, stream, activity, "" if op == activity else op, *times)] += 1
    found = Counter()
    for kind in ("kernels", "memcpys", "memsets"):
        table = getattr(recording, kind)
        names = table.names() if kind == "kernels" else ["MEMSET"] * len(table)
        if kind == "memcpys":
            names = [f"MEMCPY{COPY_KINDS[number]}" for number in table.copy_kind.tolist()]
        ops = [op.replace("::", ".").replace(":", ".") for op in recording.annotations_of(table)]
        starts = (table.start_ns + recording.clock.offset_ns).tolist()
        for row, name, op, start in zip(table, names, ops, starts, strict=True):
            # Numbers that the file does not state are made up, from the largest down.
            correlation = 0 if row.correlation_id > 1 << 31 else row.correlation_id
            place = f"/gpu:{row.device_id}", str(row.stream_id)
            found[(*place, name, "" if op == name else op, start, row.end_ns - row.start_ns, correlation)] += 1
    assert found == step
    return sum(step.values())


@pytest.mark.parametrize("name", [name for name, _ in QUICK_RECORDINGS])
def test_a_profilers_trace_has_the_columns_of_its_step(shared, name):
    trace = load(shared / "data/gpu_traces" / name)
    assert hold_columns_to_the_step(trace) > 0
    kernels = trace.recording.kernels
    assert (kernels.grid_x > 0).all()
    assert (kernels.block_x > 0).all()
    assert (kernels.registers_per_thread > 0).all()
    assert len(trace.recording.api_calls) > 0
    assert trace.recording.ledger.launches_seen > 0


@pytest.mark.slow
def test_every_profilers_trace_has_the_columns_of_its_step(shared, counts):
    assert sum(hold_columns_to_the_step(load(shared / "data/gpu_traces" / name)) for name in profilers_traces(counts))


@pytest.mark.slow
def test_every_recordings_ops_are_open_where_they_were_launched(shared, counts, recorded_traces):
    names = profilers_traces(counts)
    assert len(names) >= 20
    assert sum(hold_to_the_rule(shared, recorded_traces, name) for name in names) > 94_000


@pytest.mark.parametrize("shape", BROKEN)
def test_broken_shapes_keep_what_is_whole(shared, counts, shape):
    name = f"broken_derived/{shape}.json.gz"
    trace = load(shared / "data/gpu_traces" / name)
    found, nanos = gpu_work(trace)
    truth = counts[name]["gpu"]
    kernels = sum(count for (kind, _, _), count in found.items() if kind == "kernel")
    assert kernels == truth["kernel_count"]
    negative = truth["negative_duration_kernels"]  # counted there as the -1 us that they say, here as nothing
    assert nanos["kernel"] == truth["kernel_sum_ns"] + 1000 * negative
    assert BROKEN[shape] in trace.warning
    assert bool(trace.warning) == bool(BROKEN[shape])


def as_xprof_draws(space):
    """The Chrome events that XProf's trace viewer makes of a profile: no categories, all arguments as text."""
    for pid, plane in enumerate(space.planes):
        yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": plane.name}}
        for line in plane.lines:
            yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": line.id, "args": {"name": line.name}}
            for event in line.events:
                arguments = {}
                for stat in event.stats:
                    kind = stat.WhichOneof("value")
                    value = plane.stat_metadata[stat.ref_value].name if kind == "ref_value" else getattr(stat, kind)
                    arguments[plane.stat_metadata[stat.metadata_id].name] = str(value)
                start_ns = line.timestamp_ns + event.offset_ps // 1000
                yield {
                    "ph": "X",
                    "name": plane.event_metadata[event.metadata_id].name,
                    "pid": pid,
                    "tid": line.id,
                    "ts": start_ns / 1000,
                    "dur": event.duration_ps / 1e6,
                    "args": arguments,
                }
    yield {}


@pytest.mark.slow
def test_a_trace_of_xprofs_viewer_has_the_gpu_work_of_its_profile(shared, counts, tmp_path):
    """What TensorFlow 2 and JAX leave beside the profile: streams were taken for ops of the host."""
    name = "xprof/gpu_multi_worker.xplane.pb.gz"
    space = XSpace.FromString(gzip.decompress((shared / "data/gpu_traces" / name).read_bytes()))
    path = tmp_path / "host.trace.json.gz"
    events = {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": [*as_xprof_draws(space)]}
    path.write_bytes(gzip.compress(json.dumps(events).encode(), mtime=0))
    trace = load(path)
    found, nanos = gpu_work(trace)
    assert found == expected(counts[name])
    assert nanos["kernel"] == counts[name]["gpu"]["kernel_sum_ns"] == 29_690_748
    assert trace.warning == ""
    devices = {device.device: device.node_stats for device in trace.step_stats.dev_stats}
    assert {device for device in devices if "stream" not in device and "memcpy" not in device} == {
        "/cpu:0",
        "/gpu:4/annotations",
        "/gpu:6/annotations",
    }
    kernel = devices["/gpu:4/stream:134"][0]
    assert kernel.node_name == (
        "replica_4/bert_span_labeler/bert_encoder_1/transformer/layer_5/dropout_1/dropout/random_uniform/RandomUniform"
        ":FillPhiloxRandomKernelLaunch<UniformDistribution<PhiloxRandom, half>>"
    )
    assert kernel.timeline_label.endswith(" regs:38 shm:0 grid:160,1,1 block:1024,1,1")
    assert 0 < kernel.scheduled_nanos < kernel.all_start_nanos
    copy = devices["/gpu:1/stream:123"][0]
    assert (copy.node_name, copy.timeline_label) == (
        "MakeTensorFromProto:MEMCPYHtoD",
        "MEMCPYHtoD 4 bytes (Unknown to Unknown)",
    )


def cases(shared):
    manifest = json.loads((shared / "data/tf/manifest.json").read_text())
    return [case for case in manifest["cases"] if case["kind"] == "timeline"]


@pytest.mark.slow
def test_every_golden_input_is_recognised(shared):
    for case in cases(shared):
        inputs = case["inputs"]
        path = shared / "data/tf" / inputs["step_stats"]
        if not path.stat().st_size:  # of a step in which TensorFlow recorded nothing
            with pytest.raises(InvalidFileError, match="the file is empty"):
                load(path)
            continue
        trace = load(path)
        assert trace.kind == inputs["step_stats_type"].split(".")[0], inputs["step_stats"]
        assert trace.warning == ""


# What these hold cannot be drawn without loss: devices listed twice, text whose quotes TensorFlow dropped.
LOSSY = ("dup_devices", "cluster_ps_worker", "kernel_labels", "synth_memory", "synth_names", "tensor_desc")


@pytest.mark.slow
def test_a_tensorflow_timeline_read_back_draws_itself(shared):
    same = 0
    for case in cases(shared):
        options = case["options"]
        golden = str(case.get("golden", ""))
        whole = golden.endswith(".json.gz") and "show_dataflow" in options
        if not whole or options["op_time"] != "schedule" or any(word in case["id"] for word in LOSSY):
            continue
        path = shared / "data/tf" / golden
        again = Timeline(load(path).step_stats).generate_chrome_trace_format(
            show_dataflow=options["show_dataflow"], show_memory=options["show_memory"]
        )
        assert again == gzip.decompress(path.read_bytes()).decode(), case["id"]
        same += 1
    assert same >= 90


@pytest.mark.parametrize(
    "name",
    [
        "tf/inputs/gpu_mlp_adam/run_meta_0.pb.gz",
        "tf/inputs/synth/gpu_two.step_stats.pb.gz",
        "gpu_traces/torch_tutorial/h100_transformer_after.json.gz",
        "gpu_traces/hta/a100_alexnet.json.gz",
    ],
)
def test_our_own_timeline_read_back_draws_itself(shared, tmp_path, name):
    from collector.timeline import chrome_trace

    first, second = tmp_path / "first.json", tmp_path / "second.json.gz"
    chrome_trace(load(shared / "data" / name), first)
    trace = load(first)
    assert (trace.kind, trace.warning) == ("collector timeline", "")
    chrome_trace(trace, second)
    assert list(timed(json.loads(first.read_text()))) == list(timed(json.loads(gzip.decompress(second.read_bytes()))))


@pytest.mark.parametrize("share", [0.6, 0.999])
def test_our_own_timeline_without_its_end_keeps_its_devices(shared, tmp_path, share):
    from collector.timeline import chrome_trace

    whole, cut = tmp_path / "whole.json", tmp_path / "cut.json"
    chrome_trace(load(shared / "data/gpu_traces/hta/a100_alexnet.json.gz"), whole)
    text = whole.read_text()
    cut.write_text(text[: int(len(text) * share)])
    trace, complete = load(cut), load(whole)
    assert trace.kind == "collector timeline"
    assert "base time cut off (the times do not say the date): 1" in trace.warning
    known = {device.device: [node.node_name for node in device.node_stats] for device in complete.step_stats.dev_stats}
    for device in trace.step_stats.dev_stats:
        names = [node.node_name for node in device.node_stats]
        assert names == known[device.device][: len(names)] or device.device.endswith("stream:all")
    assert "/gpu:0/stream:all" in [device.device for device in trace.step_stats.dev_stats]
    again = json.loads(chrome_trace(trace))["otherData"]
    assert again["base_time"] == ""
    assert any("base time cut off" in line for line in again["not_drawn"])


def timed(trace):
    """Slices and arrows, without the numbers of the processes: memory counters, which do not come back, have some."""
    assert trace["otherData"]["base_time_ns"]
    for event in trace["traceEvents"]:
        if event["ph"] in "Xsf":
            yield {key: value for key, value in event.items() if key != "pid"}
