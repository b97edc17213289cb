"""Conversions of long recordings in a separate process, so that they use no memory of the caller."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from typing import TYPE_CHECKING

from collector.errors import OutputError
from collector.runtime.child_interpreters import python_command, python_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_PROGRAM = """
import os, collector
try:
    collector.load(sys.argv[1]).save(sys.argv[2])
except collector.CollectorError as error:
    text = " ".join(str(error).split())
    try:
        os.write(2, text.encode(errors="replace"))
    except BrokenPipeError:  # the program that began this has ended, and cannot report any more
        if len(sys.argv) > 3:
            os.write(int(sys.argv[3]), f"collector: {text}\\n".encode(errors="replace"))
    os._exit(3)
"""
_EXIT_REFUSED = 3
"""The exit status of the program after it has written the message of a `collector.CollectorError`."""
_OF_RECORDING = ("COLLECTOR_RUN_", "CUDA_INJECTION", "NVTX_INJECTION")
"""Variables that the process does not need, because it uses no GPU."""


class Conversion:
    """A conversion that is running or has ended."""

    def __init__(self, source: Path, target: Path, *, on_failure: Callable[[str], None] | None = None) -> None:
        """Begin to convert ``source`` to ``target``, whose suffix is the format.

        Args:
            source: a file or folder that `collector.load` reads.
            target: the file.
            on_failure: called in another thread with one line if the file cannot be written and nobody has waited for
                it so far. If this process has ended by then, the line goes to its standard error.

        Raises:
            collector.OutputError: no process, or no thread that waits for it, can be started.
        """
        self.target = target
        self._on_failure = on_failure
        self._errors = ""
        self._is_awaited = False
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_OF_RECORDING)}
        environment["PYTHONPATH"] = python_path()
        with contextlib.ExitStack() as stack:
            passed: list[int] = []
            if on_failure is not None:
                with contextlib.suppress(OSError):  # standard error is closed
                    passed.append(os.dup(2))
                    stack.callback(os.close, passed[0])
            try:
                self._process = subprocess.Popen(
                    python_command(_PROGRAM, str(source), str(target), *map(str, passed)),
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    pass_fds=passed,
                    encoding="locale",
                    errors="replace",
                )
            except OSError as error:
                raise OutputError(f"{target} cannot be written: no process can be started ({error})") from error
        self._thread = threading.Thread(target=self._read, name="collector conversion", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            self._process.kill()
            self._process.communicate()
            raise OutputError(f"{target} cannot be written: no thread can be started ({error})") from error

    def _read(self) -> None:
        """Read the output of the process until it ends."""
        _, self._errors = self._process.communicate()
        if self._process.returncode != 0 and self._on_failure is not None and not self._is_awaited:
            self._on_failure(self._failure())

    def _failure(self) -> str:
        lines = self._errors.strip().splitlines() or [f"the process ended with status {self._process.returncode}"]
        if self._process.returncode == _EXIT_REFUSED:
            return lines[-1]
        return f"{self.target} cannot be written: {lines[-1]}"

    @property
    def has_ended(self) -> bool:
        """Whether the conversion has ended, with or without success."""
        return not self._thread.is_alive()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait for the end.

        Raises:
            collector.OutputError: the file could not be written.
            TimeoutError: the conversion takes longer.
        """
        self._is_awaited = True
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise TimeoutError(f"{self.target} is still being written")
        if self._process.returncode != 0:
            raise OutputError(self._failure())
