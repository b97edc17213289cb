"""Recordings made from StepStats of other programs: the content of device names, node names and labels, as columns.

Nodes of ours have columns of their own also in a StepStats or in a file that was cut, which lack the texts and the
links of the recording: all their numbers are read, and their names and ops are those of the nodes. Of other nodes GPU
work becomes kernels, copies and memsets, each once; the host's nodes become API calls, where they are called like one,
and annotations. What neither is (steps of a merged trace, other processes) is counted in the ledger as
``nodes_without_columns``. Nodes without a possible time are a loss. A label states shared memory as one number; the
part of it that the label does not state as static is taken for dynamic.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.formats.capture_builder import CaptureBuilder, device_ids, rows_without_columns
from collector.formats.timeline_side_rows import side_table
from collector.recording.annotation_details import Details
from collector.recording.cupti_enums import COPY_KINDS, MEMORY_KINDS
from collector.recording.distinct import distinct_codes, distinct_values, grouped_rows
from collector.recording.joined_captures import joined_captures
from collector.recording.kind_names import kind_number
from collector.recording.recording import Recording
from collector.recording.schema import ACTIVITY_KINDS, SCHEMA
from collector.recording.text_columns import text_column
from collector.runtime.extension import convert_extension
from collector.stepstats.device_prefixes import split_prefix, task_numbers
from collector.stepstats.environment_texts import environment_of
from collector.stepstats.node_times import UNTIMED_NODES
from collector.stepstats.stated_window import in_window, window_of
from collector.stepstats.to_recording import has_recording, recording_of
from collector.stepstats.typed_columns import read_tables, wanted_tables
from collector.stepstats.wire import provenance_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from collector._convert import LabelledColumns
    from collector.formats.capture_builder import Numbers
    from collector.recording.capture import Capture

_KERNEL, _MEMCPY, _MEMSET, _OP, _API, _WAIT = range(6)
"""Categories of the extension's ``labelled_columns``."""
_TYPED = -1
"""Instead of the category, of nodes with columns."""
_LABELLED = ("kernels", "memcpys", "memsets", "api_calls", "annotations", "external_correlations")
_WITHOUT_LABELS = [table for table in SCHEMA if table not in _LABELLED]
"""The tables whose rows names and labels do not state."""
_TABLE_OF_KIND = {number: table for table, number in ACTIVITY_KINDS.items()}
_NAMED = ("kernels", "api_calls", "annotations", "other_ranges", "nvtx_ranges")
"""Tables whose nodes have the names of their rows."""
_LINKS = ("external_id", "captured_external_id", "details_id")
"""Columns whose numbers refer to other rows, and are made anew."""
_STREAM = re.compile(r"(\d{1,9})(?:\.(\d{1,9}))?$")
_SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "static_shared_bytes")


def recording_of_message(data: bytes, *, is_run_metadata: bool) -> Recording:
    """The recording of a step in wire bytes that protobuf parses; one of ours is restored as it was written."""
    if is_run_metadata and has_recording(data):
        return recording_of(data)
    capture, num_untimed = labelled_capture(data, is_run_metadata=is_run_metadata)
    provenance = provenance_of(data) if is_run_metadata else None
    if provenance is not None:
        stated = environment_of(provenance.environment, provenance.json_environment)
        own = {**capture["environment"], "simulated": provenance.simulated}
        capture["environment"] = {**stated, "source": provenance.source, **own}
        capture["counters"] = {**provenance.ledger, **capture["counters"]}
    found = in_window(Recording.from_capture(capture), window_of(provenance))
    missing = {} if provenance is None else rows_without_columns(provenance.ledger, found, _WITHOUT_LABELS)
    return _with_losses(found, {UNTIMED_NODES: num_untimed, **missing})


def labelled_capture(data: bytes, *, is_run_metadata: bool) -> tuple[Capture, int]:
    """The content of names and labels as a capture, and the number of nodes without a possible time."""
    found = convert_extension.labelled_columns(
        data, is_run_metadata=is_run_metadata, tables=wanted_tables(ACTIVITY_KINDS)
    )
    typed = read_tables(ACTIVITY_KINDS, found["tables"])
    tasks = np.array(task_numbers(name for name, *_ in found["devices"]), np.int64)[found["columns"]["device"]]
    order, bounds = grouped_rows(tasks, int(tasks.max(initial=0)) + 1)
    capture = joined_captures([_Labelled(found, typed, rows).capture() for rows in np.split(order, bounds[1:-1])])
    without_columns = capture["counters"].pop("nodes_without_columns", 0) + found["unlabelled"]
    if without_columns:
        capture["counters"]["nodes_without_columns"] = without_columns
    return capture, found["untimed"]


