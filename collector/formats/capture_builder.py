"""Builds recordings from the files of other tools: rows by kind, names, and the op of each launch."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.formats.free_numbers import FreeNumbers
from collector.recording.annotation_details import Details
from collector.recording.capture import ASYNC_NOT_KNOWN, NO_OBJECT
from collector.recording.cupti_enums import ANNOTATION_EXTERNAL_KIND, DRIVER_DOMAIN, RUNTIME_DOMAIN
from collector.recording.distinct import distinct_codes, distinct_values
from collector.recording.first_rows import first_rows, look_up
from collector.recording.graph_paths import split_at_capture
from collector.recording.ledger import Ledger
from collector.recording.recording import SET_APART, Recording
from collector.recording.schema import ACTIVITY_TABLES, LAUNCHED_TABLES, SCHEMA
from collector.runtime.extension import convert_extension
from collector.stepstats.stated_window import in_window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from collector.recording.capture import Capture
    from collector.stepstats.stated_window import Window

    Numbers = npt.NDArray[np.int64]
    Column = Numbers | Callable[[], Numbers]

_API = re.compile(r"cu(?:[A-Z]|da[A-Z])|hip[A-Z]")
_RUNTIME = ("cuda", "hip", "ur")
"""The first letters of the functions of runtime APIs. HIP has one API, which Kineto calls a runtime's as well; beside
Unified Runtime, Level Zero is the driver's."""
_ORDINAL = re.compile(r"gpu:(\d{1,9})$", re.IGNORECASE)
_CAUSED = (*LAUNCHED_TABLES, "synchronizations", "memory_operations")
"""The tables of work and waits that calls cause, linked by correlation id."""
_LARGEST_U32 = (1 << 32) - 1
_LARGEST_TIME = np.int64((1 << 63) - 1)
_NOT_STATED = {
    ("memcpys", "is_async"): ASYNC_NOT_KNOWN,
    ("memsets", "is_async"): ASYNC_NOT_KNOWN,
    ("synchronizations", "event_id"): NO_OBJECT,
    ("cuda_events", "event_id"): NO_OBJECT,
    ("devices", "gpu_instance_id"): NO_OBJECT,
    ("devices", "compute_instance_id"): NO_OBJECT,
}
"""Table and column -> the value that stands for "not stated", where that is not 0."""


def not_stated(table: str, column: str) -> int:
    """The value of a column in rows for which a file does not state it."""
    return _NOT_STATED.get((table, column), 0)


def is_api_name(name: str) -> bool:
    """Whether the name of a host row is a function of CUDA's driver or runtime API, or of HIP."""
    return _API.match(name) is not None


def device_ids(units: Iterable[str]) -> dict[str, int]:
    """A number for each GPU: its own, or the next free number if another rank already has it."""
    numbers = FreeNumbers()
    ordinals = {unit: _ORDINAL.search(unit) for unit in units}
    return {unit: numbers.take(int(ordinal[1]) if ordinal else 0) for unit, ordinal in ordinals.items()}


