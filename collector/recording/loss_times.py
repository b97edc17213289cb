"""Times of losses within a step, as far as they are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collector.recording.cupti_enums import ANNOTATION_EXTERNAL_KIND
from collector.recording.distinct import are_among
from collector.recording.launch_figures import LaunchFates, unrecorded_peer_copies, without_launch
from collector.recording.schema import LAUNCHED_TABLES
from collector.recording.shed_kinds import SHED, calls_end_ns
from collector.recording.unfinished_work import TimelessRows, timeless_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from collector.recording.recording import Recording

PLACES = 100
"""The step is cut into this many equal intervals; per kind of loss, only the first time in each is reported."""


def times_of_losses(recording: Recording) -> dict[str, list[int]]:
    """Return the times of losses by the ledger's field: CUPTI's time in ns, sorted, at most `PLACES` per field.

    The time of a launch without activity is that of its call, and so is that of an activity without a usable time. The
    time of an activity without a call, or that ends after the step, is its start. Losses of CUPTI or of the buffers
    have no known time, and activities that began before the step lie outside it: these fields are missing.

    A field is also missing where more times are possible than there are losses, as in a part of a longer recording: the
    other rows belong to launches that the bounds of the part cut.
    """
    find: dict[str, Callable[[], npt.NDArray[Any]]] = {
        "launches_without_kernel": lambda: _without_kernel(recording),
        "unfinished": lambda: _invalid(recording, lambda rows, name: rows.unfinished[name]),
        "lost_with_context": lambda: _invalid(recording, lambda rows, name: rows.lost_with_context[name]),
        "invalid_timestamps": lambda: _invalid(recording, TimelessRows.unexplained),
        "late": lambda: np.concatenate([getattr(recording.late, name).start_ns for name in LAUNCHED_TABLES]),
        "kernels_without_launch": lambda: _without_launch(recording),
        "peer_copies_unrecorded": lambda: _peer_copies(recording),
        "correlations_unmatched": lambda: _nameless(recording),
    }
    counts = recording.ledger.as_dict()
    found = {name: find[name]() for name in find if counts.get(name)}  # a step that lost nothing is not searched
    clock = recording.clock
    found |= {figure: np.array([clock.cupti_start_ns + counts[figure]]) for figure in SHED if counts.get(figure)}
    window = clock.cupti_start_ns, clock.cupti_stop_ns
    inside = {name: np.sort(times[(times >= window[0]) & (times <= window[1])]) for name, times in found.items()}
    return {name: _thinned(times, *window) for name, times in inside.items() if 0 < len(times) <= counts[name]}


def _invalid(recording: Recording, chosen: Callable[[TimelessRows, str], npt.NDArray[np.bool_]]) -> npt.NDArray[Any]:
    rows = timeless_rows(recording.parts[0], recording.invalid, recording.counters)
    tables = ((getattr(recording.invalid, name), chosen(rows, name)) for name in LAUNCHED_TABLES)
    return np.concatenate([_called_at(recording, table.correlation_id[mask]) for table, mask in tables])


def _without_kernel(recording: Recording) -> npt.NDArray[Any]:
    tables = [_with_those_apart(recording, name) for name in LAUNCHED_TABLES]
    fates = LaunchFates.of(tables, _with_those_apart(recording, "api_calls"), recording.strings)
    return np.asarray(fates.launched_at[fates.without_activity])


def _without_launch(recording: Recording) -> npt.NDArray[Any]:
    kernels = recording.kernels
    until_ns = calls_end_ns(recording.counters, recording.clock.cupti_start_ns)
    is_lost = without_launch(kernels.columns, _with_those_apart(recording, "api_calls"), until_ns)
    return np.asarray(kernels.start_ns[is_lost])


def _peer_copies(recording: Recording) -> npt.NDArray[Any]:
    copies, calls = (_with_those_apart(recording, name) for name in ("memcpys", "api_calls"))
    return unrecorded_peer_copies(copies, calls, recording.strings, recording.environment)


def _nameless(recording: Recording) -> npt.NDArray[Any]:
    external = recording.external_correlations.where(external_kind=ANNOTATION_EXTERNAL_KIND)
    known = _with_those_apart(recording, "annotations")["external_id"]
    return _called_at(recording, external.correlation_id[~are_among(external.external_id, known)])


def _called_at(recording: Recording, correlation_ids: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The starts of the recorded calls with these ids."""
    rows = recording.launch_rows(correlation_ids)
    return np.asarray(recording.api_calls.start_ns[rows[rows >= 0]])


def _with_those_apart(recording: Recording, name: str) -> dict[str, npt.NDArray[Any]]:
    parts = [getattr(part, name).columns for part in (recording, recording.invalid, recording.early, recording.late)]
    return {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}


def _thinned(times_ns: npt.NDArray[Any], start_ns: int, stop_ns: int) -> list[int]:
    part = (times_ns - start_ns) * PLACES // max(stop_ns - start_ns + 1, 1)
    _, first = np.unique(part, return_index=True)
    return [int(time) for time in times_ns[first]]
