"""Our traces in the viewers that people use, in headless Chromium: catapult (chrome://tracing) and Perfetto's page."""

from __future__ import annotations

import pytest

from collector.loading import load
from collector.merging import merge
from collector.timeline import Timeline

STEP = "gpu_traces/hta/a100_alexnet.json.gz"
TF_STEP = "tf/inputs/gpu_mlp_adam/run_meta_0.pb.gz"


@pytest.fixture(scope="module")
def traces(shared, tmp_path_factory):
    """Face and format -> trace file and how many slices it must show."""
    folder = tmp_path_factory.mktemp("traces")
    made = {}
    for suffix in ("json", "json.gz", "pftrace"):
        report = merge([shared / "data" / STEP], folder / f"own.{suffix}")
        made[suffix] = report.output, report.inputs[0].slices + 1  # and the step itself
    compatible = folder / "tensorflow.json"
    step = load(shared / "data" / TF_STEP).step_stats
    compatible.write_text(Timeline(step).generate_chrome_trace_format(show_memory=True), encoding="utf-8")
    made["tensorflow"] = compatible, sum(len(device.node_stats) for device in step.dev_stats)
    return made


def thread_slices(seen):
    return {
        (process["name"], thread["name"] or thread["tid"], process["pid"]): thread["slices"]
        for process in seen["processes"]
        for thread in process["threads"]
    }


@pytest.mark.parametrize("trace", ["json", "json.gz"])
def test_catapult_shows_our_own_trace(catapult, traces, trace):
    path, slices = traces[trace]
    seen = catapult(path)
    assert (seen["load_error"], seen["import_warnings"], seen["page_errors"]) == (None, [], [])
    rows = thread_slices(seen)
    assert sum(map(len, rows.values())) == slices
    assert [len(slices) for (_, name, _), slices in rows.items() if name == "stream 7"] == [91]
    assert all(isinstance(name, str) for _, name, _ in rows)
    assert all(thread["unfinished"] == 0 for process in seen["processes"] for thread in process["threads"])
    assert seen["flows"] == seen["flows_bound"] > 90
    counters = {counter["name"]: counter for process in seen["processes"] for counter in process["counters"]}
    assert {name.rpartition(".")[2] for name in counters} >= {"busy streams", "HtoD in flight"}
    assert all(counter["samples"] > 0 for counter in counters.values())


def test_catapult_keeps_kernels_that_overlap_apart(catapult, shared, tmp_path):
    trace = merge([shared / "data/tf/inputs/synth/many_lanes.step_stats.pb.gz"], tmp_path / "lanes.json").output
    seen = catapult(trace)
    assert seen["import_warnings"] == []
    # A slice inside another would be drawn below it: lanes hold their slices side by side.
    streams = [slices for (process, _, _), slices in thread_slices(seen).items() if "stream" in process]
    assert streams
    assert all(depth == 0 for slices in streams for *_, depth in slices)


def test_catapult_shows_the_compatible_trace(catapult, traces):
    path, slices = traces["tensorflow"]
    seen = catapult(path)
    assert (seen["load_error"], seen["page_errors"]) == (None, [])
    # TensorFlow's own: arrows begin at the end of a slice, where nothing holds them; objects share numbers.
    assert {warning.partition(":")[0] for warning in seen["import_warnings"]} <= {
        "flow_slice_start_error",
        "flow_slice_ordering_error",
        "object_parse_error",
    }
    assert sum(map(len, thread_slices(seen).values())) == slices
    assert {"/gpu:0/stream:7 Compute", "/gpu:0/memcpy Compute"} <= {process["name"] for process in seen["processes"]}
    assert seen["objects"] > 0
    assert seen["flows_bound"] > 0


@pytest.mark.parametrize("trace", ["json", "json.gz", "pftrace", "tensorflow"])
def test_perfettos_page_shows_every_slice(perfetto_ui, traces, trace):
    path, slices = traces[trace]
    seen = perfetto_ui(path)
    assert seen["load_error"] is None
    dropped = dict(seen["problems"])
    if trace != "tensorflow":  # its lane 0 falls together with another one: see test_compatible_face.py
        assert dropped == {}
    assert seen["slices"] + sum(dropped.values()) >= slices
    assert seen["flows"] > 0
    assert seen["counters"] > 0
    shown = " ".join(name for _, name in seen["rows"])
    if trace == "tensorflow":
        assert "stream:7 Compute" in shown  # T4: the page cuts such names at the last slash
    else:
        assert "GPU 0 stream 7" in shown
        assert "CPU 0" in shown
