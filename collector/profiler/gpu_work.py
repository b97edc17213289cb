"""The work of GPU activities: from their columns or, for nodes without columns, from name and label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from collector.profiler.device_columns import DeviceColumns
from collector.profiler.node_fields import Ints
from collector.protos import Activity
from collector.recording.possible_sizes import LARGEST_BYTES
from collector.stepstats import labels

_COLUMNS = ("kind", "num_bytes", "copy_kind", "src_kind", "dst_kind", "src_device_id", "dst_device_id")
_GRID = ("grid_x", "grid_y", "grid_z")


class ActivityColumns(Protocol):
    """Activities or calls of a device, as columns; times in nanoseconds since the epoch."""

    def __len__(self) -> int: ...

    @property
    def device(self) -> str:
        """Its name."""

    @property
    def start_ns(self) -> Ints:
        """The start of each row."""

    @property
    def end_ns(self) -> Ints:
        """The end of each row."""

    @property
    def duration_ns(self) -> Ints:
        """The duration of each row."""

    @property
    def scheduled_ns(self) -> Ints:
        """The start of the call that launched each row; 0: not known."""

    @property
    def names(self) -> tuple[list[str], Ints]:
        """The distinct names, and for each row the index of its name."""

    @property
    def is_typed(self) -> NDArray[np.bool_]:
        """Whether each row has columns; the others have labels."""

    def activity_columns(self, columns: Sequence[str], rows: Ints) -> dict[str, Ints]:
        """The named columns of some rows."""


@dataclass(frozen=True)
class GpuWork:
    """Some activities of a GPU, as columns."""

    kind: Ints
    """``Activity.Kind``."""
    num_bytes: Ints
    """The bytes of copies and memsets; -1: unknown."""
    copy_kind: Ints
    src_kind: Ints
    dst_kind: Ints
    src_device_id: Ints
    """The source of copies between devices; -1: unknown."""
    dst_device_id: Ints
    num_blocks: Ints
    """Thread blocks of kernels; 0: unknown."""

    def among(self, is_own: NDArray[np.bool_]) -> GpuWork:
        """The same work at these places, among other work of which nothing is known."""
        if is_own.all():
            return self
        spread = {}
        for column, unknown in _UNKNOWN.items():
            spread[column] = np.full(len(is_own), unknown, np.int64)
            spread[column][is_own] = getattr(self, column)
        return GpuWork(**spread)

    @property
    def is_copy_or_memset(self) -> NDArray[np.bool_]:
        """Whether each is a copy or memset, i.e. no kernel."""
        return np.isin(self.kind, (Activity.MEMCPY, Activity.MEMSET))


_UNKNOWN = {
    "kind": 0,
    "num_bytes": -1,
    "copy_kind": 0,
    "src_kind": 0,
    "dst_kind": 0,
    "src_device_id": -1,
    "dst_device_id": -1,
    "num_blocks": 0,
}
"""Column of `GpuWork` -> its value for unknown work."""


def gpu_work(device: ActivityColumns, rows: Ints) -> GpuWork:
    """The work of some activities of a device."""
    work = _stated_work(device, rows)
    return replace(work, num_bytes=np.where(work.num_bytes <= LARGEST_BYTES, work.num_bytes, -1))


def _stated_work(device: ActivityColumns, rows: Ints) -> GpuWork:
    """The work as the step states it, also with impossible sizes."""
    typed = device.is_typed[rows]
    if typed.all():
        return GpuWork(*_of_columns(device, rows))
    assert isinstance(device, DeviceColumns)  # only the nodes of a file have labels in place of columns
    found = np.empty((len(_COLUMNS) + 1, len(rows)), np.int64)
    found[:, typed] = _of_columns(device, rows[typed])
    found[:, ~typed] = _of_labels(device, rows[~typed])
    return GpuWork(*found)


def _of_columns(device: ActivityColumns, rows: Ints) -> list[Ints]:
    columns = device.activity_columns((*_COLUMNS, *_GRID), rows)
    columns["num_bytes"] = np.where(columns["num_bytes"] > 0, columns["num_bytes"], -1)
    blocks = columns["grid_x"] * columns["grid_y"] * columns["grid_z"]
    return [*(columns[name] for name in _COLUMNS), blocks]


def _of_labels(device: DeviceColumns, rows: Ints) -> Ints:
    names, index = device.names
    texts, label_index = device.labels_at(rows)
    pairs, places = np.unique(index[rows] * len(texts) + label_index, return_inverse=True)
    name_ids, label_ids = np.divmod(pairs, max(len(texts), 1))
    work = labels.gpu_work([names[each] for each in name_ids.tolist()], [texts[each] for each in label_ids.tolist()])
    return np.array(work, np.int64).reshape(-1, len(_COLUMNS) + 1).T[:, places.reshape(-1)]
