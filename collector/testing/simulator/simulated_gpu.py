"""A GPU without hardware: the simulated libcupti and libcuda, driven from Python.

>>> import collector
>>> from collector.testing import SimulatedGpu
>>> with SimulatedGpu(devices=2, cuda="12.4") as gpu:
...     with collector.trace() as step:
...         launched = gpu.launch("sgemm", stream=7, duration_ns=12_000, grid=(64, 1, 1), block=(256, 1, 1))
...         copied = gpu.memcpy("DtoH", 4096, stream=7)
...         gpu.synchronize()
>>> len(step.recording.kernels), launched, copied
(1, 1, 2)

Time is simulated too: it advances only by the duration of the simulated calls, so that the same calls give the same
durations. Kernels of one stream run one after another, streams run in parallel, and a kernel has ended only once the
clock has passed its end, for which :meth:`SimulatedGpu.synchronize` waits.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, ClassVar, Literal, Protocol

from collector.errors import CollectorError
from collector.testing.simulator.operations import (
    COPY_KINDS,
    JIT_OPERATIONS,
    KERNEL,
    LAUNCHES,
    MEMCPY,
    MEMORY_KINDS,
    MEMSET,
    NO_PEER_ACCESS,
    PEER_MEMCPY,
    CopyKind,
    JitOperation,
    Launch,
    MemoryKind,
    Shape,
    fill_replayed,
    memory_kinds,
    number_of,
    shape_of,
)
from collector.testing.simulator.simulated_graph import Capture, SimulatedGraph
from collector.testing.simulator.simulator_library import (
    COUNTS,
    LATENCIES,
    Activity,
    Config,
    Counts,
    Latency,
    library_path,
    load,
)
from collector.testing.simulator.simulator_reports import Call, CallbackLatency, Fault, Misuse, Statistics
from collector.text.wording import counted
from collector.tracing.graph_names import forget_graphs

LIBRARY_VARIABLES = ("COLLECTOR_LIBCUPTI", "COLLECTOR_LIBCUDA")

_MOST_DEVICES = 64
_MAX_BYTES_PER_NS = 20  # of a copy whose duration is not given


def _check_amount(name: str, amount: int) -> None:
    if not 0 <= amount < 1 << 62:
        raise CollectorError(f"{name} is {amount}", "Give a number from 0 to 2**62")


def _cuda_number(version: str) -> int:
    """12040 for ``"12.4"``."""
    major, _, minor = str(version).partition(".")
    if not (major.isdigit() and minor.isdigit()):
        raise CollectorError(f"{version!r} is not a CUDA version", 'Write it as "12.4"')
    return int(major) * 1000 + int(minor) * 10


class Watcher(Protocol):
    """A function that is called when a simulated GPU opens or closes, for example by a test runner that traces it."""

    def __call__(self, gpu: SimulatedGpu, opens: bool) -> AbstractContextManager[None]:
        """The context in which ``gpu`` is opened, or else closed."""


class SimulatedGpu:
    """GPUs without hardware, for tests of programs that trace; a context manager.

    Inside the block ``COLLECTOR_LIBCUPTI`` and ``COLLECTOR_LIBCUDA`` name the simulator, so that
    :func:`collector.trace` records from it. A process can have one open at a time. Methods may be called from any
    thread; each is a call that the program makes on that thread.

    Args:
        devices: The number of GPUs; with 0, ``cuInit`` returns "no device".
        cuda: The CUPTI version to simulate, ``"12.0"`` to ``"13.5"``: its record layouts, functions and behaviour.
        api_version: A patch release of it by its ``cuptiGetVersion`` number (``130000``); None: the newest.
        driver: The driver's CUDA version; None: the same as ``cuda``.
        start_ns: The first time of the simulated clock; None: the system's time.
        api_call_ns: The duration of one CUDA call.
        launch_latency_ns: From the end of a launch to the earliest start on the device.
        gap_ns: Between two activities of one stream.
        real_time: Whether the clock also advances with real time.
        deliver: Returns full buffers to the client: the simulator's ``"worker"`` thread, or the ``"caller"`` that
            filled them.
        abort_on_fatal: End the process where the real library would crash, instead of counting a misuse.
        name: The devices' name.
    """

    _lock = threading.Lock()
    _active: SimulatedGpu | None = None
    _watcher: ClassVar[Watcher | None] = None

    def __init__(
        self,
        *,
        devices: int = 1,
        cuda: str = "13.0",
        api_version: int | None = None,
        driver: str | None = None,
        start_ns: int | None = None,
        api_call_ns: int = 4_000,
        launch_latency_ns: int = 2_000,
        gap_ns: int = 500,
        real_time: bool = False,
        deliver: Literal["worker", "caller"] = "worker",
        abort_on_fatal: bool = False,
        name: str = "Simulated GPU",
    ) -> None:
        if not 0 <= devices <= _MOST_DEVICES:
            raise CollectorError(f"devices is {devices}", f"Simulate 0 to {_MOST_DEVICES}")
        self.devices = devices
        self.cuda = cuda
        self._config = Config(
            cuda=_cuda_number(cuda),
            api_version=api_version or 0,
            driver_version=0 if driver is None else _cuda_number(driver),
            devices=devices,
            start_ns=-1 if start_ns is None else start_ns,
            api_call_ns=api_call_ns,
            launch_latency_ns=launch_latency_ns,
            gap_ns=gap_ns,
            follow_real_time=real_time,
            deliver_from_caller=deliver == "caller",
            abort_on_fatal=abort_on_fatal,
            device_name=name.encode(),
        )
        self._environment: dict[str, str | None] = {}
        self._loaded: ctypes.CDLL | None = None

    @staticmethod
    def current() -> SimulatedGpu | None:
        """The simulated GPU that is open in this process, or None."""
        return SimulatedGpu._active

    @staticmethod
    def watch(watcher: Watcher | None) -> Watcher | None:
        """Let ``watcher(gpu, opens)`` provide the context of each opening and closing; returns the previous one."""
        before, SimulatedGpu._watcher = SimulatedGpu._watcher, watcher
        return before

    def __enter__(self) -> SimulatedGpu:
        with self._watched(opens=True):
            self._open()
        return self

    def _watched(self, *, opens: bool) -> AbstractContextManager[None]:
        watcher = SimulatedGpu._watcher
        return nullcontext() if watcher is None else watcher(self, opens)

    def _open(self) -> None:
        path = library_path()
        library = load(str(path))
        with SimulatedGpu._lock:
            if SimulatedGpu._active is not None:
                raise CollectorError("a SimulatedGpu is open already", "Close it first: a process can hold one")
            if library.sim_open(self._config) != 0:
                raise CollectorError(
                    f"the simulator knows no CUDA {self.cuda}"
                    + (f" with CUPTI API version {self._config.api_version}" if self._config.api_version else ""),
                    "It simulates 12.0 to 12.6, 12.8, 12.9 and 13.0 to 13.5",
                )
            SimulatedGpu._active = self
        forget_graphs()
        # A child process that opens the library meets a GPU of the same versions.
        versions = {
            "COLLECTOR_SIMULATED_CUDA": str(self._config.cuda),
            "COLLECTOR_SIMULATED_DRIVER": str(self._config.driver_version),
        }
        variables = {**dict.fromkeys(LIBRARY_VARIABLES, str(path)), **versions}
        self._environment = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        self._loaded = library

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._watched(opens=False):
            self._close()

    def _close(self) -> None:
        self._library.sim_close()
        self._loaded = None
        for name, value in self._environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        with SimulatedGpu._lock:
            SimulatedGpu._active = None

    @property
    def _library(self) -> ctypes.CDLL:
        if self._loaded is None:
            raise CollectorError("the SimulatedGpu is not open", "Use it inside its with block")
        return self._loaded

    def _check_device(self, device: int) -> None:
        if not 0 <= device < self.devices:
            raise CollectorError(f"there is no device {device}", f"The simulator was opened with {self.devices}")

    def _execute(self, activity: Activity, duration_ns: int, count: int = 1) -> int:
        if count < 1:
            raise CollectorError(f"count is {count}", "Launch at least once")
        _check_amount("duration_ns", duration_ns)
        correlation = int(self._library.sim_execute(activity, duration_ns, count))
        if correlation == 0:
            raise CollectorError(f"context {activity.context} is not one of device {activity.device}")
        return correlation

    # -- The program's operations ------------------------------------------------------------------------------------

    def launch(
        self,
        name: str,
        *,
        stream: int = 7,
        duration_ns: int = 10_000,
        device: int = 0,
        context: int | None = None,
        grid: Shape = (1, 1, 1),
        block: Shape = (128, 1, 1),
        cluster: Shape = (1, 1, 1),
        registers_per_thread: int = 32,
        static_shared_bytes: int = 0,
        dynamic_shared_bytes: int = 0,
        cooperative: bool = False,
        launch: Launch = "both",
        count: int = 1,
    ) -> int:
        """Launch a kernel, or the same kernel ``count`` times (in bulk: millions per second).

        Returns:
            The correlation id of the (first) launch.

        Raises:
            CollectorError: the device does not exist, a shape is not three numbers, or the simulator is not open.
        """
        self._check_device(device)
        activity = Activity(
            name=name.encode(),
            type=KERNEL,
            launch=number_of(LAUNCHES, launch, "way to launch"),
            device=device,
            context=context or 0,
            stream=stream,
            grid=shape_of("grid", grid),
            block=shape_of("block", block),
            cluster=shape_of("cluster", cluster),
            registers_per_thread=registers_per_thread,
            static_shared_bytes=static_shared_bytes,
            dynamic_shared_bytes=dynamic_shared_bytes,
            launch_type=1 if cooperative else 0,
        )
        return self._execute(activity, duration_ns, count)

    def memcpy(
        self,
        kind: CopyKind,
        num_bytes: int,
        *,
        stream: int = 7,
        duration_ns: int | None = None,
        device: int = 0,
        context: int | None = None,
        src: MemoryKind | None = None,
        dst: MemoryKind | None = None,
        asynchronous: bool = True,
        launch: Launch = "both",
        count: int = 1,
    ) -> int:
        """Copy within one device, or between it and the host.

        Args:
            kind: The direction.
            num_bytes: The size.
            stream: The stream's CUPTI id.
            duration_ns: The duration; None: 1 µs plus 1 ns per 20 bytes.
            device: The device's ordinal.
            context: The context's id; None: the primary one.
            src: Kind of the memory read; None: by direction, with pageable host memory.
            dst: Kind of the memory written; likewise.
            asynchronous: Whether the call returns before the copy has ended.
            launch: The API through which it is called.
            count: The number of copies.

        Returns:
            The correlation id of the (first) call.
        """
        self._check_device(device)
        src_kind, dst_kind = memory_kinds(kind, src, dst)
        activity = Activity(
            type=MEMCPY,
            launch=number_of(LAUNCHES, launch, "way to launch"),
            device=device,
            context=context or 0,
            stream=stream,
            num_bytes=num_bytes,
            copy_kind=number_of(COPY_KINDS, kind, "copy kind"),
            src_kind=src_kind,
            dst_kind=dst_kind,
            is_async=asynchronous,
        )
        return self._execute(activity, _copy_ns(num_bytes, duration_ns), count)

    def memcpy_peer(
        self,
        src_device: int,
        dst_device: int,
        num_bytes: int,
        *,
        stream: int = 7,
        duration_ns: int | None = None,
        launch: Launch = "both",
        access: bool = True,
    ) -> int:
        """Copy from one device to another; returns the call's correlation id.

        CUPTI records it (MEMCPY2) only while both copy kinds are enabled. Without ``access`` of the devices to each
        other's memory it goes through the host: CUPTI records a copy on each device (MEMCPY), DtoH and HtoD.
        """
        self._check_device(src_device)
        self._check_device(dst_device)
        activity = Activity(
            type=PEER_MEMCPY,
            launch=number_of(LAUNCHES, launch, "way to launch") | (0 if access else NO_PEER_ACCESS),
            device=src_device,
            stream=stream,
            num_bytes=num_bytes,
            copy_kind=COPY_KINDS["PtoP"],
            src_kind=MEMORY_KINDS["device"],
            dst_kind=MEMORY_KINDS["device"],
            src_device=src_device,
            dst_device=dst_device,
            is_async=1,
        )
        return self._execute(activity, _copy_ns(num_bytes, duration_ns))

    def memset(
        self,
        num_bytes: int,
        *,
        value: int = 0,
        stream: int = 7,
        duration_ns: int = 1_000,
        device: int = 0,
        context: int | None = None,
        asynchronous: bool = True,
        launch: Launch = "both",
    ) -> int:
        """Fill device memory; returns the call's correlation id."""
        self._check_device(device)
        _check_amount("num_bytes", num_bytes)
        activity = Activity(
            type=MEMSET,
            launch=number_of(LAUNCHES, launch, "way to launch"),
            device=device,
            context=context or 0,
            stream=stream,
            num_bytes=num_bytes,
            value=value,
            memory_kind=MEMORY_KINDS["device"],
            is_async=asynchronous,
        )
        return self._execute(activity, duration_ns)

    def launch_graph(
        self,
        nodes: Sequence[str | tuple[str, int]],
        *,
        stream: int = 7,
        device: int = 0,
        graph_id: int | None = None,
        launch: Launch = "both",
    ) -> int:
        """Launch a CUDA graph of kernels that was built before CUPTI was attached; they share one correlation id.

        Returns that id. `capture` builds graphs of which CUPTI knows.

        Args:
            nodes: The kernels in their order, each a name or ``(name, duration_ns)``.
            stream: The stream's CUPTI id.
            device: The device's ordinal.
            graph_id: The executable graph's id; None: a new id. An id that was used before launches that graph again.
            launch: The API through which it is called.
        """
        self._check_device(device)
        if graph_id is None:
            graph_id = int(self._library.sim_new_graph_id())
        pairs = [(node, 10_000) if isinstance(node, str) else node for node in nodes]
        activities = (Activity * len(pairs))()
        for activity, (name, _) in zip(activities, pairs, strict=True):
            activity.name = name.encode()
            activity.type = KERNEL
            activity.launch = number_of(LAUNCHES, launch, "way to launch")
            activity.device = device
            activity.stream = stream
            activity.grid[:] = activity.cluster[:] = (1, 1, 1)
            activity.block[:] = (128, 1, 1)
        durations = (ctypes.c_int64 * len(pairs))(*(duration for _, duration in pairs))
        return int(self._library.sim_launch_graph(activities, durations, len(pairs), graph_id))

    def capture(self, *, stream: int = 7, into: SimulatedGraph | None = None) -> Capture:
        """Capture the launches and copies that this thread makes in a with block, whose value is the graph.

        They run when an executable graph, of ``graph.instantiate()``, is launched.

        Args:
            stream: The stream's CUPTI id.
            into: The graph to which they are added; None: a new one.
        """
        return Capture(self._library, stream, into)

    def synchronize(self, *, device: int | None = None, stream: int | None = None, launch: Launch = "both") -> None:
        """Wait until a stream, a device or (by default) every device has done its work."""
        devices = range(self.devices) if device is None and stream is None else [device or 0]
        for ordinal in devices:
            self._check_device(ordinal)
            self._library.sim_synchronize(
                ordinal, -1 if stream is None else stream, number_of(LAUNCHES, launch, "way to launch")
            )

    def query(self, *, stream: int = 7, device: int = 0) -> bool:
        """Return, without waiting, whether a stream has finished its work."""
        self._check_device(device)
        return bool(self._library.sim_query(device, stream))

    def record_event(self, *, stream: int = 7, device: int = 0, event: int = 0) -> int:
        """Record an event after the stream's current work, by default a new one; returns the event.

        Raises:
            CollectorError: there is no such event.
        """
        self._check_device(device)
        recorded = int(self._library.sim_record_event(device, stream, event))
        if recorded == 0:
            raise CollectorError(f"there is no event {event}")
        return recorded

    def wait_event(self, event: int, *, stream: int = 7, device: int = 0) -> None:
        """Let a stream's later work wait for an event.

        Raises:
            CollectorError: the event was never recorded.
        """
        self._check_device(device)
        if self._library.sim_wait_event(device, stream, event) != 0:
            raise CollectorError(f"there is no event {event}")

    def synchronize_event(self, event: int) -> None:
        """Wait until an event has completed.

        Raises:
            CollectorError: the event was never recorded.
        """
        if self._library.sim_synchronize_event(event) != 0:
            raise CollectorError(f"there is no event {event}")

    def api_call(self, runtime: str = "", driver: str = "") -> int:
        """Make an API call without effect on the device, such as ``"cudaGetDevice_v3020"``.

        Args:
            runtime: A runtime function by CUPTI's name, ``""`` for none.
            driver: The driver function called (inside it), ``""`` for none.

        Returns:
            The call's correlation id.

        Raises:
            CollectorError: the simulator does not know the function.
        """
        correlation = int(self._library.sim_api_call(runtime.encode(), driver.encode()))
        if correlation == 0:
            raise CollectorError(f"the simulator knows no API call {runtime or driver!r}")
        return correlation

    def malloc(
        self,
        num_bytes: int,
        *,
        device: int = 0,
        kind: Literal["device", "managed", "pinned"] = "device",
        stream: int | None = None,
        launch: Launch = "both",
    ) -> int:
        """Allocate memory; returns its address, which must not be accessed.

        Args:
            num_bytes: The size.
            device: The device's ordinal.
            kind: Device memory, managed memory (which is on the device here), or page-locked host memory.
            stream: Allocate from the device's pool, in the order of this stream (``cudaMallocAsync``); None: at once.
            launch: The API through which it is called.

        Raises:
            CollectorError: the device's 80 GiB are used up, or memory of another kind than device memory was requested
                from a pool.
        """
        self._check_device(device)
        _check_amount("num_bytes", num_bytes)
        if stream is not None and kind != "device":
            raise CollectorError(f"{kind} memory is not allocated in the order of a stream")
        number, where = number_of(MEMORY_KINDS, kind, "memory kind"), -1 if stream is None else stream
        address = int(
            self._library.sim_allocate(device, num_bytes, number, where, number_of(LAUNCHES, launch, "way to launch"))
        )
        if address == 0:
            raise CollectorError(f"device {device} has no {counted('{} byte[|s]', num_bytes)} of memory left")
        return address

    def free(self, address: int, *, stream: int | None = None, launch: Launch = "both") -> None:
        """Free memory that `malloc` allocated; with a ``stream``, in its order (``cudaFreeAsync``).

        Raises:
            CollectorError: nothing is allocated at ``address``.
        """
        way = number_of(LAUNCHES, launch, "way to launch")
        if self._library.sim_free(address, -1 if stream is None else stream, way) != 0:
            raise CollectorError(f"nothing is allocated at {address:#x}")

    def overhead(self, kind: int, duration_ns: int = 1_000) -> None:
        """Spend time in CUPTI or the driver, as an overhead record of a CUpti_ActivityOverheadKind."""
        self._library.sim_overhead(kind, duration_ns)

    def jit(
        self, operation: JitOperation = "compile", duration_ns: int = 1_000_000, *, device: int = 0, num_bytes: int = 0
    ) -> None:
        """Load a module that the driver compiles from PTX, or finds in its cache, or writes to it.

        Args:
            operation: ``compile``, ``load`` or ``store``: what the driver does within the call.
            duration_ns: The duration.
            device: The ordinal of the device for which the code is.
            num_bytes: The size of the code in the cache.
        """
        self._check_device(device)
        number = number_of(JIT_OPERATIONS, operation, "operation of the JIT compiler")
        self._library.sim_jit(number, device, num_bytes, duration_ns)

    def create_context(self, device: int = 0) -> int:
        """Create a further context on a device; returns its id, the ``context`` of operations."""
        self._check_device(device)
        return int(self._library.sim_create_context(device))

    @property
    def context_error(self) -> int:
        """The CUresult of every call since a launch has failed; 0: none has."""
        return int(self._library.sim_context_error())

    def reload_module(self, name: str, successor: str) -> None:
        """Unload kernel ``name`` and load ``successor`` in its place: CUPTI reuses the name's address.

        Must be called when all records of ``name`` are delivered, for example between two traces.

        Raises:
            CollectorError: ``name`` was never launched, or ``successor`` is longer than 255 bytes.
        """
        if self._library.sim_reload_module(name.encode(), successor.encode()) != 0:
            raise CollectorError(f"{name!r} cannot be replaced by {successor!r} where it is")

    def replay(
        self,
        *,
        kernels: Iterable[Mapping[str, Any]] = (),
        memcpys: Iterable[Mapping[str, Any]] = (),
        memsets: Iterable[Mapping[str, Any]] = (),
        launch: Launch = "both",
    ) -> int:
        """Emit recorded activities unchanged, in the order of their ends; returns their number.

        Each is a mapping with ``start_ns`` and ``end_ns``, and optionally:

        * all: ``device`` (0), ``stream`` (7), ``context`` (None), ``correlation`` (the next), ``graph_id``,
          ``graph_node_id``, ``launch_start_ns`` and ``launch_end_ns`` (by default before the activity), ``launch``;
        * kernels: ``name``, ``grid``, ``block``, ``cluster``, ``registers_per_thread``, ``static_shared_bytes``,
          ``dynamic_shared_bytes``, ``local_bytes_per_thread``;
        * memcpys: ``kind``, ``num_bytes``, ``src``, ``dst``, ``asynchronous``; with ``kind`` ``"PtoP"`` also
          ``src_device`` and ``dst_device``;
        * memsets: ``num_bytes``, ``value``, ``asynchronous``.

        The first activity of each correlation id comes with its launching API call, made through ``launch``. Open the
        simulator with a ``start_ns`` before all activities; otherwise they lie before the session.

        Raises:
            CollectorError: an activity contains an unknown key, or lacks ``start_ns`` or ``end_ns``.
        """
        rows = [
            *((KERNEL, row) for row in kernels),
            *((MEMCPY, row) for row in memcpys),
            *((MEMSET, row) for row in memsets),
        ]
        for _, row in rows:
            if "start_ns" not in row or "end_ns" not in row:
                raise CollectorError(f"an activity to replay lacks start_ns or end_ns: {dict(row)!r}")
        rows.sort(key=lambda item: (item[1]["end_ns"], item[1]["start_ns"]))
        activities = (Activity * len(rows))()
        called: set[int] = set()
        for activity, (kind, row) in zip(activities, rows, strict=True):
            fill_replayed(activity, kind, row, launch)
            if activity.correlation in called:
                activity.launch = 0
            elif activity.correlation != 0 and activity.launch != 0:
                called.add(activity.correlation)
        self._library.sim_replay(activities, len(rows))
        return len(rows)

    # -- Time and trouble ----------------------------------------------------------------------------------------------

    @property
    def now_ns(self) -> int:
        """The simulated time."""
        return int(self._library.sim_now())

    def advance(self, ns: int) -> None:
        """Let time pass without GPU calls."""
        _check_amount("ns", ns)
        self._library.sim_advance(ns)

    def count_ticks(self, per_us: int = 2_500, registrations: int = 1) -> None:
        """Change CUPTI's clock to one of ticks, as PyTorch's profiler does when it is used in the process.

        From the second registration of such a clock on, the first kernels after an enabled kind have times of CUPTI's
        own clock instead, one for each registration (pytorch#192021).

        Args:
            per_us: The ticks of a microsecond.
            registrations: How often the clock is registered.
        """
        self._library.sim_count_ticks(per_us, registrations)

    def wait_until_idle(self, timeout_ms: int = 5_000) -> None:
        """Wait (in real time) until the simulator's thread has returned every full buffer.

        Raises:
            CollectorError: the ``timeout_ms`` have passed.
        """
        if self._library.sim_wait_until_idle(timeout_ms) != 0:
            raise CollectorError(f"the simulator still held full buffers after {timeout_ms} ms")

    def inject(
        self, fault: str, *, count: int | None = None, after: int = 0, value: int | None = None, target: str = ""
    ) -> None:
        """Arm a fault; :meth:`faults` lists them.

        Args:
            fault: Its name.
            count: The number of times that it strikes; None: once, or permanently if the table lists it as lasting; -1:
                permanently.
            after: The number of occasions that pass before.
            value: Its meaning is in the table; None: the table's default.
            target: For ``"error"`` the function that fails, for ``"second_subscriber"`` the other's name.

        Raises:
            CollectorError: the fault or the function is unknown.
        """
        table = {row.name: row for row in self.faults()}
        if fault not in table:
            raise CollectorError(f"the simulator knows no fault {fault!r}", f"One of: {', '.join(table)}")
        row = table[fault]
        if fault == "error" and target not in self._functions():
            raise CollectorError(f"the simulator exports no function {target!r}", "Name the one to fail as target")
        times = count if count is not None else -1 if row.lasting else 1
        chosen = row.default_value if value is None else value
        self._library.sim_inject(fault.encode(), times, after, chosen, target.encode())

    def return_kept_buffers(self) -> None:
        """Return the activity buffers withheld by the fault ``kept_buffer`` to the client, on the calling thread."""
        self._library.sim_return_kept_buffers()

    def clear_faults(self) -> None:
        """Disarm every fault."""
        self._library.sim_clear_faults()

    def faults(self) -> list[Fault]:
        """The faults that can be injected, with the number of times that each has struck."""
        rows: list[Fault] = []
        meaning, description = ctypes.c_char_p(), ctypes.c_char_p()
        value, lasting, struck = ctypes.c_int64(), ctypes.c_int(), ctypes.c_uint64()
        while name := self._library.sim_fault(len(rows), meaning, value, lasting, description, struck):
            rows.append(
                Fault(
                    name.decode(),
                    (description.value or b"").decode(),
                    (meaning.value or b"").decode(),
                    value.value,
                    bool(lasting.value),
                    struck.value,
                )
            )
        return rows

    def misuses(self) -> dict[str, Misuse]:
        """All misuses of CUPTI that are noticed, by name, with the number of times that the client made each."""
        rows: dict[str, Misuse] = {}
        description, fatal, counted = ctypes.c_char_p(), ctypes.c_int(), ctypes.c_uint64()
        while name := self._library.sim_misuse(len(rows), description, fatal, counted):
            rows[name.decode()] = Misuse((description.value or b"").decode(), bool(fatal.value), counted.value)
        return rows

    def misuse(self) -> dict[str, int]:
        """The misuses of CUPTI by the client, with their number; empty if there are none."""
        return {name: row.count for name, row in self.misuses().items() if row.count}

    def _functions(self) -> dict[str, int]:
        called: dict[str, int] = {}
        count = ctypes.c_uint64()
        while name := self._library.sim_function(len(called), count):
            called[name.decode()] = count.value
        return called

    def calls(self) -> list[Call]:
        """The client's CUPTI calls in order, without those made per record or per operation."""
        logged: list[Call] = []
        argument, result = ctypes.c_uint32(), ctypes.c_uint32()
        while name := self._library.sim_logged_call(len(logged), argument, result):
            logged.append(Call(name.decode(), argument.value, result.value))
        return logged

    def statistics(self) -> Statistics:
        """The numbers of records, buffers and calls so far."""
        counts = Counts()
        self._library.sim_counts(counts)
        written = {kind: int(self._library.sim_records_of_kind(kind)) for kind in range(60)}
        return Statistics(
            **{name: getattr(counts, name) for name in COUNTS},
            records={kind: count for kind, count in written.items() if count},
            calls={name: count for name, count in self._functions().items() if count},
            request_latency=self._latency(0),
            complete_latency=self._latency(1),
        )

    def _latency(self, which: int) -> CallbackLatency:
        latency = Latency()
        self._library.sim_callback_latency(which, latency)
        return CallbackLatency(**{name: getattr(latency, name) for name in LATENCIES})


def _copy_ns(num_bytes: int, duration_ns: int | None) -> int:
    _check_amount("num_bytes", num_bytes)
    return 1_000 + num_bytes // _MAX_BYTES_PER_NS if duration_ns is None else duration_ns
