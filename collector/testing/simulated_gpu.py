"""A GPU that is not there: the simulated libcupti and libcuda, driven from Python.

>>> import collector
>>> from collector.testing import SimulatedGpu
>>> with SimulatedGpu(devices=2, cuda="12.4") as gpu:
...     with collector.trace() as step:
...         gpu.launch("sgemm", stream=7, duration_ns=12_000, grid=(64, 1, 1), block=(256, 1, 1))
...         gpu.memcpy("DtoH", 4096, stream=7)
...         gpu.synchronize()
>>> len(step.recording.kernels)
1

Time is simulated too: it moves only as far as the simulated calls take, so that the same calls give the same
durations. Kernels of one stream run one after another, streams run side by side, and a kernel is over only once the
clock has passed its end, which :meth:`SimulatedGpu.synchronize` waits for.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, get_args

from collector.errors import CollectorError

CopyKind = Literal["Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"]
"""Direction of a copy, in CUPTI's order."""

MemoryKind = Literal["unknown", "pageable", "pinned", "device", "array", "managed", "device_static", "managed_static"]
"""Kind of memory at an end of a copy, in CUPTI's order."""

Launch = Literal["both", "runtime", "driver", "none"]
"""Through which API an operation is called: the runtime's call makes a nested driver call, ``"both"``."""

Shape = tuple[int, int, int]

LIBRARY_NAME = "libcollector_simulator.so"
LIBRARY_VARIABLES = ("COLLECTOR_LIBCUPTI", "COLLECTOR_LIBCUDA")

_COPY_KINDS: dict[str, int] = {name: value for value, name in enumerate(get_args(CopyKind))}
_MEMORY_KINDS: dict[str, int] = {name: value for value, name in enumerate(get_args(MemoryKind))}
_LAUNCHES: dict[str, int] = {"none": 0, "runtime": 1, "driver": 2, "both": 3}
_MEMORY_BY_LETTER = {"H": "pageable", "D": "device", "A": "array", "P": "device"}
_KERNEL, _MEMCPY, _MEMSET, _PEER_MEMCPY = range(4)
_MAX_BYTES_PER_NS = 20  # of a copy whose duration is not given


