"""The collectors that benchmarks compare: ours, the floor, and the installed ones of others.

The floor is a CUPTI client that recycles zeroed buffers and discards every record: the cost of CUPTI itself. Each
collector runs in a separate process, because a process has one CUPTI subscriber and collectors leave remains behind.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import _traces
import numpy as np
import numpy.typing as npt

from collector.recording.api_functions import ApiRole, role_of

ALL_KINDS = (39, 5, 4, 10, 1, 2, 38, 17)
KERNELS = (10,)
API_KINDS = (4, 5)
FLOOR_OF_KERNELS, FLOOR_OF_ALL = "floor, kernels", "floor, all"
UNZEROED, ONE_BUFFER, PROCESSOR_TIME = 1, 2, 4
"""Settings of the floor: `Setting` of native/launcher.cpp."""
SMALLEST_BUFFER = 8 << 20
KERNEL = "empty_kernel"
JOURNAL_SUFFIX = ".journal"
TEARDOWN_CALLS, TEARDOWN_S = 10, 0.5
Times = npt.NDArray[np.int64]


class TracedProgram(Protocol):
    """The program that is traced: `_program.Program`."""

    launcher: ctypes.CDLL
    """native/launcher.cpp, loaded."""


@dataclass(frozen=True)
class Stamps:
    """Times of kernels, in ns of the collector's own clock."""

    start: Times
    end: Times
    launched: Times
    """Begin of the call that launched it; 0 if that was not recorded."""

    @staticmethod
    def of(kernels: Iterable[tuple[int, int, int]], launches: Iterable[tuple[int, int]]) -> Stamps:
        """From (start, end, correlation id) of kernels, and (correlation id, start) of their launching calls."""
        found = np.array(list(kernels), np.int64).reshape(-1, 3)
        first: dict[int, int] = {}
        for correlation, start in launches:  # the earlier of the runtime's call and the driver call inside it
            first[correlation] = min(start, first.get(correlation, start))
        launched = np.array([first.get(correlation, 0) for correlation in found[:, 2].tolist()], np.int64)
        return Stamps(found[:, 0], found[:, 1], launched)

    @property
    def _unusable(self) -> npt.NDArray[np.bool_]:
        return (self.start <= 0) | (self.end <= 0) | (self.end < self.start)

    def bad(self) -> int:
        """The number of kernels without a usable time: 0 (unknown to CUPTI), or an end before the start."""
        return int(self._unusable.sum())

    def before_launch(self) -> int | None:
        """The number of kernels that began before their launch; None if launches are unknown."""
        known = self.launched > 0
        return int((known & ~self._unusable & (self.start < self.launched)).sum()) if known.any() else None


class Collector:
    """Records nothing. Subclasses start, stop, count their records, and write a file."""

    records = "nothing"
    floor = ""
    """The floor that enables the same kinds of activity."""
    only_afterwards = False
    """Whether only its effects after its end are of interest."""
    needs: tuple[str, ...] = ()
    """Packages that must be installed."""
    on_simulator = True
    file = ""
    """The suffix of its file; empty if it writes none."""

    def start(self, program: TracedProgram) -> None:
        """Begin recording."""

    def stop(self) -> None:
        """End recording, with all records read."""

    def kernels(self) -> int | None:
        """The number of `KERNEL` records in its result; None if it keeps none."""
        return None

    def stamps(self) -> Stamps | None:
        """The times of these kernels, including those left out of the result; None if it keeps none."""
        return None

    def write(self, path: Path) -> None:
        """Write the recording. Some collectors write at `stop` to another place; the file is then moved."""

    def read_back(self, path: Path) -> tuple[int, dict[str, Any]]:
        """The number of `KERNEL` slices in the file that `write` wrote, and facts about the file."""
        return _traces.facts(path, KERNEL)

    def losses(self) -> list[str]:
        """The losses that it reports."""
        return []


class Floor(Collector):
    """A CUPTI client that does as little as possible."""

    def __init__(self, *kinds: int, settings: int = 0) -> None:
        self.kinds, self.settings = kinds, settings
        self.records = "kernels, thrown away" if kinds == KERNELS else "every kind we record, thrown away"
        self.floor = FLOOR_OF_KERNELS if kinds == KERNELS else FLOOR_OF_ALL

    def start(self, program: TracedProgram) -> None:
        """Enable the kinds."""
        from collector.sources.native import NativeSource

        self.launcher = program.launcher
        kinds = (ctypes.c_uint32 * len(self.kinds))(*self.kinds)
        library = NativeSource().probe()["cupti_path"]
        if self.launcher.floor_start(library.encode(), kinds, len(kinds), self.settings) != 0:
            raise RuntimeError("the floor could not enable what it needs")

    def stop(self) -> None:
        """Disable them."""
        self.launcher.floor_stop()


