"""The pytest plugin in a test run with real PyTorch, built without CUDA."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from plugin_runs import report_of, run

pytest.importorskip("collector._native", reason="the native extension is not built")
if find_spec("torch") is None:
    pytest.skip("THE PLUGIN WAS NOT TRIED BESIDE PYTORCH ITSELF: it is not installed", allow_module_level=True)
pytest_plugins = ["pytester"]
pytestmark = [pytest.mark.simulator, pytest.mark.slow]

TESTS = """
import collector, pytest, torch
from collector import _native
from torch.profiler import ProfilerActivity, profile, schedule

kept = []

@pytest.fixture
def layer(simulated_gpu):
    class Layer(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            simulated_gpu.launch("forward")
            return x * 2

        @staticmethod
        def backward(context, gradient):
            simulated_gpu.launch("backward")
            return gradient * 2

    return Layer.apply

def train(layer):
    with collector.annotate("step"):
        layer(torch.ones(3, requires_grad=True)).sum().backward()

@pytest.mark.gpu_limits(kernels=2, memcpys=0)
def test_holds(layer):
    train(layer)

@pytest.mark.gpu_limits(kernels=1)
def test_exceeds(layer):
    train(layer)

def test_profiled(layer):
    train(layer)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        assert not _native.is_active()
        train(layer)
    assert _native.is_active()
    assert any("sum" in event.name for event in profiler.events())
    train(layer)

@pytest.mark.gpu_limits(kernels=9)
def test_profiled_and_limited(layer):
    with profile(activities=[ProfilerActivity.CPU]):
        train(layer)

def test_profiled_by_a_schedule(layer):
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=1)) as p:
        for _ in range(4):
            train(layer)
            p.step()

def test_after(layer, gpu_trace):
    with gpu_trace() as step:
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
        train(layer)
    assert step.kernels.names() == ["forward", "backward"]

@pytest.mark.gpu_leaks
def test_leaks(simulated_gpu):
    kept.extend([simulated_gpu.malloc(1 << 20), torch.ones(1 << 20)])

@pytest.mark.gpu_leaks
def test_frees(simulated_gpu):
    kept.append(torch.ones(1 << 20))  # of the host
    simulated_gpu.free(simulated_gpu.malloc(1 << 20))
"""


def test_a_run_with_torch(pytester):
    result = run(pytester, TESTS, "--gpu-trace", "--gpu-simulate", "--gpu-report=out.json", "-W", "ignore", apart=True)
    result.assert_outcomes(passed=7, failed=1, errors=2)
    result.stdout.fnmatch_lines(
        [
            "GPU limits were not judged, because the trace is incomplete: PyTorch's profiler held CUPTI*",
            "*test_leaks leaks GPU memory: the device's grew by 1,048,576 bytes, and 1 allocation was not freed",
            "GPU limits exceeded in the call of *test_exceeds",
        ]
    )
    _, tests = report_of(pytester)
    kernels = {name: test["phases"]["call"]["figures"]["kernels"] for name, test in tests.items() if test["phases"]}
    assert kernels["test_holds"] == 2
    assert kernels["test_profiled"] == 4  # not the two that PyTorch had for itself
    assert kernels["test_profiled_by_a_schedule"] < 8
    assert kernels["test_after"] == 2
