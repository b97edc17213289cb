"""A one-page CUPTI client in ctypes, for the simulator's own tests. It shares no code with the product's client."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass, field
from typing import Any

from collector.testing.simulator.simulator_library import library_path

MEMCPY, MEMSET, KERNEL, DRIVER, RUNTIME, CONCURRENT_KERNEL, OVERHEAD = 1, 2, 3, 4, 5, 10, 17
MEMCPY2, SYNCHRONIZATION, EXTERNAL_CORRELATION = 22, 38, 39
EVERY_KIND = (MEMCPY, MEMSET, DRIVER, RUNTIME, CONCURRENT_KERNEL, OVERHEAD, MEMCPY2, SYNCHRONIZATION, 39)

SUCCESS, INVALID_PARAMETER, MAX_LIMIT_REACHED, NOT_COMPATIBLE, QUEUE_EMPTY, INVALID_KIND = 0, 1, 12, 14, 18, 21
MULTIPLE_SUBSCRIBERS = 39

FIELDS: dict[int, dict[str, tuple[int, str]]] = {
    CONCURRENT_KERNEL: {
        "registers": (6, "H"),
        "start": (16, "Q"),
        "end": (24, "Q"),
        "completed": (32, "Q"),
        "device": (40, "I"),
        "context": (44, "I"),
        "stream": (48, "I"),
        "grid": (52, "3i"),
        "block": (64, "3i"),
        "static_shared": (76, "i"),
        "dynamic_shared": (80, "i"),
        "local": (84, "I"),
        "correlation": (92, "I"),
        "grid_id": (96, "q"),
        "name": (104, "Q"),
        "queued": (120, "Q"),
        "submitted": (128, "Q"),
        "launch_type": (136, "B"),
        "graph_node": (144, "Q"),
        "graph": (156, "I"),
        "cluster": (176, "3I"),
    },
    MEMCPY: {
        "copy_kind": (4, "B"),
        "src_kind": (5, "B"),
        "dst_kind": (6, "B"),
        "flags": (7, "B"),
        "bytes": (8, "Q"),
        "start": (16, "Q"),
        "end": (24, "Q"),
        "device": (32, "I"),
        "context": (36, "I"),
        "stream": (40, "I"),
        "correlation": (44, "I"),
        "graph_node": (64, "Q"),
        "graph": (72, "I"),
    },
    MEMCPY2: {
        "copy_kind": (4, "B"),
        "bytes": (8, "Q"),
        "start": (16, "Q"),
        "end": (24, "Q"),
        "device": (32, "I"),
        "context": (36, "I"),
        "stream": (40, "I"),
        "src_device": (44, "I"),
        "src_context": (48, "I"),
        "dst_device": (52, "I"),
        "dst_context": (56, "I"),
        "correlation": (60, "I"),
    },
    MEMSET: {
        "value": (4, "I"),
        "bytes": (8, "Q"),
        "start": (16, "Q"),
        "end": (24, "Q"),
        "device": (32, "I"),
        "context": (36, "I"),
        "stream": (40, "I"),
        "correlation": (44, "I"),
        "flags": (48, "H"),
        "memory_kind": (50, "H"),
    },
    RUNTIME: {
        "cbid": (4, "I"),
        "start": (8, "Q"),
        "end": (16, "Q"),
        "process": (24, "I"),
        "thread": (28, "I"),
        "correlation": (32, "I"),
        "return_value": (36, "I"),
    },
    OVERHEAD: {
        "overhead_kind": (4, "I"),
        "object_kind": (8, "I"),
        "process": (12, "I"),
        "thread": (16, "I"),
        "start": (24, "Q"),
        "end": (32, "Q"),
    },
    SYNCHRONIZATION: {
        "type": (4, "I"),
        "start": (8, "Q"),
        "end": (16, "Q"),
        "correlation": (24, "I"),
        "context": (28, "I"),
        "stream": (32, "I"),
        "event": (36, "I"),
    },
    EXTERNAL_CORRELATION: {"external_kind": (4, "I"), "external_id": (8, "Q"), "correlation": (16, "I")},
}
FIELDS[DRIVER] = FIELDS[RUNTIME]
FIELDS[KERNEL] = FIELDS[CONCURRENT_KERNEL]

REQUEST = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.POINTER(ctypes.c_size_t),
)
COMPLETE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)


@dataclass(frozen=True)
class Record:
    """One activity record, by the fields every version has."""

    kind: int
    data: bytes
    buffer: int
    """The index of the delivered buffer that contained it."""
    values: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def text(self) -> str | None:
        """The kernel's name, read through the record's pointer now."""
        value = ctypes.c_char_p(self.values["name"]).value
        return None if value is None else value.decode()


CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)


class SubscriberParams(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("subscriber_name", ctypes.c_char_p),
        ("old_subscriber_name", ctypes.c_char_p),
        ("old_subscriber_size", ctypes.c_size_t),
        ("allow_multiple_subscribers", ctypes.c_uint64),
    )


class CuptiClient:
    """Requests and receives buffers with its own callbacks, and reads records with the library's GetNextRecord."""

    registered: CuptiClient | None = None
    """The client whose callbacks the library calls: it must live, also where a test does not keep it."""

    def __init__(self, *, buffer_bytes: int = 1 << 16, max_records: int = 0) -> None:
        self.library = ctypes.CDLL(str(library_path()))
        self.buffer_bytes = buffer_bytes
        self.max_records = max_records
        self.decline = False
        self.offset = 0
        self.reuse = False
        self.dirty = False
        self.in_request: Any = None
        """A function to call inside the request callback."""
        self.delivered: list[bytes] = []
        self.held: dict[int, Any] = {}
        self.last: int | None = None
        self._request = REQUEST(self._on_request)
        self._complete = COMPLETE(self._on_complete)

    def __call__(self, function: str, *arguments: Any) -> int:
        return int(getattr(self.library, function)(*arguments))

    def check(self, function: str, *arguments: Any) -> None:
        assert self(function, *arguments) == SUCCESS, function

    def open(self, *kinds: int, own_zeroes: bool = False) -> CuptiClient:
        """Registers callbacks and enables kinds (every one by default)."""
        if own_zeroes:
            self.set_attribute(5, ctypes.c_uint8(1))
        self.check("cuptiActivityRegisterCallbacks", self._request, self._complete)
        CuptiClient.registered = self
        for kind in kinds or EVERY_KIND:
            self.check("cuptiActivityEnable", kind)
        return self

    def set_attribute(self, attribute: int, value: Any) -> None:
        size = ctypes.c_size_t(ctypes.sizeof(value))
        self.check("cuptiActivitySetAttribute", attribute, ctypes.byref(size), ctypes.byref(value))

    def get_attribute(self, attribute: int, kind: Any) -> int:
        value, size = kind(), ctypes.c_size_t(ctypes.sizeof(kind))
        self.check("cuptiActivityGetAttribute", attribute, ctypes.byref(size), ctypes.byref(value))
        return int(value.value)

    def dropped(self) -> int:
        count = ctypes.c_size_t()
        self.check("cuptiActivityGetNumDroppedRecords", None, 0, ctypes.byref(count))
        return count.value

    def timestamp(self) -> int:
        value = ctypes.c_uint64()
        self.check("cuptiGetTimestamp", ctypes.byref(value))
        return value.value

    def _on_request(self, buffer: Any, size: Any, max_records: Any) -> None:
        if self.in_request is not None:
            self.in_request()
        if self.decline:
            buffer[0] = None
            return
        if self.reuse and self.last is not None:
            address = self.last
        else:
            memory = (ctypes.c_uint64 * (self.buffer_bytes // 8 + 2))()
            if self.dirty:
                ctypes.memset(memory, 1, ctypes.sizeof(memory))
            address = ctypes.addressof(memory) + self.offset
            self.held[address] = memory
            self.last = address
        buffer[0] = address
        size[0] = self.buffer_bytes
        max_records[0] = self.max_records

    def _on_complete(self, context: Any, stream: int, buffer: int, size: int, valid: int) -> None:
        assert context is None
        assert stream == 0
        self.delivered.append(ctypes.string_at(buffer, valid))
        if not self.reuse:
            self.held.pop(buffer, None)

    def flush(self, *, forced: bool = False) -> None:
        self.check("cuptiActivityFlushAll", 1 if forced else 0)

    def walk(self, data: bytes) -> tuple[list[tuple[int, bytes]], int]:
        """One buffer's records as (kind, bytes), and the end of the walk."""
        memory = ctypes.create_string_buffer(data, len(data)) if data else ctypes.create_string_buffer(1)
        base = ctypes.addressof(memory)
        record = ctypes.c_void_p()
        starts: list[int] = []
        while True:
            result = self(
                "cuptiActivityGetNextRecord", ctypes.c_void_p(base), ctypes.c_size_t(len(data)), ctypes.byref(record)
            )
            if result != SUCCESS:
                break
            starts.append((record.value or 0) - base)
        ends = [*starts[1:], len(data)][: len(starts)]
        return [
            (struct.unpack_from("<I", data, start)[0], data[start:end]) for start, end in zip(starts, ends, strict=True)
        ], result

    def records(self, *kinds: int) -> list[Record]:
        """Every delivered record (of these kinds), in the order of delivery."""
        found = []
        for index, data in enumerate(self.delivered):
            for kind, piece in self.walk(data)[0]:
                if kinds and kind not in kinds:
                    continue
                values = {}
                for name, (offset, code) in FIELDS.get(kind, {}).items():
                    unpacked = struct.unpack_from("<" + code, piece, offset)
                    values[name] = unpacked if len(unpacked) > 1 else unpacked[0]
                found.append(Record(kind, piece, index, values))
        return found
