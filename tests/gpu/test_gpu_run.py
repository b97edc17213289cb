"""`collector run`: programs that know nothing of the collector, each with exactly the kernels that it launched.

On a GPU the program is linked with CUDA's static runtime, on the simulator it calls the driver.
"""

import importlib.util
import json
import resource
import signal
import sys
from collections import Counter

import pytest
from timed_programs import run_timed

import collector

RUN = [sys.executable, "-m", "collector", "run"]
UNTIL_WRITTEN = "sleep:1500"  # records reach the file twice a second
TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")


def without_core_dump():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@pytest.fixture
def run(tmp_path):
    """Runs a command under `collector run`; returns the step of out.gpurec, if the status is the expected one."""

    def run_command(*command, options=(), status=7, output="out.gpurec"):
        done = run_timed([*RUN, *options, "-o", output, "--", *command], cwd=tmp_path, preexec_fn=without_core_dump)
        assert done.returncode == status, done.stdout + done.stderr
        assert (tmp_path / output).exists(), done.stdout + done.stderr
        return collector.load(tmp_path / output)

    return run_command


def kernels(step):
    return Counter(step.recording.kernels.names())


def names(step):
    return Counter(step.recording.annotations_of(step.recording.kernels))


@pytest.mark.parametrize(("words", "status"), [((), 7), (("exit:3",), 3)], ids=["return from main", "exit"])
def test_a_program_that_ends_has_all_its_kernels(unaware_program, run, words, status):
    step = run(unaware_program, "init", "launch:5000:work", "sync", *words, status=status)
    assert kernels(step) == {"work": 5000}
    assert step.ledger.launches_seen == step.ledger.launches_matched == 5000
    assert step.ledger.complete, step.ledger.losses()
    assert set(zip(*(step.recording.kernels[column].tolist() for column in ("grid_x", "block_x")), strict=True)) == {
        (8, 128)
    }


def test_work_that_the_program_does_not_wait_for_is_recorded_or_counted(unaware_program, run):
    step = run(unaware_program, "init", "launch:2000:work")
    ledger = step.ledger
    assert ledger.launches_seen == 2000
    counted = ledger.kernels + ledger.late + ledger.invalid_timestamps + ledger.launches_without_kernel
    assert counted == 2000, ledger.losses()


@pytest.mark.parametrize(
    ("end", "status"),
    [("_exit:4", 4), ("abort", -signal.SIGABRT), ("kill", -signal.SIGKILL)],
    ids=["_exit", "abort", "SIGKILL"],
)
def test_a_program_that_dies_leaves_the_kernels_before(unaware_program, run, end, status):
    step = run(unaware_program, "init", "launch:3000:work", "sync", UNTIL_WRITTEN, end, status=status)
    assert kernels(step) == {"work": 3000}
    assert step.ledger.interrupted == 1
    assert len(step.ledger.losses()) == 1, step.ledger.losses()


