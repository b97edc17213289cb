"""Rows of the table ``counter_samples``: figures that have a value from each sample until the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from collector.recording.schema import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from collector.recording.capture import Capture
    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]

TABLE = "counter_samples"


class SampledSeries(Protocol):
    """The samples of one figure of one device."""

    @property
    def device(self) -> int:
        """CUDA's ordinal of the device."""

    @property
    def name(self) -> str:
        """The name of the figure."""

    @property
    def unit(self) -> str:
        """The unit of the values; empty: they have none."""

    @property
    def times(self) -> Sequence[int]:
        """Wall times in ns, ascending."""

    @property
    def values(self) -> Sequence[int]:
        """A value for each time."""


def add_counters(capture: Capture, series: Iterable[SampledSeries]) -> None:
    """Add samples to a capture.

    Samples outside the step are left out; the last value before the step counts from the begin of the step.
    """
    clock = capture["clock"]
    offset_ns = clock["wall_start_ns"] - clock["cupti_start_ns"]
    if abs(offset_ns) <= clock["uncertainty_ns"]:
        offset_ns = 0  # as in `collector.recording.recording.Clock`
    first_ns, last_ns = clock["cupti_start_ns"], clock["cupti_stop_ns"]
    parts: dict[str, list[npt.NDArray[Any]]] = {column: [] for column in SCHEMA[TABLE]}
    numbers = {text: number for number, text in reversed(list(enumerate(capture["strings"])))}

    def number_of(text: str) -> int:
        if text not in numbers:
            numbers[text] = len(capture["strings"])
            capture["strings"].append(text)
        return numbers[text]

    for each in series:
        times = np.asarray(each.times, np.int64) - np.int64(offset_ns)
        values = np.asarray(each.values, np.int64)
        begins = int(np.searchsorted(times, first_ns, side="right")) - 1  # the value at the step's begin
        kept = slice(max(begins, 0), int(np.searchsorted(times, last_ns, side="right")))
        times, values = np.maximum(times[kept], first_ns), values[kept]
        columns = {
            "start_ns": times,
            "device_id": np.full(len(times), each.device),
            "name_id": np.full(len(times), number_of(each.name)),
            "sample": values,
            "unit_name_id": np.full(len(times), number_of(each.unit)),
        }
        for name, column in columns.items():
            parts[name].append(column)
    before = capture["tables"].get(TABLE, {})
    capture["tables"][TABLE] = {
        name: np.concatenate([*([before[name]] if name in before else []), *added, np.zeros(0, SCHEMA[TABLE][name])])
        .astype(SCHEMA[TABLE][name])
        for name, added in parts.items()
    }  # fmt: skip


def counters_over_time(recording: Recording) -> list[tuple[tuple[int, str, str], Numbers, Numbers]]:
    """(device, figure, unit) of each sampled series, its times on the recording's clock and its values."""
    table = recording.counter_samples
    found: list[tuple[tuple[int, str, str], Numbers, Numbers]] = []
    if not len(table):
        return found
    is_other = (table.device_id[1:] != table.device_id[:-1]) | (table.name_id[1:] != table.name_id[:-1])
    starts = [0, *(np.flatnonzero(is_other) + 1).tolist()]
    for first, after in zip(starts, [*starts[1:], len(table)], strict=True):
        texts = (recording.strings[table.name_id[first]], recording.strings[table.unit_name_id[first]])
        rows = slice(first, after)
        found.append(((int(table.device_id[first]), *texts), table.start_ns[rows], table.sample[rows]))
    return found
