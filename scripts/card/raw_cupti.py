"""libcupti and libcuda called directly, through ctypes: no code of the collector's own client is involved.

The buffer callbacks run Python code, so that they are for some thousand records and not for millions. A callback takes
the interpreter's lock, which ctypes releases during every call, so that CUPTI's threads and the program's cannot wait
for each other.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUCCESS, MAX_LIMIT_REACHED = 0, 12
NO_FORCE, FORCE = 0, 1
"""Flags of cuptiActivityFlushAll."""
BUFFER_BYTES = 1 << 20
SECONDS_TO_COME_BACK = 1.0
"""For the buffers that libcupti has at the end."""
DRIVER_DOMAIN, RUNTIME_DOMAIN, RESOURCE_DOMAIN = 1, 2, 3
CUSTOM2 = 5
"""The kind of external correlation ids that the collector uses, too."""
PER_THREAD_BUFFERS, POOL_LIMIT = 9, 2
"""Attributes: one byte, and the largest number of device buffers of a context (size_t)."""

KINDS = (
    "", "MEMCPY", "MEMSET", "KERNEL", "DRIVER", "RUNTIME", "EVENT", "METRIC", "DEVICE", "CONTEXT", "CONCURRENT_KERNEL",
    "NAME", "MARKER", "MARKER_DATA", "SOURCE_LOCATOR", "GLOBAL_ACCESS", "BRANCH", "OVERHEAD", "CDP_KERNEL",
    "PREEMPTION", "ENVIRONMENT", "EVENT_INSTANCE", "MEMCPY2", "METRIC_INSTANCE", "INSTRUCTION_EXECUTION",
    "UNIFIED_MEMORY_COUNTER", "FUNCTION", "MODULE", "DEVICE_ATTRIBUTE", "SHARED_ACCESS", "PC_SAMPLING",
    "PC_SAMPLING_RECORD_INFO", "INSTRUCTION_CORRELATION", "OPENACC_DATA", "OPENACC_LAUNCH", "OPENACC_OTHER",
    "CUDA_EVENT", "STREAM", "SYNCHRONIZATION", "EXTERNAL_CORRELATION", "NVLINK", "INSTANTANEOUS_EVENT",
    "INSTANTANEOUS_EVENT_INSTANCE", "INSTANTANEOUS_METRIC", "INSTANTANEOUS_METRIC_INSTANCE", "MEMORY", "PCIE", "OPENMP",
    "INTERNAL_LAUNCH_API", "MEMORY2", "MEMORY_POOL", "GRAPH_TRACE", "JIT", "DEVICE_GRAPH_TRACE", "MEM_DECOMPRESS",
    "CONFIDENTIAL_COMPUTE_ROTATION", "GRAPH_HOST_NODE", "COMPUTE_ENGINE_CTX_SWITCH", "HOST_LAUNCH", "GREEN_CONTEXT",
)  # fmt: skip
"""CUPTI's names of the activity kinds by their number, up to CUDA 13.5."""

_Requested = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)
)
_Completed = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_Called = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)


def kind_number(name: str) -> int:
    """The number of an activity kind by CUPTI's name."""
    return KINDS.index(name)


def kind_name(number: int) -> str:
    """CUPTI's name of an activity kind, or its number if it is newer."""
    return KINDS[number] if 0 < number < len(KINDS) else f"kind {number}"


class NotOfferedError(Exception):
    """The library has no such function."""


class CallFailedError(Exception):
    """A call returned an error that its caller does not expect."""


class _Library:
    """The functions of a C library, by name, each with an int result."""

    what = ""

    def __init__(self, path: str) -> None:
        self.path = path
        self.library = ctypes.CDLL(path)

    def offers(self, function: str) -> bool:
        """Whether the library has the function."""
        return hasattr(self.library, function)

    def call(self, function: str, *arguments: Any) -> int:
        """The result of a call.

        Raises:
            NotOfferedError: there is no such function.
        """
        if not self.offers(function):
            raise NotOfferedError(f"{function} is not offered by this {self.what}")
        return int(getattr(self.library, function)(*arguments))

    def must(self, function: str, *arguments: Any) -> None:
        """Call a function that must succeed.

        Raises:
            NotOfferedError: there is no such function.
            CallFailedError: it returned an error.
        """
        result = self.call(function, *arguments)
        if result != SUCCESS:
            raise CallFailedError(f"{function} returned {self.name_of(result)}")

    def name_of(self, result: int) -> str:
        """The result's number and name."""
        raise NotImplementedError