class _Config(ctypes.Structure):
    _fields_ = (
        ("cuda", ctypes.c_int32),
        ("api_version", ctypes.c_uint32),
        ("driver_version", ctypes.c_int32),
        ("devices", ctypes.c_int32),
        ("start_ns", ctypes.c_int64),
        ("api_call_ns", ctypes.c_int64),
        ("launch_latency_ns", ctypes.c_int64),
        ("gap_ns", ctypes.c_int64),
        ("follow_real_time", ctypes.c_int32),
        ("deliver_from_caller", ctypes.c_int32),
        ("abort_on_fatal", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("device_name", ctypes.c_char_p),
    )


class _Activity(ctypes.Structure):
    _fields_ = (
        ("start_ns", ctypes.c_int64),
        ("end_ns", ctypes.c_int64),
        ("launch_start_ns", ctypes.c_int64),
        ("launch_end_ns", ctypes.c_int64),
        ("num_bytes", ctypes.c_uint64),
        ("graph_node_id", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_uint32),
        ("launch", ctypes.c_uint32),
        ("device", ctypes.c_uint32),
        ("context", ctypes.c_uint32),
        ("stream", ctypes.c_uint32),
        ("correlation", ctypes.c_uint32),
        ("grid", ctypes.c_int32 * 3),
        ("block", ctypes.c_int32 * 3),
        ("cluster", ctypes.c_uint32 * 3),
        ("registers_per_thread", ctypes.c_uint32),
        ("static_shared_bytes", ctypes.c_int32),
        ("dynamic_shared_bytes", ctypes.c_int32),
        ("local_bytes_per_thread", ctypes.c_uint32),
        ("launch_type", ctypes.c_uint32),
        ("graph_id", ctypes.c_uint32),
        ("copy_kind", ctypes.c_uint32),
        ("src_kind", ctypes.c_uint32),
        ("dst_kind", ctypes.c_uint32),
        ("src_device", ctypes.c_uint32),
        ("dst_device", ctypes.c_uint32),
        ("is_async", ctypes.c_uint32),
        ("value", ctypes.c_uint32),
        ("memory_kind", ctypes.c_uint32),
    )


class _Latency(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("count", "total_ns", "max_ns", "p50_ns", "p99_ns", "p9999_ns")
    )


class _Counts(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in (
            "buffers_requested",
            "buffers_completed",
            "buffers_declined",
            "buffers_outstanding",
            "bytes_completed",
            "records_written",
            "launches",
        )
    )


@dataclass(frozen=True)
class Fault:
    """A row of the fault table."""

    name: str
    """What :meth:`SimulatedGpu.inject` takes."""
    description: str
    value: str
    """What ``value`` means for this fault, ``""`` if nothing."""
    default_value: int
    lasting: bool
    """Whether it stays armed unless a count is given."""
    struck: int
    """How often it happened so far."""


@dataclass(frozen=True)
class Call:
    """One call of the CUPTI client under test."""

    function: str
    argument: int
    """The activity kind, attribute, callback id or flag, 0 for functions without one."""
    result: int
    """The CUptiResult returned."""


@dataclass(frozen=True)
class CallbackLatency:
    """How long one of the client's buffer callbacks took, in nanoseconds (percentiles to 3 %)."""

    count: int
    total_ns: int
    max_ns: int
    p50_ns: int
    p99_ns: int
    p9999_ns: int


@dataclass(frozen=True)
class Statistics:
    """What the simulator did and what the client made of it."""

    buffers_requested: int
    buffers_completed: int
    buffers_declined: int
    buffers_outstanding: int
    """Buffers handed out by the client and not yet returned to it."""
    bytes_completed: int
    records_written: int
    launches: int
    records: Mapping[int, int]
    """Records written by CUPTI activity kind (10 = kernels, 1 = memcpys, 2 = memsets, 5 = runtime calls, ...)."""
    calls: Mapping[str, int]
    """Function -> how often it was called."""
    request_latency: CallbackLatency
    complete_latency: CallbackLatency


def library_path() -> Path:
    """Where the simulator's shared library is.

    Raises:
        CollectorError: it was not built.
    """
    named = os.environ.get("COLLECTOR_SIMULATOR")
    if named:
        return Path(named)
    import collector.testing

    for folder in collector.testing.__path__:
        path = Path(folder) / LIBRARY_NAME
        if path.exists():
            return path
    raise CollectorError(
        f"the simulator's library {LIBRARY_NAME} is not installed", "Install the package with pip, which builds it"
    )


@lru_cache(maxsize=4)
def _load(path: str) -> ctypes.CDLL:
    """The library with its signatures declared."""
    library = ctypes.CDLL(path)
    text, u32, i64, u64 = ctypes.c_char_p, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint64
    activity = ctypes.POINTER(_Activity)
    for name, result, arguments in (
        ("sim_open", ctypes.c_int, [ctypes.POINTER(_Config)]),
        ("sim_close", None, []),
        ("sim_execute", u32, [activity, i64, u64]),
        ("sim_replay", None, [activity, u64]),
        ("sim_launch_graph", u32, [activity, ctypes.POINTER(i64), u64, u32]),
        ("sim_synchronize", u32, [u32, i64, u32]),
        ("sim_record_event", u32, [u32, u32]),
        ("sim_wait_event", ctypes.c_int, [u32, u32, u32]),
        ("sim_synchronize_event", ctypes.c_int, [u32]),
        ("sim_api_call", u32, [text, text]),
        ("sim_overhead", None, [u32, i64]),
        ("sim_create_context", u32, [u32]),
        ("sim_now", i64, []),
        ("sim_advance", None, [i64]),
        ("sim_wait_until_idle", ctypes.c_int, [i64]),
        ("sim_reload_module", ctypes.c_int, [text, text]),
        ("sim_inject", ctypes.c_int, [text, i64, i64, i64, text]),
        ("sim_clear_faults", None, []),
        (
            "sim_fault",
            text,
            [
                u64,
                ctypes.POINTER(text),
                ctypes.POINTER(i64),
                ctypes.POINTER(ctypes.c_int),
                ctypes.POINTER(text),
                ctypes.POINTER(u64),
            ],
        ),
        ("sim_misuse", text, [u64, ctypes.POINTER(text), ctypes.POINTER(ctypes.c_int), ctypes.POINTER(u64)]),
        ("sim_counts", None, [ctypes.POINTER(_Counts)]),
        ("sim_records_of_kind", u64, [u32]),
        ("sim_function", text, [u64, ctypes.POINTER(u64)]),
        ("sim_logged_call", text, [u64, ctypes.POINTER(u32), ctypes.POINTER(u32)]),
        ("sim_callback_latency", None, [u32, ctypes.POINTER(_Latency)]),
    ):
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


def _cuda_number(version: str) -> int:
    """12040 for ``"12.4"``."""
    major, _, minor = version.partition(".")
    if not (major.isdigit() and minor.isdigit()):
        raise CollectorError(f"{version!r} is not a CUDA version", 'Write it as "12.4"')
    return int(major) * 1000 + int(minor) * 10


def _number_of(names: Mapping[str, int], name: str, what: str) -> int:
    try:
        return names[name]
    except KeyError:
        raise CollectorError(f"{name!r} is no {what}", f"One of: {', '.join(names)}") from None


def _memory_kinds(copy_kind: str, src: str | None, dst: str | None) -> tuple[int, int]:
    """Both ends' memory kinds, by the direction's letters unless given."""
    if copy_kind == "Unknown":
        ends = ("unknown", "unknown")
    else:
        ends = (_MEMORY_BY_LETTER[copy_kind[0]], _MEMORY_BY_LETTER[copy_kind[-1]])
    return (
        _number_of(_MEMORY_KINDS, src or ends[0], "memory kind"),
        _number_of(_MEMORY_KINDS, dst or ends[1], "memory kind"),
    )


class SimulatedGpu:
    """GPUs without hardware, for tests of programs that trace; a context manager.

    Inside the block ``COLLECTOR_LIBCUPTI`` and ``COLLECTOR_LIBCUDA`` name the simulator, so that
    :func:`collector.trace` records from it. One can be open in a process at a time. Methods may be called from any
    thread; each is a call the program makes on that thread.

    Args:
        devices: How many GPUs; 0 makes ``cuInit`` answer "no device".
        cuda: Whose CUPTI to play, ``"12.0"`` to ``"13.5"``: its record layouts, functions and habits.
        api_version: A patch release of it by its ``cuptiGetVersion`` number (``130000``); None: the newest.
        driver: The driver's CUDA version; None: the same as ``cuda``.
        start_ns: Where the simulated clock starts; None: at the system's time.
        api_call_ns: What one CUDA call costs.
        launch_latency_ns: From the end of a launch to the earliest start on the device.
        gap_ns: Between two activities of one stream.
        real_time: Whether the clock runs with real time as well.
        deliver: Who hands full buffers to the client: the simulator's ``"worker"`` thread, or the ``"caller"`` that
            filled it.
        abort_on_fatal: End the process where the real library would crash, instead of counting a misuse.
        name: The devices' name.
    """

    _lock = threading.Lock()
    _active: SimulatedGpu | None = None

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
        self.devices = devices
        self.cuda = cuda
        self._config = _Config(
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
        self._graphs = 0
        self._environment: dict[str, str | None] = {}
        self._loaded: ctypes.CDLL | None = None

    def __enter__(self) -> SimulatedGpu:
        path = library_path()
        library = _load(str(path))
        with SimulatedGpu._lock:
            if SimulatedGpu._active is not None:
                raise CollectorError("a SimulatedGpu is open already", "Close it first: a process can hold one")
            if library.sim_open(self._config) != 0:
                raise CollectorError(
                    f"the simulator knows no CUDA {self.cuda}"
                    + (f" with CUPTI API version {self._config.api_version}" if self._config.api_version else ""),
                    "It plays 12.0 to 12.6, 12.8, 12.9 and 13.0 to 13.5",
                )
            SimulatedGpu._active = self
        self._environment = {name: os.environ.get(name) for name in LIBRARY_VARIABLES}
        os.environ.update(dict.fromkeys(LIBRARY_VARIABLES, str(path)))
        self._loaded = library
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
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
        """Launch a kernel, or the same one ``count`` times (in bulk: millions per second).

        Returns:
            The (first) launch's correlation id.

        Raises:
            CollectorError: there is no such device, or the simulator is not open.
        """
        self._check_device(device)
        activity = _Activity(
            name=name.encode(),
            type=_KERNEL,
            launch=_number_of(_LAUNCHES, launch, "way to launch"),
            device=device,
            context=context or 0,
            stream=stream,
            grid=grid,
            block=block,
            cluster=cluster,
            registers_per_thread=registers_per_thread,
            static_shared_bytes=static_shared_bytes,
            dynamic_shared_bytes=dynamic_shared_bytes,
            launch_type=1 if cooperative else 0,
        )
        return int(self._library.sim_execute(activity, duration_ns, count))

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
            num_bytes: How much.
            stream: The stream's CUPTI id.
            duration_ns: How long it takes; None: 1 µs and 20 bytes per ns.
            device: The device's ordinal.
            context: The context's id; None: the primary one.
            src: Kind of the memory read; None: by direction, the host's being pageable.
            dst: Kind of the memory written; likewise.
            asynchronous: Whether the call returns before the copy is over.
            launch: Through which API it is called.
            count: How often.

        Returns:
            The (first) call's correlation id.
        """
        self._check_device(device)
        src_kind, dst_kind = _memory_kinds(kind, src, dst)
        activity = _Activity(
            type=_MEMCPY,
            launch=_number_of(_LAUNCHES, launch, "way to launch"),
            device=device,
            context=context or 0,
            stream=stream,
            num_bytes=num_bytes,
            copy_kind=_number_of(_COPY_KINDS, kind, "copy kind"),
            src_kind=src_kind,
            dst_kind=dst_kind,
            is_async=asynchronous,
        )
        return int(self._library.sim_execute(activity, _copy_ns(num_bytes, duration_ns), count))

    def memcpy_peer(
        self,
        src_device: int,
        dst_device: int,
        num_bytes: int,
        *,
        stream: int = 7,
        duration_ns: int | None = None,
        launch: Launch = "both",
    ) -> int:
        """Copy from one device to another; returns the call's correlation id.

        CUPTI records it (MEMCPY2) only while both copy kinds are enabled.
        """
        self._check_device(src_device)
        self._check_device(dst_device)
        activity = _Activity(
            type=_PEER_MEMCPY,
            launch=_number_of(_LAUNCHES, launch, "way to launch"),
            device=src_device,
            stream=stream,
            num_bytes=num_bytes,
            copy_kind=_COPY_KINDS["PtoP"],
            src_kind=_MEMORY_KINDS["device"],
            dst_kind=_MEMORY_KINDS["device"],
            src_device=src_device,
            dst_device=dst_device,
            is_async=1,
        )
        return int(self._library.sim_execute(activity, _copy_ns(num_bytes, duration_ns), 1))

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
        activity = _Activity(
            type=_MEMSET,
            launch=_number_of(_LAUNCHES, launch, "way to launch"),
            device=device,
            context=context or 0,
            stream=stream,
            num_bytes=num_bytes,
            value=value,
            memory_kind=_MEMORY_KINDS["device"],
            is_async=asynchronous,
        )
        return int(self._library.sim_execute(activity, duration_ns, 1))

    def launch_graph(
        self,
        nodes: Sequence[str | tuple[str, int]],
        *,
        stream: int = 7,
        device: int = 0,
        graph_id: int | None = None,
        launch: Launch = "both",
    ) -> int:
        """Launch a CUDA graph of kernels, which share one correlation id; returns it.

        Args:
            nodes: The kernels in their order, each a name or ``(name, duration_ns)``.
            stream: The stream's CUPTI id.
            device: The device's ordinal.
            graph_id: The executable graph's id; None: a new one. Launching an id again is launching that graph again.
            launch: Through which API it is called.
        """
        self._check_device(device)
        if graph_id is None:
            self._graphs += 1
            graph_id = self._graphs
        pairs = [(node, 10_000) if isinstance(node, str) else node for node in nodes]
        activities = (_Activity * len(pairs))()
        for activity, (name, _) in zip(activities, pairs, strict=True):
            activity.name = name.encode()
            activity.type = _KERNEL
            activity.launch = _number_of(_LAUNCHES, launch, "way to launch")
            activity.device = device
            activity.stream = stream
            activity.grid[:] = activity.cluster[:] = (1, 1, 1)
            activity.block[:] = (128, 1, 1)
        durations = (ctypes.c_int64 * len(pairs))(*(duration for _, duration in pairs))
        return int(self._library.sim_launch_graph(activities, durations, len(pairs), graph_id))

    def synchronize(self, *, device: int | None = None, stream: int | None = None, launch: Launch = "both") -> None:
        """Wait until a stream, a device or (by default) every device has done its work."""
        devices = range(self.devices) if device is None and stream is None else [device or 0]
        for ordinal in devices:
            self._check_device(ordinal)
            self._library.sim_synchronize(
                ordinal, -1 if stream is None else stream, _number_of(_LAUNCHES, launch, "way to launch")
            )

    def record_event(self, *, stream: int = 7, device: int = 0) -> int:
        """Record an event after the work a stream has so far; returns the event."""
        self._check_device(device)
        return int(self._library.sim_record_event(device, stream))

    def wait_event(self, event: int, *, stream: int = 7, device: int = 0) -> None:
        """Let a stream's later work wait for an event.

        Raises:
            CollectorError: no such event was recorded.
        """
        self._check_device(device)
        if self._library.sim_wait_event(device, stream, event) != 0:
            raise CollectorError(f"there is no event {event}")

    def synchronize_event(self, event: int) -> None:
        """Wait until an event has happened.

        Raises:
            CollectorError: no such event was recorded.
        """
        if self._library.sim_synchronize_event(event) != 0:
            raise CollectorError(f"there is no event {event}")

    def api_call(self, runtime: str = "", driver: str = "") -> int:
        """Make an API call that does nothing on the device, such as ``"cudaGetDevice_v3020"``.

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

    def overhead(self, kind: int, duration_ns: int = 1_000) -> None:
        """Spend time in CUPTI or the driver, as an overhead record of a CUpti_ActivityOverheadKind."""
        self._library.sim_overhead(kind, duration_ns)

    def create_context(self, device: int = 0) -> int:
        """Create a further context on a device; returns its id, which operations take as ``context``."""
        self._check_device(device)
        return int(self._library.sim_create_context(device))

    def reload_module(self, name: str, successor: str) -> None:
        """Unload kernel ``name`` and load ``successor`` where it was: CUPTI reuses the name's address.

        Call it when no record of ``name`` is undelivered, for example between two traces.

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
        """Emit recorded activities as they were, in the order of their ends; returns how many.

        Each is a mapping with ``start_ns`` and ``end_ns`` and, if they matter:

        * all: ``device`` (0), ``stream`` (7), ``context`` (None), ``correlation`` (the next), ``graph_id``,
          ``graph_node_id``, ``launch_start_ns`` and ``launch_end_ns`` (else made up before the activity), ``launch``;
        * kernels: ``name``, ``grid``, ``block``, ``cluster``, ``registers_per_thread``, ``static_shared_bytes``,
          ``dynamic_shared_bytes``, ``local_bytes_per_thread``;
        * memcpys: ``kind``, ``num_bytes``, ``src``, ``dst``, ``asynchronous``; with ``kind`` ``"PtoP"`` also
          ``src_device`` and ``dst_device``;
        * memsets: ``num_bytes``, ``value``, ``asynchronous``.

        The first activity of each correlation id comes with its launching API call, made through ``launch``. Open
        the simulator with ``start_ns`` before the first of all, or they come from before the session.

        Raises:
            CollectorError: an activity holds an unknown key, or lacks ``start_ns`` or ``end_ns``.
        """
        rows = [
            *((_KERNEL, row) for row in kernels),
            *((_MEMCPY, row) for row in memcpys),
            *((_MEMSET, row) for row in memsets),
        ]
        for _, row in rows:
            if "start_ns" not in row or "end_ns" not in row:
                raise CollectorError(f"an activity to replay lacks start_ns or end_ns: {dict(row)!r}")
        rows.sort(key=lambda item: (item[1]["end_ns"], item[1]["start_ns"]))
        activities = (_Activity * len(rows))()
        called: set[int] = set()
        for activity, (kind, row) in zip(activities, rows, strict=True):
            _fill(activity, kind, row, launch)
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
        """Let the program do something else for a while."""
        self._library.sim_advance(ns)

    def wait_until_idle(self, timeout_ms: int = 5_000) -> None:
        """Wait (in real time) until the simulator's thread has handed back every full buffer.

        Raises:
            CollectorError: it has not within ``timeout_ms``.
        """
        if self._library.sim_wait_until_idle(timeout_ms) != 0:
            raise CollectorError(f"the simulator still held full buffers after {timeout_ms} ms")

    def inject(
        self, fault: str, *, count: int | None = None, after: int = 0, value: int | None = None, target: str = ""
    ) -> None:
        """Arm a fault; :meth:`faults` lists them.

        Args:
            fault: Its name.
            count: How often it strikes; None: once, or for good where the table says it is lasting; -1: for good.
            after: How many occasions pass before.
            value: What the table says, None: the table's default.
            target: For ``"error"`` the function that fails, for ``"second_subscriber"`` the other's name.

        Raises:
            CollectorError: there is no such fault, or no such function.
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

    def clear_faults(self) -> None:
        """Disarm every fault."""
        self._library.sim_clear_faults()

    def faults(self) -> list[Fault]:
        """The faults that can be injected, and how often each has struck."""
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

    def misuse(self) -> dict[str, int]:
        """What the CUPTI client did wrong, and how often; empty if nothing."""
        found: dict[str, int] = {}
        description, fatal, counted = ctypes.c_char_p(), ctypes.c_int(), ctypes.c_uint64()
        index = 0
        while name := self._library.sim_misuse(index, description, fatal, counted):
            if counted.value:
                found[name.decode()] = counted.value
            index += 1
        return found

    def _functions(self) -> dict[str, int]:
        called: dict[str, int] = {}
        count = ctypes.c_uint64()
        while name := self._library.sim_function(len(called), count):
            called[name.decode()] = count.value
        return called

    def calls(self) -> list[Call]:
        """The client's CUPTI calls in order, but for those made per record or per operation."""
        logged: list[Call] = []
        argument, result = ctypes.c_uint32(), ctypes.c_uint32()
        while name := self._library.sim_logged_call(len(logged), argument, result):
            logged.append(Call(name.decode(), argument.value, result.value))
        return logged

    def statistics(self) -> Statistics:
        """What was written, delivered and called so far."""
        counts = _Counts()
        self._library.sim_counts(counts)
        written = {kind: int(self._library.sim_records_of_kind(kind)) for kind in range(60)}
        return Statistics(
            **{name: getattr(counts, name) for name, _ in _Counts._fields_},
            records={kind: count for kind, count in written.items() if count},
            calls={name: count for name, count in self._functions().items() if count},
            request_latency=self._latency(0),
            complete_latency=self._latency(1),
        )

    def _latency(self, which: int) -> CallbackLatency:
        latency = _Latency()
        self._library.sim_callback_latency(which, latency)
        return CallbackLatency(**{name: getattr(latency, name) for name, _ in _Latency._fields_})


def _copy_ns(num_bytes: int, duration_ns: int | None) -> int:
    return 1_000 + num_bytes // _MAX_BYTES_PER_NS if duration_ns is None else duration_ns


_COMMON_KEYS = {
    "start_ns",
    "end_ns",
    "launch_start_ns",
    "launch_end_ns",
    "device",
    "context",
    "stream",
    "correlation",
    "graph_id",
    "graph_node_id",
    "launch",
}
_KERNEL_KEYS = {
    "name",
    "grid",
    "block",
    "cluster",
    "registers_per_thread",
    "static_shared_bytes",
    "dynamic_shared_bytes",
    "local_bytes_per_thread",
}
_MEMCPY_KEYS = {"kind", "num_bytes", "src", "dst", "asynchronous", "src_device", "dst_device"}
_MEMSET_KEYS = {"num_bytes", "value", "asynchronous"}
_KEYS = {_KERNEL: _KERNEL_KEYS, _MEMCPY: _MEMCPY_KEYS, _MEMSET: _MEMSET_KEYS}
_SHAPES = {"grid": (1, 1, 1), "block": (1, 1, 1), "cluster": (1, 1, 1)}
_OWN_NAMES = {"asynchronous": "is_async"}


def _fill(activity: _Activity, kind: int, row: Mapping[str, Any], launch: str) -> None:
    """Write one replayed activity into its struct."""
    unknown = row.keys() - _COMMON_KEYS - _KEYS[kind]
    if unknown:
        raise CollectorError(f"an activity to replay holds unknown keys: {', '.join(sorted(unknown))}")
    activity.type = kind
    activity.stream = 7
    activity.launch = _number_of(_LAUNCHES, str(row.get("launch", launch)), "way to launch")
    if kind == _KERNEL:
        activity.name = str(row.get("name", "")).encode()
        for key, default in _SHAPES.items():
            getattr(activity, key)[:] = tuple(row.get(key) or default)
    elif kind == _MEMCPY:
        copy_kind = str(row.get("kind", "Unknown"))
        activity.copy_kind = _number_of(_COPY_KINDS, copy_kind, "copy kind")
        activity.src_kind, activity.dst_kind = _memory_kinds(copy_kind, row.get("src"), row.get("dst"))
        activity.is_async = 1
        if copy_kind == "PtoP" and "dst_device" in row:
            activity.type = _PEER_MEMCPY
    else:
        activity.memory_kind = _MEMORY_KINDS["device"]
        activity.is_async = 1
    for key, value in row.items():
        if key not in ("name", "kind", "src", "dst", "launch", *_SHAPES) and value is not None:
            setattr(activity, _OWN_NAMES.get(key, key), value)
