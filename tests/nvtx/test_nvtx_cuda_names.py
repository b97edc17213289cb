"""Names of GPUs, contexts and streams that a program gives by NVTX's modules CUDA and CUDART, at tracks and processes.

The simulator's handle of a stream is its number.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from ctypes import byref, c_void_p
from pathlib import Path
from typing import Any

import pytest
from cupti_client import CuptiClient

import collector
from collector import analysis
from collector.dataset import Dataset, DatasetWriter
from collector.recording.recording import Recording
from collector.testing import SimulatedGpu
from collector.web.report_lanes import lanes_of
from tests.support.nvtx_copy import NvtxCopy

pytestmark = pytest.mark.simulator


@pytest.fixture
def gpu() -> Any:
    with SimulatedGpu(devices=2) as simulated:
        yield simulated
        assert simulated.misuse() == {}


def context_of(device: int) -> int:
    context = c_void_p()
    CuptiClient().check("cuDevicePrimaryCtxRetain", byref(context), device)
    assert context.value
    return context.value


def labels(step: collector.Session) -> dict[str, str]:
    found: dict[str, str] = step.recording.environment.get("device_labels", {})
    return found


def tracks(path: Path) -> set[str]:
    events = json.loads(path.read_bytes())["traceEvents"]
    return {event["args"]["name"] for event in events if event["name"] == "thread_name"}


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("NameCuStreamA", "narrow é".encode()),
        ("NameCuStreamW", "wide é 🟩"),
        ("NameCudaStreamA", "narrow é".encode()),
        ("NameCudaStreamW", "wide é 🟩"),
    ],
)
def test_every_form_of_a_stream_s_name_is_a_label_of_its_track(
    gpu: SimulatedGpu, nvtx: NvtxCopy, tmp_path: Path, function: str, name: bytes | str
) -> None:
    with collector.trace(tmp_path / "step.json", strict=True) as step:
        getattr(nvtx, function)(21, name)
        gpu.launch("kernel", stream=21)
        gpu.launch("kernel", stream=22)
    text = name.decode() if isinstance(name, bytes) else name
    assert labels(step) == {"/gpu:0/stream:21": text}
    assert {f"stream 21 ({text})", "stream 22"} <= tracks(tmp_path / "step.json")


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("NameCuDeviceA", b"trainer"),
        ("NameCuDeviceW", "trainer"),
        ("NameCudaDeviceA", b"trainer"),
        ("NameCudaDeviceW", "trainer"),
    ],
)
def test_every_form_of_a_gpu_s_name_is_a_label_of_its_process(
    gpu: SimulatedGpu, nvtx: NvtxCopy, tmp_path: Path, function: str, name: bytes | str
) -> None:
    with collector.trace(tmp_path / "step.json", strict=True):
        getattr(nvtx, function)(1, name)
        gpu.launch("kernel", device=1)
    getattr(nvtx, function)(1, b"" if isinstance(name, bytes) else "")
    events = json.loads((tmp_path / "step.json").read_bytes())["traceEvents"]
    (shown,) = [event["args"]["labels"] for event in events if event["name"] == "process_labels"]
    assert shown.startswith("trainer, ")


@pytest.mark.parametrize(("function", "name"), [("NameCuContextA", b"server"), ("NameCuContextW", "server")])
def test_every_form_of_a_context_s_name_is_a_label_of_its_streams(
    gpu: SimulatedGpu, nvtx: NvtxCopy, function: str, name: bytes | str
) -> None:
    with collector.trace(strict=True) as step:
        getattr(nvtx, function)(context_of(0), name)
        nvtx.NameCuStreamA(31, b"compute")
        gpu.launch("kernel", stream=31)
        gpu.launch("kernel", stream=32)
        gpu.launch("kernel", stream=31, context=gpu.create_context())
    getattr(nvtx, function)(context_of(0), b"" if isinstance(name, bytes) else "")
    assert labels(step) == {"/gpu:0/stream:31": "compute, context server", "/gpu:0/stream:32": "context server"}


def test_an_empty_name_takes_the_name_away(gpu: SimulatedGpu, nvtx: NvtxCopy) -> None:
    with collector.trace(strict=True) as step:
        for name in (b"trainer", b""):
            nvtx.NameCudaDeviceA(0, name)
            nvtx.NameCudaStreamA(23, name)
        gpu.launch("kernel", stream=23)
    assert labels(step) == {}


def test_names_of_events_change_nothing(gpu: SimulatedGpu, nvtx: NvtxCopy) -> None:
    with collector.trace(strict=True) as step:
        nvtx.NameCuEventA(1, b"a")
        nvtx.NameCuEventW(1, "a")
        nvtx.NameCudaEventA(1, b"a")
        nvtx.NameCudaEventW(1, "a")
        gpu.launch("kernel")
    assert step.ledger.complete


@pytest.mark.parametrize("suffix", [".gpurec", ".pb", ".json"])
def test_labels_survive_files(gpu: SimulatedGpu, nvtx: NvtxCopy, tmp_path: Path, suffix: str) -> None:
    with collector.trace(strict=True) as step:
        nvtx.NameCudaStreamA(41, b"kept")
        gpu.launch("kernel", stream=41)
    step.save(tmp_path / f"step{suffix}")
    collector.load(tmp_path / f"step{suffix}").save(tmp_path / "again.json")
    assert "stream 41 (kept)" in tracks(tmp_path / "again.json")


@pytest.mark.parametrize("suffix", [".gpurec", ".pb", ".json"])
def test_a_stream_has_its_name_wherever_streams_are_shown(
    gpu: SimulatedGpu, nvtx: NvtxCopy, tmp_path: Path, suffix: str
) -> None:
    with collector.trace(strict=True) as step:
        nvtx.NameCudaStreamA(43, b"compute")
        gpu.launch("ncclDevKernel_AllReduce", stream=43)
        gpu.launch("kernel", stream=44)
        gpu.launch("kernel", stream=43, context=gpu.create_context())
    step.save(tmp_path / f"step{suffix}")
    recording = collector.load(tmp_path / f"step{suffix}").recording
    names = [(43, "compute"), (44, ""), (43, "")]
    for answer in (analysis.streams(recording), analysis.queue(recording)):
        assert [(row["stream_id"], row["stream_name"]) for row in answer] == names
    (communication,) = analysis.overlap(recording, by="stream")
    assert communication["stream_name"] == "compute"
    keys = ("device_id", "context_id", "stream_id", "stream_name")
    named = {tuple(row[key] for key in keys) for row in analysis.streams(recording)}
    for answer in (analysis.kernels(recording, by="stream"), analysis.launch_delays(recording)):
        assert {tuple(row[key] for key in keys) for row in answer} == named
    path = {tuple(row[key] for key in keys) for row in analysis.critical_path(recording, by="segment")}
    assert (-1, -1, -1, "") in path
    assert len(path) > 1
    assert path <= named | {(-1, -1, -1, "")}
    other = max(context for _, context, _, _ in named)
    lanes = [lane.name for lane in lanes_of(recording).lanes if lane.kind == "stream"]
    assert lanes == ["GPU 0 stream 43 (compute)", f"GPU 0 stream 43.{other}", "GPU 0 stream 44"]
    if os.environ.get("COLLECTOR_SANITIZED") == "thread":
        pytest.skip("ThreadSanitizer does not see how pyarrow locks the mutexes that its reader of Parquet waits with")
    pytest.importorskip("duckdb")
    with DatasetWriter(tmp_path / "runs", run="one") as writer:
        writer.write(recording)
    for view in ("answer_streams", "answer_queue"):
        found = Dataset(tmp_path / "runs").sql(f"SELECT stream_name FROM {view} ORDER BY context_id, stream_id")
        assert found["stream_name"].tolist() == ["compute", "", ""]


def test_the_name_stands_beside_the_other_properties_of_a_stream(
    gpu: SimulatedGpu, nvtx: NvtxCopy, tmp_path: Path
) -> None:
    kinds = [*collector.options.TraceOptions().kinds, "streams", "contexts"]
    with collector.trace(tmp_path / "step.json", kinds=kinds, strict=True):
        nvtx.NameCudaStreamA(51, b"copies")
        gpu.launch("kernel", stream=51)
    assert "stream 51 (copies, priority -1)" in tracks(tmp_path / "step.json")


EARLY = """
import sys
import collector
from collector import _native, analysis
from collector.testing import SimulatedGpu
from tests.support.nvtx_copy import NvtxCopy
sys.path.insert(0, "tests/support")
from cupti_client import CuptiClient
from ctypes import byref, c_void_p
nvtx = NvtxCopy(_native.capture_library())
with SimulatedGpu() as gpu:
    client = CuptiClient()  # the program has loaded the driver
    {before}
    nvtx.NameCudaStreamA(7, b"early")
    context = c_void_p()
    client.check("cuDevicePrimaryCtxRetain", byref(context), 0)
    client.check("cuCtxSetCurrent", context)
    with collector.trace(nvtx=True) as step:
        {inside}
        gpu.launch("kernel", stream=7)
