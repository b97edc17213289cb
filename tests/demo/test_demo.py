"""The demo, on the simulated GPU."""

from __future__ import annotations

import json
import re

import pytest

import collector
from collector.cli import main
from collector.demo.cuda_demo_gpu import SOURCE
from collector.demo.demo_run import run_demo
from collector.demo.demo_step import BUFFERS, KERNELS, LAYERS
from collector.demo.simulated_demo_gpu import MANGLED
from collector.recording.kernel_names import demangle

pytestmark = pytest.mark.simulator


@pytest.fixture(scope="module")
def step():
    return run_demo(simulate=True)[0]


def test_the_demo_says_that_it_is_simulated_in_the_terminal_and_in_the_trace(tmp_path, capsys):
    path = tmp_path / "t.json"
    assert main(["demo", "--simulate", "-o", str(path)]) == 0
    text = capsys.readouterr().out
    assert "SIMULATED GPU" in text.splitlines()[0]
    assert "simulated GPU" in text
    assert str(path) in text
    trace = json.loads(path.read_text())
    assert trace["otherData"]["simulated"] is True
    devices = {event["args"]["device"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    gpu = {"/gpu:0/stream:7", "/gpu:0/stream:8", "/gpu:0/stream:9", "/gpu:0/memcpy"}
    assert devices == {*gpu, "/cpu:0", "/cpu:0/waits"}


@pytest.mark.filterwarnings("ignore:this is rank 3")
@pytest.mark.parametrize(
    ("asked", "written", "opened_with"),
    [
        ("t.pftrace", "t.rank3.pftrace", "https://ui.perfetto.dev"),
        ("t{rank}.json.gz", "t3.json.gz", "https://ui.perfetto.dev or chrome://tracing"),
        ("t{rank}.html", "t3.html", "a browser"),
        ("t{rank}.xplane.pb", "t3.xplane.pb", "XProf or TensorBoard, which take the folder above plugins/profile"),
    ],
)
def test_the_demo_names_the_file_that_it_wrote_and_what_opens_it(
    asked, written, opened_with, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert main(["demo", "--simulate", "-o", str(tmp_path / asked)]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [f"Wrote {tmp_path / written}", f"Open it with {opened_with}"]
    assert (tmp_path / written).exists()


def test_without_a_gpu_the_demo_says_why_it_is_simulated(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLLECTOR_LIBCUDA", str(tmp_path / "libcuda.so.1"))
    assert main(["demo"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert "SIMULATED GPU" in first
    assert "driver" in first


def test_the_demo_is_a_step_with_forward_backward_and_optimizer(step):
    assert step.ledger.complete
    assert set(step.kernels.names()) == {f"{name}<float>" for name in KERNELS}
    paths = set(step.recording.annotations_of(step.kernels))
    assert {f"forward/{layer}/conv" for layer in LAYERS} <= paths
    assert {f"backward/{layer}/relu" for layer in LAYERS} <= paths
    assert {f"optimizer/{layer}" for layer in LAYERS} <= paths
    assert len(step.kernels) == 5 * len(LAYERS) + 1
    copies = dict(zip(step.recording.annotations_of(step.memcpys), step.memcpys.num_bytes.tolist(), strict=True))
    assert copies == {
        "input": BUFFERS["batch"],
        "next_input": BUFFERS["batch"],
        "forward/loss": BUFFERS["loss"],
    }
    assert step.memsets.num_bytes.tolist() == [BUFFERS["gradients"]]


def overlapping(rows, others) -> bool:
    """Whether any of the rows runs while any of the others does."""
    return any(((others.start_ns < row.end_ns) & (others.end_ns > row.start_ns)).any() for row in rows)


def test_the_demo_overlaps_copies_and_the_optimizer_with_computing(step):
    compute, optimizer = step.kernels.where(stream_id=7), step.kernels.where(stream_id=9)
    assert len(optimizer) == len(LAYERS)
    assert overlapping(optimizer, compute)
    assert overlapping(step.memcpys.where(copy_kind=1), compute)


def test_the_demos_times_are_the_same_every_time(step):
    again = run_demo(simulate=True)[0]
    assert again.kernels.duration_ns.tolist() == step.kernels.duration_ns.tolist()
    assert again.kernels.names() == step.kernels.names()


def test_the_simulated_kernels_are_those_of_the_cuda_source():
    assert re.findall(r"__global__ void (\w+)\(", SOURCE) == list(KERNELS)
    for name, mangled in MANGLED.items():
        assert demangle(mangled) == f"void demo::{name}<float>(float*, unsigned long long, int)"


def test_a_demo_that_cannot_write_says_so_before_it_runs(tmp_path, capsys):
    assert main(["demo", "--simulate", "-o", str(tmp_path / "absent" / "t.json")]) == 2
    assert capsys.readouterr().err.startswith("collector: cannot write")
    with pytest.raises(collector.UnknownFormatError):
        run_demo(tmp_path / "t.txt", simulate=True)
