"""Device memory that a test took and did not give back.

One witness is not enough: another process may take memory, an allocator keeps some for later, libraries load kernels at
their first use. A test fails only if the device's memory in use grew *and* a second witness says the same: the
allocator of the framework that is loaded (PyTorch, CuPy) or, without one, the allocations that were recorded. Both
are asked after the garbage collector and the devices are done, and both must have grown over the test's call and over
the whole test, so that what a fixture of a wider scope keeps is nobody's leak.
"""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from collector.testing.plugin.driver import DriverError, mapped_driver
from collector.testing.plugin.limits import show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Memory:
    """Bytes in use at one moment."""

    device: int = 0
    """On all devices that the program uses, by whatever process."""
    allocators: Mapping[str, int] = field(default_factory=dict)
    """What frameworks have handed out, by framework."""


@dataclass(frozen=True)
class Leak:
    """Memory that one test did not give back."""

    device: int
    """Bytes by which the device's memory in use grew."""
    allocators: Mapping[str, int]
    """Bytes by which each framework's did, where it did."""
    unfreed: int
    """How many recorded allocations were not freed."""

    def message(self, where: str, held: Sequence[str]) -> str:
        """The text of a failing test; ``held`` names what was not freed, a line each."""
        grown = [f"{name}'s allocator by {show(num_bytes, 'bytes')}" for name, num_bytes in self.allocators.items()]
        if not grown:
            grown = [f"and {self.unfreed} allocation{'s were' if self.unfreed != 1 else ' was'} not freed"]
        lines = [f"{where} leaks GPU memory: the device's grew by {show(self.device, 'bytes')}, {', '.join(grown)}"]
        if held:
            lines += ["", "Allocated in the test and not freed:", *(f"  {text}" for text in held)]
        return "\n".join(lines)


def grown(before: Memory, after: Memory) -> Memory:
    """By how much each figure grew; what did not is 0 or absent. Pure."""
    allocators = {name: num_bytes - before.allocators.get(name, 0) for name, num_bytes in after.allocators.items()}
    return Memory(
        max(after.device - before.device, 0), {name: growth for name, growth in allocators.items() if growth > 0}
    )


def judge_leak(over_call: Memory, over_test: Memory, unfreed: int, *, frameworks: bool) -> Leak | None:
    """Return the leak that both witnesses speak of, None where one does not. Pure.

    Args:
        over_call: by how much memory grew over the test's call; see `grown`.
        over_test: the same over setup, call and teardown.
        unfreed: how many of the call's recorded allocations were not freed until the test's end.
        frameworks: whether a framework's allocator could be asked; then these do not matter.
    """
    device = min(over_call.device, over_test.device)
    allocators = {
        name: min(num_bytes, over_test.allocators[name])
        for name, num_bytes in over_call.allocators.items()
        if name in over_test.allocators
    }
    second = bool(allocators) if frameworks else unfreed > 0
    return Leak(device, allocators, unfreed) if device > 0 and second else None


class Allocator(Protocol):
    """A framework's allocator of device memory."""

    name: str

    def used_bytes(self) -> int:
        """Bytes handed out and not given back."""

    def settle(self) -> None:
        """Give memory kept for later back to the driver."""

    def live(self) -> dict[int, str]:
        """Address -> description of what is handed out, as far as the framework knows it."""


class TorchAllocator:
    """PyTorch's caching allocator."""

    name = "PyTorch"

    def __init__(self, torch: Any) -> None:
        self._cuda = torch.cuda

    def used_bytes(self) -> int:
        """See `Allocator`."""
        return sum(int(self._cuda.memory_allocated(device)) for device in range(self._cuda.device_count()))

    def settle(self) -> None:
        """See `Allocator`."""
        self._cuda.empty_cache()

    def live(self) -> dict[int, str]:
        """See `Allocator`; with the Python line where PyTorch's own memory history is on."""
        found: dict[int, str] = {}
        for segment in self._cuda.memory_snapshot():
            address = segment.get("address", 0)
            for block in segment["blocks"]:
                if block["state"] == "active_allocated":
                    found[block.get("address", address)] = _torch_block(block)
                address += block["size"]
        return found


def _torch_block(block: Mapping[str, Any]) -> str:
    text = f"PyTorch: {show(int(block.get('requested_size', block['size'])), 'bytes')}"
    for frame in block.get("frames", ()):
        if frame["filename"].endswith(".py") and "site-packages" not in frame["filename"]:
            return f"{text}, {frame['filename']}:{frame['line']}"
    return text


class CupyAllocator:
    """CuPy's default memory pool."""

    name = "CuPy"

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy

    def used_bytes(self) -> int:
        """See `Allocator`."""
        return sum(self._on_each_device(lambda pool: int(pool.used_bytes())))

    def settle(self) -> None:
        """See `Allocator`."""
        self._on_each_device(lambda pool: pool.free_all_blocks())

    def live(self) -> dict[int, str]:
        """CuPy does not say what it has handed out."""
        return {}

    def _on_each_device(self, ask: Any) -> list[Any]:
        answers = []
        for device in range(self._cupy.cuda.runtime.getDeviceCount()):
            with self._cupy.cuda.Device(device):
                answers.append(ask(self._cupy.get_default_memory_pool()))
        return answers


def allocators() -> list[Allocator]:
    """The allocators of the frameworks that this process has loaded and that have touched a GPU."""
    found: list[Allocator] = []
    torch = sys.modules.get("torch")
    if torch is not None and getattr(torch, "cuda", None) is not None and torch.cuda.is_initialized():
        found.append(TorchAllocator(torch))
    cupy = sys.modules.get("cupy")
    if cupy is not None and getattr(cupy, "get_default_memory_pool", None) is not None:
        found.append(CupyAllocator(cupy))
    return found


class LeakCheck:
    """Measures around the parts of one test; each is called once, in this order."""

    def __init__(self) -> None:
        self._before_test = _measure(settled=True)
        self._before_call = Memory()
        self._live: set[int] = set()
        self._over_call = self._over_test = Memory()

    def before_call(self) -> None:
        """The fixtures are set up."""
        self._before_call = _measure()
        self._live = {address for allocator in allocators() for address in allocator.live()}

    def after_call(self) -> None:
        """The test function has returned."""
        self._over_call = grown(self._before_call, _measure())
        if self._over_call != Memory():  # only garbage, perhaps
            self._over_call = grown(self._before_call, _measure(settled=True))

    def after_teardown(self) -> None:
        """The fixtures are torn down."""
        if self._over_call != Memory():
            self._over_test = grown(self._before_test, _measure(settled=True))

    def judge(self, unfreed: int) -> tuple[Leak | None, list[str]]:
        """Return the leak, if there is one, and what frameworks still hold of it.

        Args:
            unfreed: see `judge_leak`.
        """
        loaded = allocators()
        leak = judge_leak(self._over_call, self._over_test, unfreed, frameworks=bool(loaded))
        if leak is None:
            return None, []
        held = [text for a in loaded for address, text in a.live().items() if address not in self._live]
        return leak, held


def _measure(*, settled: bool = False) -> Memory:
    loaded = allocators()
    driver = mapped_driver()
    if settled:
        gc.collect()
        if driver is not None:
            driver.synchronize()
        for allocator in loaded:
            allocator.settle()
    try:
        device = sum(driver.used_bytes().values()) if driver is not None else 0
    except DriverError:  # a broken context says nothing; that it is broken is told elsewhere
        device = 0
    return Memory(device, {allocator.name: allocator.used_bytes() for allocator in loaded})