class RawDriver(_Library):
    """The functions of libcuda."""

    what = "libcuda"

    def name_of(self, result: int) -> str:
        """The number and cuda.h's name."""
        text = ctypes.c_char_p()
        if not self.offers("cuGetErrorName") or self.library.cuGetErrorName(result, ctypes.byref(text)) != SUCCESS:
            return str(result)
        return f"{result} ({(text.value or b'').decode()})"


@dataclass(frozen=True)
class CompletedBuffer:
    """A buffer that libcupti has handed back."""

    address: int
    num_bytes: int
    """The bytes that contain records."""
    thread_id: int
    """Of the thread that called the completion callback, as gettid returns it."""
    thread_name: str
    phase: str
    """`RawCupti.phase` then."""


@dataclass(frozen=True)
class Record:
    """A record in a buffer that is kept."""

    kind: int
    address: int
    num_bytes: int
    """The distance to the next record or, of the last one, to the end of the buffer."""
    phase: str
    """The phase in which its buffer was completed."""

    def u8(self, offset: int) -> int:
        """The byte at an offset."""
        return ctypes.c_uint8.from_address(self.address + offset).value

    def u32(self, offset: int) -> int:
        """The 32-bit number at an offset."""
        return ctypes.c_uint32.from_address(self.address + offset).value

    def u64(self, offset: int) -> int:
        """The 64-bit number, or pointer, at an offset."""
        return ctypes.c_uint64.from_address(self.address + offset).value

    def text(self, offset: int) -> str:
        """The text that the pointer at an offset points to; empty for a null pointer."""
        value = ctypes.c_char_p(self.u64(offset)).value
        return "" if value is None else value.decode(errors="replace")


def current_thread_name() -> str:
    """The kernel's name of this thread."""
    return Path(f"/proc/self/task/{threading.get_native_id()}/comm").read_text().strip()


