"""The collectors that benchmarks compare: ours, the floor, and others' where they are installed.

The floor is a CUPTI client that recycles zeroed buffers and throws every record away: what CUPTI itself costs. Each
collector runs in a process of its own, because a process has one CUPTI subscriber and collectors leave things behind.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _program import Program

ALL_KINDS = (39, 5, 4, 10, 1, 22, 2, 38, 17)
KERNELS = (10,)
SMALLEST_BUFFER = 8 << 20
KERNEL = "empty_kernel"


class Collector:
    """Records nothing. The others start, stop, count what they have, and write a file."""

    records = "nothing"
    needs: tuple[str, ...] = ()
    """Packages that have to be installed."""
    on_simulator = True
    file = ""
    """The suffix of what it writes; empty: nothing."""

    def start(self, program: Program) -> None:
        """Begin recording."""

    def stop(self) -> None:
        """End recording, all records read."""

    def kernels(self) -> int | None:
        """How many `KERNEL` its result holds; None where it keeps none."""
        return None

    def write(self, path: Path) -> None:
        """Write what was recorded. Some do at `stop`, elsewhere; then it is copied there."""

    def losses(self) -> list[str]:
        """What it says it lost."""
        return []


class Floor(Collector):
    """A CUPTI client that does as little as any can."""

    def __init__(self, *kinds: int) -> None:
        self.kinds = kinds
        self.records = "kernels, thrown away" if kinds == KERNELS else "every kind we record, thrown away"

    def start(self, program: Program) -> None:
        """Enable the kinds."""
        from collector import _native

        self.launcher = program.launcher
        kinds = (ctypes.c_uint32 * len(self.kinds))(*self.kinds)
        if self.launcher.floor_start(_native.probe()["cupti_path"].encode(), kinds, len(kinds)) != 0:
            raise RuntimeError("the floor could not enable what it needs")

    def stop(self) -> None:
        """Disable them."""
        self.launcher.floor_stop()


class Ours(Collector):
    """This project."""

    def __init__(self, records: str, file: str = ".json", **options: Any) -> None:
        self.records, self.file, self.options = records, file, options

    def start(self, program: Program) -> None:
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

    def write(self, path: Path) -> None:
        """Any of our formats."""
        self.step.save(path)

    def losses(self) -> list[str]:
        """The ledger's."""
        return list(self.step.ledger.losses())


class Kineto(Collector):
    """torch.profiler."""

    needs = ("torch",)
    on_simulator = False
    file = ".json"

    def __init__(self, *activities: str) -> None:
        self.activities = activities
        self.records = f"torch.profiler with {' and '.join(activities)}"

    def start(self, program: Program) -> None:
        """Enter the profiler's block."""
        from torch.profiler import ProfilerActivity, profile

        self.profiler = profile(activities=[getattr(ProfilerActivity, name) for name in self.activities])
        self.profiler.__enter__()

    def stop(self) -> None:
        """Leave it."""
        self.profiler.__exit__(None, None, None)

    def kernels(self) -> int:
        """Events of the kernel on the device."""
        from torch.autograd import DeviceType

        events = self.profiler.profiler.kineto_results.events()
        return sum(event.device_type() == DeviceType.CUDA and event.name().startswith(KERNEL) for event in events)

    def write(self, path: Path) -> None:
        """Its Chrome trace."""
        self.profiler.export_chrome_trace(str(path))


class Proton(Collector):
    """triton.profiler. It writes its file when it stops."""

    needs = ("torch", "triton")
    on_simulator = False

    def __init__(self, data: str) -> None:
        self.data = data
        self.file = ".hatchet" if data == "tree" else ".chrome_trace"
        self.records = f"triton.profiler, data={data!r}"

    def start(self, program: Program) -> None:
        """Start a session, which takes the only CUPTI subscriber."""
        import triton.profiler as proton

        self.folder = Path(tempfile.mkdtemp())
        proton.start(str(self.folder / "trace"), backend="cupti", data=self.data)

    def stop(self) -> None:
        """Write and detach."""
        import triton.profiler as proton

        if self.data == "tree":
            proton.finalize()
        else:
            proton.finalize(output_format="chrome_trace")

    def result(self) -> Any:
        """What it wrote."""
        (file,) = self.folder.glob("trace*")
        return json.loads(file.read_text())

    def kernels(self) -> int:
        """Launches counted in the tree, or events in the trace."""
        found = self.result()
        if self.data != "tree":
            return sum(str(event.get("name", "")).startswith(KERNEL) for event in found["traceEvents"])
        open_nodes, count = [node for node in found if "children" in node], 0
        while open_nodes:
            node = open_nodes.pop()
            open_nodes += node.get("children", [])
            if node.get("frame", {}).get("name", "").startswith(KERNEL):
                count += int(node["metrics"].get("count", 0))
        return count

    def write(self, path: Path) -> None:
        """Move what is there."""
        (file,) = self.folder.glob("trace*")
        file.replace(path)


class CuptiPython(Collector):
    """NVIDIA's cupti-python, used as its callbacks suggest: every record becomes an object that is kept."""

    needs = ("cupti",)
    on_simulator = False

    def __init__(self, *kinds: int) -> None:
        self.kinds = kinds
        self.records = "cupti-python, " + ("kernels" if kinds == KERNELS else "every kind we record")

    def start(self, program: Program) -> None:
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


COLLECTORS: dict[str, Callable[[], Collector]] = {
    "none": Collector,
    "floor, kernels": lambda: Floor(*KERNELS),
    "floor, all": lambda: Floor(*ALL_KINDS),
    "collector, kernels": lambda: Ours("kernels", kinds=("kernels",)),
    "collector, all": lambda: Ours("kernels, copies, sets, both APIs, waits, annotations"),
    "kineto, CUDA": lambda: Kineto("CUDA"),
    "kineto, CPU + CUDA": lambda: Kineto("CPU", "CUDA"),
    "proton, tree": lambda: Proton("tree"),
    "proton, trace": lambda: Proton("trace"),
    "cupti-python, kernels": lambda: CuptiPython(*KERNELS),
    "cupti-python, all": lambda: CuptiPython(*ALL_KINDS),
}


def why_missing(collector: Collector, *, simulated: bool) -> str:
    """Why this collector cannot run here; empty when it can."""
    absent = [name for name in collector.needs if importlib.util.find_spec(name) is None]
    if absent:
        return f"{' and '.join(absent)} not installed"
    return "" if collector.on_simulator or not simulated else "needs a GPU: it cannot record the simulated one"
