"""A process that listens is recorded by another one, and nothing that others send to it disturbs it."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from injected_programs import launching_program, simulator_environment
from listening_program import SAY_PID, listening_program

import collector
from collector.cli import main
from collector.errors import CollectorError
from collector.launching import attached_process, shared_recording
from collector.launching.attached_process import (
    _REMOTE_PROGRAM,
    AttachedProcess,
    Cut,
    NotListeningError,
    listen_remotely,
)
from collector.launching.shared_recording import SharedRecording, check_unused
from collector.recording.journal_segments import segments_of
from collector.recording.ledger import Ledger
from collector.recording.recording import Recording
from tests.support.signal_actions import restore_default

pytestmark = [pytest.mark.simulator, pytest.mark.slow]

SOME_LAUNCHES_S = 0.5
"""Enough for the program to launch, also where it hardly runs."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """In which the program makes its folders."""
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def program(folder):
    """One program for all tests that leave it as it was."""
    with listening_program(TMPDIR=str(folder), JOB="night") as child:
        yield child


@pytest.fixture
def process(program, folder):
    """The process, of which nothing is recorded before and after the test."""
    found = AttachedProcess(program.pid)
    assert found.status().state == "idle"
    yield found
    assert found.status().state == "idle"
    for left in folder.iterdir():  # what was recorded without a file
        shutil.rmtree(left)


def kernels(recording: Recording) -> set[str]:
    return {kernel.name for kernel in recording.kernels}


def wait_for_kernels(process: AttachedProcess) -> None:
    """Wait until more kernels have reached the journal, twice.

    CUPTI holds a buffer back if the program is in a launch at a flush.
    """
    found = []
    while len(set(found)) < 3:
        journal = process.status().journal
        assert journal is not None
        found.append(len(Recording.load(journal).kernels))
        time.sleep(0.05)


def attach(*words: object) -> int:
    return main(["attach", *map(str, words)])


AT_AN_EDGE = {
    # What the program does between the moment at which the step begins or ends and that at which CUPTI is told: the
    # calls and kernels of one launch, and on a machine that is busy those of many more.
    "early": 500,
    "late": 500,
    "kernels_without_launch": 1,
    # One at each edge: the kinds are enabled and disabled while the program is in a launch.
    "launches_without_kernel": 2,
    "invalid_timestamps": 2,
    "unfinished": 2,
}
"""The most that a recording may lack of what the program was in when it began or ended."""


def losses(ledger: Ledger) -> list[str]:
    """The losses of a recording of a program that launches all the time, but those at its two edges."""
    figures = ledger.as_dict()
    return [
        line for name, line in ledger.explained_losses() if name not in AT_AN_EDGE or figures[name] > AT_AN_EDGE[name]
    ]


def test_a_recording_of_some_time(process, folder, tmp_path, capsys):
    assert attach(process.process_id, "record", "700ms", "-o", tmp_path / "out.gpurec") == 0
    step = collector.load(tmp_path / "out.gpurec")
    assert kernels(step.recording) == {"kernel", "other"}
    assert set(step.recording.annotations_of(step.recording.kernels)) <= {"loop", ""}
    assert step.recording.annotations_of(step.recording.kernels).count("loop") >= len(step.kernels) - 2
    assert step.ledger.interrupted == 0
    assert list(tmp_path.iterdir()) == [tmp_path / "out.gpurec"]
    assert list(folder.iterdir()) == []
    assert "what was recorded is in" in capsys.readouterr().err


def test_every_part_of_a_recording_that_broke_off_says_so(process, tmp_path, capsys):
    journal = process.start()
    time.sleep(SOME_LAUNCHES_S)
    (journal / "000002.journal").mkdir()  # so that it cannot begin the segment of this name
    for name in ("first", "second"):
        assert attach(process.process_id, "dump", "-q", "-o", tmp_path / f"{name}.gpurec") == 0
    assert attach(process.process_id, "record", "200ms", "-q", "-o", tmp_path / "part.gpurec") == 0
    (journal / "000002.journal").rmdir()
    assert attach(process.process_id, "stop", "-q", "-o", tmp_path / "all.gpurec") == 0
    assert "File exists" in capsys.readouterr().err
    found = {path.stem: collector.load(path) for path in tmp_path.iterdir()}
    assert len(found["first"].kernels) == len(found["second"].kernels) == len(found["all"].kernels) > 0
    assert len(found["part"].kernels) == 0
    assert sorted(found) == ["all", "first", "part", "second"]
    for step in found.values():
        assert step.ledger.source_counters["journal_broke_off"] == 1
        assert "broke off" in step.ledger.losses()[0]


def test_start_dump_stop(process, tmp_path, capsys):
    number = process.process_id
    assert attach(number, "status") == 0
    assert attach(number, "start") == 0
    assert attach(number, "status") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"process {number} listens, and is not recorded"
    assert said[2] == f"process {number} is recorded, into {said[1]}"
    time.sleep(SOME_LAUNCHES_S)
    assert attach(number, "dump", "-q", "-o", tmp_path / "dump.gpurec") == 0
    first = collector.load(tmp_path / "dump.gpurec")
    assert attach(number, "record", "700ms", "-q", "-o", tmp_path / "part.gpurec") == 0
    part = collector.load(tmp_path / "part.gpurec")
    said_of_part = capsys.readouterr().err
    assert all(f"collector: {line}\n" in said_of_part for line in part.ledger.part_lines())
    assert attach(number, "stop", "-q", "-o", tmp_path / "all.json") == 0
    whole = collector.load(tmp_path / "all.json")
    assert 0 < len(first.kernels) < len(whole.kernels)
    assert 0 < len(part.kernels) < len(whole.kernels) - len(first.kernels)
    assert losses(first.ledger) == part.ledger.losses() == []
    assert sorted(file.name for file in tmp_path.iterdir()) == ["all.json", "dump.gpurec", "part.gpurec"]
    assert not Path(said[1]).parent.exists()


def test_a_part_of_a_recording_without_a_limit_is_not_said_to_have_lost_rows(process, tmp_path, capsys):
    journal = process.start()
    wait_for_kernels(process)
    for name in ("earlier", "part"):  # each begins segments
        assert attach(process.process_id, "record", "500ms", "-o", tmp_path / f"{name}.gpurec") == 0
    assert len(segments_of(journal)) > 2
    process.stop()
    assert collector.load(tmp_path / "part.gpurec").ledger.rows_forgotten == 0
    assert "removed" not in capsys.readouterr().out


def test_recordings_follow_one_another(process, tmp_path):
    """Details of annotations are stated again in each recording."""
    for number in range(3):
        process.start()
        time.sleep(SOME_LAUNCHES_S)
        journal, trouble = process.stop()
        assert trouble == ""
        recording = Recording.load(journal)
        assert kernels(recording) == {"kernel", "other"}
        assert recording.details[0].flops == 2.0, number
        shutil.rmtree(journal.parent)


def test_without_a_file_the_journal_stays(process, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    process.start()
    time.sleep(SOME_LAUNCHES_S)
    assert attach(process.process_id, "dump", "-q") == 0
    (dump,) = tmp_path.iterdir()
    assert kernels(Recording.load(dump)) == {"kernel", "other"}
    assert attach(process.process_id, "stop", "-q") == 0
    journal = Path(capsys.readouterr().err.split()[-1])
    assert kernels(Recording.load(journal)) == {"kernel", "other"}
    shutil.rmtree(journal.parent)


def test_dumps_of_two_recordings_have_names_of_their_own(process, tmp_path, monkeypatch):
    """The segments of each recording are counted from 1."""
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):
        journal = process.start()
        time.sleep(SOME_LAUNCHES_S)
        assert attach(process.process_id, "dump", "-q") == 0
        process.stop()
        shutil.rmtree(journal.parent)
        assert len(list(tmp_path.iterdir())) == number
    assert all(kernels(Recording.load(dump)) == {"kernel", "other"} for dump in tmp_path.iterdir())


def test_a_part_states_what_cupti_dropped(folder, tmp_path):
    before = "gpu.inject('dropped_record', count=5)\n"
    with listening_program(before, TMPDIR=str(folder)) as child:
        process = AttachedProcess(child.pid)
        journal = process.start()
        time.sleep(SOME_LAUNCHES_S)
        assert attach(child.pid, "dump", "-q", "-o", tmp_path / "dump.gpurec") == 0
        found = collector.load(tmp_path / "dump.gpurec").ledger
        assert (found.records_dropped, found.complete) == (5, False)
        process.stop()
        assert Recording.load(journal).ledger.records_dropped == 5
        shutil.rmtree(journal.parent)


FORKING = """
import warnings
warnings.simplefilter("ignore")  # of forks in a program with threads
parent = os.getpid()
def fork():
    while not ended.is_set():
        gpu.launch("long", stream=5, duration_ns=9_000_000_000)
        if os.fork() == 0:
            while os.getppid() == parent:
                time.sleep(0.1)
            os._exit(0)
        time.sleep(0.05)
