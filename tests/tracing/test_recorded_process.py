"""Sessions of a process that others may record: its annotations have numbers of details of their own."""

from __future__ import annotations

import threading

import pytest

import collector
from collector.testing import SimulatedGpu
from collector.tracing import session
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

    monkeypatch.setattr(session, "send_annotations_to", send)
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
