"""Nodes made one by one by protobuf: the readable twin of native/stepstats/node_encoder.cpp."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from collector.protos import DeviceStepStats, NodeExecStats
from collector.stepstats.node_columns import Column, MessageColumn, TextColumn, field_head


def encode_nodes(columns: Mapping[str, Column], rows: npt.NDArray[np.int64] | None = None) -> bytes:
    """See `collector.stepstats.node_columns.encode_nodes`."""
    if rows is None:
        first = next(iter(columns.values()))
        rows = np.arange(len(first.index if isinstance(first, (TextColumn, MessageColumn)) else first))

    def values_of(name: str, column: Column) -> Iterable[Any]:
        if isinstance(column, TextColumn):
            return map(column.texts.__getitem__, column.index[rows].tolist())
        if isinstance(column, MessageColumn):
            number = NodeExecStats.DESCRIPTOR.fields_by_name[name].number
            wires = (field_head(number, len(message)) + message if message else b"" for message in column.messages)
            parsed = [getattr(NodeExecStats.FromString(wire), name) for wire in wires]
            return map(parsed.__getitem__, column.index[rows].tolist())
        return cast("list[int]", column[rows].tolist())

    values = (values_of(name, column) for name, column in columns.items())
    device = DeviceStepStats()
    for node in zip(*values, strict=True):
        device.node_stats.add(**dict(zip(columns, node, strict=True)))
    return device.SerializeToString()