class Ours(Collector):
    """This project."""

    def __init__(self, records: str, file: str = ".json", **options: Any) -> None:
        self.records, self.file, self.options = records, file, options
        self.floor = FLOOR_OF_KERNELS if "kinds" in options else FLOOR_OF_ALL

    def start(self, program: TracedProgram) -> None:
        """Open a session."""
        import collector

        self.step = collector.trace(strict=True, **self.options)
        self.step.__enter__()

    def stop(self) -> None:
        """Close it."""
        self.step.__exit__(None, None, None)

    def kernels(self) -> int:
        """Rows of the table."""
        return len(self.step.kernels)

    def stamps(self) -> Stamps:
        """Of the rows within the step and the rows set apart."""
        recording = self.step.recording
        parts = (recording, recording.invalid, recording.out_of_window)
        kernels = [
            np.stack([part.kernels.columns[each] for each in ("start_ns", "end_ns", "correlation_id")])
            for part in parts
        ]
        calls = [np.stack([part.api_calls.columns[each] for each in ("correlation_id", "start_ns")]) for part in parts]
        return Stamps.of(*(np.concatenate(found, axis=1).T.tolist() for found in (kernels, calls)))

    def write(self, path: Path) -> None:
        """Write any of our formats."""
        self.step.save(path)

    def read_back(self, path: Path) -> tuple[int, dict[str, Any]]:
        """Nodes of graphs are slices of their streams, and again inside those of launches, where they name it."""
        return _traces.facts(path, KERNEL, lambda event: "stream" in event["args"])

    def losses(self) -> list[str]:
        """The ledger's."""
        return list(self.step.ledger.losses())


class WithJournal(Ours):
    """This project with a journal, in case the program is killed."""

    def start(self, program: TracedProgram) -> None:
        """Open a session, whose journal is deleted when it ends."""
        self.options["journal"] = Path(tempfile.mkdtemp()) / f"step{JOURNAL_SUFFIX}"
        super().start(program)

    def stop(self) -> None:
        """Close the session, and remove the folder that was made for its journal."""
        super().stop()
        self.options["journal"].parent.rmdir()


class Kineto(Collector):
    """torch.profiler."""

    needs = ("torch",)
    on_simulator = False
    file = ".json"
    floor = FLOOR_OF_ALL  # with CUDA alone it also enables both APIs, copies, sets and overhead

    def __init__(self, *activities: str, teardown: bool = False) -> None:
        self.activities = activities
        self.only_afterwards = teardown
        self.records = f"torch.profiler with {' and '.join(activities)}"
        if teardown:
            self.records += ", CUPTI torn down after it"

    def start(self, program: TracedProgram) -> None:
        """Enter the profiler's block."""
        os.environ.pop("TEARDOWN_CUPTI", None)  # it is read at every start and stop
        if self.only_afterwards:
            os.environ["TEARDOWN_CUPTI"] = "1"
        from torch.profiler import ProfilerActivity, profile

        self.profiler = profile(activities=[getattr(ProfilerActivity, name) for name in self.activities])
        self.profiler.__enter__()

    def stop(self) -> None:
        """Leave it. Another thread tears CUPTI down, at the end of one of the next calls of the runtime."""
        self.profiler.__exit__(None, None, None)
        if self.only_afterwards:
            import torch

            for _ in range(TEARDOWN_CALLS):
                torch.cuda.synchronize()
                time.sleep(TEARDOWN_S / TEARDOWN_CALLS)

    def kernels(self) -> int:
        """Events of the kernel on the device."""
        return len(self._kernels())

    def stamps(self) -> Stamps:
        """Of the events; it removes events that are out of range itself."""
        kernels = (
            (each.start_ns(), each.start_ns() + each.duration_ns(), each.correlation_id()) for each in self._kernels()
        )
        events = self.profiler.profiler.kineto_results.events()
        launches = (event for event in events if role_of(event.name()) is ApiRole.LAUNCH)
        return Stamps.of(kernels, ((event.correlation_id(), event.start_ns()) for event in launches))

    def _kernels(self) -> list[Any]:
        from torch.autograd import DeviceType

        events = self.profiler.profiler.kineto_results.events()
        return [each for each in events if each.device_type() == DeviceType.CUDA and each.name().startswith(KERNEL)]

    def write(self, path: Path) -> None:
        """Its Chrome trace."""
        self.profiler.export_chrome_trace(str(path))


