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

from collector.formats.xspace import xspace
from collector.loading import load


@pytest.fixture(scope="module")
def xprof(tmp_path_factory):
    """`xprof(trace)`: XProf's tables. It is here, or in the Python that COLLECTOR_XPROF_PYTHON names."""
    python = os.environ.get("COLLECTOR_XPROF_PYTHON") or (importlib.util.find_spec("xprof") and sys.executable)
    if not python:
        pytest.skip(
            "XPROF NOT TESTED: pip install xprof (354 MB), or set COLLECTOR_XPROF_PYTHON to a Python that has it"
        )

    def tables(trace):
        folder = tmp_path_factory.mktemp("log") / "plugins" / "profile" / "run"
        folder.mkdir(parents=True)
        path = folder / "host.xplane.pb"
        path.write_bytes(xspace(trace.run_metadata).SerializeToString())
        script = Path(__file__).with_name("xprof_tables.py")
        done = subprocess.run(
            [python, str(script), str(path)], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return tables


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
    tables = xprof(trace)
    wanted, launches = Counter(), 0
    for device in trace.step_stats.dev_stats:
        gpu, _, stream = device.device.partition("/stream:")
        if stream and stream != "all":
            wanted[f"GPU:{gpu[-1]}", stream] += len(device.node_stats)
            launches += sum(":MEM" not in node.node_name for node in device.node_stats)
    processes = {e["pid"]: e["args"]["name"] for e in tables["events"] if e.get("name") == "process_name"}
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in tables["events"] if e.get("name") == "thread_name"}
    seen = Counter()
    for event in tables["events"]:
        line = threads.get((event.get("pid"), event.get("tid")), "")
        if event.get("ph") == "X" and line.startswith("Stream #"):
            seen[processes[event["pid"]].removeprefix("/device:"), line.split("#")[1].split("(")[0]] += 1
            assert 0 <= event["ts"] < 1e9  # microseconds since the session began
    assert seen == wanted
    assert sum(row["occurrences"] for row in tables["kernels"]) == launches


def test_kernel_details_are_parsed(shared, xprof):
    tables = xprof(load(shared / "data/gpu_traces/hta/a100_alexnet.json.gz"))
    assert any(
        row["registers_per_thread"] > 0 and row["block_dim"] != "1,1,1" and row["op_name"] for row in tables["kernels"]
    )
