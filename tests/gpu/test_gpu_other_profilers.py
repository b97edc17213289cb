"""PyTorch's profiler and ours in one process, in both orders; each program runs in a process of its own."""

import importlib.util
import json

import pytest
from long_kernel import assert_agreement

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"),
    pytest.mark.usefixtures("real_gpu"),
]

PROGRAM = """
import warnings
warnings.simplefilter("ignore")
import torch
import collector
from torch.profiler import ProfilerActivity, profile

if not torch.cuda.is_available():
    raise SystemExit("PyTorch sees no GPU")
x = torch.randn(256, 256, device="cuda")

def work(times):
    y = x
    for _ in range(times):
        y = torch.relu(y + 1.0)
    torch.cuda.synchronize()

def kineto(times):
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        work(times)
    return sum(str(event.device_type) == "DeviceType.CUDA" for event in profiler.events())

def ours(times):
    with collector.trace(strict=True) as step:
        work(times)
    return len(step.kernels), step.ledger.launches_seen

work(3)
"""


def numbers(text):
    return [int(word) for word in text.split()]


@pytest.fixture
def check_theirs(show):
    """Checks the number of kernels that PyTorch's profiler counted: it may lose a few, which is not our fault."""

    def check(counted, launched):
        if counted < launched:
            show(f"torch.profiler has {counted} of {launched} kernels")
        assert counted >= 0.95 * launched

    return check


def test_ours_after_theirs(run_program, check_theirs):
    theirs, kernels, launches = numbers(run_program(PROGRAM + "print(kineto(50), *ours(50))"))
    check_theirs(theirs, 100)
    assert (kernels, launches) == (100, 100)


def test_after_theirs_a_long_kernel_has_the_duration_that_events_have(run_program, show):
    """Kineto gives CUPTI a function for time stamps, in ticks of the processor, which nothing can take back."""
    text = "import json, long_kernel\nkineto(50)\nprint(json.dumps(long_kernel.durations_ms()))"
    show(assert_agreement(*json.loads(run_program(PROGRAM + text).splitlines()[-1])))


def test_theirs_after_ours(run_program, check_theirs):
    kernels, launches, theirs = numbers(run_program(PROGRAM + "print(*ours(50), kineto(50))"))
    assert (kernels, launches) == (100, 100)
    check_theirs(theirs, 100)


def test_by_turns(run_program, check_theirs):
    printed = numbers(run_program(PROGRAM + "for _ in range(3): print(*ours(20), kineto(20), *ours(20))"))
    for kernels, launches, theirs, again, launches_again in zip(*[iter(printed)] * 5, strict=True):
        assert (kernels, launches, again, launches_again) == (40, 40, 40, 40)
        check_theirs(theirs, 40)


def test_annotated_pytorch_ops(run_program):
    printed = run_program(
        PROGRAM
        + """
with collector.trace(strict=True) as step:
    with collector.annotate("relu"):
        torch.relu(x)
    with collector.annotate("matmul"):
        x @ x
recording = step.recording
print(*sorted(set(recording.annotations_of(recording.kernels))))
"""
    )
    assert printed.split() == ["matmul", "relu"]
