"""The environment of a program that is to be recorded without importing anything.

libcuda loads the library that ``CUDA_INJECTION64_PATH`` names into every process that initialises CUDA. The library is
ours, and reads the variables ``COLLECTOR_RUN_...``, which ``native/inject/run_options.h`` explains.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import CollectorError, MissingDependencyError
from collector.options import KINDS
from collector.runtime.extension import INJECTION_VARIABLE, capture_library, is_capture_library
from collector.runtime.launcher_ranks import LAUNCHER_VARIABLES
from collector.sources.native import search_roots
from collector.text.cost_shares import millionths_of
from collector.tracing.listener import LISTEN_VARIABLE
from collector.tracing.nvtx import arming_variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from collector.launching.capture_range import CaptureRange

_MS_PER_S = 1000
_PREFIX = "COLLECTOR_RUN_"
_PATH = "PYTHONPATH"


@dataclass(frozen=True)
class RunOptions:
    """The parts of a program that are recorded, and the time."""

    kinds: tuple[str, ...] = KINDS
    nvtx: bool = False
    """Whether NVTX ranges become annotations."""
    nvtx_domains: tuple[str, ...] = ()
    """The domains whose ranges become annotations; empty: all. ``default`` is the default domain."""
    delay_s: float = 0
    """The time in s from CUDA's initialisation in each process to the begin of the recording."""
    duration_s: float = 0
    """The length of the recording in s; 0: to the end of the process."""
    max_bytes: int = 0
    """The disk space for the latest records of each process; 0: all records are kept."""
    listens: bool = False
    """Whether each process listens for `collector attach`."""
    budget: str = ""
    """The maximum cost of recording in each process, such as ``1%`` of the time of one core; empty: no limit."""
    python: bool = False
    """Whether Python programs are to name the work of their frameworks, with the Python stacks of the names."""
    ranges: CaptureRange | None = None
    """Record only these ranges of each process; None: all."""

    @property
    def watched_domains(self) -> tuple[str, ...]:
        """The NVTX domains whose ranges reach the handler: those to record, and that of `ranges`; empty: all."""
        own = self.ranges.nvtx_domains if self.has_nvtx_ranges and self.ranges is not None else None
        if own is None or (self.nvtx and not self.nvtx_domains) or own == ():
            return () if own == () else self.nvtx_domains
        return tuple(dict.fromkeys((*self.nvtx_domains, *own)))

    @property
    def has_nvtx_ranges(self) -> bool:
        """Whether NVTX opens the `ranges`."""
        return self.ranges is not None and bool(self.ranges.name)


def run_environment(
    folder: Path, options: RunOptions, before: Mapping[str, str], variables: Iterable[str] = ()
) -> dict[str, str]:
    """The environment of a program whose processes write a journal each into ``folder``.

    Args:
        folder: an existing folder.
        options: the options of the recording.
        before: the environment without the collector.
        variables: names of further variables whose values the journals are to state.

    Raises:
        collector.MissingDependencyError: the capture library was not built.
        collector.CollectorError: another tool is to be loaded into the program.
    """
    library = capture_library()
    if library is None:
        raise MissingDependencyError(
            "programs cannot be recorded: the native extension is not installed",
            "Install cupti-collector again with pip, with a C++ compiler if there is no wheel",
        )
    other = before.get(INJECTION_VARIABLE, "")
    if other and not is_capture_library(other):
        raise CollectorError(
            f"{INJECTION_VARIABLE} names {other}: another tool traces this program's GPU, and CUPTI serves one",
            f"Unset {INJECTION_VARIABLE}, or use that tool alone",
        )
    stated = {
        "FOLDER": os.fspath(folder.absolute()),
        "KINDS": ",".join(options.kinds),
        "NVTX": ",".join(options.watched_domains),
        "SITES": ":".join(search_roots()),
        "VARIABLES": ",".join(dict.fromkeys((*LAUNCHER_VARIABLES, *variables))),
        "DELAY_MS": _milliseconds(options.delay_s),
        "DURATION_MS": _milliseconds(options.duration_s),
        "MAX_BYTES": str(options.max_bytes or ""),
        "BUDGET": str(millionths_of(options.budget)) if options.budget else "",
        "PYTHON": "1" if options.python else "",
        "RANGE": options.ranges.text if options.ranges is not None else "",
        "MOST_RANGES": str(options.ranges.most or "") if options.ranges is not None else "",
    }
    # Those of a `collector run` around this one are replaced as a whole.
    environment = {name: value for name, value in before.items() if not name.startswith(_PREFIX)}
    environment |= {_PREFIX + name: value for name, value in stated.items() if value}
    environment[INJECTION_VARIABLE] = str(library)
    if options.python:
        environment[_PATH] = os.pathsep.join(_with_startup_first(environment.get(_PATH, "")))
    if options.listens and not environment.get(LISTEN_VARIABLE, "").startswith("/"):  # else it names a folder
        environment[LISTEN_VARIABLE] = "1"
    if options.nvtx or options.has_nvtx_ranges:
        environment |= arming_variables(environment, library)
    return environment


def _with_startup_first(path: str) -> list[str]:
    """The folders of PYTHONPATH behind that of our sitecustomize; an empty one is the program's working directory."""
    startup = os.fspath(Path(__file__).parents[1] / "adapters" / "python_startup")
    return [startup, *(folder for folder in (path.split(os.pathsep) if path else ()) if folder != startup)]


def _milliseconds(seconds: float) -> str:
    return str(max(round(seconds * _MS_PER_S), 1)) if seconds else ""