class CaptureBuilder:
    """The columns of one step as stated in a file; missing values are those of `not_stated`.

    Times are wall time, or relative to the origin of the file's times.
    """

    def __init__(self) -> None:
        self._tables: dict[str, list[dict[str, npt.NDArray[Any]]]] = defaultdict(list)
        self._strings: dict[str, int] = {"": 0}
        self._details: dict[Details, int] = {}
        self._ops: list[tuple[Numbers, Sequence[str], Numbers]] = []
        self._links: list[tuple[Numbers, Numbers]] = []
        self._captured: dict[str, int] = {}
        """Op at the capture of CUDA graph nodes -> its preliminary number in ``captured_external_id``."""
        self.without_columns = 0
        """The number of nodes or events in the file for which no table has columns."""

    def name_ids(self, names: Sequence[str]) -> Numbers:
        """The indices of names in the recording's strings."""
        return np.array([self._strings.setdefault(name, len(self._strings)) for name in names], np.int64)

    def details_ids(self, details: Sequence[Details]) -> Numbers:
        """``details_id`` of annotations with these details; 0 for empty ones."""
        known, none = self._details, Details()
        return np.array([known.setdefault(each, len(known) + 1) if each != none else 0 for each in details], np.int64)

    def add(self, table: str, **columns: Column) -> None:
        """Add rows; all columns have the same length, and values outside a column's range become 0.

        A column may be a function that makes it, so that a table of millions of rows is not in memory as numbers of 64
        bits as well: it is called once, and its result is kept in the table's type.
        """
        held: dict[str, npt.NDArray[Any]] = {}
        for name, given in columns.items():
            held[name] = _held(given() if callable(given) else given, SCHEMA[table][name])
        rows = len(next(iter(held.values()), ()))
        if rows:
            missing = {
                name: np.full(rows, not_stated(table, name), dtype)
                for name, dtype in SCHEMA[table].items()
                if name not in held
            }
            self._tables[table].append(held | missing)

    def add_api_calls(self, names: Sequence[str], name_index: Numbers, **columns: Column) -> None:
        """Add API calls; call ``n`` calls the function ``names[name_index[n]]``."""
        domains = np.array([RUNTIME_DOMAIN if name.startswith(_RUNTIME) else DRIVER_DOMAIN for name in names], np.int64)
        ids = self.name_ids(names)
        self.add("api_calls", name_id=lambda: ids[name_index], domain=lambda: domains[name_index], **columns)

    def launched_under(self, correlation_ids: Numbers, ops: Sequence[str], op_index: Numbers) -> None:
        """Set the op of GPU work: the work with ``correlation_ids[n]`` was launched under ``ops[op_index[n]]``.

        The part of an op that names the capture of a node is left out: see `captured_under`.
        """
        if len(correlation_ids):
            launched = [split_at_capture(op)[0] for op in ops]
            places = {op: place for place, op in enumerate(dict.fromkeys(launched))}
            numbers = np.array([places[op] for op in launched], np.int64)
            self._ops.append((correlation_ids, list(places), numbers[op_index]))

    def captured_under(self, ops: Sequence[str]) -> Numbers:
        """``captured_external_id`` of GPU work with these ops, for `add`; 0 for ops that name no capture.

        Nodes of a CUDA graph share the correlation id of its launch, and each has the op of its own capture.
        """
        known, captures = self._captured, (split_at_capture(op)[1] for op in ops)
        return np.array([known.setdefault(each, len(known) + 1) if each else 0 for each in captures], np.int64)

    def launched_in(self, correlation_ids: Numbers, annotation_rows: Numbers) -> None:
        """Set the annotation of GPU work by the annotation's row, counted in the order of addition."""
        self._links.append((correlation_ids, annotation_rows))

    def unused_correlation_ids(self, count: int) -> Numbers:
        """Correlation ids for GPU work that has an op but no correlation id in the file."""
        return _LARGEST_U32 - np.arange(count, dtype=np.int64) - 1

    def recording(
        self, counters: Mapping[str, int], environment: Mapping[str, Any], window: Window | None = None
    ) -> Recording:
        """The recording of all rows; its ledger holds `without_columns`.

        Args:
            counters: the counts of the source.
            environment: the environment of the recording.
            window: the window of the step that a file states; None: from the first start to the last end.
        """
        return in_window(Recording.from_capture(self.capture(counters, environment)), window)

    def capture(self, counters: Mapping[str, int], environment: Mapping[str, Any]) -> Capture:
        """All rows as a capture. The builder is empty afterwards."""
        tables = {name: self._joined(name) for name in SCHEMA}
        first_ns, last_ns = _bounds(tables)
        # A recording's times are positive; its clock relates them to wall time.
        shift_ns = 1 - first_ns if first_ns <= 0 else 0
        for columns in tables.values():
            for name in ("start_ns", "end_ns"):
                if shift_ns and name in columns:
                    columns[name] = columns[name] + shift_ns
        self._link_ops(tables)
        return {
            "tables": tables,
            "strings": list(self._strings),
            "counters": {**counters, **self._own_counters()},
            "clock": {
                "cupti_start_ns": first_ns + shift_ns,
                "cupti_stop_ns": last_ns + shift_ns,
                "wall_start_ns": first_ns,
                "wall_stop_ns": last_ns,
                "uncertainty_ns": 0,
            },
            "environment": dict(environment),
            "details": list(self._details),
        }

    def _own_counters(self) -> dict[str, int]:
        return {"nodes_without_columns": self.without_columns} if self.without_columns else {}

    def _joined(self, table: str) -> dict[str, npt.NDArray[Any]]:
        parts = self._tables.pop(table, None)
        if parts is not None and len(parts) == 1:
            return parts[0]
        if not parts:
            return {name: np.zeros(0, dtype) for name, dtype in SCHEMA[table].items()}
        return {name: np.concatenate([part[name] for part in parts]) for name in SCHEMA[table]}

    def _link_ops(self, tables: dict[str, dict[str, npt.NDArray[Any]]]) -> None:
        """Assign external ids to annotations, and link each launch to the annotation with its op's name that was open.

        An op without a row of its own gets an annotation without times, which stands for its name alone.
        """
        annotations = tables["annotations"]
        annotations["external_id"] = np.arange(1, len(annotations["start_ns"]) + 1, dtype=np.uint64)
        external = [(correlation_ids, rows + 1) for correlation_ids, rows in self._links]
        missing: dict[str, int] = {}

        def without_row(op: str) -> int:
            return missing.setdefault(op, len(annotations["start_ns"]) + len(missing) + 1)

        if self._ops or self._captured:
            named = _NamedAnnotations(annotations, list(self._strings))
            launches = _Launches.of(tables)
            for correlation_ids, ops, op_index in self._ops:
                ids = named.open_at(ops, op_index, *launches.found(correlation_ids)) + 1
                without = (ids == 0) & np.array([*map(bool, ops)], bool)[op_index]
                new_ids = np.zeros(len(ops), np.int64)
                for place in distinct_values(op_index[without]).tolist():
                    new_ids[place] = without_row(ops[place])
                ids[without] = new_ids[op_index[without]]
                linked, first = np.unique(correlation_ids[ids > 0], return_index=True)
                external.append((linked, ids[ids > 0][first]))
            captured = [0]
            for op in self._captured:
                row = named.first_row(op)
                captured.append(without_row(op) if row is None else row + 1)
            for columns in (tables[name] for name in ACTIVITY_TABLES if self._captured):
                columns["captured_external_id"] = np.array(captured, np.uint64)[columns["captured_external_id"]]
        if missing:
            added = {name: np.zeros(len(missing), dtype) for name, dtype in SCHEMA["annotations"].items()}
            added["name_id"][:] = self.name_ids(list(missing))
            added["external_id"][:] = list(missing.values())
            tables["annotations"] = {name: np.concatenate([annotations[name], added[name]]) for name in added}
        if external:
            launched, owners = (np.concatenate(each) for each in zip(*external, strict=True))
            tables["external_correlations"] = {
                "correlation_id": launched.astype(np.uint32),
                "external_id": owners.astype(np.uint64),
                "external_kind": np.full(len(launched), ANNOTATION_EXTERNAL_KIND, np.uint8),
            }


