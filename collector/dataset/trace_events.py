"""The events of a Chrome trace as a flat table: one row for each event, with its arguments ``name`` and ``op``."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.dataset.dataset_tables import TRACE_EVENTS
from collector.dataset.step_tables import arrow_type
from collector.formats.chrome_events import has_time, text
from collector.recording.arrow import Texts
from collector.runtime.optional_packages import optional_package

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from collector.formats.chrome_events import ChromeEvents

    Numbers = npt.NDArray[np.int64]


def trace_events(events: ChromeEvents) -> pa.Table:
    """All events in the order of the file, without the number of their step.

    A process or thread that is no whole number, a time that is not stated and an argument that is missing are NULL.
    """
    pa = optional_package("pyarrow")
    rows = events.rows(string.printable)
    tracks = [[each if type(each) is int else None for each in track] for track in events.tracks]
    track = events.track_numbers(rows)
    columns: dict[str, Any] = {
        "index": pa.array(rows),
        "name": _texts(Texts(*_coded(events.names(rows)))),
        "ph": _texts(Texts.of(events.phases(rows), chr)),
        "cat": _texts(Texts(*_coded(events.categories(rows)))),
        "pid": pa.array([each[0] for each in tracks], pa.int64()).take(pa.array(track)),
        "tid": pa.array([each[1] for each in tracks], pa.int64()).take(pa.array(track)),
        "ts": _micros(events.starts_ns(rows)),
        "dur": _micros(events.durations_ns(rows)),
        "arg_name": _argument(events, "name", rows),
        "arg_op": _argument(events, "op", rows),
    }
    own = [column for column in TRACE_EVENTS.columns if column.name in columns]
    return pa.table({column.name: columns[column.name].cast(arrow_type(column)) for column in own})


def _coded(found: tuple[list[str], Numbers]) -> tuple[list[str], npt.NDArray[np.int32]]:
    return found[0], found[1].astype(np.int32)


def _texts(texts: Texts) -> pa.Array:
    pa = optional_package("pyarrow")
    return pa.DictionaryArray.from_arrays(pa.array(texts.codes), pa.array(texts.distinct, pa.string()))


def _micros(times_ns: Numbers) -> pa.Array:
    return optional_package("pyarrow").array(times_ns / 1000, mask=~has_time(times_ns))


def _argument(events: ChromeEvents, name: str, rows: Numbers) -> pa.Array:
    values = [None if value is None else text(value) for value in events.all_values(name, rows)]
    return optional_package("pyarrow").array(values, "string")