thread = threading.Thread(target=fork)
"""
"""Has a kernel that runs, for which a cut waits, and children that keep all descriptors open."""


def test_a_process_answers_although_its_children_keep_the_connection_open(folder):
    with listening_program(FORKING, TMPDIR=str(folder)) as child:
        process = AttachedProcess(child.pid)
        journal = process.start()
        assert [process.cut().segment for _ in range(3)] == [2, 3, 4]
        assert process.status().state == "attach"
        assert process.stop() == (journal, "")
        with pytest.raises(CollectorError, match="nothing is recorded in this process"):
            process.cut()
        shutil.rmtree(journal.parent)


@pytest.fixture
def forked():
    """Forks a child that keeps all descriptors open until the test ends."""
    children = []

    def fork() -> None:
        if (child := os.fork()) == 0:
            signal.pause()
        children.append(child)

    yield fork
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_child_that_was_forked_while_a_recording_was_used_does_not_use_it(process, forked):
    journal = process.start()
    try:
        with SharedRecording(process):
            forked()
            with pytest.raises(CollectorError, match="`collector attach record` uses this recording now"):
                check_unused(journal)
        check_unused(journal)
        assert process.status().state == "attach"
    finally:
        process.stop()
        shutil.rmtree(journal.parent)


def test_two_recordings_at_one_time(process):
    journal = process.start()
    try:
        with pytest.raises(CollectorError, match="`collector attach` records this process"):
            process.start()
    finally:
        assert process.stop() == (journal, "")
        shutil.rmtree(journal.parent)
    with pytest.raises(CollectorError, match=r"nothing is recorded in this process\. Start it"):
        process.stop()
    with pytest.raises(CollectorError, match="nothing is recorded in this process"):
        process.cut()


def test_a_refused_start_leaves_no_folder(process, folder):
    journal = process.start()
    try:
        for _ in range(3):
            with pytest.raises(CollectorError, match="records this process"):
                process.start()
        assert list(folder.iterdir()) == [journal.parent]
    finally:
        process.stop()


def has_stopped(process: AttachedProcess) -> bool:
    """Whether each of its threads is stopped: `SIGSTOP` is sent before it takes effect."""
    states = Path(f"/proc/{process.process_id}/task").glob("*/stat")
    return all(state.read_text().rpartition(") ")[2].startswith("T") for state in states)


@pytest.mark.parametrize("request_", ["start", "stop"])
def test_a_request_whose_sender_has_gone_is_not_fulfilled(process, request_):
    """Nobody would know of the recording that begins, or of the journal of the one that ends."""
    journal = process.start() if request_ == "stop" else None
    os.kill(process.process_id, signal.SIGSTOP)
    try:
        while not has_stopped(process):
            time.sleep(0.01)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(f"\0collector-{process.process_id}")
            connection.sendall(b"stop\0" if request_ == "stop" else b"start\x000\x000\0")
            connection.shutdown(socket.SHUT_WR)
    finally:
        os.kill(process.process_id, signal.SIGCONT)
    found = process.status()  # is answered after the request
    if found.state != "idle":
        process.stop()
    assert found.journal == journal


ATTACH = [sys.executable, "-m", "collector", "attach"]


def begun(*words: object) -> subprocess.Popen[str]:
    return subprocess.Popen([*ATTACH, *map(str, words)], stderr=subprocess.PIPE, text=True)


def is_joined(process: AttachedProcess, count: int) -> bool:
    """Whether so many commands hold the journal of the process open."""
    journal = process.status().journal
    locks = Path("/proc/locks").read_text()
    return journal is not None and locks.count(f":{journal.stat().st_ino} ") == count


@pytest.mark.parametrize("first_s", [1, 5], ids=["the first ends first", "the second ends first"])
def test_records_that_overlap(process, folder, tmp_path, first_s):
    """Neither takes anything from the other; the last one ends the recording."""
    number = process.process_id
    first = begun(number, "record", f"{first_s}s", "-q", "-o", tmp_path / "first.gpurec")
    while not is_joined(process, 1):
        time.sleep(0.01)
    second = begun(number, "record", f"{6 - first_s}s", "-q", "-o", tmp_path / "second.gpurec")
    for command in (first, second) if first_s == 1 else (second, first):
        errors = command.communicate()[1]
        assert (command.returncode, "collector: what was recorded is in " in errors) == (0, True), errors
    assert process.status().state == "idle"
    assert list(folder.iterdir()) == []
    steps = [collector.load(tmp_path / f"{name}.gpurec") for name in ("first", "second")]
    assert [losses(step.ledger) for step in steps] == [[], []]
    first_kernels, second_kernels = (len(step.kernels) for step in steps)
    assert 2 * min(first_kernels, second_kernels) < max(first_kernels, second_kernels)
    assert (first_kernels < second_kernels) == (first_s == 1)
    assert min(first_kernels, second_kernels) > 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM], ids=str)
def test_a_record_that_is_ended_writes_what_it_has(process, folder, tmp_path, number):
    command = [*ATTACH, str(process.process_id), "record", "60s", "-q", "-o", str(tmp_path / "out.gpurec")]
    with subprocess.Popen(command, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)) as child:
        while not is_joined(process, 1):
            time.sleep(0.01)
        time.sleep(SOME_LAUNCHES_S)
        child.send_signal(number)
        assert child.wait() == 0
    assert process.status().state == "idle"
    assert len(collector.load(tmp_path / "out.gpurec").kernels) > 0
    assert list(folder.iterdir()) == []


def test_a_journal_that_cannot_be_reached_ends_the_recording(process, tmp_path, monkeypatch, capsys):
    """As in another container."""
    start = AttachedProcess.start
    with monkeypatch.context() as patch:
        patch.setattr(AttachedProcess, "start", lambda self, **_: start(self) / "elsewhere")
        assert attach(process.process_id, "record", "60s", "-q", "-o", tmp_path / "out.gpurec") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot be used here: it is not there. Attach where the process has its temporary files" in line
    assert process.status().state == "idle"
    journal = process.start()
    hidden = journal.rename(journal.with_name("hidden"))
    assert attach(process.process_id, "record", "60s", "-q", "-o", tmp_path / "out.gpurec") == 2
    assert "cannot be used here: it is not there" in capsys.readouterr().err
    hidden.rename(journal)
    process.stop()


@pytest.mark.parametrize("number", [errno.EBADF, errno.EWOULDBLOCK], ids=["no locks", "locked"])
def test_a_file_system_without_locks_does_not_leave_a_recording(process, tmp_path, monkeypatch, number):
    def flock(_: int, kind: int) -> None:
        if kind != fcntl.LOCK_SH or number != errno.EWOULDBLOCK:
            raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(shared_recording.fcntl, "flock", flock)
        assert attach(process.process_id, "record", "300ms", "-q", "-o", tmp_path / "out.gpurec") == 0
    assert len(collector.load(tmp_path / "out.gpurec").kernels) > 0
    assert process.status().state == ("idle" if number == errno.EBADF else "attach")
    if number != errno.EBADF:
        process.stop()


def test_a_stop_takes_nothing_from_a_record(process, tmp_path, capsys):
    command = begun(process.process_id, "record", "60s", "-q", "-o", tmp_path / "out.gpurec")
    while not is_joined(process, 1):
        time.sleep(0.01)
    assert attach(process.process_id, "stop", "-q") == 2
    assert "`collector attach record` uses this recording now" in capsys.readouterr().err
    command.terminate()
    assert command.communicate()[1].count("what was recorded is in") == 1


@pytest.mark.parametrize("words", [("stop",), ("record", "200ms")], ids=["stop", "record"])
def test_a_file_that_cannot_be_written_leaves_the_journal(process, tmp_path, capsys, words):
    (tmp_path / "out.json").symlink_to("/dev/full")
    if words == ("stop",):
        process.start()
        time.sleep(SOME_LAUNCHES_S)
    assert attach(process.process_id, *words, "-q", "-o", tmp_path / "out.json") == 2
    place, trouble = capsys.readouterr().err.splitlines()
    assert trouble.startswith("collector: cannot write ")
    journal = place.removeprefix("collector: what was recorded is in ").removesuffix(", which every command reads")
    assert kernels(Recording.load(Path(journal))) == {"kernel", "other"}


def test_placeholders_are_those_of_the_process(process, tmp_path):
    name = "{pid}-{host}-rank{rank}-{env:JOB}.gpurec"
    assert attach(process.process_id, "record", "200ms", "-q", "-o", tmp_path / name) == 0
    (file,) = tmp_path.iterdir()
    assert file.name == f"{process.process_id}-{os.uname().nodename}-rank0-night.gpurec"


def test_dumps_at_one_time(process):
    journal = process.start()
    time.sleep(SOME_LAUNCHES_S)
    cuts = []
    threads = [threading.Thread(target=lambda: cuts.append(process.cut())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({cut.segment for cut in cuts}) == 6
    process.stop()
    assert losses(Recording.load(journal).ledger) == []
    shutil.rmtree(journal.parent)


@pytest.mark.parametrize(
    "sent",
    [b"", b"\0", b"status", b"nonsense\0", b"start\0-1\x000\0", b"start\0" + b"9" * 30 + b"\x000\0", b"x" * 9000,
     b"\xff\xfe\0" * 500, b"stop\0now\0"],
)  # fmt: skip
def test_garbage_is_refused(process, sent):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(f"\0collector-{process.process_id}")
        connection.settimeout(20)
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(1000)
        except (BrokenPipeError, ConnectionResetError):
            answer = b"error\0"
    assert answer.startswith(b"error\0")


def test_a_caller_that_says_nothing_does_not_block_the_next(process):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(f"\0collector-{process.process_id}")
        began = time.monotonic()
        assert process.status().state == "idle"
        assert time.monotonic() - began < 15


def test_a_caller_that_says_little_at_a_time_does_not_block_the_next(process):
    is_over = threading.Event()

    def trickle():
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, suppress(OSError):
            connection.connect(f"\0collector-{process.process_id}")
            is_connected.set()
            for _ in range(75):
                connection.sendall(b"s")
                if is_over.wait(0.2):
                    return

    is_connected = threading.Event()
    thread = threading.Thread(target=trickle)
    thread.start()
    is_connected.wait()
    began = time.monotonic()
    assert process.status().state == "idle"
    took = time.monotonic() - began
    is_over.set()
    thread.join()
    assert took < 10


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_is_refused(process):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setuid(65534)
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.connect(f"\0collector-{process.process_id}")
                connection.settimeout(1)  # at once: another user may not keep the process waiting for a request
                status = 0 if b"another user" in connection.recv(1000) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_socket_of_another_process_is_not_believed(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as impostor:
        impostor.bind(f"\0collector-{os.getppid()}")
        impostor.listen()
        with pytest.raises(CollectorError, match=f"belongs to process {os.getpid()}"):
            AttachedProcess(os.getppid()).status()


@pytest.mark.parametrize("is_remote", [False, True], ids=["", "CPython 3.14"])
def test_a_process_that_does_not_listen(monkeypatch, capsys, is_remote):
    def remote_exec(process_id: int, script: str) -> None:
        raise RuntimeError("Failed to find the PyRuntime section in process")

    monkeypatch.delattr(sys, "remote_exec", raising=False)
    if is_remote:
        monkeypatch.setattr(sys, "remote_exec", remote_exec, raising=False)
    with pytest.raises(NotListeningError, match=r"does not listen\. Start it with `collector run --listen`"):
        AttachedProcess(os.getpid()).status()
    done = subprocess.Popen(["true"])
    done.wait()
    assert attach(done.pid, "status") == 2
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["record"], "`record` needs a time"),
        (["stop", "5s"], "the other actions none"),
        (["start", "-o", "out.json"], "`start` writes no file"),
        (["dump", "-o", "out.nonsense"], "out.nonsense"),
        (["dump", "-o", "{env:NO_SUCH_VARIABLE}.json"], "NO_SUCH_VARIABLE is not set"),
    ],
)
def test_mistakes(process, capsys, words, text):
    assert attach(process.process_id, *words) == 2
    assert text in capsys.readouterr().err


def test_a_size_in_which_nothing_can_be_kept(capsys):
    with pytest.raises(SystemExit):
        attach(os.getpid(), "start", "--max-size", "10KB")
    assert "argument --max-size: '10KB' is too small: at least 64 KiB are kept" in capsys.readouterr().err


def test_a_process_that_ends_meanwhile(tmp_path, capsys):
    with listening_program() as child:
        process = AttachedProcess(child.pid)

        def kill() -> None:
            while not is_joined(process, 1):
                time.sleep(0.01)
            wait_for_kernels(process)
            child.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        assert attach(child.pid, "record", "300s", "-q", "-o", tmp_path / "out.gpurec") == 0
        killer.join()
        child.communicate()
    assert "its records up to half a second before are used" in capsys.readouterr().err
    step = collector.load(tmp_path / "out.gpurec")
    assert kernels(step.recording) == {"kernel", "other"}
    assert step.ledger.interrupted == 1


LAUNCHING = """
import ctypes, os, sys, threading, time
name, executed = sys.argv[1], sys.argv[2:]
if not os.environ.get("COLLECTOR_RUN_FOLDER"):
    import collector
