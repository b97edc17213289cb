"""A running process that `collector attach` controls through the socket on which it listens.

The process writes journals in a folder of its own; everything else is made of these by the process that attaches.
"""

from __future__ import annotations

import os
import shutil
import socket
import struct
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from collector.errors import CollectorError
from collector.files.atomic_files import expanded
from collector.formats.output_paths import ProcessIdentity, filled_path
from collector.runtime.running_processes import ends_within, process_exists

_TIMEOUT_S = 30.0
_CREDENTIALS = struct.Struct("3i")  # process, user, group
_MOST_ANSWER_BYTES = 1 << 16
_PREPARE = (
    "Start it with `collector run --listen` or COLLECTOR_LISTEN=1, or call collector.listen() in it; "
    "CUDA must be initialised in it if it is not Python"
)
_REMOTE_PROGRAM = """\
import sys
before = sys.path[:]
sys.path += [folder for folder in {folders!r} if folder not in sys.path]
try:
    import collector
    collector.listen()
finally:
    sys.path[:] = before
"""
_LATE_PROGRAM = """\
import shutil
shutil.rmtree({folder!r}, ignore_errors=True)
"""
"""The program that replaces the other after the timeout: Python would print an error if the file were missing."""
_LONGEST_REMOTE_S = 10.0


class NotListeningError(CollectorError):
    """The process has no socket, or it has ended."""


@dataclass(frozen=True)
class ProcessState:
    """The state that a listening process reports."""

    process_id: int
    state: str
    """``idle``; or the recording's holder: ``trace``, ``record``, ``run``, ``attach``."""
    journal: Path | None
    trouble: str


class AttachedProcess:
    """A process that listens; every call is one connection."""

    def __init__(self, process_id: int, folder: Path | None = None) -> None:
        """Take the process; ``folder`` is that of its socket, None if the socket is outside the file system."""
        self.process_id = process_id
        name = f"collector-{process_id}"
        self._address = f"\0{name}" if folder is None else os.fspath(folder / f"{name}.sock")

    def status(self) -> ProcessState:
        """The present state of the process."""
        found = self._ask("status")
        journal = Path(found["journal"]) if found.get("journal") else None
        return ProcessState(int(found["process"]), found["state"], journal, found.get("trouble", ""))

    def start(self, *, total_ns: int = 0, total_bytes: int = 0) -> Path:
        """Begin to record; return the journal. The limits remove the oldest records; 0: all are kept."""
        return Path(self._ask("start", str(total_ns), str(total_bytes))["journal"])

    def stop(self) -> tuple[Path, str]:
        """End the recording; return its journal, and its problem, or ``""``."""
        found = self._ask("stop")
        return Path(found["journal"]), found.get("trouble", "")

    def cut(self) -> Cut:
        """Bring all finished work into closed segments."""
        found = self._ask("cut")
        return Cut(Path(found["journal"]), int(found["segment"]), int(found["cupti_ns"]))

    def wait_for_end(self, seconds: float) -> None:
        """Wait for this time, or until the process has ended."""
        deadline = time.monotonic() + seconds
        if not ends_within(self.process_id, seconds):
            return
        try:
            self.status()
        except NotListeningError:
            return
        except CollectorError:
            pass
        time.sleep(max(0.0, deadline - time.monotonic()))  # here the number is that of another process

    def _ask(self, *request: str) -> dict[str, str]:
        """Send a request, and return the names and values of the answer.

        Raises:
            NotListeningError: nobody listens, or the process ended meanwhile.
            collector.CollectorError: the process refused.
        """
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(_TIMEOUT_S)
                connection.connect(self._address)
                self._check_owner(connection)
                connection.sendall(b"".join(os.fsencode(field) + b"\0" for field in request))
                connection.shutdown(socket.SHUT_WR)
                answer = _received(connection)
        except (ConnectionResetError, BrokenPipeError):
            answer = []
        except (FileNotFoundError, ConnectionRefusedError):
            raise NotListeningError(f"process {self.process_id} {self._absence()}", _PREPARE) from None
        except TimeoutError:
            raise CollectorError(
                f"process {self.process_id} did not answer within {_TIMEOUT_S:g} s",
                "It is stopped, or blocked in the driver; try again",
            ) from None
        except OSError as error:
            raise NotListeningError(
                f"process {self.process_id} cannot be reached: {error.strerror or error}", "Check whether it still runs"
            ) from error
        if not answer:
            end = "closed the connection" if process_exists(self.process_id) else "ended"
            raise NotListeningError(f"process {self.process_id} {end} before it answered", "")
        if answer[0] != "ok":
            raise CollectorError(
                f"process {self.process_id}: {answer[1] if len(answer) > 1 else 'refused'}", *answer[2:3]
            )
        return dict(zip(answer[1::2], answer[2::2], strict=False))

    def _check_owner(self, connection: socket.socket) -> None:
        """Another process may have taken the name."""
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        owner, user, _ = _CREDENTIALS.unpack(raw)
        if owner not in (self.process_id, 0) or user != os.geteuid():  # 0: of another namespace of processes
            raise CollectorError(
                f"the socket of process {self.process_id} belongs to process {owner} of user {user}",
                "Attach as the user of the process",
            )

    def _absence(self) -> str:
        try:
            os.kill(self.process_id, 0)
        except ProcessLookupError:
            return "does not exist"
        except PermissionError:
            return "is of another user"
        return "has ended" if ends_within(self.process_id, 0) else "does not listen"


