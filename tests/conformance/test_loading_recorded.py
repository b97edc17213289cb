"""Traces recorded by others, read back: nothing lost of the whole ones, the whole part kept of the broken ones."""

from __future__ import annotations

import gzip
import json
from collections import Counter

import pytest

from collector.loading import load
from collector.timeline import Timeline

BROKEN = {
    "truncated_mid_event": "from position",
    "truncated_gzip_stream": "gzip streams cut off",
    "missing_closers": "",
    "bare_event_list_no_closing_bracket": "",
    "string_timestamps": "",
    "nan_and_infinity": "",
    "negative_missing_dur_and_args": "28 negative durations",
    "repeated_kernels": "",
    "invalid_utf8_names": "6 bytes that are not UTF-8 (the first at byte 113",
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
    read = 0
    for name, truth in counts.items():
        if truth.get("format") != "chrome-json" or name.startswith(("tf_", "broken_")) or not truth.get("gpu"):
            continue
        trace = load(shared / "data/gpu_traces" / name)
        found, nanos = gpu_work(trace)
        assert found == expected(truth), name
        assert nanos["kernel"] == truth["gpu"]["kernel_sum_ns"], name
        assert trace.warning == "", name
        read += 1
    assert read >= 20


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


def cases(shared):
    manifest = json.loads((shared / "data/tf/manifest.json").read_text())
    return [case for case in manifest["cases"] if case["kind"] == "timeline"]


def test_every_golden_input_is_told_for_what_it_is(shared):
    for case in cases(shared):
        inputs = case["inputs"]
        trace = load(shared / "data/tf" / inputs["step_stats"])
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


def timed(trace):
    """Slices and arrows, without the numbers of the processes: memory counters, which do not come back, have some."""
    assert trace["otherData"]["base_time_ns"]
    for event in trace["traceEvents"]:
        if event["ph"] in "Xsf":
            yield {key: value for key, value in event.items() if key != "pid"}
