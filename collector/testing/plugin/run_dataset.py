"""The dataset of a test run: a step for each part of a test that used the GPU, named after the test."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING

from collector.dataset.dataset_writer import DatasetWriter, run_of_this_process
from collector.errors import CollectorError
from collector.runtime.launcher_ranks import launched_rank

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from collector.recording.recording import Recording

_SECONDS_OF_PART = 60.0
"""The time in s after which written steps become part of the dataset, so that a killed run leaves most of its steps."""


class RunDataset:
    """Adds the recordings of this process's tests to a dataset.

    Each worker of pytest-xdist is a rank of its own; without workers the rank is that of the launched process.
    """

    def __init__(self, folder: Path) -> None:
        """Write into ``folder``; it is made when the first test used the GPU."""
        self._folder = folder
        self._writer: DatasetWriter | None = None
        self._since = time.monotonic()

    def add(self, nodeid: str, parts: Sequence[tuple[str, Recording]]) -> str | None:
        """Add the recordings of a test, each with its name; return the error, or None."""
        try:
            if self._writer is None:
                self._writer = DatasetWriter(self._folder, run=_run(), rank=_rank())
            for name, recording in parts:
                self._writer.write(recording, name=f"{nodeid} ({name})")
            if time.monotonic() - self._since > _SECONDS_OF_PART:
                return self.close()
        except (CollectorError, OSError) as error:
            return str(error)
        return None

    def close(self) -> str | None:
        """Finish what was written; return the error, or None."""
        self._since = time.monotonic()
        try:
            if self._writer is not None:
                self._writer.close()
        except (CollectorError, OSError) as error:
            return str(error)
        return None


def _run() -> str:
    """The name of the run, which the workers of pytest-xdist share."""
    return run_of_this_process(also=("PYTEST_XDIST_TESTRUNUID",))


def _rank() -> int:
    """The number of the worker of pytest-xdist; without workers the rank in the environment, or 0."""
    found = re.search(r"\d+$", os.environ.get("PYTEST_XDIST_WORKER", ""))
    return int(found[0]) if found else launched_rank() or 0
