"""Conversions of long recordings in a process of their own, whose memory is not the caller's."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from collector.errors import OutputError

if TYPE_CHECKING:
    from pathlib import Path

_PROGRAM = "import sys, collector; collector.load(sys.argv[1]).save(sys.argv[2])"
_OF_RECORDING = ("COLLECTOR_RUN_", "CUDA_INJECTION", "NVTX_INJECTION")
"""Variables of which the process, which uses no GPU, needs none."""


class Conversion:
    """A conversion that runs, or has ended."""

    def __init__(self, source: Path, target: Path) -> None:
        """Begin to convert ``source`` to ``target``, whose suffix is the format.

        Raises:
            collector.OutputError: no process can be started.
        """
        self.target = target
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_OF_RECORDING)}
        folders = [folder for folder in sys.path if folder]
        environment["PYTHONPATH"] = os.pathsep.join(folders)
        try:
            self._process = subprocess.Popen(
                [sys.executable or "python3", "-c", _PROGRAM, str(source), str(target)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
        except OSError as error:
            raise OutputError(f"{target} cannot be written: no process can be started ({error})") from error

    @property
    def has_ended(self) -> bool:
        """Whether the file is there, or never will be."""
        return self._process.poll() is not None

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait for the end.

        Raises:
            collector.OutputError: the file could not be written.
            TimeoutError: it takes longer.
        """
        try:
            _, errors = self._process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"{self.target} is still being written") from error
        except ValueError:  # waited for before
            errors = ""
        if self._process.returncode != 0:
            lines = errors.strip().splitlines() or [f"the process ended with status {self._process.returncode}"]
            raise OutputError(f"{self.target} cannot be written: {lines[-1]}")