class Proton(Collector):
    """triton.profiler. It writes its file when it stops."""

    needs = ("torch", "triton")
    on_simulator = False
    floor = FLOOR_OF_KERNELS  # and callbacks for launches

    def __init__(self, data: str) -> None:
        self.data = data
        self.file = ".hatchet" if data == "tree" else ".chrome_trace"
        self.records = f"triton.profiler, data={data!r}"

    def start(self, program: TracedProgram) -> None:
        """Start a session, which takes the only CUPTI subscriber."""
        import triton.profiler as proton

        self._made = tempfile.TemporaryDirectory()
        self.folder = Path(self._made.name)
        proton.start(str(self.folder / "trace"), backend="cupti", data=self.data)

    def stop(self) -> None:
        """Write and detach."""
        import triton.profiler as proton

        if self.data == "tree":
            proton.finalize()
        else:
            proton.finalize(output_format="chrome_trace")

    def kernels(self) -> int:
        """Those in the file."""
        return self._counted(self._written())[0]

    def stamps(self) -> Stamps | None:
        """Of the trace, without launches. Its times count from the first kernel, here from 1."""
        if self.data == "tree":
            return None
        events = _traces.events(_traces.documents(self._written().read_text())[0])
        rows = _traces.rows(_traces.kernels(events, KERNEL))
        return Stamps.of(((start + 1, end + 1, 0) for row in rows.values() for start, end in row), ())

    def read_back(self, path: Path) -> tuple[int, dict[str, Any]]:
        """The file unchanged; for the tree, only whether it can be read."""
        return self._counted(path)

    def _written(self) -> Path:
        (file,) = self.folder.glob("trace*")
        return file

    def _counted(self, path: Path) -> tuple[int, dict[str, Any]]:
        """Launches counted in the tree, or events in the trace."""
        if self.data != "tree":
            return _traces.facts(path, KERNEL)
        found, trouble = _traces.documents(path.read_text())
        open_nodes = [node for one in found for node in one if "children" in node]
        count = 0
        while open_nodes:
            node = open_nodes.pop()
            open_nodes += node.get("children", [])
            if node.get("frame", {}).get("name", "").startswith(KERNEL):
                count += int(node["metrics"].get("count", 0))
        return count, {"JSON": trouble or "yes"}

    def write(self, path: Path) -> None:
        """Move the file."""
        self._written().replace(path)


class CuptiPython(Collector):
    """NVIDIA's cupti-python in the way that its callbacks suggest: every record becomes an object that is kept."""

    needs = ("cupti",)
    on_simulator = False

    def __init__(self, *kinds: int) -> None:
        self.kinds = kinds
        self.records = "cupti-python, " + ("kernels" if kinds == KERNELS else "every kind we record")
        self.floor = FLOOR_OF_KERNELS if kinds == KERNELS else FLOOR_OF_ALL

    def start(self, program: TracedProgram) -> None:
        """Register Python callbacks and enable the kinds."""
        from cupti import cupti

        self.cupti, self.kept = cupti, []
        cupti.activity_register_callbacks(lambda: (SMALLEST_BUFFER, 0), self.kept.extend)
        for kind in self.kinds:
            cupti.activity_enable(kind)

    def stop(self) -> None:
        """Flush and disable."""
        self.cupti.activity_flush_all(0)
        for kind in self.kinds:
            self.cupti.activity_disable(kind)
        self.cupti.activity_flush_all(1)

    def kernels(self) -> int:
        """Objects of that kind."""
        return sum(int(each.kind) in KERNELS for each in self.kept)

    def stamps(self) -> Stamps:
        """Of the objects."""
        kernels = ((each.start, each.end, each.correlation_id) for each in self.kept if int(each.kind) in KERNELS)
        calls = ((each.correlation_id, each.start) for each in self.kept if int(each.kind) in API_KINDS)
        return Stamps.of(kernels, calls)


COLLECTORS: dict[str, Callable[[], Collector]] = {
    "none": Collector,
    FLOOR_OF_KERNELS: lambda: Floor(*KERNELS),
    FLOOR_OF_ALL: lambda: Floor(*ALL_KINDS),
    "collector, kernels": lambda: Ours("kernels", kinds=("kernels",)),
    "collector, all": lambda: Ours("kernels, copies, sets, both APIs, waits, annotations"),
    "collector, all, journal": lambda: WithJournal("the same, and a journal"),
    "kineto, CUDA": lambda: Kineto("CUDA"),
    "kineto, CPU + CUDA": lambda: Kineto("CPU", "CUDA"),
    "kineto, CUDA, torn down": lambda: Kineto("CUDA", teardown=True),
    "proton, tree": lambda: Proton("tree"),
    "proton, trace": lambda: Proton("trace"),
    "cupti-python, kernels": lambda: CuptiPython(*KERNELS),
    "cupti-python, all": lambda: CuptiPython(*ALL_KINDS),
}


def why_missing(collector: Collector, *, simulated: bool) -> str:
    """The reason why this collector cannot run here; empty if it can."""
    absent = [name for name in collector.needs if importlib.util.find_spec(name) is None]
    if absent:
        return f"{' and '.join(absent)} not installed"
    return "" if collector.on_simulator or not simulated else "needs a GPU: it cannot record the simulated one"
