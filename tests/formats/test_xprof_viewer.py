"""XProf's own converter reads our XSpace: every activity of the GPU in its trace viewer and its kernel table."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from support.xspaces import xspace

from collector.formats.loading import load
from collector.merging.merged_trace import merge
from collector.protos import DeviceStepStats, StepStats
from collector.protos.xplane_pb2 import XSpace
from collector.stepstats.from_recording import run_metadata

pytestmark = pytest.mark.viewer


@pytest.fixture(scope="module")
def xprof(tmp_path_factory):
    """`xprof(write)`: XProf's tables of what `write(path)` writes.

    It is here, or in the Python that COLLECTOR_XPROF_PYTHON names.
    """
    python = os.environ.get("COLLECTOR_XPROF_PYTHON") or (importlib.util.find_spec("xprof") and sys.executable)
    if not python:
        pytest.skip(
            "XPROF NOT TESTED: pip install xprof (354 MB), or set COLLECTOR_XPROF_PYTHON to a Python that has it"
        )

    def tables(write):
        folder = tmp_path_factory.mktemp("log") / "plugins" / "profile" / "run"
        folder.mkdir(parents=True)
        path = folder / "host.xplane.pb"
        write(path)
        script = Path(__file__).with_name("xprof_tables.py")
        done = subprocess.run([python, str(script), str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return tables


def write_file(trace, path):
    path.write_bytes(xspace(trace.run_metadata).SerializeToString())


def viewer_rows(tables):
    """(process, line, event) of all that XProf's trace viewer draws."""
    processes = {e["pid"]: e["args"]["name"] for e in tables["events"] if e.get("name") == "process_name"}
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in tables["events"] if e.get("name") == "thread_name"}
    for event in tables["events"]:
        if event.get("ph") == "X":
            yield processes[event["pid"]], threads.get((event["pid"], event["tid"]), ""), event


def gpu_rows(tables):
    """(GPU, stream, start, duration in us) of what is on lines of streams."""
    for process, line, event in viewer_rows(tables):
        if line.startswith("Stream #"):
            assert 0 <= event["ts"] < 1e9  # since the session began
            yield process.removeprefix("/device:"), line.split("#")[1].split("(")[0], event["ts"], event["dur"]


@pytest.mark.parametrize(
    "name",
    [
        "gpu_traces/torch_tutorial/h100_transformer_after.json.gz",
        "gpu_traces/hta/a100_alexnet.json.gz",
        "gpu_traces/hta/a100_rank0of2_nccl_metadata.json.gz",
        "tf/inputs/gpu_mlp_adam/run_meta_0.pb.gz",
    ],
)
def test_every_activity_of_the_gpu_is_in_xprofs_tables(shared, xprof, name):
    trace = load(shared / "data" / name)
    tables = xprof(lambda path: write_file(trace, path))
    wanted, launches, has_copies = Counter(), 0, set()
    for device in trace.step_stats.dev_stats:
        gpu, _, stream = device.device.partition("/stream:")
        if stream and stream != "all":
            kernels = sum(":MEM" not in node.node_name for node in device.node_stats)
            wanted[f"GPU:{gpu[-1]}", stream] += len(device.node_stats)
            launches += kernels
            if kernels < len(device.node_stats):
                has_copies.add(gpu)
    for device in trace.step_stats.dev_stats:
        gpu, _, row = device.device.rpartition("/")
        if row == "memcpy" and gpu not in has_copies:  # TensorFlow 1 had copies there alone
            wanted[f"GPU:{gpu[-1]}", row] += len(device.node_stats)
    assert Counter(row[:2] for row in gpu_rows(tables)) == wanted
    assert sum(row["occurrences"] for row in tables["kernels"]) == launches


def test_kernel_details_are_parsed(shared, xprof):
    trace = load(shared / "data/gpu_traces/hta/a100_alexnet.json.gz")
    tables = xprof(lambda path: write_file(trace, path))
    assert any(
        row["registers_per_thread"] > 0 and row["block_dim"] != "1,1,1" and row["op_name"] for row in tables["kernels"]
    )


EPOCH_NS = 1_700_000_000_000_000_000


def a_step(rank, number, kernels):
    """A step of a rank: its kernels of 3 us each take turns on two streams, 10 us apart."""
    start_ns = EPOCH_NS + 1_000_000 * number + 1_000 * rank
    devices = [DeviceStepStats(device=f"/gpu:0/stream:{stream}") for stream in (7, 13)]
    for place in range(kernels):
        devices[place % 2].node_stats.add(
            node_name="model/dense:sgemm",
            timeline_label="void sgemm<float>(int) regs:64 shm:1024 grid:8,1,1 block:256,1,1",
            all_start_nanos=start_ns + 10_000 * place,
            all_end_rel_nanos=3_000,
            correlation_id=place + 1,
        )
    calls = DeviceStepStats(device="/cpu:0", thread_names={9: "python"})
    calls.node_stats.add(
        node_name="cudaLaunchKernel",
        all_start_nanos=start_ns - 500,
        all_end_rel_nanos=400,
        thread_id=9,
        correlation_id=1,
    )
    return StepStats(dev_stats=[calls, *devices])


