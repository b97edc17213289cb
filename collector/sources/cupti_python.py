"""Activity through NVIDIA's ``cupti-python`` package, for platforms where the native extension cannot be loaded.

It is also an independent reference: on a real GPU, tests compare the native recording with this one record by record.
It is not for everyday use. CUPTI calls the buffer callbacks while it holds its own lock, and here the callbacks are
Python. A thread that holds the GIL and waits inside CUDA or CUPTI for that lock, while the callback waits for the GIL,
is a deadlock (pytorch#186295, where such callbacks were moved to C++ for this reason). Code written in Python cannot
exclude this, only make it rarer: the callbacks only copy fields, and the garbage collector is off while they run,
because a destructor that it calls may call CUDA.

The package is optional, imported on first use, and has a licence of NVIDIA that its users must accept themselves; none
of its code is copied here.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.metadata
import itertools
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.errors import CuptiNotFoundError, CuptiUnusableError, SessionActiveError, error_of_kind
from collector.recording.api_functions import plain_api_name
from collector.recording.capture import Instant
from collector.recording.cupti_enums import ANNOTATION_EXTERNAL_KIND
from collector.recording.launch_figures import PEER_COPIES
from collector.recording.schema import SCHEMA
from collector.runtime.garbage import no_garbage_collection
from collector.sources.cupti_python_records import (
    KINDS_OF_OPTION,
    MADE_ONCE,
    Rows,
    Strings,
    leave_out_calls_of,
)
from collector.sources.loaded_libraries import device_names, library_versions, synchronize_devices
from collector.sources.tick_scale import ClockReading, TickScale, tick_scale

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from collector.options import TraceOptions
    from collector.recording.capture import Capture

_THREAD_ID_IS_THE_SYSTEMS = 1
_ATTRIBUTE_ZEROED_OUT_BUFFER = 5
_FLUSH_COMPLETE, _FLUSH_FORCED = 0, 1
_PERMISSION_CODES = frozenset({33, 35, 40, 41, 42, 43, 44, 45})
_CONFLICT_CODES = frozenset({14, 39})
_DRIVER_CODES = frozenset({2, 15, 999})


class CuptiPythonSource:
    """Records with ``cupti-python``; implements `collector.sources.Source`."""

    name = "cupti-python"

    def __init__(self) -> None:
        """Raise `collector.CuptiNotFoundError` if the package is not installed or cannot be imported."""
        self._cupti = _import_cupti()
        self._rows: Rows | None = None
        self._undo = contextlib.ExitStack()
        self._kinds: list[int] = []
        self._recorded_copies: dict[str, bool] = {}
        self._annotations = _AnnotationLog()
        self._clock: dict[str, int] = {}
        self._scale: TickScale | None = None
        self._requested = itertools.count()
        self._completed = itertools.count()
        self._failure: Exception | None = None
        self._buffer_bytes = 0

    def probe(self) -> dict[str, Any]:
        """See `collector.sources.Source.probe`."""
        found: dict[str, Any] = {"available": False, "error": "", "cause": "", "remedy": "", "simulated": False}
        found |= {"features": {}, "strides": {}, "devices": [], "cupti_python": _version_of_package()}
        try:
            self._cupti.get_timestamp()
        except Exception as error:
            kind, cause, remedy = _explanation("cuptiGetTimestamp", error)
            return found | {"error": kind, "cause": cause, "remedy": remedy}
        devices = [{"ordinal": ordinal, "name": name} for ordinal, name in device_names().items()]
        return found | {"available": True} | library_versions() | {"devices": devices}

    def start(self, options: TraceOptions) -> None:
        """Register the callbacks and enable the kinds of ``options``; if one step fails, undo all."""
        if self._rows is not None:
            raise SessionActiveError("this source is recording already", "Stop the open session first")
        cupti = self._cupti
        with contextlib.ExitStack() as undo:
            with _explained("cuptiGetTimestamp"):
                cupti.get_timestamp()  # fails without a driver, before anything is changed
            if not options.share_subscription:
                with _explained("cuptiSubscribe"):
                    subscriber = cupti.subscribe(_ignore_callback, None)
                undo.callback(_quietly, cupti.unsubscribe, subscriber)
            with _explained("cuptiSetThreadIdType"):
                cupti.set_thread_id_type(_THREAD_ID_IS_THE_SYSTEMS)
            _quietly(self._let_cupti_zero_buffers)
            self._buffer_bytes = options.buffer_bytes
            self._failure = None
            self._requested, self._completed = itertools.count(), itertools.count()
            self._annotations = _AnnotationLog()
            with _explained("cuptiActivityRegisterCallbacks"):
                cupti.activity_register_callbacks(self._buffer_requested, self._buffer_completed)
            self._rows = Rows()
            undo.callback(setattr, self, "_rows", None)
            self._scale = tick_scale(self._read_clocks)
            cupti_ns, wall_ns, uncertainty_ns = self._both_clocks()
            self._clock = {"cupti_start_ns": cupti_ns, "wall_start_ns": wall_ns, "uncertainty_ns": uncertainty_ns}
            undo.callback(self._disable_kinds)
            for kind in (kind for option in options.kinds for kind in KINDS_OF_OPTION[option]):
                with _explained("cuptiActivityEnable"):
                    (cupti.activity_enable_and_dump if kind in MADE_ONCE else cupti.activity_enable)(kind)
                self._kinds.append(kind)
            recorded = {PEER_COPIES: PEER_COPIES in options.kinds} if "memcpys" in options.kinds else {}
            self._recorded_copies = recorded
            self._undo = undo.pop_all()

    def stop(self, *, synchronize: bool, timeout_ms: int) -> Capture:
        """Flush, disable and unsubscribe, and return the columns.

        ``timeout_ms`` is ignored: cupti-python does not report which buffers CUPTI still holds.
        """
        del timeout_ms
        rows = self._rows
        if rows is None:
            raise SessionActiveError("this source is not recording", "Start a session first")
        with self._undo:
            own_calls_from_ns = self._both_clocks()[0]
            if synchronize:
                synchronize_devices()
            cupti_ns, wall_ns, uncertainty_ns = self._both_clocks()
            with _explained("cuptiActivityFlushAll"):
                self._cupti.activity_flush_all(_FLUSH_COMPLETE)
                self._disable_kinds()
                self._cupti.activity_flush_all(_FLUSH_FORCED)
                dropped = self._dropped_records()
        if self._failure is not None:
            raise CuptiUnusableError(
                f"cupti-python {_version_of_package()} delivers records of an unknown shape ({self._failure!r})",
                "Use the native source, or another version of cupti-python",
            ) from self._failure
        strings = Strings()
        tables = rows.columns(strings, self._api_name, self._scale)
        leave_out_calls_of(threading.get_native_id(), own_calls_from_ns, tables)
        tables["annotations"] = self._annotations.columns(strings, cupti_ns)
        requested, completed = next(self._requested), next(self._completed)
        return {
            "tables": tables,
            "strings": strings.texts(),
            "counters": {
                **rows.counts(),
                "records_dropped": dropped,
                "buffers_requested": requested,
                "buffers_completed": completed,
                "callback_calls": requested + completed,
            },
            "clock": self._clock
            | {
                "cupti_stop_ns": cupti_ns,
                "wall_stop_ns": wall_ns,
                "uncertainty_ns": max(self._clock["uncertainty_ns"], uncertainty_ns),
            },
            "environment": {
                "source": self.name,
                "simulated": False,
                "cupti_python": _version_of_package(),
                "devices": device_names(),
                **self._recorded_copies,
                **library_versions(),
            },
        }

    def instant(self) -> Instant:
        """The present instant of the session."""
        return Instant(*self._both_clocks())

    def abort(self) -> None:
        """Disable and unsubscribe; the records are discarded."""
        self._undo.close()

    def push_annotation(self, path: str, details: int = 0) -> None:
        """See `collector.sources.Source.push_annotation`; does nothing outside a session."""
        if self._rows is None:
            return
        stack = _pushed.__dict__.setdefault("stack", [])
        while stack and stack[-1].log is not self._annotations:  # left open when an earlier session ended
            self._pop(stack)
        annotation = self._annotations.open(path, self._now(), len(stack), details)
        stack.append(annotation)  # appended first: after a Ctrl-C in between, CUPTI only refuses one pop too many
        self._cupti.activity_push_external_correlation_id(ANNOTATION_EXTERNAL_KIND, annotation.external_id)

    def pop_annotation(self) -> None:
        """See `collector.sources.Source.pop_annotation`; does nothing if this thread pushed nothing."""
        stack = _pushed.__dict__.get("stack")
        if stack:
            self._pop(stack)

    def _pop(self, stack: list[_Annotation]) -> None:
        annotation = stack[-1]
        annotation.end_ns = self._now() if self._rows is not None else 0
        _quietly(self._cupti.activity_pop_external_correlation_id, ANNOTATION_EXTERNAL_KIND)
        stack.pop()

    # CUPTI calls this while it holds its lock: no CUDA, no CUPTI, no lock of ours, and no exception may escape.

    def _buffer_requested(self) -> tuple[int, int]:
        next(self._requested)
        return self._buffer_bytes, 0  # 0: as many records as fit

    def _buffer_completed(self, records: list[Any]) -> None:
        rows = self._rows
        if rows is None:
            return
        next(self._completed)
        try:
            with no_garbage_collection():
                rows.add(records)
        except Exception as error:  # no exception may pass through CUPTI's frames
            self._failure = error

    def _let_cupti_zero_buffers(self) -> None:
        # The native source passes zeroed buffers and tells CUPTI so; cupti-python's buffers are not zeroed.
        value, num_bytes = ctypes.c_uint8(0), ctypes.c_size_t(1)
        address, size_address = ctypes.addressof(value), ctypes.addressof(num_bytes)
        self._cupti.activity_set_attribute(_ATTRIBUTE_ZEROED_OUT_BUFFER, size_address, address)

    def _disable_kinds(self) -> None:
        while self._kinds:
            _quietly(self._cupti.activity_disable, self._kinds.pop())

    def _now(self) -> int:
        """CUPTI's present time in nanoseconds."""
        now = int(self._cupti.get_timestamp())
        return now if self._scale is None else self._scale.ns(now)

    def _read_clocks(self) -> ClockReading:
        """The closest of five readings. The wall clock may be set back in one of them."""
        readings = []
        for _ in range(5):
            before = time.time_ns()
            with _explained("cuptiGetTimestamp"):
                now = int(self._cupti.get_timestamp())
            after = time.time_ns()
            readings.append(ClockReading(now, (before + after) // 2, time.monotonic_ns(), abs(after - before)))
        return min(readings, key=lambda reading: reading.uncertainty_ns)

    def _both_clocks(self) -> tuple[int, int, int]:
        """(CUPTI ns, wall ns, uncertainty ns)."""
        now = self._read_clocks()
        cupti_ns = now.cupti if self._scale is None else self._scale.ns(now.cupti)
        return cupti_ns, now.wall_ns, now.uncertainty_ns

    def _dropped_records(self) -> int:
        count = ctypes.c_size_t(0)
        self._cupti.activity_get_num_dropped_records(0, 0, ctypes.addressof(count))
        return count.value

    def _api_name(self, domain: int, callback_id: int) -> str:
        try:
            name = self._cupti.get_callback_name(domain, callback_id)
        except self._cupti.cuptiError:  # an id newer than this libcupti
            return ""
        return plain_api_name(name.decode() if isinstance(name, bytes) else str(name or ""))


class _Annotation:
    """One ``with annotate(...)`` block."""

    __slots__ = ("depth", "details_id", "end_ns", "external_id", "log", "path", "start_ns", "thread_id")

    def __init__(self, log: _AnnotationLog, path: str, start_ns: int, depth: int, details_id: int) -> None:
        self.log = log
        self.path = path
        self.start_ns = start_ns
        self.end_ns = 0
        self.external_id = next(_external_ids)
        self.thread_id = threading.get_native_id()
        self.depth = depth
        self.details_id = details_id


class _AnnotationLog:
    """The annotations of one session."""

    def __init__(self) -> None:
        self._all: list[_Annotation] = []

    def open(self, path: str, now_ns: int, depth: int, details_id: int) -> _Annotation:
        annotation = _Annotation(self, path, now_ns, depth, details_id)
        self._all.append(annotation)
        return annotation

    def columns(self, strings: Strings, stop_ns: int) -> dict[str, np.ndarray[Any, Any]]:
        """Return the table, sorted by time; open annotations end with the session."""
        rows = [
            (
                one.start_ns,
                one.end_ns or stop_ns,
                one.external_id,
                strings.id_of(one.path),
                one.thread_id,
                one.depth,
                one.details_id,
            )
            for one in sorted(self._all, key=lambda one: (one.start_ns, one.external_id))
        ]
        own = ("start_ns", "end_ns", "external_id", "name_id", "thread_id", "depth", "details_id")
        table = np.array(rows, dtype=[(column, SCHEMA["annotations"][column]) for column in own])
        others = {column: np.zeros(len(rows), dtype) for column, dtype in SCHEMA["annotations"].items()}  # of NVTX
        return others | {column: table[column].copy() for column in own}


_pushed = threading.local()  # .stack: the annotations that this thread has pushed to CUPTI, in any session
_external_ids = itertools.count(1)  # never repeated: a late record must not match another session's annotation


def _import_cupti() -> ModuleType:
    try:
        return importlib.import_module("cupti.cupti")
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "cupti"
        cause = "the package cupti-python is not installed" if absent else f"cupti-python cannot be imported ({error})"
        raise CuptiNotFoundError(cause, "pip install 'cupti-collector[cupti-python]'") from error


def _version_of_package() -> str:
    try:
        return importlib.metadata.version("cupti-python")
    except importlib.metadata.PackageNotFoundError:
        return ""


@contextlib.contextmanager
def _explained(call: str) -> Iterator[None]:
    """Raise errors of a cupti-python call as the matching `collector.CollectorError`."""
    try:
        yield
    except Exception as error:
        raise error_of_kind(*_explanation(call, error)) from error


def _explanation(call: str, error: Exception) -> tuple[str, str, str]:
    """Return the error's kind, cause and remedy."""
    where = f"({call}: {error})"
    status = getattr(error, "status", None)
    if status is None:
        # Before each call, cupti-python searches for libcuda and then for libcupti, and raises a RuntimeError of its
        # own.
        if "driver" in str(error).lower() or "libcuda" in str(error):
            return (
                "driver-not-found",
                f"no NVIDIA driver is found {where}",
                "Install it, or check that nvidia-smi works",
            )
        return "cupti-not-found", f"cupti-python cannot load libcupti {where}", "pip install nvidia-cuda-cupti"
    if status in _CONFLICT_CODES:
        cause = f"another CUPTI client holds this process's subscription {where}"
        return "subscriber-conflict", cause, "Stop the other profiler and trace again"
    if status in _PERMISSION_CODES:
        cause = f"the driver denies tracing to this user or on this device {where}"
        return (
            "permission-denied",
            cause,
            "Ask the administrator for NVreg_RestrictProfilingToAdminUsers=0, or run with CAP_SYS_ADMIN",
        )
    if status in _DRIVER_CODES:
        return "driver-not-found", f"CUPTI cannot use the NVIDIA driver {where}", "Check that nvidia-smi works"
    return "cupti-call", f"a CUPTI call failed {where}", "Report it with the output of `collector info`"


def _quietly(function: Any, *arguments: Any) -> None:
    # While undoing, only the first error is reported.
    with contextlib.suppress(Exception):
        function(*arguments)


def _ignore_callback(*_: Any) -> None:
    # Like the native source, this takes the process's only subscription. No callback is ever enabled.
    return
