"""Sessions of a process that others may record: its annotations have numbers of details of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import collector
from collector.testing import SimulatedGpu
from collector.tracing import step_tracer
from collector.tracing.annotate import forget_annotations, send_annotations_always, send_annotations_to
from collector.tracing.recorded_process import RecordedProcess

pytestmark = pytest.mark.simulator


@pytest.fixture
def gpu():
    with SimulatedGpu() as gpu:
        yield gpu


@pytest.fixture
def recorded_process():
    send_annotations_always(RecordedProcess())
    yield
    forget_annotations()


def test_annotations_entered_while_a_step_begins_or_ends_are_not_its_own(gpu, recorded_process, monkeypatch):
    """Another thread enters them when CUPTI records already, or still, but no annotation is meant for the step."""

    def launch_as(name: str, flops: float) -> None:
        with collector.annotate(name, flops=flops):
            gpu.launch(name)

    def send(source, **options):
        if source is not None:
            launch_as("early", 3.0)
        ended = send_annotations_to(source, **options)
        if source is None:
            launch_as("late", 7.0)
        return ended

    monkeypatch.setattr(step_tracer, "send_annotations_to", send)
    with collector.trace(strict=True) as step:
        launch_as("own", 5.0)
    recording = step.recording
    assert {kernel.name for kernel in recording.kernels} == {"early", "own", "late"}
    assert recording.annotations_of(recording.kernels) == ["", "own", ""]
    assert [annotation.name for annotation in recording.annotations] == ["own"]
    assert [details.flops for details in recording.details] == [5.0]


def test_an_annotation_around_a_step_leaves_those_of_the_step_alone(gpu, recorded_process):
    """Also on a thread that leaves it before one of the step."""
    around, inside = collector.annotate("around", flops=1.0), collector.annotate("inside")
    is_entered, is_open = threading.Event(), threading.Event()

    def work() -> None:
        around.__enter__()
        is_entered.set()
        is_open.wait()
        inside.__enter__()
        around.__exit__(None, None, None)
        gpu.launch("kernel")
        inside.__exit__(None, None, None)

    thread = threading.Thread(target=work)
    thread.start()
    is_entered.wait()
    with collector.trace(strict=True) as step:
        is_open.set()
        thread.join()
    assert step.recording.annotations_of(step.recording.kernels) == ["inside"]


ASKED = """
import os, socket, sys, threading
import collector
from collector.testing import SimulatedGpu
from collector.tracing.annotate import is_recording

def ask(*fields):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(f"\\0collector-{os.getpid()}")
        connection.sendall(b"".join(field.encode() + b"\\0" for field in fields))
        connection.shutdown(socket.SHUT_WR)
        return connection.recv(4096).decode().split("\\0")

def recorded_step(gpu):
    status, _, journal, *_ = ask("start", "0", "0")
    assert status == "ok", journal
    with collector.annotate("recorded", flops=5.0):
        gpu.launch("kernel")
    return journal

collector.listen(strict=True)
"""


def run_asked(program: str, folder: Path) -> list[str]:
    environment = os.environ | {"TMPDIR": str(folder)}
    command = [sys.executable, "-c", ASKED + program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.medium
def test_a_child_forked_while_a_recording_is_open_annotates_nothing(tmp_path):
    """Whatever else was imported: `collector.trace` would forget the annotations, too."""
    program = """
with SimulatedGpu() as gpu:
    recorded_step(gpu)
    before = is_recording()
    if os.fork() == 0:
        with collector.annotate("in the child", flops=7.0):
            pass
        collector._native.note_run_details("{}")
        print(before, is_recording(), "collector.tracing.session_slot" in sys.modules, flush=True)
        os._exit(0)
    os.wait()
"""
    assert run_asked(program, tmp_path) == ["True False False"]


@pytest.mark.medium
def test_a_child_forked_before_cuda_was_used_has_the_annotations_of_its_own_recording(tmp_path):
    program = """
with collector.annotate("of the parent", flops=3.0):
    pass
if os.fork() == 0:
    collector.listen(strict=True)
    with SimulatedGpu() as gpu:
        journal = recorded_step(gpu)
        gpu.synchronize()
        ask("stop")
        recording = collector.load(journal).recording
        details = [recording.details[number - 1].flops for number in recording.annotations.details_id]
        threads = {*recording.annotations.thread_id, *recording.api_calls.thread_id} == {threading.get_native_id()}
        print(recording.kernels.annotations(), details, threads)
    sys.stdout.flush()
    os._exit(0)
assert os.wait()[1] == 0
"""
    assert run_asked(program, tmp_path) == ["['recorded'] [5] True"]
