"""Steps from a Chrome trace of another profiler: PyTorch's (Kineto), XProf's, or any program with timed events.

GPU work goes to the devices that our own recordings use (``/gpu:D/stream:S``, ``/gpu:D/stream:all``,
``/gpu:D/memcpy``); work of the host goes to ``/cpu:0``, and further processes to devices of their own.
"""

from __future__ import annotations

import re
from collections import Counter
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.formats.capture_builder import rows_without_columns, with_stated_ledger
from collector.formats.chrome_events import NO_BASE, ChromeEvents, has_time, per_place, possible_base, text
from collector.formats.kind_numbers import copy_kind_number, memory_kind_number
from collector.formats.profiler_devices import add_devices
from collector.formats.profiler_dialect import (
    CALL,
    COLLECTIVE_FIGURES,
    COLLECTIVE_NAME,
    ELEMENT_TYPE,
    GPU_ANNOTATION,
    GROUP,
    KERNEL,
    MEMCPY,
    MEMORY,
    MEMSET,
    OP,
    OTHER,
    SIDE,
    SOURCE,
    SYNC,
    Names,
    ProfilerDialect,
)
from collector.formats.profiler_hosts import HostTracks
from collector.formats.step_sources import RecordingSource
from collector.formats.timed_spans import count_other_phases, timed_spans
from collector.formats.timeline_side_rows import SideRows
from collector.recording.capture import NO_OBJECT
from collector.recording.cupti_enums import ALLOCATION, RELEASE
from collector.recording.distinct import distinct_codes, distinct_values
from collector.recording.possible_times import is_wall_time
from collector.recording.row_arguments import RowArguments
from collector.recording.schema import SCHEMA
from collector.runtime.extension import convert_extension
from collector.stepstats.stated_window import in_window

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from collector.formats.capture_builder import CaptureBuilder, Column
    from collector.formats.chrome_events import Numbers
    from collector.recording.recording import Recording
    from collector.recording.row_arguments import ArgumentColumn
    from collector.stepstats.stated_window import Window

_TABLES = {KERNEL: "kernels", MEMCPY: "memcpys", MEMSET: "memsets"}
_LINKS = ("external_correlations",)
"""Tables that link rows of other tables."""
_OTHERS = (GPU_ANNOTATION, OTHER)
"""Kinds of events in the table ``other_ranges``."""
_KINDS_OF = {
    "annotations": (OP,),
    "api_calls": (CALL,),
    "synchronizations": (SYNC,),
    "other_ranges": _OTHERS,
    "memory_operations": (MEMORY,),
    **{table: (kind,) for kind, table in _TABLES.items()},
}
"""Table -> the kinds of events that are its rows."""
_MEMORIES = re.compile(r"\(([A-Za-z0-9 ]+?)(?: -> ([A-Za-z0-9 ]+))?\)")
_COPY_KIND = re.compile(r"\b(HtoD|DtoH|DtoD|PtoP|HtoH|HtoA|AtoH|AtoA|AtoD|DtoA|kind [0-9]+)\b")
_LARGEST = (1 << 63) - 1
_LISTED_ARGUMENTS = 100
"""The number of names of arguments that a recording lists at most."""
_CUDA_DEVICE = 1
"""PyTorch's number of CUDA among the types of devices."""


@dataclass
class _Work:
    """GPU work with its launches, as columns."""

    spans: Numbers
    """The indices of the work among the spans."""
    rows: Numbers
    kinds: npt.NDArray[np.integer]
    correlations: Numbers
    calls: Numbers
    """The index among the spans of the launching call; -1: it is not in the trace."""
    op_spans: Numbers
    """The index among the spans of the op around the launch; -1: it is not known."""
    stated_ops: Names
    """The ops that the work itself states."""


