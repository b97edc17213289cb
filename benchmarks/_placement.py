"""The cores on which a benchmark runs: one NUMA node, with one core for the launching thread.

The duration of a launch depends on its core: on the distance from the GPU, and on other work there. The launching
thread therefore has a core to itself, and all other threads of the process (a collector's own, CUPTI's, the driver's)
have the rest of the node. A thread inherits the cores of the thread that starts it, so threads that start while the
launching thread is bound to its core must be moved away from it.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VARIABLE = "COLLECTOR_BENCHMARK_CORES"
"""The environment variable that passes the cores to the process of each collector."""


@dataclass(frozen=True)
class Placement:
    """Cores of one NUMA node."""

    core: int
    """The core of the launching thread."""
    others: frozenset[int]
    """The cores of all other threads."""

    @property
    def all(self) -> frozenset[int]:
        """The cores of all threads, while nothing is launched."""
        return self.others | {self.core}

    def to_text(self) -> str:
        """The value of `VARIABLE`."""
        return json.dumps([self.core, *sorted(self.others)])

    @staticmethod
    def from_text(text: str) -> Placement:
        """Parse the result of `to_text`."""
        core, *others = json.loads(text)
        return Placement(core, frozenset(others))


def choose(gpu_bus_id: str = "", system: Path = Path("/sys")) -> Placement | str:
    """Return the cores to use, near the GPU at this PCI address if it is known; or the reason for no choice."""
    try:
        allowed = frozenset(os.sched_getaffinity(0))
        os.sched_setaffinity(0, allowed)
    except (AttributeError, OSError) as error:
        return f"this system does not let a thread choose its core ({error})"
    nodes = [allowed & cores(file) for file in sorted(system.glob("devices/system/node/node[0-9]*/cpulist"))]
    near = number(system / "bus" / "pci" / "devices" / gpu_bus_id.lower() / "numa_node") if gpu_bus_id else -1
    of_gpu = allowed & cores(system / "devices" / "system" / "node" / f"node{near}" / "cpulist")
    node = of_gpu or max(nodes, key=len, default=frozenset()) or allowed
    if len(node) < 2:
        return "there is one core only"
    core = max(node)  # the first cores serve interrupts
    siblings = cores(system / "devices" / "system" / "cpu" / f"cpu{core}" / "topology" / "thread_siblings_list")
    return Placement(core, node - siblings - {core} or node - {core})


def cores(file: Path) -> frozenset[int]:
    """The numbers in a file such as ``0-3,8``; none if there is no such file."""
    found: set[int] = set()
    with contextlib.suppress(OSError, ValueError):
        for part in file.read_text().strip().split(","):
            first, _, last = part.partition("-")
            found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def number(file: Path) -> int:
    """The number in a file; -1 if there is no file, as Linux uses -1 for devices without a node."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return -1


def facts_of(found: Placement | str) -> dict[str, Any]:
    """The placement in the form for a report."""
    if isinstance(found, str):
        return {"launching_core": f"any: {found}"}
    return {"launching_core": found.core, "cores_of_other_threads": sorted(found.others)}


def settle() -> None:
    """Bind this process, which has only one thread yet, to its node, if it was given one."""
    placement = given()
    if placement is not None:
        os.sched_setaffinity(0, placement.all)


def given() -> Placement | None:
    """The value of `VARIABLE`."""
    text = os.environ.get(VARIABLE)
    return Placement.from_text(text) if text else None


@contextlib.contextmanager
def launching() -> Iterator[Callable[[], None]]:
    """Bind the calling thread to its core, and all others to the rest; yields a function that moves later threads."""
    placement = given()
    if placement is None:
        yield lambda: None
        return

    def move_others() -> None:
        for thread in _threads() - {threading.get_native_id()}:
            _move(thread, placement.others)

    move_others()
    os.sched_setaffinity(0, {placement.core})
    try:
        yield move_others
    finally:
        for thread in _threads():
            _move(thread, placement.all)


def _threads() -> set[int]:
    return {int(folder.name) for folder in Path("/proc/self/task").iterdir()}


def _move(thread: int, where: frozenset[int]) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended in the meantime
        os.sched_setaffinity(thread, where)