driver = ctypes.CDLL(os.environ["COLLECTOR_LIBCUDA"])
assert driver.cuInit(0) == 0
context, function = ctypes.c_void_p(), ctypes.c_char_p()
driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
driver.cuModuleGetFunction(ctypes.byref(function), None, name.encode())
def launch():
    driver.cuCtxSetCurrent(context)
    while True:
        driver.cuLaunchKernel(function, 8, 1, 1, 64, 1, 1, 0, None, None, None)
        driver.cuCtxSynchronize()
        time.sleep(0.002)
threading.Thread(target=launch, daemon=True).start()
print(os.getpid(), flush=True)
os.read(0, 1)
if executed:
    os.execv(sys.executable, [sys.executable, __file__, *executed])
"""
"""A program that is launched with the names of kernels: it executes itself with the next one for each byte of input."""


@pytest.mark.parametrize("is_run", [True, False], ids=["collector run", "collector.listen"])
@pytest.mark.parametrize("has_output", [True, False], ids=["file", "journal"])
def test_a_process_that_executes_another_program(tmp_path, is_run, has_output):
    """The recording of the first program is used: nothing is taken from the second one, which has the same number."""
    (tmp_path / "program.py").write_text(LAUNCHING)
    program = [sys.executable, str(tmp_path / "program.py"), "first", "second"]
    by = [sys.executable, "-m", "collector", "run", "-q", "--listen", "-o", str(tmp_path / "run.gpurec"), "--"]
    pipe = subprocess.PIPE
    own = tmp_path / "own"
    own.mkdir()
    with subprocess.Popen(
        [*(by if is_run else []), *program],
        env=simulator_environment() | {"COLLECTOR_LISTEN": "1", "TMPDIR": str(own)},
        stdin=pipe,
        stdout=pipe,
        text=True,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        process = AttachedProcess(int(running.stdout.readline()))
        output = ["-o", str(tmp_path / "out.gpurec")] if has_output else []
        with subprocess.Popen(
            [*ATTACH, str(process.process_id), "record", "60s", "-q", *output],
            cwd=tmp_path,
            stderr=pipe,
            text=True,
            preexec_fn=lambda: restore_default(signal.SIGINT),
        ) as record:
            while not is_joined(process, 1):
                time.sleep(0.01)
            wait_for_kernels(process)
            running.stdin.write("1")
            running.stdin.flush()
            running.stdout.readline()
            if is_run:
                while process.status().state != "run":
                    time.sleep(0.01)
            record.send_signal(signal.SIGINT)
            _, errors = record.communicate()
            assert record.returncode == 0, errors
        assert process.status().state == ("run" if is_run else "idle")
        running.communicate()
    assert running.returncode == 0
    assert "executed another program or ended the recording: its records up to half a second before are used" in errors
    written = Path(errors.splitlines()[-1].removeprefix("collector: what was recorded is in "))
    step = collector.load(written)
    assert kernels(step.recording) == {"first"}
    assert step.ledger.interrupted == 1
    assert (written == tmp_path / "out.gpurec") == has_output
    if has_output:
        assert list(own.iterdir()) == []


def test_a_recording_that_is_open_at_the_end_is_whole():
    with listening_program() as child:
        journal = AttachedProcess(child.pid).start()
        time.sleep(SOME_LAUNCHES_S)
    recording = Recording.load(journal)
    assert kernels(recording) == {"kernel", "other"}
    assert losses(recording.ledger) == []
    shutil.rmtree(journal.parent)


def test_a_trace_inside_is_a_part_and_a_trace_outside_is_refused():
    before = """