class RawCupti(_Library):
    """A client of libcupti that keeps every buffer. A process can have one."""

    what = "libcupti"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.phase = ""
        """What the program does at present; every buffer completed meanwhile has it."""
        self.completed: list[CompletedBuffer] = []
        self.requested_by: Counter[int] = Counter()
        """Thread id -> the number of buffers that it asked for."""
        self._memory: list[Any] = []
        self._callbacks: list[Any] = []
        self._out: dict[int, Any] = {}
        """Address -> the memory of a buffer that has not come back."""
        self._enabled: dict[str, None] = {}
        self._enabled_functions: list[tuple[str, int]] = []
        self._subscriber: ctypes.c_void_p | None = None

    def name_of(self, result: int) -> str:
        """The number and CUPTI's name without its prefix."""
        text = ctypes.c_char_p()
        if self.library.cuptiGetResultString(result, ctypes.byref(text)) != SUCCESS:
            return str(result)
        return f"{result} ({(text.value or b'').decode().removeprefix('CUPTI_ERROR_').removeprefix('CUPTI_')})"

    def version(self) -> int:
        """What cuptiGetVersion says."""
        version = ctypes.c_uint32()
        self.must("cuptiGetVersion", ctypes.byref(version))
        return version.value

    def set_flag(self, attribute: int, value: int) -> int:
        """Set an attribute of one byte; returns the result."""
        flag, num_bytes = ctypes.c_uint8(value), ctypes.c_size_t(1)
        return self.call("cuptiActivitySetAttribute", attribute, ctypes.byref(num_bytes), ctypes.byref(flag))

    def callback_name(self, record: Record) -> str:
        """The name of the function that a DRIVER or RUNTIME record is about."""
        name = ctypes.c_char_p()
        domain = DRIVER_DOMAIN if record.kind == kind_number("DRIVER") else RUNTIME_DOMAIN
        self.call("cuptiGetCallbackName", domain, record.u32(4), ctypes.byref(name))
        return (name.value or str(record.u32(4)).encode()).decode()

    def attribute(self, attribute: int, *, is_flag: bool = False) -> str:
        """An attribute's value, or the result if it cannot be read."""
        value = ctypes.c_uint8() if is_flag else ctypes.c_size_t()
        num_bytes = ctypes.c_size_t(ctypes.sizeof(value))
        result = self.call("cuptiActivityGetAttribute", attribute, ctypes.byref(num_bytes), ctypes.byref(value))
        return str(value.value) if result == SUCCESS else self.name_of(result)

    def register(self, buffer_bytes: int = BUFFER_BYTES) -> None:
        """Register the buffer callbacks, which must happen before a kind is enabled."""

        def requested(buffer: Any, size: Any, max_records: Any) -> None:
            memory = (ctypes.c_uint64 * (buffer_bytes // 8))()
            self._out[ctypes.addressof(memory)] = memory
            self._memory.append(memory)  # never freed: records are read at the end, and CUPTI may keep a buffer
            self.requested_by[threading.get_native_id()] += 1
            buffer[0], size[0], max_records[0] = ctypes.addressof(memory), buffer_bytes, 0

        def completed(_context: int, _stream: int, buffer: int, _size: int, num_bytes: int) -> None:
            thread_id = threading.get_native_id()
            self._out.pop(buffer, None)
            self.completed.append(CompletedBuffer(buffer, num_bytes, thread_id, current_thread_name(), self.phase))

        kept = _Requested(requested), _Completed(completed)
        self._callbacks.append(kept)
        self.must("cuptiActivityRegisterCallbacks", *kept)

    def enable(self, *kinds: str, disable: bool = False) -> dict[str, int]:
        """Enable kinds, or disable them; returns the result for each."""
        function = "cuptiActivityDisable" if disable else "cuptiActivityEnable"
        results = {name: self.call(function, kind_number(name)) for name in kinds}
        for name in (name for name, result in results.items() if result == SUCCESS):
            if disable:
                self._enabled.pop(name, None)
            else:
                self._enabled[name] = None
        return results

    def enable_function(self, domain: str, callback_id: int) -> int:
        """Enable the records of a single function of the ``Driver`` or the ``Runtime``; returns the result."""
        result = self.call(f"cuptiActivityEnable{domain}Api", callback_id, ctypes.c_uint8(1))
        if result == SUCCESS:
            self._enabled_functions.append((domain, callback_id))
        return result

    @property
    def outstanding(self) -> int:
        """The number of buffers that were requested and have not come back."""
        return len(self._out)

    def bytes_held(self) -> list[int]:
        """Of each buffer that has not come back the bytes up to the last that is not 0."""
        return [len(bytes(memory).rstrip(b"\0")) for memory in self._out.copy().values()]

    def end(self) -> dict[str, int]:
        """Disable all that was enabled, let every buffer come back, and unsubscribe; returns the result of each call.

        While a process ends the driver is called once more, when Python and with it the callbacks are gone.
        """
        results = self.enable(*self._enabled, disable=True)
        for domain, callback_id in self._enabled_functions:
            results[f"{domain} {callback_id}"] = self.call(
                f"cuptiActivityEnable{domain}Api", callback_id, ctypes.c_uint8(0)
            )
        self._enabled_functions.clear()
        if self.outstanding:
            results["cuptiActivityFlushAll"] = self.flush(FORCE)
        until = time.monotonic() + SECONDS_TO_COME_BACK
        while self.outstanding and time.monotonic() < until:  # another thread of libcupti's hands them back
            time.sleep(0.01)
        if self._subscriber is not None:
            results["cuptiUnsubscribe"] = self.call("cuptiUnsubscribe", self._subscriber)
            self._subscriber = None
        return results

    def collect(self, *kinds: str, buffer_bytes: int = BUFFER_BYTES) -> None:
        """Register the callbacks and enable kinds that must be accepted.

        Raises:
            CallFailedError: a kind is refused.
        """
        self.register(buffer_bytes)
        for name, result in self.enable(*kinds).items():
            if result != SUCCESS:
                raise CallFailedError(f"cuptiActivityEnable({name}) returned {self.name_of(result)}")

    def flush(self, flag: int = NO_FORCE) -> int:
        """Flush; returns the result."""
        return self.call("cuptiActivityFlushAll", flag)

    def records(self, *kinds: str) -> list[Record]:
        """All records of the completed buffers, or those of some kinds, as cuptiActivityGetNextRecord finds them."""
        wanted = {kind_number(name) for name in kinds}
        return [record for record in self._walk() if not wanted or record.kind in wanted]

    def _walk(self) -> Iterator[Record]:
        for buffer in list(self.completed):
            addresses = []
            record = ctypes.c_void_p()
            while True:
                result = self.call(
                    "cuptiActivityGetNextRecord", ctypes.c_void_p(buffer.address), ctypes.c_size_t(buffer.num_bytes),
                    ctypes.byref(record),
                )  # fmt: skip
                if result != SUCCESS or record.value is None:
                    break
                addresses.append(record.value)
            if buffer.num_bytes and result != MAX_LIMIT_REACHED:
                raise CallFailedError(f"cuptiActivityGetNextRecord returned {self.name_of(result)} inside a buffer")
            for address, end in itertools.pairwise([*addresses, buffer.address + buffer.num_bytes]):
                yield Record(ctypes.c_uint32.from_address(address).value, address, end - address, buffer.phase)

    def counts(self) -> dict[str, int]:
        """The number of records of each kind."""
        counted = Counter(record.kind for record in self.records())
        return {kind_name(kind): count for kind, count in sorted(counted.items())}

    def dropped(self) -> int:
        """The records that libcupti says it has dropped since the last call."""
        count = ctypes.c_size_t()
        self.must("cuptiActivityGetNumDroppedRecords", None, 0, ctypes.byref(count))
        return count.value

    def timestamp(self) -> int:
        """CUPTI's time now, in ns."""
        now = ctypes.c_uint64()
        self.must("cuptiGetTimestamp", ctypes.byref(now))
        return now.value

    def timestamps(self) -> dict[str, tuple[int, int]]:
        """Clock -> what cuptiGetTimestamp is ahead of it, and by how much that may be wrong (ns): best of 200."""
        found = {}
        for name in ("CLOCK_REALTIME", "CLOCK_MONOTONIC", "CLOCK_MONOTONIC_RAW"):
            clock = getattr(time, name)
            best: tuple[int, int] | None = None
            for _ in range(200):
                before, now, after = time.clock_gettime_ns(clock), self.timestamp(), time.clock_gettime_ns(clock)
                if best is None or after - before < best[1]:
                    best = now - (before + after) // 2, after - before
            assert best is not None
            found[name] = best
        return found

    def subscribe(self, called: Callable[[int, int, int], None] = lambda _domain, _id, _data: None) -> ctypes.c_void_p:
        """Subscribe with a callback, which gets the domain, the callback's id and the address of its data."""
        subscriber = ctypes.c_void_p()
        self.must("cuptiSubscribe", ctypes.byref(subscriber), self.callback(called), None)
        self._subscriber = subscriber
        return subscriber

    def unsubscribe(self) -> None:
        """End the subscription."""
        self.must("cuptiUnsubscribe", self._subscriber)
        self._subscriber = None

    def callback(self, called: Callable[[int, int, int], None] = lambda _domain, _id, _data: None) -> Any:
        """A function pointer for a subscription, which is kept alive."""

        def call(_user: int, domain: int, callback_id: int, data: int) -> None:
            called(domain, callback_id, data)

        pointer = _Called(call)
        self._callbacks.append(pointer)
        return pointer