class ProfilerTrace(RecordingSource):
    """The step in a profiler's trace; what cannot be read is counted in ``found.skipped``."""

    counts_cut_files = False

    def __init__(
        self,
        dialect: ProfilerDialect,
        *,
        device_prefix: str = "",
        unread: Mapping[str, int] | None = None,
        figures: Mapping[str, int] | None = None,
        has_all_figures: bool = True,
        window: Window | None = None,
        is_simulated: bool = False,
        environment: Mapping[str, Any] | None = None,
    ) -> None:
        """Read the times of all events; columns are made of them when they are asked for.

        Args:
            dialect: the trace.
            device_prefix: put before the names of devices where StepStats are made of the columns.
            unread: the losses that the trace states; see `StepSource.unread`.
            figures: the figures of the ledger that the trace states.
            has_all_figures: whether these are all figures that are not 0; otherwise the missing ones are counted.
            window: the window of the step that the trace states; None: from the first start to the last end.
            is_simulated: whether the trace states that its GPU was simulated.
            environment: what the trace states besides of the environment of its step.
        """
        self.device_prefix = device_prefix
        self._unread = unread or {}
        self._figures = figures or {}
        self._has_all_figures = has_all_figures
        self._window = window
        self._is_simulated = is_simulated
        self._environment = environment or {}
        self._dialect = dialect
        found = dialect.found
        self._base_ns = _base_ns(found)
        self._spans = timed_spans(found, self._base_ns)
        self._rows = self._spans.rows
        count_other_phases(found, self._memory_rows())
        if found.is_cut and len(self._rows) and not is_wall_time(int(self._spans.starts_ns().min())):
            found.skipped[NO_BASE] += 1

    @property
    def is_empty(self) -> bool:
        """Whether nothing in the trace is an event with a time."""
        return not len(self._rows)

    @cached_property
    def _kinds(self) -> npt.NDArray[np.integer]:
        return self._dialect.kinds(self._rows)

    def _spans_of(self, *kinds: int) -> Numbers:
        """The places of the spans of these kinds."""
        found: Numbers = np.flatnonzero(np.isin(self._kinds, kinds))
        return found

    @cached_property
    def _ops_at_calls(self) -> tuple[Numbers, Numbers]:
        """For each call that caused something the op that was open when it began, -1: none; how deep each op lies."""
        calls, ops = self._causes, self._spans_of(OP)
        starts_ns = self._spans.starts_ns(ops)
        innermost, depths = convert_extension.innermost_ranges(
            self._thread_keys(ops),
            starts_ns,
            starts_ns + self._spans.durations_ns(ops),
            self._thread_keys(calls),
            self._spans.starts_ns(calls),
        )
        return np.where(innermost >= 0, ops[innermost] if len(ops) else -1, -1), depths

    def _thread_keys(self, spans: Numbers) -> Numbers:
        """A number for the thread of each span. Some files write ids as numbers, some as text, and some as both."""
        found = self._dialect.found
        keys: dict[tuple[str, str], int] = {}
        numbers = [keys.setdefault((str(process), str(thread)), len(keys)) for process, thread in found.tracks]
        return np.array(numbers, np.int64)[found.track_numbers(self._rows[spans])]

    @cached_property
    def _causes(self) -> Numbers:
        """The calls that caused GPU work, waits and the like, in order."""
        work = self._rows[self._spans_of(KERNEL, MEMCPY, MEMSET, SIDE)]
        calls = self._calls_of(self._dialect.correlations(work))
        return distinct_values(calls[calls >= 0])

    @cached_property
    def _work(self) -> _Work:
        dialect = self._dialect
        spans = self._spans_of(KERNEL, MEMCPY, MEMSET)
        rows = self._rows[spans]
        correlations = dialect.correlations(rows)
        calls = self._calls_of(correlations)
        ops = self._ops_by_external_id(rows, self._spans_of(OP))
        op_spans = np.where(calls >= 0, _look_up(calls, self._causes, self._ops_at_calls[0]), ops)
        return _Work(spans, rows, self._kinds[spans], correlations, calls, op_spans, dialect.stated_ops(rows))

    def _calls_of(self, correlations: Numbers) -> Numbers:
        """For each correlation id the first call that has it: the runtime call, not the driver call in it."""
        calls = self._spans_of(CALL)
        ids, first = np.unique(self._dialect.correlations(self._rows[calls]), return_index=True)
        return np.where(correlations > 0, _look_up(correlations, ids, calls[first]), -1)

    def _ops_by_external_id(self, rows: Numbers, ops: Numbers) -> Numbers:
        """The op of work whose call is not in the trace, by its external id; -1: it is not known.

        Before PyTorch 2.1 the external id of an activity is its correlation id, so the call is asked first.
        """
        ids, last = np.unique(self._dialect.external_ids(self._rows[ops])[::-1], return_index=True)
        wanted = self._dialect.external_ids(rows)
        return np.where(wanted > 0, _look_up(wanted, ids, ops[::-1][last]), -1)

    def unread(self) -> Mapping[str, int]:
        """See `StepSource`; also the rows of the step that the stated figures count and the trace does not have.

        A merged profile shows waits, memory and launches of graphs as ranges, and all leave some objects out.
        """
        tables = (table for table in SCHEMA if table not in _LINKS)
        return {**self._unread, **rows_without_columns(self._figures, self._recording, tables)}

    @cached_property
    def _recording(self) -> Recording:  # type: ignore[override]  # made when it is asked for
        from collector.recording.recording import Recording

        unread = self._arguments_without_columns()
        environment: dict[str, Any] = {**self._environment, **self._hosts.environment(), "source": SOURCE}
        if self._is_simulated:
            environment["simulated"] = True
        built = self._built()
        if unread:
            environment["arguments_without_columns"] = unread
        if not_kept := +self._dialect.found.not_kept:
            environment["arguments_not_kept"] = {text(name): not_kept[name] for name in sorted(not_kept)}
        capture = built.capture(self._figures, environment)
        if unread:
            # Made by a copy, which has no recording: a cycle would keep all events until the garbage collector runs.
            capture["arguments"] = RowArguments(copy(self)._row_arguments)
        made = Recording.from_capture(capture)
        recording = with_stated_ledger(made, self._figures, is_whole=self._has_all_figures)
        return in_window(recording, self._window)

    def _built(self) -> CaptureBuilder:
        from collector.formats.capture_builder import CaptureBuilder

        built = CaptureBuilder()
        self._add_annotations(built)
        self._add_calls(built)
        self._add_side_rows(built)
        self._add_work(built)
        self._add_waits(built)
        self._add_memory_operations(built)
        add_devices(built, self._dialect.found.metadata.get("deviceProperties"))
        self._add_other_ranges(built)
        del self._kinds  # the recording takes memory of its own
        return built

    def _row_arguments(self) -> dict[str, dict[str, ArgumentColumn]]:
        """Arguments of events that have no column, by table and argument, in the order of the rows."""
        from collector.recording.capture_tables import rows_in_parts

        found = self._dialect.found
        capture = self._built().capture(self._figures, {})
        tables: dict[str, dict[str, ArgumentColumn]] = {}
        for table, kinds in _KINDS_OF.items():
            events = self._events_of(*kinds)
            order = np.minimum(rows_in_parts(capture, table), len(events))
            rows = np.append(events, -1)[order]  # -1: of no event
            tables[table] = self._dialect.unread_details(table, rows)
            for name in sorted(found.argument_counts(events)):
                read = [kind for kind in kinds if name in self._dialect.arguments_of[kind]]
                if len(read) == len(kinds):
                    continue
                own = np.where(np.isin(rows, self._events_of(*read)), -1, rows) if read else rows
                column = found.argument_column(name, own)
                if column is not None:
                    tables[table][text(name)] = column
        return {table: columns for table, columns in tables.items() if columns}

    def _events_of(self, *kinds: int) -> Numbers:
        """The events of these kinds, in the order in which they are added to their table."""
        return self._memory_rows() if kinds == (MEMORY,) else self._rows[self._spans_of(*kinds)]

    def _arguments_without_columns(self) -> dict[str, int]:
        """The number of events with each argument that no column takes: the most frequent ones, and all others."""
        found, arguments_of = self._dialect.found, self._dialect.arguments_of
        counts: Counter[str] = Counter()
        elsewhere = found.argument_counts()
        for kind, read in arguments_of.items():
            own = found.argument_counts(self._events_of(kind))
            elsewhere.subtract(own)
            counts.update({argument: count for argument, count in own.items() if argument not in read})
        # Events that are not rows, such as allocations of the host, have arguments of those that are.
        known = frozenset().union(*arguments_of.values())
        counts.update({argument: count for argument, count in (+elsewhere).items() if argument not in known})
        for table, kinds in _KINDS_OF.items():
            for name, column in self._dialect.unread_details(table, self._events_of(*kinds)).items():
                counts[name] += len(column.rows)
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        shown = {text(argument): count for argument, count in ordered[:_LISTED_ARGUMENTS]}
        others = sum(count for _, count in ordered[_LISTED_ARGUMENTS:])
        return shown | ({"(others)": others} if others else {})

    def _times(self, spans: Numbers) -> dict[str, Numbers]:
        starts_ns = self._spans.starts_ns(spans)
        return {"start_ns": starts_ns, "end_ns": starts_ns + self._spans.durations_ns(spans)}

    def _add_annotations(self, built: CaptureBuilder) -> None:
        ops = self._spans_of(OP)
        names, index = self._dialect.names(self._rows[ops])
        threads = self._threads(self._rows[ops])
        details, detail_places = self._dialect.op_details(self._rows[ops])
        built.add(
            "annotations",
            **self._times(ops),
            op_sequence=self._dialect.op_sequences(self._rows[ops]),
            **self._dialect.stated_columns("annotations", self._rows[ops], built),
            name_id=built.name_ids(names)[index],
            thread_id=threads,
            depth=self._ops_at_calls[1],
            details_id=built.details_ids(details)[detail_places] if details else detail_places,
        )

    def _add_calls(self, built: CaptureBuilder) -> None:
        calls = self._spans_of(CALL)
        rows = self._rows[calls]
        names, index = self._dialect.names(rows)
        built.add_api_calls(
            names,
            index,
            **self._times(calls),
            process_id=partial(self._dialect.processes, rows),
            thread_id=partial(self._threads, rows),
            correlation_id=partial(self._dialect.correlations, rows),
            **self._dialect.stated_columns("api_calls", rows, built),
        )

    def _add_waits(self, built: CaptureBuilder) -> None:
        """Waits, and the records of the CUDA events that they wait for.

        Kineto says by which call an event was recorded: the id of that call stands for CUPTI's id of one record.
        """
        dialect, found = self._dialect, self._dialect.found
        waits = self._spans_of(SYNC)
        rows = self._rows[waits]
        events, recorded_by = found.integers("wait_on_cuda_event_id", rows), dialect.recorded_by(rows)
        events = np.where(events < 0, NO_OBJECT, events)
        built.add(
            "synchronizations",
            **self._times(waits),
            sync_type=dialect.sync_types(rows),
            context_id=self._figure("context", rows),
            stream_id=dialect.streams(rows),
            correlation_id=dialect.correlations(rows),
            event_id=events,
            event_sync_id=recorded_by,
        )
        distinct, first = np.unique(recorded_by, return_index=True)
        first = first[distinct > 0]
        built.add(
            "cuda_events",
            device_id=dialect.devices(rows)[first],
            context_id=self._figure("context", rows)[first],
            stream_id=np.maximum(dialect.stated_streams("wait_on_stream", rows), 0)[first],
            correlation_id=recorded_by[first],
            event_id=events[first],
            event_sync_id=recorded_by[first],
        )

    def _add_side_rows(self, built: CaptureBuilder) -> None:
        """Add the rows that state their tables. The op of what a call caused is the one around the call."""
        spans = self._spans_of(SIDE)
        if not len(spans):
            return
        rows = self._rows[spans]
        tables, index = self._dialect.side_tables(rows)
        correlations = self._dialect.correlations(rows)
        side = SideRows(self._dialect.found)
        for number, table in enumerate(tables):
            own = np.flatnonzero(index == number)
            columns: dict[str, Column] = {
                **self._times(spans[own]),
                "correlation_id": correlations[own],
                **side.columns(table, rows[own], built),
            }
            if table == "graph_launches":
                columns |= dict.fromkeys(("device_id", "end_device_id"), self._dialect.devices(rows[own]))
            built.add(table, **{name: column for name, column in columns.items() if name in SCHEMA[table]})
        linked = np.unique(correlations)
        calls = self._calls_of(linked)
        ops = np.where(calls >= 0, _look_up(calls, self._causes, self._ops_at_calls[0]), -1)
        is_linked = (ops >= 0) & ~np.isin(linked, self._work.correlations)  # GPU work states its op
        built.launched_in(linked[is_linked], np.searchsorted(self._spans_of(OP), ops[is_linked]))

    def _add_memory_operations(self, built: CaptureBuilder) -> None:
        """Allocations and releases of PyTorch's allocator on GPUs: instants with a signed number of bytes."""
        found = self._dialect.found
        rows = self._memory_rows()
        num_bytes = found.signed_integers("Bytes", rows)
        built.add(
            "memory_operations",
            start_ns=found.starts_ns(rows) + self._base_ns,
            operation=np.where(num_bytes < 0, RELEASE, ALLOCATION),
            memory_kind=np.full(len(rows), memory_kind_number("Device"), np.int64),
            address=np.maximum(found.signed_integers("Addr", rows), 0),
            num_bytes=np.abs(num_bytes),
            device_id=self._dialect.memory_devices(rows),
        )

    def _memory_rows(self) -> Numbers:
        """The events of the allocator on GPUs."""
        found = self._dialect.found
        rows = found.rows("i")
        rows = rows[found.has("Bytes", rows) & (found.integers("Device Type", rows) == _CUDA_DEVICE)]
        timed: Numbers = rows[has_time(found.starts_ns(rows))]
        return timed

    def _add_other_ranges(self, built: CaptureBuilder) -> None:
        """Ranges of GPU rows that are not work, functions of Python, and rows of any other program."""
        dialect, found = self._dialect, self._dialect.found
        others = self._spans_of(*_OTHERS)
        rows = self._rows[others]
        is_of_gpu = self._kinds[others] == GPU_ANNOTATION
        names, index = dialect.names(rows)
        categories, category_index = found.categories(rows)
        tracks = found.track_numbers(rows)
        gpus, gpu_index = distinct_codes(dialect.devices(rows[is_of_gpu]))
        (gpu_rows, row_index), row_numbers = dialect.gpu_rows(rows[is_of_gpu])
        devices = built.name_ids([*self._hosts.devices, *(f"/gpu:{gpu}/annotations" for gpu in gpus.tolist())])
        threads = built.name_ids([*self._hosts.names, *gpu_rows])
        device_places, thread_places = tracks.copy(), tracks
        device_places[is_of_gpu] = len(found.tracks) + gpu_index
        thread_places[is_of_gpu] = len(found.tracks) + row_index
        thread_ids = self._threads(rows)
        thread_ids[is_of_gpu] = row_numbers
        built.add(
            "other_ranges",
            **self._times(others),
            name_id=built.name_ids(names)[index],
            device_name_id=devices[device_places],
            category_name_id=built.name_ids(categories)[category_index],
            thread_id=thread_ids,
            thread_name_id=threads[thread_places],
            correlation_id=dialect.correlations(rows),
        )

    def _threads(self, rows: Numbers) -> Numbers:
        """The numbers of threads."""
        return np.array([*self._hosts.thread_numbers, 0], np.int64)[self._dialect.found.track_numbers(rows)]

    @cached_property
    def _hosts(self) -> HostTracks:
        return HostTracks(
            self._dialect, self._rows[self._spans_of(OP, CALL, OTHER)], self._rows[self._spans_of(OP, CALL)]
        )

    def _add_work(self, built: CaptureBuilder) -> None:
        work = self._work
        stated, index = work.stated_ops
        is_stated = np.array([bool(op) for op in stated] + [False], bool)[index]
        is_linked = (index < 0) & (work.op_spans >= 0)
        correlations = work.correlations.copy()
        without = np.flatnonzero((is_stated | is_linked) & (correlations == 0))
        correlations[without] = built.unused_correlation_ids(len(without))
        linked, first = np.unique(correlations[is_linked], return_index=True)
        built.launched_in(linked, np.searchsorted(self._spans_of(OP), work.op_spans[is_linked][first]))
        built.launched_under(correlations[is_stated], stated, index[is_stated])
        spans = {kind: work.spans[work.kinds == kind] for kind in _TABLES}
        correlation_ids = {kind: correlations[work.kinds == kind] for kind in _TABLES}
        captures = np.append(built.captured_under(stated), 0)
        captured = {kind: captures[index[work.kinds == kind]] for kind in _TABLES if captures.any()}
        calls = self._stating_calls(work)
        del work, correlations, stated, index, is_stated, is_linked  # before the columns take their memory
        del self._work, self._ops_at_calls, self._causes
        self._add_collectives(built, spans[KERNEL], correlation_ids[KERNEL])
        for kind, table in _TABLES.items():
            rows = self._rows[spans[kind]]
            columns: dict[str, Column] = {
                **self._times(spans.pop(kind)),
                "device_id": partial(self._dialect.devices, rows),
                "stream_id": partial(self._dialect.streams, rows),
                "context_id": partial(self._figure, "context", rows),
                "correlation_id": correlation_ids.pop(kind),
                "graph_id": partial(self._figure, "graph id", rows),
                "graph_node_id": partial(self._figure, "graph node id", rows),
            }
            if kind in captured:
                columns["captured_external_id"] = captured.pop(kind)
            of_kind = self._kernel_columns if kind == KERNEL else partial(self._copy_columns, kind)
            own = self._dialect.stated_columns(table, rows, built)
            built.add(table, **columns, **of_kind(built, rows, calls.get(kind)), **own)

    def _stating_calls(self, work: _Work) -> dict[int, Numbers]:
        """Kind of GPU work -> the event of the call of each, -1: none; empty if calls state nothing of their work."""
        calls = self._events_of(CALL)
        if self._dialect.launch_arguments.isdisjoint(self._dialect.found.argument_counts(calls)):
            return {}
        events = np.append(self._rows, -1)[work.calls]
        return {kind: events[work.kinds == kind] for kind in _TABLES}

    def _add_collectives(self, built: CaptureBuilder, kernels: Numbers, correlation_ids: Numbers) -> None:
        """Add the collectives that their kernels state."""
        found = self._dialect.found
        is_collective = found.has(COLLECTIVE_NAME, self._rows[kernels]) | found.has(GROUP, self._rows[kernels])
        rows = self._rows[kernels[is_collective]]

        def name_ids(argument: str) -> Numbers:
            return built.name_ids([_word(value) for value in found.all_values(argument, rows)])

        columns = {column: found.integers(argument, rows, _LARGEST) for argument, column in COLLECTIVE_FIGURES.items()}
        built.add(
            "collectives",
            start_ns=self._spans.starts_ns(kernels[is_collective]),
            device_id=self._dialect.devices(rows),
            stream_id=self._dialect.streams(rows),
            context_id=self._figure("context", rows),
            correlation_id=correlation_ids[is_collective],
            name_id=name_ids(COLLECTIVE_NAME),
            group_name_id=name_ids(GROUP),
            type_name_id=name_ids(ELEMENT_TYPE),
            **{column: np.maximum(values, 0) for column, values in columns.items()},
        )

    def _figure(self, figure: str, rows: Numbers, calls: Numbers | None = None) -> Numbers:
        """A figure of GPU work, or what the given calls state of it; 0 where it is not stated."""
        stated = self._dialect.figures(figure, rows)
        if calls is not None:
            stated = np.where(stated < 0, self._dialect.launched_figures(figure, calls), stated)
        return np.maximum(stated, 0)

    def _kernel_columns(self, built: CaptureBuilder, rows: Numbers, calls: Numbers | None) -> dict[str, Column]:
        def name_ids() -> Numbers:
            names, index = self._dialect.names(rows)
            return built.name_ids(names)[index]

        def static_bytes() -> Numbers:
            return np.maximum(self._dialect.static_shared_bytes(rows), 0)

        columns: dict[str, Column] = {
            "name_id": name_ids,
            "registers_per_thread": partial(self._figure, "registers per thread", rows),
            "static_shared_bytes": static_bytes,
            "dynamic_shared_bytes": lambda: np.maximum(self._figure("shared memory", rows, calls) - static_bytes(), 0),
        }
        for which in ("grid", "block"):
            shapes = self._dialect.shapes(which, rows)
            if calls is not None:
                shapes = shapes.or_else(self._dialect.launched_shapes(which, calls))
            for place, axis in enumerate("xyz"):
                columns[f"{which}_{axis}"] = partial(shapes.axis, place)
        return columns

    def _copy_columns(
        self, kind: int, built: CaptureBuilder, rows: Numbers, calls: Numbers | None
    ) -> dict[str, Column]:
        """The columns of copies or memsets, whose names say of what kinds they are.

        The size of a call is that of its copy, if it is the only one.
        """
        if calls is not None:
            _, of_call, counts = np.unique(calls, return_inverse=True, return_counts=True)
            calls = np.where(counts[of_call] == 1, calls, -1)
        names, index = self._dialect.names(rows)
        sides = [_memory_kinds(name) for name in names]
        source, target = (per_place([side[place] for side in sides], int, 0)[index] for place in (0, 1))
        columns: dict[str, Column] = {
            "num_bytes": self._figure("bytes", rows, calls),
            **self._dialect.copy_columns(kind, rows),
        }
        if kind == MEMSET:
            return columns | {"memory_kind": source}
        kinds = per_place(names, lambda name: copy_kind_number(_copy_kind(name)), 0)[index]
        return columns | {"copy_kind": kinds, "src_kind": source, "dst_kind": target}


def _base_ns(found: ChromeEvents) -> int:
    stated = found.metadata.get("baseTimeNanoseconds")
    return possible_base(stated, found.skipped) if type(stated) is int else 0


def _look_up(wanted: Numbers, keys: Numbers, values: Numbers) -> Numbers:
    """The value of each wanted key; -1: it is missing. The keys are sorted."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, values[places], -1)


def _word(value: Any) -> str:
    """A name that a file may write as a number; ``""`` for anything else."""
    return text(value) if type(value) in (int, str) else ""


def _copy_kind(full_name: str) -> str:
    """The kind in a copy's name, such as ``HtoD``; ``unknown``: the name does not contain it."""
    found = _COPY_KIND.search(full_name)
    return found[1] if found else "unknown"


def _memory_kinds(full_name: str) -> tuple[int, int]:
    found = _MEMORIES.search(full_name)
    source, target = (found[1], found[2]) if found else ("", "")
    return memory_kind_number(source), memory_kind_number(target or "")