def wait():
    for line in iter(sys.stdin.readline, ""):
        with collector.trace(strict=True) as step:
            print("open", flush=True)
            sys.stdin.readline()
        print(len(step.kernels) > 0, flush=True)
"""
    with listening_program(before) as child:
        process = AttachedProcess(child.pid)

        def say() -> None:
            child.stdin.write("\n")
            child.stdin.flush()

        say()
        assert child.stdout.readline() == "open\n"
        assert process.status().state == "trace"
        with pytest.raises(CollectorError, match="a session is already open in this process"):
            process.start()
        with pytest.raises(CollectorError, match="alone may end that"):
            process.stop()
        with pytest.raises(CollectorError, match="traces a step"):
            process.cut()
        time.sleep(SOME_LAUNCHES_S)
        say()
        assert child.stdout.readline() == "True\n"
        journal = process.start()
        time.sleep(SOME_LAUNCHES_S)
        say()
        assert child.stdout.readline() == "open\n"
        time.sleep(SOME_LAUNCHES_S)
        say()
        assert child.stdout.readline() == "True\n"
        assert process.stop()[0] == journal
        assert "loop" in Recording.load(journal).annotations_of(Recording.load(journal).kernels)
        shutil.rmtree(journal.parent)


def test_a_recorder_is_dumped_from_outside(tmp_path):
    with listening_program(f"recorder = collector.record(folder={str(tmp_path / 'own')!r}, strict=True)\n") as child:
        time.sleep(SOME_LAUNCHES_S)
        assert AttachedProcess(child.pid).status().state == "record"
        assert attach(child.pid, "dump", "-q", "-o", tmp_path / "dump.gpurec") == 0
        assert attach(child.pid, "record", "700ms", "-q", "-o", tmp_path / "part.gpurec") == 0
        assert attach(child.pid, "stop") == 2
    assert losses(collector.load(tmp_path / "dump.gpurec").ledger) == []
    assert len(collector.load(tmp_path / "part.gpurec").kernels) > 0


def test_a_recorder_that_is_stopped_meanwhile(tmp_path):
    """It removes its records, and the command says so."""
    before = f"""
