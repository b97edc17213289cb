"""Which processes run, and when they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from collector.launching import attached_process
from collector.launching.attached_process import AttachedProcess
from collector.runtime import running_processes
from collector.runtime.running_processes import ends_within, process_exists

LONG_S = 300.0


@pytest.fixture
def child():
    """A process that waits for its input, and is not waited for."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def end(child: subprocess.Popen[bytes]) -> None:
    """End a process, whose number stays in use until its parent asks for its status."""
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)


def test_a_process_that_runs(child):
    assert process_exists(os.getpid())
    assert process_exists(child.pid)
    assert not ends_within(child.pid, 0)
    assert not ends_within(child.pid, 0.01)


def test_a_process_that_has_ended(child):
    end(child)
    os.kill(child.pid, 0)  # its number is in use
    assert not process_exists(child.pid)
    assert ends_within(child.pid, LONG_S)
    child.wait()
    assert not process_exists(child.pid)
    assert ends_within(child.pid, LONG_S)


def test_a_process_whose_first_thread_has_ended(child):
    program = "import ctypes, threading; threading.Thread(target=input).start(); print(flush=True); "
    program += "ctypes.CDLL(None).pthread_exit(None)"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        assert not ends_within(process.pid, 0.2)
        process.kill()


def test_the_end_ends_the_wait(child):
    killer = threading.Timer(0.1, child.send_signal, [signal.SIGKILL])
    killer.start()
    assert ends_within(child.pid, LONG_S)
    killer.join()
    assert child.wait() == -signal.SIGKILL


def test_a_long_wait_is_several_polls(child, monkeypatch):
    monkeypatch.setattr(running_processes, "_LONGEST_POLL_S", 0.01)
    began = time.monotonic()
    assert not ends_within(child.pid, 0.1)
    assert time.monotonic() - began >= 0.1


@pytest.mark.parametrize("error", [AttributeError(), PermissionError()], ids=["old Python", "container"])
def test_a_wait_for_an_end_that_cannot_be_observed_times_out(child, monkeypatch, error):
    def refuse(process_id: int) -> int:
        raise error

    monkeypatch.setattr(os, "pidfd_open", refuse)
    assert process_exists(child.pid)
    began = time.monotonic()
    assert not ends_within(child.pid, 0.1)
    assert time.monotonic() - began >= 0.1


def test_the_number_of_a_process_elsewhere(child, monkeypatch):
    """A process of another namespace has the number of one that runs here, and goes on when that one ends."""
    end(child)
    process = AttachedProcess(child.pid)
    monkeypatch.setattr(process, "status", lambda: None)
    began = time.monotonic()
    process.wait_for_end(0.1)
    assert time.monotonic() - began >= 0.1
    monkeypatch.undo()
    process.wait_for_end(LONG_S)
    assert process._absence() == "has ended"
    assert attached_process.process_exists(child.pid) is False
