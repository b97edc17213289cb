"""NVTX: ranges of programs and libraries are the op names of the kernels launched inside them.

A copy of NVTX looks for its tool at its first call: each program runs in a process of its own.
"""

import importlib.util
import json
import sys
from collections import Counter

import pytest
from nvtx_package import require_nvtx_package
from timed_programs import run_timed

import collector
from collector.recording.stream_names import stream_names

RUN = [sys.executable, "-m", "collector", "run", "-q", "--nvtx"]
TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")

# -- A program with NVIDIA's header


@pytest.fixture
def traced(unaware_program, tmp_path):
    """Does what the words say under `collector run --nvtx`; returns the step."""

    def run(words, *options):
        command = [*RUN, *options, "-o", "out.gpurec", "--", str(unaware_program), *words.split()]
        done = run_timed(command, cwd=tmp_path)
        assert done.returncode == 7, done.stdout + done.stderr
        step = collector.load(tmp_path / "out.gpurec")
        assert step.ledger.complete, step.ledger.losses()
        return step

    return run


def named(step):
    """How often each kernel has each annotation."""
    kernels = step.recording.kernels
    return Counter(zip(kernels.names(), step.recording.annotations_of(kernels), strict=True))


def test_ranges_of_every_form_name_the_kernels_inside(traced):
    step = traced(
        "init launch:5:before push:layer1 launch:10:work wide:conv launch:20:work pop launch:3:work pop"
        " push@library:gemm launch:40:inside pop@library launch:7:later sync"
    )
    assert named(step) == {
        ("before", ""): 5,
        ("work", "layer1"): 13,
        ("work", "layer1/conv"): 20,
        ("inside", "gemm"): 40,
        ("later", ""): 7,
    }
    annotations = step.recording.annotations
    domains = {row.name: annotations.text(row.domain_name_id) for row in annotations}
    assert domains == {"layer1": "", "layer1/conv": "", "gemm": "library"}


def test_a_domain_that_is_left_out_names_nothing(traced):
    words = (
        "init push@chosen:outer launch:10:work push@other:inner launch:20:work pop@other pop@chosen launch:5:work sync"
    )
    step = traced(words, "--nvtx-domains", "chosen")
    assert named(step) == {("work", "outer"): 30, ("work", ""): 5}


def test_a_range_that_is_started_and_ended_is_a_row_and_names_nothing(traced):
    step = traced("init begin:epoch launch:10:work push:layer1 launch:20:work pop end launch:5:work sync")
    assert named(step) == {("work", ""): 15, ("work", "layer1"): 20}
    ranges = step.recording.nvtx_ranges
    assert ranges.names() == ["epoch"]
    assert ranges.end_ns[0] > ranges.start_ns[0]


def test_named_streams_have_their_names_at_their_kernels(traced):
    step = traced("init stream:compute launch:10:first stream:copies launch:20:second sync")
    found = stream_names(step.recording)
    answer = {row["stream_name"]: row["stream_id"] for row in collector.analysis.streams(step.recording)}
    assert sorted(found.values()) == sorted(answer) == ["compute", "copies"]
    kernels = step.recording.kernels
    on_streams = Counter(zip(kernels.stream_id.tolist(), kernels.names(), strict=True))
    assert on_streams == {(answer["compute"], "first"): 10, (answer["copies"], "second"): 20}


# -- Python

PYTHON = """
import json, sys
from collections import Counter
import collector
{arm}
import nvtx
from cuda_program import CudaProgram

cuda = CudaProgram()
stream = cuda.stream()
cuda.launch_empty(1, stream)
cuda.synchronize()

def show(step):
    found = Counter(step.recording.annotations_of(step.recording.kernels))
    print(json.dumps([found, step.ledger.losses()]))
"""


@pytest.fixture
def shown(run_program):
    """Runs a program that calls ``show(step)``; returns what it shows."""
    require_nvtx_package()
    return lambda text, arm="collector.nvtx.arm()": json.loads(run_program(PYTHON.format(arm=arm) + text))


def test_ranges_of_the_package_nvtx_and_annotations_nest_in_each_other(shown):
    text = """
with collector.trace(strict=True) as step:
    with nvtx.annotate("layer1"):
        cuda.launch_empty(10, stream)
        with collector.annotate("conv"):
            cuda.launch_empty(20, stream)
            with nvtx.annotate("inner", domain="library"):
                cuda.launch_empty(30, stream)
        cuda.launch_empty(1, stream)
    cuda.launch_empty(5, stream)
show(step)
"""
    expected = {"layer1": 11, "layer1/conv": 20, "layer1/conv/inner": 30, "": 5}
    assert shown(text) == [expected, []]


def test_a_trace_arms_the_handler_by_itself(shown):
    text = """
with collector.trace(strict=True, nvtx=True) as step:
    for _ in range(3):
        with nvtx.annotate("layer1"):
            cuda.launch_empty(10, stream)
show(step)
"""
    assert shown(text, arm="") == [{"layer1": 30}, []]


def test_a_trace_takes_the_domains_that_it_names(shown):
    text = """
with collector.trace(strict=True, nvtx=["chosen"]) as step:
    for domain in ("chosen", "other"):
        with nvtx.annotate(domain, domain=domain):
            cuda.launch_empty(10, stream)
    with nvtx.annotate("of no domain"):
        cuda.launch_empty(10, stream)
show(step)
"""
    assert shown(text) == [{"chosen": 10, "": 20}, []]


def test_a_trace_without_nvtx_has_no_ranges(shown):
    text = """
with collector.trace(strict=True, nvtx=False) as step, nvtx.annotate("layer1"):
    cuda.launch_empty(10, stream)
show(step)
"""
    assert shown(text) == [{"": 10}, []]


TORCH_RANGES = """
import json
from collections import Counter
import torch
import collector

x = torch.ones(64, 64, device="cuda")
torch.relu(x)
torch.cuda.synchronize()
with collector.trace(strict=True, nvtx=True) as step:
    torch.cuda.nvtx.range_push("layer1")
    for _ in range(10):
        torch.relu(x)
    with collector.annotate("conv"), torch.cuda.nvtx.range("inner"):
        for _ in range(20):
            torch.relu(x)
    torch.cuda.nvtx.range_pop()
    torch.relu(x)
    torch.cuda.synchronize()
found = Counter(step.recording.annotations_of(step.recording.kernels))
print(json.dumps([found, step.ledger.losses()]))
"""


@TORCH
def test_ranges_of_torch_cuda_nvtx_name_the_kernels_inside(run_program, real_gpu):
    assert json.loads(run_program(TORCH_RANGES)) == [{"layer1": 10, "layer1/conv/inner": 20, "": 1}, []]
