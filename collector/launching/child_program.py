"""Runs a program as a transparent child process, with its own files, terminal, signals and exit status."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from collector.errors import CollectorError
from collector.files.path_kinds import is_regular_file

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

_NOT_PASSED_ON = {
    signal.SIGKILL,
    signal.SIGSTOP,
    signal.SIGCHLD,
    *(signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU),  # they stop us
    *(signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS, signal.SIGABRT),
}
_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH, signal.SIGCONT)
"""Signals that the kernel, if it sends them for the terminal, sends to the child as well."""
_LOCALE = "LC_CTYPE"
_FIRST_ENVIRONMENT = Path("/proc/self/environ")
"""The environment at the start of the process; it does not follow later changes."""
_HEAD_BYTES = 256
"""The number of first bytes of a file that are searched for a NUL, which text does not contain."""
_SET_CHILD_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl."""
_PERIOD_S = 0.2
"""The longest time until the end of a program is seen, if another thread of this process got the signal of it."""
_GRACE_S = 1.0
"""The time that other processes have to end after the program, as its helper processes do."""
_STOPPING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM)
"""Signals that interrupt the work after the end of the program, as Ctrl-C does."""
_OF_PROGRAMS = (signal.SIGUSR1, signal.SIGUSR2)
"""Signals that have a meaning for the program only."""


def command_of(words: Sequence[str]) -> list[str]:
    """The command of a program; a Python script that is named by its file runs with this interpreter."""
    first = Path(words[0])
    if first.suffix == ".py" and is_regular_file(first):
        return [sys.executable, *words]
    return list(words)


def callers_environment() -> dict[str, str]:
    """The environment that the caller gave this process.

    A Python that finds the locale of C takes another one, and states it as ``LC_CTYPE`` (PEP 538), which its children
    inherit.
    """
    environment = dict(os.environ)
    with contextlib.suppress(OSError):
        given = dict(each.partition(b"=")[::2] for each in _FIRST_ENVIRONMENT.read_bytes().split(b"\0"))
        if (before := given.get(_LOCALE.encode())) is not None:
            environment[_LOCALE] = os.fsdecode(before)
        else:
            environment.pop(_LOCALE, None)
    return environment


class ChildEnd(NamedTuple):
    """The end of a program."""

    status: int
    """The exit status, or the negative number of the signal that ended the program."""
    has_survivors: bool
    """Whether processes that it started are still running, e.g. a daemon."""


def run_child(command: Sequence[str], environment: Mapping[str, str], *, waits_for_all: bool = False) -> ChildEnd:
    """Run a program to its end, and to the end of all processes that it leaves behind if ``waits_for_all``.

    An interrupt (Ctrl-C) ends the wait for the processes that are left behind.

    Raises:
        collector.CollectorError: the program cannot be started.
    """
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # processes that lose their parent become our children
    are_children_ignored = signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
    if are_children_ignored:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else the kernel keeps no exit status for us
    passed_on = [each for each in signal.valid_signals() - _NOT_PASSED_ON if signal.getsignal(each) != signal.SIG_IGN]
    # They wait until they are asked for: a handler would not learn who has sent them.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [*passed_on, signal.SIGCHLD])
    # Where this process has other threads, the kernel may give a signal to one of them, which does not block it.
    handlers = {each: handler for each in passed_on if (handler := signal.getsignal(each)) is not None}
    child: subprocess.Popen[bytes] | None = None
    early: list[int] = []

    def handle(number: int, _: Any) -> None:
        if child is None:
            early.append(number)
        else:
            _pass_on(child.pid, number, is_sent_by_process=False)

    def start(words: Sequence[str]) -> subprocess.Popen[bytes]:
        # Files that the caller opened for it stay open. Those that Python opens are closed in any program.
        return subprocess.Popen(words, env=dict(environment), close_fds=False, preexec_fn=restore_signals)

    def restore_signals() -> None:
        for each in passed_on:
            if callable(signal.getsignal(each)):
                signal.signal(each, signal.SIG_DFL)  # the handlers of this program end with it
        if are_children_ignored:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        for each in handlers:
            signal.signal(each, handle)
        try:
            try:
                child = start(command)
            except OSError as error:
                if not (script := _shell_script(error, command[0], environment)):
                    raise
                child = start(["/bin/sh", script, *command[1:]])
        except OSError as error:
            remedy = "Name a program of the PATH, or the path of one; a Python script ends in .py"
            if os.sep not in command[0] and is_regular_file(Path(command[0])) and os.access(command[0], os.X_OK):
                remedy = f"It is in the working directory: write ./{command[0]}"
            raise CollectorError(f"cannot run {command[0]}: {error.strerror or error}", remedy) from error
        for number in early:
            _pass_on(child.pid, number, is_sent_by_process=False)
        child.returncode = _status_at_end(child.pid, passed_on)
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return ChildEnd(child.returncode, _wait_for_the_rest(None if waits_for_all else _GRACE_S))