@pytest.mark.parametrize("layout", ["sequence", "overlay"])
def test_steps_and_ranks_of_a_merge_are_xprofs_steps(xprof, tmp_path, layout):
    paths = []
    for rank, number in [(0, 3), (0, 4), (0, 5), (1, 3), (1, 4), (1, 5)]:
        paths.append(tmp_path / f"rank{rank}_step{number}.pb")
        paths[-1].write_bytes(a_step(rank, number, kernels=4 + number).SerializeToString())
    tables = xprof(lambda path: merge(paths, path, layout=layout))
    rows = list(gpu_rows(tables))
    assert sum(row["occurrences"] for row in tables["kernels"]) == len(rows) == 2 * (7 + 8 + 9)
    assert {row["op_name"] for row in tables["kernels"]} == {"model/dense"}
    steps = [(process, event["ts"], event["dur"]) for process, line, event in viewer_rows(tables) if line == "Steps"]
    on_gpus = sorted(step for step in steps if "GPU" in step[0])
    if layout == "sequence":
        # Each GPU has the three steps, as long as what it did in them; the host says when each was for all ranks.
        assert [(gpu, round(start, 3), round(length, 3)) for gpu, start, length in on_gpus] == [
            (f"/device:GPU:0 rank {rank}", 0.5 + rank + 1_000 * (number - 3), 10 * (3 + number) + 3)
            for rank in (0, 1)
            for number in (3, 4, 5)
        ]
        assert len(tables["steps"]) == 3
        for step, kernels in zip(tables["steps"], (7, 8, 9), strict=True):  # 3 us each; 4 where any GPU counts
            assert 3 * kernels <= 1_000 * step["deviceComputeTimeMs"] <= 4 * kernels
    else:
        assert {gpu for gpu, *_ in on_gpus} == {f"/device:GPU:0 rank {r} step {n}" for r in (0, 1) for n in (3, 4, 5)}
        assert max(start for _, start, _ in on_gpus) < 3


OURS = ("launch_correlation_id", "unnamed")
"""Stats that the reader of our profiles needs, and XProf does not know."""


def without_stats_of_ours(space):
    for plane in space.planes:
        ours = {number for number, metadata in plane.stat_metadata.items() if metadata.name in OURS}
        for event in (event for line in plane.lines for event in line.events):
            kept = [stat for stat in event.stats if stat.metadata_id not in ours]
            del event.stats[:]
            event.stats.extend(kept)
    return space


def test_what_our_reader_needs_changes_no_figure_of_xprof_and_is_in_its_traces(build, start_ns, xprof, tmp_path):
    times = {"start_ns": start_ns + 80_000, "end_ns": start_ns + 95_000}
    build.launch(1, 20_000).kernel("gemm", 30_000, 9_000, correlation_id=1)
    build.call("cudaGraphLaunch_v10000", 79_000, 500, correlation_id=8, domain=2)
    build.raw("graph_launches", **times, graph_id=4, context_id=1, stream_id=7, correlation_id=8)
    build.raw("synchronizations", **times, sync_type=3, stream_id=7, context_id=1, correlation_id=9)
    build.raw("nvtx_ranges", **times, name_id=build.text(""), thread_id=11)
    space = xspace(run_metadata(build.recording()))
    tables = xprof(lambda path: path.write_bytes(space.SerializeToString()))
    shorter = without_stats_of_ours(XSpace.FromString(space.SerializeToString()))
    assert shorter.ByteSize() < space.ByteSize()
    others = xprof(lambda path: path.write_bytes(shorter.SerializeToString()))
    assert tables["kernels"] == others["kernels"]
    assert tables["steps"] == others["steps"]
    (tmp_path / "host.trace.json").write_text(json.dumps({"traceEvents": tables["events"]}))
    found = load(tmp_path / "host.trace.json").recording
    assert found.graph_launches.correlation_id.tolist() == [8]
    assert found.synchronizations.stream_id.tolist() == [7]
    assert found.nvtx_ranges.names() == [""]


def test_t8_lines_that_begin_at_the_epoch_lose_their_events_in_xprof(shared, xprof):
    """The trap itself: the same XSpace with absolute times for its lines."""
    trace = load(shared / "data/gpu_traces/hta/a100_alexnet.json.gz")

    def write_absolute(path):
        space = xspace(trace.run_metadata)
        for plane in space.planes:
            for line in plane.lines:
                line.timestamp_ns += 1_700_000_000_000_000_000
        path.write_bytes(space.SerializeToString())

    def events_in_the_session(tables):
        return sum(0 <= event["ts"] < 1e9 for _, _, event in viewer_rows(tables))

    ours = xprof(lambda path: write_file(trace, path))
    assert events_in_the_session(ours) == len(list(viewer_rows(ours)))
    assert events_in_the_session(xprof(write_absolute)) == 0
