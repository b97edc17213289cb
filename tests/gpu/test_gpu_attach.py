"""`collector attach`: a running program is recorded from outside, from one instant to another, without a gap."""

import contextlib
import subprocess
import sys
import time

import pytest
from listening_program import listening_program
from timed_programs import PROGRAM_SECONDS, ended_after, run_timed, with_faulthandler

import collector

COMMAND = [sys.executable, "-m", "collector"]


def attach(process_id, *words):
    done = run_timed([*COMMAND, "attach", str(process_id), *words])
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def kernels(path):
    """The names of the kernels of a file that lacks nothing, with their numbers."""
    step = collector.load(path)
    assert step.ledger.losses() == []
    assert step.ledger.launches_seen == step.ledger.launches_matched
    names = step.recording.kernels.names()
    return {name: names.count(name) for name in dict.fromkeys(names)}


# -- A program that imports nothing of ours, under `collector run --listen`


@contextlib.contextmanager
def phases(program, folder, *words):
    """Runs the program; yields its process id and a function that lets it go on to the next line that it writes."""
    command = [
        *COMMAND,
        "run",
        "-q",
        "--listen",
        "-o",
        "out.json",
        "--",
        "sh",
        "-c",
        'echo $$; exec "$@"',
        "sh",
        program,
    ]
    child = subprocess.Popen(
        [*map(str, command), *words],
        cwd=folder, env=with_faulthandler(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip

    def go_on():
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "ready\n", child.stderr.read()

    try:
        with ended_after(child):
            process_id = int(child.stdout.readline())
            assert child.stdout.readline() == "ready\n", child.stderr.read()
            yield process_id, go_on
            _, errors = child.communicate("\n")
        assert child.returncode == 7, errors
    finally:
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout, child.stderr):
            pipe.close()


def test_a_dump_and_a_stop_have_exactly_what_was_launched_until_then(unaware_program, tmp_path):
    words = "init launch:500:before sync say:ready read launch:700:inside sync say:ready read launch:90:later sync"
    with phases(unaware_program, tmp_path, *words.split()) as (process_id, go_on):
        attach(process_id, "dump", "-q", "-o", tmp_path / "first.gpurec")
        go_on()
        attach(process_id, "dump", "-q", "-o", tmp_path / "second.gpurec")
        attach(process_id, "stop", "-q", "-o", tmp_path / "all.gpurec")
    assert kernels(tmp_path / "first.gpurec") == {"before": 500}
    assert kernels(tmp_path / "second.gpurec") == {"before": 500, "inside": 700}
    assert kernels(tmp_path / "all.gpurec") == {"before": 500, "inside": 700}


def test_a_recording_that_is_started_again_has_exactly_what_was_launched_since(unaware_program, tmp_path):
    words = "init launch:500:before sync say:ready read launch:700:inside sync say:ready read launch:90:later sync"
    words += " say:ready read"
    with phases(unaware_program, tmp_path, *words.split()) as (process_id, go_on):
        attach(process_id, "stop", "-q", "-o", tmp_path / "first.gpurec")
        go_on()  # not recorded
        attach(process_id, "start")
        go_on()
        attach(process_id, "stop", "-q", "-o", tmp_path / "second.gpurec")
    assert kernels(tmp_path / "first.gpurec") == {"before": 500}
    assert kernels(tmp_path / "second.gpurec") == {"later": 90}


# -- A Python program that listens and launches all the time

LAUNCHING = """
import os, sys, threading, time
import collector
from cuda_program import CudaProgram

cuda = CudaProgram()
stream = cuda.stream()
cuda.launch_empty(1, stream)
cuda.synchronize()
collector.listen(strict=True)
ended = threading.Event()

def launch():
    cuda.use()
    number = 0
    while not ended.is_set():
        with collector.annotate("loop"):
            for _ in range(20):  # as IN_FLIGHT says; each kernel has its number as the number of blocks
                number += 1
                cuda.launch("empty_kernel", stream=stream, grid=(number, 1, 1))
        cuda.synchronize()
        time.sleep(0.001)

thread = threading.Thread(target=launch)
wait = sys.stdin.read
"""


@pytest.fixture
def launching(python_text):
    with (
        listening_program(program=python_text(LAUNCHING), PYTHONFAULTHANDLER="1") as child,
        ended_after(child, PROGRAM_SECONDS),
    ):
        yield child
        child.communicate("")


IN_FLIGHT = 20
"""As many kernels, at most, were launched and had not ended when the recording began or ended."""
AT_EDGES = {
    "buffers_held",
    "buffers_outstanding",
    "early",
    "late",
    "launches_without_kernel",
    "kernels_without_launch",
    "invalid_timestamps",
    "unfinished",
}


def numbers(path):
    """The numbers of the kernels of a file, of which none is missing between the first and the last."""
    step = collector.load(path)
    found = step.recording.kernels.grid_x.tolist()
    assert len(found) > 0
    assert found == list(range(found[0], found[0] + len(found)))
    lost = {name: getattr(step.ledger, name) for name, _ in step.ledger.explained_losses()}
    assert lost.keys() <= AT_EDGES, step.ledger.losses()
    early, late = (part.kernels.grid_x.tolist() for part in (step.recording.early, step.recording.late))
    assert all(number < found[0] for number in early)
    assert all(number > found[-1] for number in late)
    assert all(count <= IN_FLIGHT for name, count in lost.items() if name not in ("early", "late")), lost
    return found


def test_a_program_that_launches_all_the_time_is_recorded_without_a_gap(launching, tmp_path):
    attach(launching.pid, "start")
    time.sleep(0.7)
    attach(launching.pid, "dump", "-q", "-o", tmp_path / "dump.gpurec")
    attach(launching.pid, "record", "500ms", "-q", "-o", tmp_path / "part.gpurec")
    attach(launching.pid, "stop", "-q", "-o", tmp_path / "all.gpurec")
    dump, part, whole = (numbers(tmp_path / f"{name}.gpurec") for name in ("dump", "part", "all"))
    assert whole[0] == dump[0]
    assert dump[-1] < part[0] < part[-1] <= whole[-1]


def test_recordings_of_a_time_follow_one_another(launching, tmp_path):
    last = 0
    for name in ("first", "second"):
        attach(launching.pid, "record", "400ms", "-q", "-o", tmp_path / f"{name}.gpurec")
        found = numbers(tmp_path / f"{name}.gpurec")
        assert found[0] > last
        last = found[-1]
        recording = collector.load(tmp_path / f"{name}.gpurec").recording
        named = recording.annotations_of(recording.kernels).count("loop")
        assert named >= len(found) - IN_FLIGHT  # the annotation that was open at the start names nothing
    assert attach(launching.pid, "status").splitlines()[0].endswith("listens, and is not recorded")