print(step.recording.environment.get("device_labels"), step.ledger.losses())
"""
UNKNOWN = (
    "None ['1 name of CUDA streams or contexts could not be matched with the recorded ones: give it inside a trace, or "
    "after the first one']"
)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("before", "inside", "printed"),
    [
        ("", "", "{'/gpu:0/stream:7': 'early'} []"),
        ("gpu.inject('other_driver_numbers')", "", UNKNOWN),
        ("gpu.inject('error', target='cuStreamGetId')", "", UNKNOWN),
        ("gpu.inject('other_driver_numbers')", "nvtx.NameCudaStreamA(7, b'in it')", "{'/gpu:0/stream:7': 'in it'}"),
    ],
)
def test_a_name_from_before_the_first_trace_counts_only_if_the_driver_numbers_streams_as_cupti_does(
    root: Path, before: str, inside: str, printed: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EARLY.format(before=before or "pass", inside=inside or "pass")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(root)])},
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(printed)


def test_a_forked_child_may_name_streams(gpu: SimulatedGpu, nvtx: NvtxCopy) -> None:
    with collector.trace(strict=True) as step:
        gpu.launch("kernel", stream=61)
        child = os.fork()
        if child == 0:
            nvtx.NameCudaStreamA(61, b"child's")
            nvtx.NameCuContextA(1, b"child's")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert labels(step) == {}


def test_a_name_is_not_given_to_the_stream_of_another_context(gpu: SimulatedGpu, nvtx: NvtxCopy) -> None:
    """Stream numbers belong to contexts; the label follows the context of the stream that was named."""
    other = gpu.create_context()
    with collector.trace(strict=True) as step:
        nvtx.NameCudaStreamA(71, b"of the first context")
        gpu.launch("kernel", stream=71, context=other)
    assert labels(step) == {}
    assert isinstance(step.recording, Recording)
