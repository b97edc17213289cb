"""Columns of a recording, filled event by event as a Chrome trace is read."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.formats.capture_builder import CaptureBuilder
from collector.recording.cupti_enums import COPY_KINDS, MEMORY_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.recording.recording import Recording

_COPY_KINDS = {name: number for number, name in enumerate(COPY_KINDS)}
_MEMORY_KINDS = {name: number for number, name in enumerate(MEMORY_KINDS)}


class EventColumns:
    """Rows that are added event by event, each with what the event states."""

    def __init__(self) -> None:
        self._rows: dict[str, list[dict[str, int]]] = defaultdict(list)
        self._names: dict[str, list[str]] = defaultdict(list)
        self._ops: list[tuple[str, int, str]] = []
        self._thread_names: dict[int, str] = {}
        self.without_columns = 0
        """Events that no table holds."""

    def add(self, table: str, name: str, start_ns: int, duration_ns: int, op: str = "", **columns: int) -> None:
        """Add a row.

        Args:
            table: of the recording.
            name: of a kernel, a call or an annotation.
            start_ns: when it began.
            duration_ns: how long it lasted.
            op: what GPU work was launched under; ``""``: not known.
            columns: what else the event states.
        """
        if op:
            self._ops.append((table, len(self._rows[table]), op))
        self._rows[table].append({"start_ns": start_ns, "end_ns": start_ns + duration_ns, **columns})
        self._names[table].append(name)

    def name_thread(self, thread_id: int, name: str) -> None:
        """Say what a thread is called."""
        self._thread_names[thread_id] = name

    def recording(self, counters: Mapping[str, int], environment: Mapping[str, Any]) -> Recording:
        """The recording of all rows."""
        built = CaptureBuilder()
        built.without_columns = self.without_columns
        without = [(table, row) for table, row, _ in self._ops if not self._rows[table][row].get("correlation_id")]
        for (table, row), number in zip(without, built.unused_correlation_ids(len(without)).tolist(), strict=True):
            self._rows[table][row]["correlation_id"] = number
        for table, rows in self._rows.items():
            columns = {
                name: np.array([row.get(name, 0) for row in rows], np.int64)
                for name in dict.fromkeys(name for row in rows for name in row)
            }
            names = list(dict.fromkeys(self._names[table]))
            places = {name: place for place, name in enumerate(names)}
            index = np.array([places[name] for name in self._names[table]], np.int64)
            if table == "api_calls":
                built.add_api_calls(names, index, **columns)
            elif table in ("kernels", "annotations"):
                built.add(table, name_id=built.name_ids(names)[index], **columns)
            else:
                built.add(table, **columns)
        ops = list(dict.fromkeys(op for _, _, op in self._ops))
        places = {op: place for place, op in enumerate(ops)}
        launched = np.array([self._rows[table][row].get("correlation_id", 0) for table, row, _ in self._ops], np.int64)
        built.launched_under(launched, ops, np.array([places[op] for _, _, op in self._ops], np.int64))
        return built.recording(counters, {"thread_names": self._thread_names, **environment})


def shape_columns(grid: Any, block: Any) -> dict[str, int]:
    """The launch shape, of lists of three numbers; nothing of anything else."""
    columns: dict[str, int] = {}
    for name, sizes in (("grid", grid), ("block", block)):
        if (
            isinstance(sizes, list)
            and len(sizes) == 3
            and all(type(size) is int and 0 <= size < 1 << 31 for size in sizes)
        ):
            columns |= {f"{name}_{axis}": size for axis, size in zip("xyz", sizes, strict=True)}
    return columns


def copy_kind_number(name: str) -> int:
    """CUPTI's number of ``HtoD``; 0 for what is none of its kinds."""
    return _COPY_KINDS.get(name, 0)


def memory_kind_number(name: str) -> int:
    """CUPTI's number of ``Pageable``; 0 for what is none of its kinds."""
    return _MEMORY_KINDS.get(name.title().replace(" ", ""), 0)