def _shell_script(error: OSError, program: str, environment: Mapping[str, str]) -> str:
    """The path of a program that is a script without a line ``#!``, which shells and execvp run; ``""`` for others."""
    path = shutil.which(program, path=environment.get("PATH"))
    if error.errno != errno.ENOEXEC or path is None:
        return ""
    with Path(path).open("rb") as file:
        return "" if b"\0" in file.read(_HEAD_BYTES) else path  # else it is a program of another machine


def _status_at_end(child: int, passed_on: Collection[int]) -> int:
    """Pass signals on to a child until it ends; return its status. They and SIGCHLD are blocked in this thread."""
    while True:
        received = signal.sigtimedwait([*passed_on, signal.SIGCHLD], _PERIOD_S)
        if received is not None and received.si_signo != signal.SIGCHLD:
            _pass_on(child, received.si_signo, is_sent_by_process=received.si_code <= 0)
            continue
        while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            if ended[0] == child:
                return os.waitstatus_to_exitcode(ended[1])


def _pass_on(child: int, number: int, *, is_sent_by_process: bool) -> None:
    """Send a signal to a child, unless the terminal may have sent it to the child as well."""
    if is_sent_by_process or number not in _FROM_TERMINAL:
        # The program may be of another user, such as that of sudo, or have ended.
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.kill(child, number)


def _wait_for_the_rest(timeout_s: float | None) -> bool:
    """Wait for all other children, without limit if ``timeout_s`` is None; return whether some are still running."""
    until = None if timeout_s is None else time.monotonic() + timeout_s
    try:
        while True:
            pid, _ = os.waitpid(-1, 0 if until is None else os.WNOHANG)
            if pid == 0 and until is not None:
                if time.monotonic() >= until:
                    return True
                time.sleep(_GRACE_S / 50)
    except ChildProcessError:
        return False
    except KeyboardInterrupt:
        return True


@contextmanager
def stop_raises() -> Iterator[None]:
    """Let the signals that end a program raise KeyboardInterrupt in the block; ignore those for the program only."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    handlers: dict[signal.Signals, Callable[..., None]] = dict.fromkeys(_STOPPING, stop)
    handlers |= dict.fromkeys(_OF_PROGRAMS, _do_nothing)
    before = {}
    for number, handler in handlers.items():
        if signal.getsignal(number) != signal.SIG_IGN:  # under nohup, or in the background of a script
            before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, original in before.items():
            signal.signal(number, original)


def _do_nothing(*_: Any) -> None:
    """Ignore a signal; unlike SIG_IGN, a handler is not inherited by programs."""


def exit_as(status: int) -> int:
    """Return the exit status of a child, or die by the signal that it died by, so that a caller sees no difference."""
    if status >= 0:
        return status
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the child has dumped its core
    if -status not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
    return 128 - status
