"""Device memory that a test allocated and did not return.

One measurement is not enough: another process may allocate memory, an allocator keeps some for later, and libraries
load kernels at their first use. A test fails only if the device's memory in use grew *and* a second measurement
confirms it: the allocator of the loaded framework (PyTorch, CuPy) or, without one, the recorded allocations. Both must
have grown from the test's beginning to the end of its own teardown. Memory that fixtures of a wider scope allocate and
free meanwhile is excluded: it is not a test's leak and hides none.

Garbage is collected only if memory grew, because in a large program that takes longer than most tests.
"""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from collector.testing.plugin.driver import DriverError, mapped_driver
from collector.testing.plugin.limits import show
from collector.text.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Memory:
    """Bytes in use at one time."""

    device: int = 0
    """On all devices that the program uses, by any process."""
    allocators: Mapping[str, int] = field(default_factory=dict)
    """Framework -> bytes handed out to its users."""


@dataclass(frozen=True)
class Leak:
    """Memory that one test did not return."""

    device: int
    """Bytes by which the device's memory in use grew."""
    allocators: Mapping[str, int]
    """Growth in bytes of each framework whose memory grew."""
    unfreed: int
    """The number of recorded allocations that were not freed."""

    def message(self, where: str, held: Sequence[str]) -> str:
        """The text of a failing test; ``held`` describes the memory that was not freed, one line each."""
        grown = [f"{name}'s allocator by {show(num_bytes, 'bytes')}" for name, num_bytes in self.allocators.items()]
        if not grown:
            grown = [counted("and {} allocation[|s] [was|were] not freed", self.unfreed)]
        lines = [f"{where} leaks GPU memory: the device's grew by {show(self.device, 'bytes')}, {', '.join(grown)}"]
        if held:
            lines += ["", "Allocated in the test and not freed:", *(f"  {text}" for text in held)]
        return "\n".join(lines)


def growth(before: Memory, after: Memory) -> Memory:
    """The change of each figure; negative if it shrank. Pure."""
    allocators = {name: num_bytes - before.allocators.get(name, 0) for name, num_bytes in after.allocators.items()}
    return Memory(after.device - before.device, allocators)


def total(one: Memory, other: Memory) -> Memory:
    """The sum of two growths. Pure."""
    names = one.allocators.keys() | other.allocators.keys()
    allocators = {name: one.allocators.get(name, 0) + other.allocators.get(name, 0) for name in sorted(names)}
    return Memory(one.device + other.device, allocators)


def judge_leak(own: Memory, unfreed: int, *, frameworks: bool) -> Leak | None:
    """Return the leak that both measurements show; None if one of them does not. Pure.

    Args:
        own: the growth of memory in the test, without that of wider fixtures.
        unfreed: the number of the test's recorded allocations that were not freed.
        frameworks: whether a framework's allocator was measured; recorded allocations are then ignored.
    """
    allocators = {name: num_bytes for name, num_bytes in own.allocators.items() if num_bytes > 0}
    second = bool(allocators) if frameworks else unfreed > 0
    return Leak(own.device, allocators, unfreed) if own.device > 0 and second else None


class Allocator(Protocol):
    """A framework's allocator of device memory."""

    name: str

    def used_bytes(self) -> int:
        """Bytes handed out and not returned."""

    def settle(self) -> None:
        """Return cached memory to the driver."""

    def live(self) -> dict[int, str]:
        """Address -> description of the memory handed out, if the framework knows it."""


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
        """See `Allocator`; with the Python line if PyTorch's own memory history is on."""
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
        """Empty: CuPy has no list of its allocations."""
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
    """Measures the memory that one test adds, from the object's creation to `finish`, without wider fixtures."""

    def __init__(self, known: Memory | None = None) -> None:
        """Begin. ``known``: the memory in use after the last garbage collection; if unchanged, there is no garbage."""
        self._begin = _measure(settled=True)
        if self._begin != known:
            self._begin = _measure(collected=True)
        self.known = self._begin
        """The memory in use after the last garbage collection."""
        self._mark = self._begin
        self._own = Memory()
        self._others = self._live_before = _live()
        """The memory that frameworks had handed out to others than the test, and the same at `leave`."""

    def leave(self) -> None:
        """Called when a fixture of a wider scope begins: until `come_back`, changes do not belong to the test."""
        left = _measure()
        self._own = total(self._own, growth(self._mark, left))
        self._mark, self._live_before = left, _live()

    def come_back(self) -> None:
        """See `leave`. The fixture's garbage is collected, because it must not hide memory that the test keeps."""
        if _measure() != self._mark:
            self._mark = self.known = _measure(collected=True)
            self._others |= _live() - self._live_before

    def forget_release(self) -> None:
        """A fixture of a wider scope was torn down unannounced: the decrease was its memory."""
        now = _measure()
        over = growth(self._mark, now)
        self._own = total(self._own, Memory(max(over.device, 0), {n: max(b, 0) for n, b in over.allocators.items()}))
        self._mark = now

    def finish(self) -> None:
        """Called after the test's own fixtures. If memory grew, collects garbage, so that only live memory counts."""
        own = total(self._own, growth(self._mark, _measure()))
        if judge_leak(own, 1, frameworks=bool(allocators())) is not None:
            self.known = _measure(collected=True)
            own = total(self._own, growth(self._mark, self.known))
        self._own = own

    def judge(self, unfreed: int) -> tuple[Leak | None, list[str]]:
        """Return the leak, if there is one, and the part of it that frameworks still hold.

        Args:
            unfreed: see `judge_leak`.
        """
        loaded = allocators()
        leak = judge_leak(self._own, unfreed, frameworks=bool(loaded))
        if leak is None:
            return None, []
        held = [text for a in loaded for address, text in a.live().items() if address not in self._others]
        return leak, held


def _live() -> set[int]:
    return {address for allocator in allocators() for address in allocator.live()}


def _measure(*, settled: bool = False, collected: bool = False) -> Memory:
    """The memory in use. ``settled``: after waiting for devices and emptying caches; ``collected``: without garbage."""
    loaded = allocators()
    driver = mapped_driver()
    if collected:
        gc.collect()
    if settled or collected:
        if driver is not None:
            driver.synchronize()
        for allocator in loaded:
            allocator.settle()
    try:
        device = sum(driver.used_bytes().values()) if driver is not None else 0
    except DriverError:  # a broken context cannot answer; it is reported elsewhere
        device = 0
    return Memory(device, {allocator.name: allocator.used_bytes() for allocator in loaded})
