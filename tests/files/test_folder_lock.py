"""The lock of a folder in which processes that end together choose names."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from pathlib import Path

import pytest

import collector
from collector.files import folder_lock
from collector.files.folder_lock import FolderLock
from collector.testing import SimulatedGpu
from collector.tracing.session import Session
from tests.support.folder_locks import is_locked


@pytest.fixture
def waiting(monkeypatch):
    """The threads that have asked the system for the lock."""
    threads = []
    wait = folder_lock._wait_for_lock

    def wait_noted(number: int) -> None:
        threads.append(threading.get_ident())
        wait(number)

    monkeypatch.setattr(folder_lock, "_wait_for_lock", wait_noted)
    monkeypatch.setattr(folder_lock, "_LONGEST_WAIT_S", 1.0)
    return threads


def test_a_thread_does_not_wait_for_itself(tmp_path, waiting):
    folder, link = tmp_path / "folder", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)
    with FolderLock(folder):
        with FolderLock(link):
            assert is_locked(folder)
        assert is_locked(folder)
        assert len(waiting) == 1
        with FolderLock(tmp_path):  # another folder
            assert is_locked(tmp_path)
    assert not is_locked(folder)
    with FolderLock(folder):
        assert is_locked(folder)
    assert len(waiting) == 3


def test_another_thread_waits(tmp_path, waiting):
    def lock() -> None:
        with FolderLock(tmp_path):
            pass

    other = threading.Thread(target=lock)
    with FolderLock(tmp_path):
        other.start()
        while len(waiting) < 2:
            assert other.is_alive()
    other.join()
    assert not is_locked(tmp_path)


@pytest.mark.medium
def test_a_forked_child_waits_for_its_parent(tmp_path, waiting):
    with FolderLock(tmp_path), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the tests have threads
        child = os.fork()
        if child == 0:
            try:
                FolderLock(tmp_path).__enter__()
            finally:
                os._exit(len(waiting))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2


@pytest.mark.simulator
def test_a_signal_handler_traces_while_a_trace_is_saved(tmp_path, monkeypatch, waiting):
    def trace_on_demand(*_: object) -> None:
        with collector.trace(tmp_path / "demand.json", strict=True):
            gpu.launch("on_demand")

    save = Session.save

    def save_and_demand(session: Session, path: Path) -> None:
        monkeypatch.setattr(Session, "save", save)
        save(session, path)
        signal.raise_signal(signal.SIGUSR1)

    monkeypatch.setattr(Session, "save", save_and_demand)
    before = signal.signal(signal.SIGUSR1, trace_on_demand)
    try:
        with SimulatedGpu() as gpu, collector.trace(tmp_path / "step.json", strict=True):
            gpu.launch("kernel")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["demand.json", "step.json"]
    assert len(waiting) == 1