recorder = collector.record(folder={str(tmp_path / "own")!r}, strict=True)
def wait():
    sys.stdin.readline()
    recorder.stop()
    print("stopped", flush=True)
    sys.stdin.read()
"""
    with listening_program(before) as child:
        with subprocess.Popen(
            [*ATTACH, str(child.pid), "record", "60s", "-o", str(tmp_path / "part.gpurec")],
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: restore_default(signal.SIGINT),
        ) as record:
            while not is_joined(AttachedProcess(child.pid), 1):
                time.sleep(0.01)
            time.sleep(SOME_LAUNCHES_S)
            child.stdin.write("\n")
            child.stdin.flush()
            assert child.stdout.readline() == "stopped\n"
            record.send_signal(signal.SIGINT)
            _, errors = record.communicate()
        assert record.returncode == 2
        assert errors == (
            f"collector: process {child.pid} has executed another program or ended the recording, and its records are "
            "removed already\n"
        )


def test_a_fork_does_not_listen_and_takes_nothing_from_the_parent():
    before = f"""
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
{SAY_PID}
if os.fork() == 0:
    {SAY_PID}  # once it has closed what it does not take
    time.sleep(3600)
"""
    with listening_program(before) as child:
        (forked,) = {int(child.stdout.readline()) for _ in range(2)} - {child.pid}
        try:
            with pytest.raises(NotListeningError, match="does not listen"):
                AttachedProcess(forked).status()
            assert AttachedProcess(child.pid).status().state == "idle"
            child.kill()
            child.wait()
            with pytest.raises(NotListeningError, match="does not exist"):  # the fork has no copy of the socket
                AttachedProcess(child.pid).status()
        finally:
            os.kill(forked, 9)


@pytest.mark.parametrize(("parent_ends", "message"), [(True, "ended before"), (False, "closed the connection before")])
def test_a_connection_that_nobody_accepts(parent_ends, message):
    """A fork has the socket until it has run its handlers, and connections wait for it until then."""
    program = f"""
