"""Device memory that a test took and did not give back.

One witness is not enough: another process may take memory, an allocator keeps some for later, libraries load kernels at
their first use. A test fails only if the device's memory in use grew *and* a second witness says the same: the
allocator of the framework that is loaded (PyTorch, CuPy) or, without one, the allocations that were recorded. Both
must have grown from the test's beginning to the end of its own teardown. What fixtures of a wider scope take and give
back meanwhile is left out, so it is nobody's leak and hides none.

Garbage is collected only where memory grew: in a large program that takes longer than most tests.
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
    """Bytes in use at one moment."""

    device: int = 0
    """On all devices that the program uses, by whatever process."""
    allocators: Mapping[str, int] = field(default_factory=dict)
    """Framework -> bytes that it has given to its users."""


@dataclass(frozen=True)
class Leak:
    """Memory that one test did not give back."""

    device: int
    """Bytes by which the device's memory in use grew."""
    allocators: Mapping[str, int]
    """Bytes by which each framework's did, where it did."""
    unfreed: int
    """The number of recorded allocations that were not freed."""

    def message(self, where: str, held: Sequence[str]) -> str:
        """The text of a failing test; ``held`` names what was not freed, a line each."""
        grown = [f"{name}'s allocator by {show(num_bytes, 'bytes')}" for name, num_bytes in self.allocators.items()]
        if not grown:
            grown = [counted("and {} allocation[|s] [was|were] not freed", self.unfreed)]
        lines = [f"{where} leaks GPU memory: the device's grew by {show(self.device, 'bytes')}, {', '.join(grown)}"]
        if held:
            lines += ["", "Allocated in the test and not freed:", *(f"  {text}" for text in held)]
        return "\n".join(lines)


def growth(before: Memory, after: Memory) -> Memory:
    """By how much each figure changed; negative where it shrank. Pure."""
    allocators = {name: num_bytes - before.allocators.get(name, 0) for name, num_bytes in after.allocators.items()}
    return Memory(after.device - before.device, allocators)


def total(one: Memory, other: Memory) -> Memory:
    """The sum of two growths. Pure."""
    names = one.allocators.keys() | other.allocators.keys()
    allocators = {name: one.allocators.get(name, 0) + other.allocators.get(name, 0) for name in sorted(names)}
    return Memory(one.device + other.device, allocators)


def judge_leak(own: Memory, unfreed: int, *, frameworks: bool) -> Leak | None:
    """Return the leak that both witnesses speak of, None where one does not. Pure.

    Args:
        own: by how much memory grew in the test, but for what fixtures of a wider scope did.
        unfreed: how many of the test's recorded allocations were not freed.
        frameworks: whether a framework's allocator could be asked; then these do not matter.
    """
    allocators = {name: num_bytes for name, num_bytes in own.allocators.items() if num_bytes > 0}
    second = bool(allocators) if frameworks else unfreed > 0
    return Leak(own.device, allocators, unfreed) if own.device > 0 and second else None


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
    """Measures what one test adds to the memory in use: from when it is made to `finish`, but for wider fixtures."""

    def __init__(self, known: Memory | None = None) -> None:
        """Begin. ``known``: what was in use when garbage was last collected; if that is in use now, there is none."""
        self._begin = _measure(settled=True)
        if self._begin != known:
            self._begin = _measure(collected=True)
        self.known = self._begin
        """The memory in use when garbage was last collected."""
        self._mark = self._begin
        self._own = Memory()
        self._others = self._live_before = _live()
        """The memory that frameworks had given to others than the test; that at `leave`."""

    def leave(self) -> None:
        """A fixture of a wider scope begins: until `come_back`, changes are not the test's."""
        left = _measure()
        self._own = total(self._own, growth(self._mark, left))
        self._mark, self._live_before = left, _live()

    def come_back(self) -> None:
        """See `leave`. What the fixture left as garbage must not hide what the test keeps: it is collected."""
        if _measure() != self._mark:
            self._mark = self.known = _measure(collected=True)
            self._others |= _live() - self._live_before

    def forget_release(self) -> None:
        """A fixture of a wider scope has been torn down unannounced: what became less was its memory."""
        now = _measure()
        over = growth(self._mark, now)
        self._own = total(self._own, Memory(max(over.device, 0), {n: max(b, 0) for n, b in over.allocators.items()}))
        self._mark = now

    def finish(self) -> None:
        """The test's own fixtures are torn down. Collect garbage if memory grew: only what is left then counts."""
        own = total(self._own, growth(self._mark, _measure()))
        if judge_leak(own, 1, frameworks=bool(allocators())) is not None:
            self.known = _measure(collected=True)
            own = total(self._own, growth(self._mark, self.known))
        self._own = own

    def judge(self, unfreed: int) -> tuple[Leak | None, list[str]]:
        """Return the leak, if there is one, and what frameworks still hold of it.

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
    """The memory in use; ``settled``: when devices are done and caches empty, ``collected``: and garbage collected."""
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
    except DriverError:  # a broken context has no answer; that it is broken is reported elsewhere
        device = 0
    return Memory(device, {allocator.name: allocator.used_bytes() for allocator in loaded})
