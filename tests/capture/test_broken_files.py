"""Journals on broken disks and on servers that are gone: the program continues; the loss and its cause are stated."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import collector.testing
from collector.errors import InvalidFileError
from collector.recording.recording import Recording

LIBRARY = next((path for folder in collector.testing.__path__ for path in Path(folder).glob("libfile_failer.so")), None)

pytestmark = [
    pytest.mark.simulator,
    pytest.mark.medium,
    pytest.mark.skipif(LIBRARY is None, reason="built without COLLECTOR_TEST_SUPPORT, as sanitized builds are"),
]

PROGRAM = """
import ctypes, json, sys, warnings
from pathlib import Path
import collector
from collector.options import TraceOptions
from collector.testing import SimulatedGpu
from collector.tracing.session import Session

library, folder, mode, call, first, error = sys.argv[1:]
failer = ctypes.CDLL(library)
failer.file_failer_seen.restype = ctypes.c_int64
failer.file_failer_arm.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int]


def work(gpu):
    for _ in range(5):
        for number in range(60):
            gpu.launch(f"kernel{number % 5}")
        gpu.synchronize()


def run(gpu, name, first):
    outcome, journal = {}, Path(folder, f"{name}.journal")
    part = ".collector-ring" if mode == "recorder" else f"/{name}.journal"
    failer.file_failer_arm(part.encode(), call.encode(), first, int(error))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if mode == "recorder":
            recorder = collector.record("256KB", folder=f"{folder}/{name}", hang=None)
            work(gpu)
            dump = recorder.dump()
            outcome["dump"] = None if dump is None else str(dump.journal)
            recorder.stop()
        else:
            streamed = {"stream": True, "segment_bytes": 1 << 12} if mode == "stream" else {}
            session = Session(TraceOptions(journal=journal, buffer_bytes=1 << 13, **streamed))
            with session:
                work(gpu)
    outcome["seen"] = failer.file_failer_seen()
    failer.file_failer_disarm()
    outcome["kernels"] = 0 if mode == "recorder" else len(session.kernels)
    outcome["losses"] = [] if mode == "recorder" else session.ledger.losses()
    return outcome | {"told": [str(each.message) for each in told]}


with SimulatedGpu(cuda="13.5") as gpu:
    calls = run(gpu, "whole", 0)["seen"]
    numbers = range(1, calls + 1) if first == "all" else [int(first)]
    outcomes = [(number, run(gpu, f"step{number}", number)) for number in numbers]
    print(json.dumps([outcome for number, outcome in outcomes if outcome["seen"] >= number]))  # others make fewer calls
"""


def outcomes_of(folder: Path, mode: str, call: str, first: str, error: int) -> list[dict]:
    """The outcomes of a session for each number of the first failing call."""
    arguments = [str(LIBRARY), str(folder), mode, call, first, str(error)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env={**os.environ, "LD_PRELOAD": str(LIBRARY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("first", ["1", "2", pytest.param("all", marks=pytest.mark.slow)])
@pytest.mark.parametrize("error", [errno.EIO, errno.EDQUOT])
def test_an_error_that_a_file_system_reports_when_a_file_is_closed_is_a_loss(first, error, tmp_path):
    """NFS reports delayed writes that failed by then, and once: to the descriptor that is closed first."""
    outcomes = outcomes_of(tmp_path, "stream", "close", first, error)
    assert outcomes
    for outcome in outcomes:
        [told] = outcome["told"]
        assert told.endswith(f"broke off before the step ended: {os.strerror(error)}")
        assert outcome["losses"][0].startswith("the recording broke off while its program went on")


@pytest.mark.parametrize("mode", ["file", "stream"])
def test_short_writes_lose_nothing(mode, tmp_path):
    short = -1
    [outcome] = outcomes_of(tmp_path, mode, "write", "1", short)
    assert outcome["told"] == outcome["losses"] == []
    assert outcome["kernels"] == 300


@pytest.mark.parametrize("first", ["1", "5", pytest.param("all", marks=pytest.mark.slow)])
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.ESTALE])
def test_a_write_that_fails_is_a_loss_with_its_cause(first, error, tmp_path):
    outcomes = outcomes_of(tmp_path, "stream", "write", first, error)
    assert outcomes
    for outcome in outcomes:
        [told] = outcome["told"]
        assert os.strerror(error) in told
        assert outcome["losses"]


@pytest.mark.parametrize("mode", ["file", "stream"])
@pytest.mark.parametrize("error", [errno.EIO, errno.ESTALE])
def test_a_file_that_cannot_be_reached_any_more_was_not_closed_by_the_program(mode, error, tmp_path):
    outcomes = outcomes_of(tmp_path, mode, "fstat", "3", error)
    [[told]] = [outcome["told"] for outcome in outcomes]
    assert told.endswith(f"broke off before the step ended: {os.strerror(error)}")
    with pytest.raises(InvalidFileError) if mode == "file" else pytest.MonkeyPatch.context():
        assert not Recording.load(tmp_path / "step3.journal").ledger.complete


@pytest.mark.parametrize("call", ["write", "close"])
def test_a_ring_that_cannot_be_written_is_incomplete(call, tmp_path):
    outcomes = outcomes_of(tmp_path, "recorder", call, "3" if call == "write" else "1", errno.EIO)
    [[told]] = [outcome["told"] for outcome in outcomes]
    assert told.startswith("the recorder can no longer write: Input/output error")


@pytest.mark.parametrize("mode", ["stream", "recorder"])
def test_a_recording_that_cannot_begin_names_cause_and_remedy(mode, tmp_path):
    [outcome] = outcomes_of(tmp_path, mode, "write", "1", errno.ENOSPC)
    assert outcome["told"][0].endswith("cannot be written (No space left on device). Write to another place")