import os, select, signal, socket
name = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
name.bind(f"\\0collector-{{os.getpid()}}")
name.listen()
if os.fork() == 0:
    print("forked", flush=True)
    select.select([name], [], [])
    os._exit(0)
name.close()
if {parent_ends}:
    os.kill(os.getpid(), signal.SIGKILL)
signal.pause()
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "forked\n"
        try:
            if parent_ends:
                child.wait()
            with pytest.raises(NotListeningError, match=message):
                AttachedProcess(child.pid).status()
        finally:
            child.kill()


def test_a_program_that_closes_all_files_is_asked_once_more_at_most(tmp_path):
    before = "os.closerange(3, 256)\n"
    with listening_program(before) as child:
        process = AttachedProcess(child.pid)
        for _ in range(3):
            try:
                assert process.status().state == "idle"
            except NotListeningError:
                break
        else:
            pytest.fail("a socket that was closed still answers")


def test_a_socket_in_a_folder_that_is_left_behind_is_replaced(tmp_path):
    folder = tmp_path / "sockets"
    folder.mkdir(mode=0o700)
    program = """
import os, sys
os.environ.pop("COLLECTOR_LISTEN")
import socket
left = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
left.bind(f"{os.environ['FOLDER']}/collector-{os.getpid()}.sock")
left.close()
os.environ["COLLECTOR_LISTEN"] = os.environ["FOLDER"]
import collector, threading
ended = threading.Event()
thread = threading.Thread(target=int)
wait = sys.stdin.read
"""
    with listening_program(program=program, FOLDER=str(folder), COLLECTOR_LISTEN="0") as child:
        (left,) = folder.iterdir()
        assert left.stat().st_mode & 0o777 == 0o600
        assert AttachedProcess(child.pid, folder).status().state == "idle"
        assert attach(child.pid, "status", "--socket-folder", folder) == 0
    assert list(folder.iterdir()) == []