@dataclass(frozen=True)
class Cut:
    """An instant of a recording of which all finished work is in closed segments, or its end."""

    journal: Path
    segment: int
    """The number of the first segment that is not closed."""
    cupti_ns: int | None
    """The time of the instant; None: it is the end of a recording that has ended."""


def output_of_process(output: str, process_id: int) -> Path:
    """The file for the records of a process; the environment at its begin fills in the placeholders.

    Raises:
        collector.OutputError: a variable is not set there.
    """
    variables: dict[str, str] = {}
    with suppress(OSError):
        for entry in Path(f"/proc/{process_id}/environ").read_bytes().split(b"\0"):
            name, _, value = os.fsdecode(entry).partition("=")
            variables[name] = value
    return filled_path(expanded(output), None, 0, ProcessIdentity(process_id, os.uname().nodename, variables))


def _received(connection: socket.socket) -> list[str]:
    found = b""
    while len(found) < _MOST_ANSWER_BYTES and (piece := connection.recv(4096)):
        found += piece
    return [os.fsdecode(field) for field in found.split(b"\0")[:-1]]


def listen_remotely(process_id: int) -> bool:
    """Make a Python process listen that did not; return whether that was possible.

    From CPython 3.14 on an interpreter runs a file for another one of the same version and user, at its next safe
    point: not while it hangs in a call.

    Raises:
        collector.CollectorError: the process does not allow it, or did not do it in time.
    """
    remote_exec = getattr(sys, "remote_exec", None)
    if remote_exec is None or not process_exists(process_id):
        return False
    folder = tempfile.mkdtemp(prefix="collector-attach-")
    program = Path(folder, "listen.py")
    program.write_text(_REMOTE_PROGRAM.format(folders=[folder for folder in sys.path if folder]), encoding="utf-8")
    try:
        remote_exec(process_id, os.fspath(program))
    except (OSError, RuntimeError, ValueError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise CollectorError(
            f"process {process_id} does not listen, and cannot be made to: {_in_words(error)}", _PREPARE
        ) from error
    until = time.monotonic() + _LONGEST_REMOTE_S
    while time.monotonic() < until:
        with suppress(NotListeningError):
            AttachedProcess(process_id).status()
            shutil.rmtree(folder, ignore_errors=True)
            return True
        time.sleep(0.05)
    late = Path(folder, "late.py")
    late.write_text(_LATE_PROGRAM.format(folder=folder), encoding="utf-8")
    late.replace(program)
    raise CollectorError(f"process {process_id} did not begin to listen: it does not run Python code now", _PREPARE)


def _in_words(error: Exception) -> str:
    """The error of `sys.remote_exec`, reworded where Python's text would mislead."""
    if isinstance(error, PermissionError):
        return f"this user may not trace it ({error.strerror}; CAP_SYS_PTRACE, /proc/sys/kernel/yama/ptrace_scope)"
    if "PyRuntime" in str(error):
        version = ".".join(map(str, sys.version_info[:2]))
        return f"it does not run Python {version}, as this command does ({error})"
    return str(error)
