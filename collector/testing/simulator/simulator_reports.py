"""The simulator's reports: its fault table, the client's calls, counts, callback times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A row of the fault table."""

    name: str
    """A fault that :meth:`SimulatedGpu.inject` takes."""
    description: str
    value: str
    """The meaning of ``value`` for this fault, ``""`` if it has none."""
    default_value: int
    lasting: bool
    """Whether it stays armed unless a count is given."""
    struck: int
    """The number of times that it has struck."""


@dataclass(frozen=True)
class Misuse:
    """A misuse of CUPTI by its client."""

    description: str
    fatal: bool
    """Whether the real library crashes or hangs."""
    count: int
    """The number of times that the client under test made it."""


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
    """Durations of one of the client's buffer callbacks, in nanoseconds (percentiles to 3 %)."""

    count: int
    total_ns: int
    max_ns: int
    p50_ns: int
    p99_ns: int
    p9999_ns: int


@dataclass(frozen=True)
class Statistics:
    """The simulator's work, and the client's response to it."""

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
    """Function -> number of calls."""
    request_latency: CallbackLatency
    complete_latency: CallbackLatency