def test_a_socket_of_a_process_that_takes_no_more_connections_is_not_waited_for(tmp_path):
    """Processes of several containers have one number, and one of them is stopped."""
    tmp_path.chmod(0o700)
    program = """
import os, socket, sys
import collector
name = f"{sys.argv[1]}/collector-{os.getpid()}.sock"
with socket.socket(socket.AF_UNIX) as other, socket.socket(socket.AF_UNIX) as waiting:
    other.bind(name)
    other.listen(0)
    waiting.connect(name)
    try:
        collector.listen(sys.argv[1], strict=True)
    except collector.CollectorError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "no socket can be made: Address already in use" in done.stdout


@pytest.mark.parametrize(
    ("mode", "text"), [(0o777, "is not this user's alone. Name a folder"), (None, "Make the folder first")]
)
def test_a_folder_that_others_may_write(tmp_path, mode, text):
    folder = tmp_path / "sockets"
    if mode is not None:
        folder.mkdir()
        folder.chmod(mode)
    with pytest.raises(CollectorError, match=text):
        collector.listen(folder, strict=True)
    with pytest.warns(collector.CollectorWarning, match="this process does not listen: "):
        collector.listen(folder)


def test_a_program_that_imports_nothing(tmp_path):
    """`collector run --listen` lets any program be dumped and ended from outside; its trace has all of it."""
    output = tmp_path / "run.gpurec"
    command = [sys.executable, "-m", "collector", "run", "--listen", "-q", "-o", output, launching_program(), "echo"]
    pipe = subprocess.PIPE
    running = subprocess.Popen(command, env=simulator_environment(), stdin=pipe, stderr=pipe, text=True)
    try:
        process = None
        until = time.monotonic() + 60
        while process is None and time.monotonic() < until:
            for each in Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split():
                try:
                    if AttachedProcess(int(each)).status().state == "run":
                        process = AttachedProcess(int(each))
                except NotListeningError:
                    time.sleep(0.05)
        until = time.monotonic() + 60
        while not _has_kernels(process.cut()) and time.monotonic() < until:
            time.sleep(SOME_LAUNCHES_S)
        assert attach(process.process_id, "dump", "-q", "-o", tmp_path / "dump.gpurec") == 0
        _, errors = running.communicate()
    finally:
        running.kill()
        running.wait()
        running.stdin.close()
        running.stderr.close()
    assert running.returncode == 7, errors
    assert len(collector.load(tmp_path / "dump.gpurec").kernels) == 100
    assert len(collector.load(output).kernels) == 100


def test_a_process_outside_the_ranges_that_are_recorded(tmp_path, capsys):
    begin = "import os, sys; from ctypes import CDLL; CDLL(os.environ['COLLECTOR_LIBCUDA']).cuInit(0);"
    program = [sys.executable, "-c", f"{begin} print(os.getpid(), flush=True); sys.stdin.read()"]
    command = [sys.executable, "-m", "collector", "run", "-q", "--listen", "--capture-range", "cudaProfilerApi", "--"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*command, *program], env=simulator_environment(), stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as running:
        assert running.stdout is not None
        number = int(running.stdout.readline())
        for words in ("dump",), ("record", "100ms"), ("stop",):
            assert attach(number, *words, "-o", tmp_path / "out.gpurec") == 0
            assert capsys.readouterr().err.splitlines() == [
                "collector: nothing was recorded: the process is outside the ranges that `--capture-range` records",
                f"collector: what was recorded is in {tmp_path / 'out.gpurec'}",
            ]
        running.communicate()


def _has_kernels(cut: Cut) -> bool:
    return bool(len(Recording.load(cut.journal).kernels))


def test_python_that_was_not_prepared(tmp_path):
    """From 3.14 on an interpreter can be made to listen by another one of the same version."""
    if not hasattr(sys, "remote_exec"):
        with pytest.raises(NotListeningError, match="does not listen"):
            AttachedProcess(os.getpid()).status()
        pytest.skip("PYTHON THAT WAS NOT PREPARED IS NOT TESTED: it needs CPython 3.14")
    program = """
