"""Signal handlers that interrupt the trace around tests, such as those of time limits."""

from __future__ import annotations

import signal

import pytest
from plugin_runs import run

import collector
from collector.sources.native import NativeSource
from collector.testing import SimulatedGpu
from collector.testing.plugin.background_tracing import Tracing
from collector.tracing.session_slot import set_background

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.simulator


class TooLateError(TimeoutError):
    """What a signal handler of a program raises, and what system calls raise as well."""


@pytest.fixture(params=[TooLateError, pytest.fail.Exception])
def time_limit(request):
    """A signal handler that raises an exception, and the exception."""

    def too_late(*_, **__):
        raise request.param

    before = signal.signal(signal.SIGALRM, too_late)
    yield too_late, request.param
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def tracing(gpu):
    tracing = Tracing()
    before = set_background(tracing)
    yield tracing
    tracing.finish()
    set_background(before)


@pytest.fixture
def gpu():
    with SimulatedGpu() as gpu:
        yield gpu


def launched(tracing, gpu):
    """The kernels of the next test, and its losses."""
    tracing.begin()
    gpu.launch("next")
    recordings, losses = tracing.end()
    return [name for recording in recordings for name in recording.kernels.names()], losses


def test_it_ends_the_begin_of_the_trace(tracing, gpu, monkeypatch, time_limit):
    handler, error = time_limit
    with monkeypatch.context() as patch:
        patch.setattr(NativeSource, "start", handler)
        with pytest.raises(error):
            tracing.begin()
    assert launched(tracing, gpu) == (["next"], [])


@pytest.mark.parametrize("ends", [Tracing.end, Tracing.finish])
def test_it_ends_the_end_of_the_trace(tracing, gpu, monkeypatch, time_limit, ends):
    handler, error = time_limit
    tracing.begin()
    gpu.launch("first")
    with monkeypatch.context() as patch:
        patch.setattr(NativeSource, "stop", handler)
        with pytest.raises(error):
            ends(tracing)
    tracing.end()
    assert launched(tracing, gpu) == (["next"], [])


def test_the_trace_goes_on_after_it_and_says_what_was_lost(tracing, gpu, monkeypatch, time_limit):
    handler, error = time_limit
    tracing.begin()
    gpu.launch("first")
    with monkeypatch.context() as patch:
        patch.setattr(NativeSource, "stop", handler)
        with pytest.raises(error), collector.trace():
            pass
    gpu.launch("second")
    recordings, losses = tracing.end()
    assert [name for recording in recordings for name in recording.kernels.names()] == ["second"]
    assert losses == [f"the trace was interrupted by {error.__name__}"]


def test_it_ends_a_measurement_apart(tracing, gpu, monkeypatch, time_limit):
    handler, error = time_limit
    tracing.begin()
    gpu.launch("first")
    apart = tracing.apart()
    apart.__enter__()
    gpu.launch("apart")
    with monkeypatch.context() as patch:
        patch.setattr(NativeSource, "stop", handler)
        with pytest.raises(error):
            apart.__exit__(None, None, None)
    recordings, _ = tracing.end()
    assert [name for recording in recordings for name in recording.kernels.names()] == ["first"]


def test_it_is_the_failure_of_the_test(pytester):
    source = """
import signal
import pytest
from collector.sources.native import NativeSource

@pytest.fixture
def time_limit(simulated_gpu, monkeypatch):
    def too_late(*_, **__):
        raise TimeoutError("on purpose")

    before = signal.signal(signal.SIGALRM, too_late)
    monkeypatch.setattr(NativeSource, "stop", too_late)
    yield
    signal.signal(signal.SIGALRM, before)

def test_interrupted(simulated_gpu, time_limit):
    simulated_gpu.launch("sgemm")

@pytest.mark.gpu_limits(kernels=1)
def test_next(simulated_gpu):
    simulated_gpu.launch("sgemm")
"""
    result = run(pytester, source, "--gpu-trace", "--gpu-simulate")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["E*TimeoutError: on purpose"])