def with_untimed(recording: Recording, num_untimed: int) -> Recording:
    """The recording with a ledger that states this number of nodes without a possible time as a loss."""
    return _with_losses(recording, {UNTIMED_NODES: num_untimed})


def _with_losses(recording: Recording, losses: Mapping[str, int]) -> Recording:
    unread = {**recording.ledger.unread, **{reason: count for reason, count in losses.items() if count}}
    if unread == recording.ledger.unread:
        return recording
    return recording.restated(ledger=replace(recording.ledger, unread=unread))


class _Labelled:
    """The figures in labels and in the columns of nodes, as columns of tables."""

    def __init__(
        self, found: LabelledColumns, typed: dict[str, dict[str, npt.NDArray[Any]]], rows: npt.NDArray[np.int64]
    ) -> None:
        self._texts = found["texts"]
        self._typed = typed
        self._found = {name: column[rows] for name, column in found["columns"].items()}
        self._thread_names = found["thread_names"]
        self._built = CaptureBuilder()
        devices = found["devices"]
        self._devices = [name for name, *_ in devices]
        rows = self._found["device"]
        self._on_gpu = np.array([on_gpu for *_, on_gpu, _ in devices], bool)[rows]
        of_host = [is_host and not side_table(split_prefix(name)[1]) for name, *_, is_host in devices]
        self._is_host = np.array(of_host, bool)[rows] & ~self._on_gpu
        units = device_ids([unit for _, unit, _, on_gpu, _ in devices if on_gpu])
        streams = [_STREAM.match(stream) for _, _, stream, *_ in devices]
        self._device_id = np.array([units.get(unit, 0) for _, unit, *_ in devices], np.int64)[rows]
        self._stream_id = np.array([int(each[1]) if each else 0 for each in streams], np.int64)[rows]
        self._context_id = np.array([int(each[2] or 0) if each else 0 for each in streams], np.int64)[rows]
        self._category = np.where(self._found["table"] < 0, self._found["category"], _TYPED)
        self._correlation_id = self._found["correlation_id"].copy()
        without = np.flatnonzero(self._on_gpu & (self._found["op"] >= 0) & (self._correlation_id == 0))
        self._correlation_id[without] = self._built.unused_correlation_ids(len(without))

    def capture(self) -> Capture:
        """The capture of these rows."""
        self._add_typed_rows()
        self._add_gpu_work()
        self._add_host_rows()
        return self._built.capture({}, {"thread_names": self._thread_names})

    def _add_typed_rows(self) -> None:
        """The rows of nodes with columns; their places are the names of devices where these state one."""
        kinds = self._found["table"]
        for kind in distinct_values(kinds[kinds >= 0]).tolist():
            table = _TABLE_OF_KIND[kind]
            rows = np.flatnonzero(kinds == kind)
            places = self._found["table_row"][rows]
            columns: dict[str, Numbers] = {
                column: values[places]
                for column, values in self._typed[table].items()
                if not text_column(column) and column not in _LINKS
            }
            columns |= {name: values for name, values in self._times(rows).items() if name in columns}
            if "correlation_id" in columns:
                columns["correlation_id"] = self._correlation_id[rows]
            if table in _NAMED:
                columns["name_id"] = self._names(rows)
            if "captured_external_id" in SCHEMA[table]:
                columns["captured_external_id"] = self._captured(rows)
            if table == "annotations":
                columns["details_id"] = self._op_details(rows)
            if table == "other_ranges":
                columns |= self._host_rows(rows, columns["thread_id"])
            self._built.add(table, **columns)

    def _host_rows(self, rows: npt.NDArray[Any], thread_ids: Numbers) -> dict[str, Numbers]:
        """The names of the devices and threads of rows."""
        devices, device_of = distinct_codes(self._found["device"][rows])
        threads, thread_of = distinct_codes(thread_ids)
        names = [split_prefix(self._devices[device])[1] for device in devices.tolist()]
        named = [self._thread_names.get(thread, "") for thread in threads.tolist()]
        return {
            "device_name_id": self._built.name_ids(names)[device_of],
            "thread_name_id": self._built.name_ids(named)[thread_of],
        }

    def _add_gpu_work(self) -> None:
        kernels = np.flatnonzero(self._on_gpu & (self._category == _KERNEL))
        static, dynamic = (self._number(f"{part}_shared_bytes", kernels) for part in ("static", "dynamic"))
        rest = np.maximum(self._number("shared_bytes", kernels) - static, 0)
        self._built.add(
            "kernels",
            **self._where(kernels),
            captured_external_id=self._captured(kernels),
            name_id=self._names(kernels),
            registers_per_thread=self._number("registers", kernels),
            dynamic_shared_bytes=np.where(self._found["dynamic_shared_bytes"][kernels] >= 0, dynamic, rest),
            **{name: self._number(name, kernels) for name in _SHAPE},
        )
        copies = np.flatnonzero(self._on_gpu & (self._category == _MEMCPY))
        self._built.add(
            "memcpys",
            **self._where(copies),
            captured_external_id=self._captured(copies),
            num_bytes=self._number("num_bytes", copies),
            copy_kind=self._number_of("copy_kind", COPY_KINDS, copies),
            src_kind=self._number_of("from", MEMORY_KINDS, copies),
            dst_kind=self._number_of("to", MEMORY_KINDS, copies),
        )
        memsets = np.flatnonzero(self._on_gpu & (self._category == _MEMSET))
        self._built.add(
            "memsets",
            **self._where(memsets),
            captured_external_id=self._captured(memsets),
            num_bytes=self._number("num_bytes", memsets),
            memory_kind=self._number_of("to", MEMORY_KINDS, memsets),
        )
        waits = np.flatnonzero(self._on_gpu & (self._category == _WAIT))
        place = self._where(waits)
        del place["device_id"]
        self._built.add("synchronizations", **place)
        work = np.flatnonzero(self._on_gpu & (self._found["category"] <= _MEMSET) & (self._found["op"] >= 0))
        self._built.launched_under(self._correlation_id[work], *self._distinct("op", work))

    def _add_host_rows(self) -> None:
        is_call = (self._category == _API) | (self._category == _WAIT)
        calls = np.flatnonzero(self._is_host & is_call)
        names, index = self._distinct("name", calls)
        self._built.add_api_calls(
            names,
            index,
            **self._times(calls),
            thread_id=self._found["thread_id"][calls],
            correlation_id=self._correlation_id[calls],
        )
        ops = np.flatnonzero(self._is_host & (self._category == _OP) & (self._found["name"] >= 0))
        self._built.add(
            "annotations",
            **self._times(ops),
            name_id=self._names(ops),
            thread_id=self._found["thread_id"][ops],
            details_id=self._op_details(ops),
        )
        in_tables = int((self._on_gpu | (self._category == _TYPED)).sum()) + len(calls) + len(ops)
        self._built.without_columns += len(self._category) - in_tables

    def _op_details(self, rows: npt.NDArray[Any]) -> Numbers:
        """``details_id`` of annotations, whose labels state the type of an op."""
        types, index = self._distinct("op", rows)
        return self._built.details_ids([Details(op=op) for op in types])[index]

    def _where(self, rows: npt.NDArray[Any]) -> dict[str, Numbers]:
        return {
            **self._times(rows),
            "device_id": self._device_id[rows],
            "context_id": self._context_id[rows],
            "stream_id": self._stream_id[rows],
            "correlation_id": self._correlation_id[rows],
        }

    def _captured(self, rows: npt.NDArray[Any]) -> Numbers:
        ops, index = self._distinct("op", rows)
        return self._built.captured_under(ops)[index]

    def _times(self, rows: npt.NDArray[Any]) -> dict[str, Numbers]:
        start_ns = self._found["start_ns"][rows]
        return {"start_ns": start_ns, "end_ns": start_ns + self._found["duration_ns"][rows]}

    def _number(self, column: str, rows: npt.NDArray[Any]) -> Numbers:
        numbers: Numbers = np.maximum(self._found[column][rows], 0)
        return numbers

    def _names(self, rows: npt.NDArray[Any]) -> Numbers:
        """``name_id`` of these rows."""
        names, index = self._distinct("name", rows)
        return self._built.name_ids(names)[index]

    def _distinct(self, column: str, rows: npt.NDArray[Any]) -> tuple[list[str], Numbers]:
        """The distinct texts of these rows, and the index of each row's text among them; ``""``: none."""
        places, index = np.unique(self._found[column][rows], return_inverse=True)
        return [self._texts[place] if place >= 0 else "" for place in places.tolist()], index.reshape(-1)

    def _number_of(self, column: str, kinds: tuple[str, ...], rows: npt.NDArray[Any]) -> Numbers:
        """The numbers of kinds, 0 for one that is not known."""
        known = {kind: number for number, kind in enumerate(kinds)}
        numbers = np.array([0, *(kind_number(known, text) or 0 for text in self._texts)], np.int64)
        chosen: Numbers = numbers[self._found[column][rows] + 1]
        return chosen