@pytest.fixture
def run_two(unaware_program, tmp_path):
    """Runs two processes at a time, whose kernels have the names `first` (200) and `second` (300)."""

    def run_command(output):
        one = f"{unaware_program} init launch:200:first sync"
        other = f"{unaware_program} init launch:300:second sync"
        command = [*RUN, "-q", "-o", output, "--", "sh", "-c", f"{one} & {other} & wait"]
        done = run_timed(command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr

    return run_command


def test_two_processes_at_a_time_have_a_file_each(run_two, tmp_path):
    run_two("{pid}.gpurec")
    steps = [collector.load(path) for path in tmp_path.glob("*.gpurec")]
    assert sorted(kernels(step).most_common() for step in steps) == [[("first", 200)], [("second", 300)]]
    assert all(step.ledger.complete for step in steps), [step.ledger.losses() for step in steps]


def test_two_processes_are_merged_into_one_trace(run_two, tmp_path):
    run_two("out.json")
    trace = json.loads((tmp_path / "out.json").read_text())
    drawn = Counter(event["name"] for event in trace["traceEvents"] if event["ph"] == "X")
    assert (drawn["first"], drawn["second"]) == (200, 300)
    assert len(trace["otherData"]["inputs"]) == 2


def test_nvtx_ranges_are_names_only_with_the_option(unaware_program, run):
    words = ["init", "push:layer1", "launch:20:work", "push:conv", "launch:30:work", "pop", "pop", "launch:40:work"]
    with_names = run(unaware_program, *words, "sync", options=["--nvtx"])
    without = run(unaware_program, *words, "sync", output="without.gpurec")
    assert names(with_names) == {"layer1": 20, "layer1/conv": 30, "": 40}
    assert names(without) == {"": 90}
    assert with_names.ledger.complete, with_names.ledger.losses()


def test_only_what_is_between_start_and_stop_of_the_profiler_is_recorded(unaware_program, run):
    words = "init launch:100:before sync runtime-start launch:300:inside runtime-stop launch:100:later sync"
    words += " runtime-start launch:50:inside sync runtime-stop launch:100:later sync"
    step = run(unaware_program, *words.split(), options=["--capture-range", "cudaProfilerApi"])
    assert kernels(step) == {"inside": 350}
    assert (step.ledger.capture_ranges_seen, step.ledger.capture_ranges_recorded) == (2, 2)
    assert step.ledger.launches_seen == 350
    assert step.ledger.complete, step.ledger.losses()


def test_each_range_of_nvtx_has_a_file_of_its_own(unaware_program, tmp_path):
    words = (
        "init launch:9:before push:train launch:20:inside sync pop launch:9:later push:train launch:30:inside pop sync"
    )
    options = ["-q", "--capture-range", "nvtx:train", "-o", "range{step}.gpurec"]
    command = [*RUN, *options, "--", unaware_program, *words.split()]
    done = run_timed(command, cwd=tmp_path)
    assert done.returncode == 7, done.stderr
    assert [kernels(collector.load(path)) for path in sorted(tmp_path.glob("*.gpurec"))] == [
        {"inside": 20},
        {"inside": 30},
    ]


def test_a_limited_recording_has_the_latest_kernels(unaware_program, run):
    words = "init launch:300000:before sync sleep:1200 launch:500:later sync"
    step = run(unaware_program, *words.split(), options=["--max-size", "64KiB"])
    found = kernels(step)
    assert found["later"] == 500
    assert found["before"] < 300_000
    assert step.ledger.rows_forgotten > 0
    assert step.ledger.losses() == []


# -- Python that opens sessions of its own

SESSIONS_PROGRAM = """
import ctypes, os
import collector

driver = ctypes.CDLL(os.environ.get("COLLECTOR_LIBCUDA") or "libcuda.so.1")
function = ctypes.c_void_p()

def called(name, *arguments):
    assert getattr(driver, name)(*arguments) == 0, name

def initialise():
    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    called("cuInit", 0)
    called("cuDeviceGet", ctypes.byref(device), 0)
    called("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    called("cuCtxSetCurrent", context)
    called("cuModuleLoadData", ctypes.byref(module), open("kernels.cubin", "rb").read())
    called("cuModuleGetFunction", ctypes.byref(function), module, b"empty_kernel")

def launch(count):
    for _ in range(count):
        called("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, None, None, None)
    called("cuCtxSynchronize")
"""


@pytest.fixture
def run_sessions(cuda, run, tmp_path):
    """Runs Python text behind `SESSIONS_PROGRAM`; returns its step."""
    (tmp_path / "kernels.cubin").write_bytes(cuda.cubin)

    def run_program(sessions):
        (tmp_path / "sessions.py").write_text(SESSIONS_PROGRAM + sessions)
        return run(sys.executable, "sessions.py", options=["-q"], status=0)

    return run_program


def test_a_session_that_initialises_cuda_is_a_part_of_the_recording(run_sessions, tmp_path):
    """The driver loads the library for programs within cuInit, while the session holds the subscription."""
    recorded = run_sessions("""
with collector.trace("first.gpurec", strict=True):
    with collector.annotate("first"):
        initialise()
        launch(300)
launch(20)
with collector.trace("second.gpurec", strict=True):
    launch(50)
launch(3)
""")
    first, second = (collector.load(tmp_path / name) for name in ("first.gpurec", "second.gpurec"))
    assert kernels(recorded) == {"empty_kernel": 373}
    assert names(recorded) == {"first": 300, "": 73}
    assert (kernels(first), kernels(second)) == ({"empty_kernel": 300}, {"empty_kernel": 50})
    for step in (recorded, first, second):
        assert step.ledger.launches_seen == step.ledger.launches_matched == len(step.recording.kernels)
        assert step.ledger.complete, step.ledger.losses()


def test_a_flight_recorder_leaves_a_program_that_initialises_cuda_in_it_to_the_recording(run_sessions):
    recorded = run_sessions("""
with collector.record(keep="1min") as recorder:
    initialise()
    launch(300)
launch(20)
assert "records this process already" in recorder.unavailable
""")
    assert kernels(recorded) == {"empty_kernel": 320}
    assert recorded.ledger.complete, recorded.ledger.losses()


# -- PyTorch

TORCH_PROGRAM = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
    def forward(self, x):
        return self.layers(x)

net = Net().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    net(torch.randn(64, 256, device="cuda")).sum().backward()
    optimizer.step()
torch.cuda.synchronize()
"""


@TORCH
def test_a_pytorch_program_has_the_names_of_its_modules_without_a_change(run, real_gpu, tmp_path):
    (tmp_path / "train.py").write_text(TORCH_PROGRAM)
    step = run(sys.executable, "train.py", options=["--python"], status=0)
    found = names(step)
    assert found["Net/layers/0"] >= 3, found
    assert found["Net/layers/1"] == 3, found
    assert any(name.endswith("/backward") and name.startswith("Net/layers/0") for name in found), found
    assert any(name.startswith("SGD.step") for name in found), found
    assert step.ledger.launches_seen == step.ledger.launches_matched > 0
    assert step.ledger.complete, step.ledger.losses()
