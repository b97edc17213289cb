"""A program as our child, which notices nothing of us: its input, terminal, signals and exit status are its own."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.errors import CollectorError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
"""The terminal sends them to the child as well."""
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def command_of(words: Sequence[str]) -> list[str]:
    """The command of a program; a Python script that is named by its file runs with this interpreter."""
    first = Path(words[0])
    if first.suffix == ".py" and first.is_file():
        return [sys.executable, *words]
    return list(words)


def run_child(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a program to its end; return its exit status, or a signal's number with a minus.

    Raises:
        collector.CollectorError: it cannot be started.
    """
    child: list[subprocess.Popen[bytes]] = []
    with _passed_on(child):
        try:
            child.append(subprocess.Popen(command, env=dict(environment)))
        except OSError as error:
            raise CollectorError(
                f"cannot run {command[0]}: {error.strerror or error}",
                "Name a program of the PATH, or the path of one; a Python script ends in .py",
            ) from error
        return child[0].wait()


@contextmanager
def _passed_on(child: Sequence[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Pass signals on to the child. Handlers are set before it is started, as programs inherit only ignored signals."""

    def forward(number: int, _: Any) -> None:
        for each in child:
            each.send_signal(number)

    before = {}
    for number in (*_FROM_TERMINAL, *_FORWARDED):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup, or a job in the background of a script
            before[number] = signal.signal(number, forward if number in _FORWARDED else lambda *_: None)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def exit_as(status: int) -> int:
    """Return the exit status of a child, or die by the signal that it died by, so that a caller sees no difference."""
    if status >= 0:
        return status
    sys.stdout.flush()
    sys.stderr.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the child has dumped its core
    if -status not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
    return 128 - status