def with_stated_ledger(recording: Recording, figures: Mapping[str, int], *, is_whole: bool = True) -> Recording:
    """The recording with the ledger that its file states, whose figures are among its counters.

    The rows of each table are counted anew, because the file may have only a part of them, and some may have impossible
    times. If the stated ledger is not ``is_whole``, its missing figures are counted as well.
    """
    if not figures:
        return recording
    counted = {} if is_whole else recording.ledger.as_dict()
    rows = {name: len(getattr(recording, name)) for name in SCHEMA}
    apart = {name: getattr(recording.ledger, name) for name in SET_APART}
    return recording.restated(ledger=Ledger.from_dict({**counted, **recording.counters, **rows, **apart}))


def rows_without_columns(figures: Mapping[str, int], recording: Recording, tables: Iterable[str]) -> dict[str, int]:
    """The number of rows that a file's ledger counts, and that the recording made of the file lacks.

    Args:
        figures: the figures of the ledger that the file states.
        recording: the recording made of the file.
        tables: the tables that may lack rows.
    """
    missing = {
        table: number for table in tables if (number := figures.get(table, 0) - len(getattr(recording, table))) > 0
    }
    return {f"rows without columns ({', '.join(missing)})": sum(missing.values())} if missing else {}


def _held(values: Numbers, dtype: Any) -> npt.NDArray[Any]:
    """Numbers in the type of a table's column. A column of zeros takes no memory, as nothing is written to it."""
    if not values.any():
        return np.zeros(len(values), dtype)
    limits = np.iinfo(dtype)
    if values.min() >= limits.min and values.max() <= limits.max:
        return values.astype(dtype, copy=False)
    fits = (values >= max(limits.min, -(1 << 63))) & (values <= min(limits.max, (1 << 63) - 1))
    return np.where(fits, values, 0).astype(dtype)


def _spelling(name: str) -> str:
    """A name without colons, which an op in ``op:kernel`` cannot contain."""
    return re.sub(r":+", ".", name)