import os, sys, threading, time
from collector.testing import SimulatedGpu
gpu = SimulatedGpu().__enter__()
ended = threading.Event()
def launch():
    while not ended.is_set():
        gpu.launch("kernel")
        gpu.synchronize()
        time.sleep(0.01)
thread = threading.Thread(target=launch)
wait = lambda: [time.sleep(0.1) for _ in range(3000)]  # the main thread runs code now and then
"""
    with listening_program(program=program) as child:
        assert attach(child.pid, "record", "700ms", "-q", "-o", tmp_path / "out.gpurec") == 0
        child.kill()
        child.communicate()
    assert kernels(collector.load(tmp_path / "out.gpurec").recording) == {"kernel"}


def test_the_program_that_lets_a_process_listen_leaves_its_path_as_it_is(tmp_path):
    """The collector is imported from the folders of the command, which the program does not have."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    (tmp_path / "site" / "collector").mkdir(parents=True)
    (tmp_path / "site" / "collector" / "__init__.py").write_text("def listen(): print('listens')")
    remote = _REMOTE_PROGRAM.format(folders=[str(tmp_path / "site")])
    code = f"import sys; before = sys.path[:]; exec({remote!r}, {{}}); print(sys.path == before)"
    program = [tmp_path / "venv" / "bin" / "python", "-c", code]
    done = subprocess.run(program, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("listens\nTrue\n", "")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RuntimeError("PyRuntime address lookup failed"), "it does not run Python 3"),
        (PermissionError(1, "Operation not permitted"), "this user may not trace it"),
        (RuntimeError("Remote debugging is not enabled in the remote process"), "Remote debugging is not enabled"),
    ],
    ids=["another Python", "no permission", "not enabled"],
)
def test_python_that_cannot_be_made_to_listen(monkeypatch, tmp_path, error, words):
    def remote_exec(process_id: int, script: str) -> None:
        raise error

    monkeypatch.setattr(sys, "remote_exec", remote_exec, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(CollectorError, match=words):
        listen_remotely(os.getpid())
    assert list(tmp_path.iterdir()) == []


def test_python_that_gets_to_it_too_late_runs_nothing(monkeypatch, tmp_path):
    """It hangs in a call for longer than the command waits; a script that is missing would be an error in it."""
    scripts = []
    monkeypatch.setattr(sys, "remote_exec", lambda _, script: scripts.append(Path(script)), raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(attached_process, "_LONGEST_REMOTE_S", 0.2)
    with pytest.raises(CollectorError, match="did not begin to listen"):
        listen_remotely(os.getpid())
    (script,) = scripts
    exec(script.read_text(), {})
    assert list(tmp_path.iterdir()) == []


SLOW_PROGRAM = """
import os, sys, threading, time
import collector
from collector.testing import SimulatedGpu
gpu = SimulatedGpu().__enter__()
collector.listen(strict=True)
ended = threading.Event()
def launch():
    while not ended.is_set():
        gpu.launch("slow", stream=7, duration_ns=10**13)
        gpu.launch("other", stream=9)
        time.sleep(0.05)
thread = threading.Thread(target=launch)
wait = sys.stdin.read
"""


def test_kernels_that_run_at_the_stop_are_called_unfinished(tmp_path):
    with listening_program(program=SLOW_PROGRAM, TMPDIR=str(tmp_path)) as child:
        assert attach(child.pid, "record", "700ms", "-o", tmp_path / "out.gpurec") == 0
    ledger = collector.load(tmp_path / "out.gpurec").ledger
    assert ledger.unfinished == ledger.invalid_timestamps > 0
    assert any("still running or waiting when the recording ended" in line for line in ledger.losses())
    assert not any("no usable time" in line for line in ledger.losses())
