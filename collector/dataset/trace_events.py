"""The events of Chrome traces as a flat table: one row for each event, with its arguments ``name`` and ``op``.

A step that was read from a Chrome trace has the events of its file; any other has those of the trace that
`collector.chrome_trace` draws of it.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.dataset.dataset import StepKey
from collector.dataset.dataset_arrow import arrow_type
from collector.dataset.dataset_tables import TRACE_EVENTS
from collector.formats.chrome_events import ChromeEvents, has_time, text
from collector.formats.file_content import content_of
from collector.formats.registry import check_head, readable_sentence
from collector.recording.arrow import Texts
from collector.runtime.optional_packages import optional_package
from collector.timeline.drawing import View, write_trace

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from collector.dataset.dataset import Dataset
    from collector.formats.step import Step

    Numbers = npt.NDArray[np.int64]


def events_of_file(step: Step) -> pa.Table | None:
    """The events of the Chrome trace that a step was read from; None where its file is none."""
    if step.path is None or not step.path.is_file():
        return None
    content = content_of(step.path, check_head, readable_sentence())
    return trace_events(content.chrome_events) if content.is_json else None


def drawn_events(step: Step) -> pa.Table:
    """The events of the Chrome trace that is drawn of a step."""
    pieces: list[bytes] = []
    write_trace(step, lambda piece: pieces.append(bytes(piece)), View())
    return trace_events(ChromeEvents(pieces))


def steps_without_events(dataset: Dataset) -> list[StepKey]:
    """The steps of a dataset that were stored without the events of a Chrome trace."""
    rows = dataset.table(TRACE_EVENTS.name, columns=["step"])
    distinct = rows.group_by(list(StepKey._fields)).aggregate([])
    stored = set(zip(*(distinct[name].to_pylist() for name in StepKey._fields), strict=True))
    return [key for key in dataset.keys if key not in stored]


def drawn_events_of(dataset: Dataset, key: StepKey) -> pa.Table:
    """The events that a Chrome trace of a step shows, as rows of ``trace_events``."""
    pa = optional_package("pyarrow")
    rows = drawn_events(dataset[dataset.keys.index(key)])
    for name, kind in (("step", pa.int64()), ("rank", pa.int32()), ("run", pa.string())):
        rows = rows.add_column(0, name, pa.array([getattr(key, name)] * len(rows), kind))
    return rows


def trace_events(events: ChromeEvents) -> pa.Table:
    """All events in the order of the file, without the number of their step.

    A process or thread that is not a whole number, a time that is not stated and an argument that is missing are NULL.
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
