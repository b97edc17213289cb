"""Programs that replace functions of Python while a step is traced, as tests do, which go on and can trace again."""

from __future__ import annotations

import os
import pathlib
import socket
import threading
from unittest import mock

import pytest

import collector
from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator


def raising(*_: object, **__: object) -> None:
    raise RuntimeError("this is not to be called")


REPLACED = {
    "process id": (os, "getpid", lambda: 42),
    "working directory": (os, "getcwd", raising),
    "operating system": (os, "name", "nt"),
    "host": (socket, "gethostname", raising),
    "folder": (pathlib.Path, "iterdir", raising),
    "opening": (pathlib.Path, "open", raising),
    "threads": (threading, "enumerate", lambda: [mock.Mock()]),
    "thread": (threading, "get_ident", lambda: 42),
}


@pytest.fixture
def gpu():
    with SimulatedGpu() as found:
        yield found


def traced_step(gpu, replaced):
    """A traced step, in which a function is replaced before its end."""
    patch = mock.patch.object(*replaced)
    try:
        with collector.trace() as step:
            gpu.launch("kernel")
            patch.start()
    finally:
        patch.stop()
    return step


@pytest.mark.parametrize("replaced", REPLACED.values(), ids=REPLACED)
def test_a_function_that_is_replaced_in_a_step_does_not_lose_it(gpu, replaced):
    step = traced_step(gpu, replaced)
    assert step.recording.kernels.names() == ["kernel"]
    with collector.trace(strict=True) as later:
        gpu.launch("later")
    assert later.recording.kernels.names() == ["later"]


@pytest.mark.parametrize("replaced", REPLACED.values(), ids=REPLACED)
def test_a_function_that_is_replaced_around_a_step_does_not_end_the_program(gpu, replaced, tmp_path, recwarn):
    ran = False
    session = collector.trace(tmp_path / "step-{pid}.gpurec")
    with mock.patch.object(*replaced), session:
        gpu.launch("kernel")
        ran = True
    assert ran
    said = " ".join(str(each.message) for each in recwarn)
    assert session.recording.kernels.names() == ["kernel"] or "not traced" in said
    assert any(tmp_path.iterdir()) or "the trace will not be saved" in said or "the trace is not saved" in said
    with collector.trace(strict=True) as later:
        gpu.launch("later")
    assert later.recording.kernels.names() == ["later"]


@pytest.mark.parametrize("replaced", REPLACED.values(), ids=REPLACED)
@pytest.mark.filterwarnings("ignore::collector.CollectorWarning")
def test_a_function_that_is_replaced_in_a_step_of_a_recorder_does_not_end_the_program(gpu, replaced, tmp_path):
    with collector.record(folder=tmp_path, strict=True):
        step = traced_step(gpu, replaced)
        assert step.unavailable or step.recording.kernels.names() == ["kernel"]
        with collector.trace(strict=True) as later:
            gpu.launch("later")
        assert later.recording.kernels.names() == ["later"]
