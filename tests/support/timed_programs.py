"""Programs in separate processes, which are ended at a time limit and then show where they were."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

PROGRAM_SECONDS = 60
COMPILING_SECONDS = 120
"""Of a program that uses torch.compile, and of nvcc."""
STICKY_SECONDS = 40
"""Of a program with an error after which its context is lost: a driver may not let it end."""
_SECONDS_TO_END = 3


class EndedAtLimitError(AssertionError):
    """A program did not end within its time limit."""


def run_timed(
    command: Sequence[str | Path],
    *,
    seconds: float = PROGRAM_SECONDS,
    env: dict[str, str] | None = None,
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """Run a command like `subprocess.run`, with its output as text.

    Raises:
        EndedAtLimitError: with the output and, of Python programs, the place of every thread.
    """
    process = subprocess.Popen(
        [*map(str, command)], env=with_faulthandler(env), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        **options,
    )  # fmt: skip
    try:
        printed, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        printed, errors = _ended(process)
        message = f"it did not end within {seconds:.0f} s: {' '.join(map(str, command))[:200]}\n{printed}\n{errors}"
        raise EndedAtLimitError(message) from None
    except BaseException:  # of the limit of the test
        end_processes(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, printed, errors)


def with_faulthandler(environment: dict[str, str] | None = None) -> dict[str, str]:
    """The environment in which a Python program that dies of a signal shows where it was."""
    return {**(os.environ if environment is None else environment), "PYTHONFAULTHANDLER": "1"}


@contextlib.contextmanager
def ended_after(process: subprocess.Popen[str], seconds: float = PROGRAM_SECONDS) -> Iterator[None]:
    """End a program with the processes that it started if the block takes too long, which ends a read from it.

    Raises:
        EndedAtLimitError: the block took too long, and has no error of its own.
    """
    ended = threading.Event()

    def end() -> None:
        ended.set()
        end_processes(process.pid, signal.SIGABRT)

    timer = threading.Timer(seconds, end)
    timer.start()
    try:
        yield
        if ended.is_set():
            raise EndedAtLimitError(f"it did not end within {seconds:.0f} s")
    finally:
        timer.cancel()


def _ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """End a program with the processes that it started; returns its output."""
    for how in (signal.SIGABRT, signal.SIGKILL):
        end_processes(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):  # of a process that the driver keeps
            return process.communicate(timeout=_SECONDS_TO_END)
    for pipe in (process.stdout, process.stderr):  # a process that was just being started may hold them
        if pipe is not None:
            pipe.close()
    process.poll()
    return "", "it did not end by SIGKILL"


def end_processes(process_id: int, how: int) -> None:
    """Send a signal to a process and to those that it started, without a core dump."""
    for each in [*descendants(process_id), process_id]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            resource.prlimit(each, resource.RLIMIT_CORE, (0, 0))
            os.kill(each, how)


def descendants(process_id: int) -> list[int]:
    """The processes that a process started, and those that they started; the latest first."""
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(status.parent.name))
    found, asked = [], [process_id]
    while asked:
        started = children.get(asked.pop(), [])
        found += started
        asked += started
    return found[::-1]