def _bounds(tables: Mapping[str, Mapping[str, npt.NDArray[Any]]]) -> tuple[int, int]:
    filled = [columns for columns in tables.values() if len(columns.get("start_ns", ()))]
    first = min((int(columns["start_ns"].min()) for columns in filled), default=0)
    return first, max((int(columns.get("end_ns", columns["start_ns"]).max()) for columns in filled), default=0)


class _Launches(NamedTuple):
    """The launches of a capture: each at the start of its call or, without a recorded call, at that of its work."""

    correlation_ids: Numbers
    """Sorted."""
    starts_ns: Numbers
    threads: Numbers
    """The thread of the call; -1: there is no call."""

    @classmethod
    def of(cls, tables: Mapping[str, Mapping[str, npt.NDArray[Any]]]) -> _Launches:
        """The launches of all calls, and of all rows that calls cause."""
        calls = tables["api_calls"]
        rows = [calls, *(tables[name] for name in _CAUSED)]
        ids = np.concatenate([columns["correlation_id"] for columns in rows]).astype(np.int64)
        starts_ns = np.concatenate([columns["start_ns"] for columns in rows])
        threads = np.full(len(ids), -1, np.int64)
        threads[: len(calls["thread_id"])] = calls["thread_id"]
        found, first = first_rows(ids, threads < 0, starts_ns)
        return cls(found, starts_ns[first], threads[first])

    def found(self, correlation_ids: Numbers) -> tuple[Numbers, Numbers]:
        """Start and thread of the launches with these ids; both are -1 if there is none."""
        places = look_up(correlation_ids, self.correlation_ids, np.arange(len(self.correlation_ids)))
        return np.append(self.starts_ns, -1)[places], np.append(self.threads, -1)[places]


class _NamedAnnotations:
    """The annotations of a capture, which are found by name, thread and time."""

    def __init__(self, annotations: Mapping[str, npt.NDArray[Any]], strings: Sequence[str]) -> None:
        name_ids, index = distinct_codes(annotations["name_id"])
        self._numbers: dict[str, int] = {}
        spellings = [_spelling(strings[name_id]) for name_id in name_ids.tolist()]
        numbers = [self._numbers.setdefault(spelling, len(self._numbers)) for spelling in spellings]
        self._names = np.array(numbers, np.int64)[index]
        self._threads = annotations["thread_id"].astype(np.int64)
        self._starts_ns, self._ends_ns = annotations["start_ns"], annotations["end_ns"]

    def open_at(self, ops: Sequence[str], op_index: Numbers, times_ns: Numbers, threads: Numbers) -> Numbers:
        """The row of each launch's annotation: the one of its op's name that was open and began last; -1: none.

        An annotation of the calling thread counts before those of other threads, under which work is launched as well:
        by a coroutine, or by a thread to which a context was passed. Without a call the time of the launch is not
        known: its annotation may have ended before the work began.

        Args:
            ops: names of annotations.
            op_index: the index of each launch's op among them.
            times_ns: the times of the launches, or of their work.
            threads: the threads of the calls; -1: there is no call.
        """
        names = np.array([self._numbers.get(_spelling(op), -1) if op else -1 for op in ops], np.int64)[op_index]
        closed_ns = self._ends_ns + 1  # an annotation is open at its end
        rows = self._last(self._names << 32 | self._threads, closed_ns, names << 32 | threads, times_ns)
        other = np.flatnonzero((rows < 0) & (names >= 0))
        rows[other] = self._last(self._names, closed_ns, names[other], times_ns[other])
        without_call = other[(rows[other] < 0) & (threads[other] < 0)]
        never_ns = np.full(len(self._names), _LARGEST_TIME)
        rows[without_call] = self._last(self._names, never_ns, names[without_call], times_ns[without_call])
        return rows

    def _last(self, keys: Numbers, closed_ns: Numbers, wanted: Numbers, times_ns: Numbers) -> Numbers:
        """The row with each wanted key that began last up to its time, of those that were not closed then."""
        rows, _ = convert_extension.innermost_ranges(keys, self._starts_ns, closed_ns, wanted, times_ns)
        return rows

    def first_row(self, op: str) -> int | None:
        """The row of the annotation of this name that began first; None: there is none."""
        number = self._numbers.get(_spelling(op))
        return None if number is None else int(self._first_rows[number])

    @cached_property
    def _first_rows(self) -> Numbers:
        _, rows = first_rows(self._names, self._starts_ns)
        return rows
