"""The figures of a ledger that result from matching launches with activities and annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.recording.annotation_numbers import ANNOTATION_BITS
from collector.recording.api_functions import ApiRole, have_role
from collector.recording.cupti_enums import ANNOTATION_EXTERNAL_KIND
from collector.recording.distinct import are_among
from collector.recording.schema import LAUNCHED_TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from collector.recording.capture import Part

    Columns = Mapping[str, npt.NDArray[Any]]

LAUNCH_FIGURES = (
    "launches_seen",
    "launches_matched",
    "launches_failed",
    "launches_captured",
    "launches_without_kernel",
    "kernels_without_launch",
    "launches_cut",
    "peer_copies_unrecorded",
    "correlations_unmatched",
)
"""The figures, as `collector.recording.ledger.Ledger` names them."""
PEER_COPIES = "peer_copies"
"""Key of the environment: whether copies between GPUs were recorded. It is missing if no copies were recorded, and in
files of other programs."""


def launch_figures(
    columns: Mapping[str, Columns],
    strings: Sequence[str],
    environment: Mapping[str, Any],
    part: Part | None = None,
    calls_end_ns: int | None = None,
) -> dict[str, int]:
    """Match launches, activities and annotations; return `LAUNCH_FIGURES` by name.

    Args:
        columns: the columns of each table, with the rows that were set apart.
        strings: the texts that ``name_id`` refers to.
        environment: the recording's environment; see `unrecorded_peer_copies`.
        part: the place in a longer recording. For launches before its begin, and for the last launches of a part that
            is continued, the call or the activities may be in another part.
        calls_end_ns: the time from which calls were not recorded any more; None: all were.
    """
    kernels, api_calls = columns["kernels"], columns["api_calls"]
    fates = LaunchFates.of([columns[name] for name in LAUNCHED_TABLES], api_calls, strings)
    orphans = without_launch(kernels, api_calls, calls_end_ns)
    if part is not None and part.has_calls_before and not len(api_calls["correlation_id"]):
        orphans[:] = True
    without, cut = fates.without_activity, 0
    if part is not None:
        is_cut, is_cut_off = np.full(len(orphans), part.is_continued), np.full(len(without), part.is_continued)
        if part.begin_ns is not None:
            later = api_calls["correlation_id"][api_calls["start_ns"] >= part.begin_ns]
            # Correlation ids are in the order of the calls.
            is_cut |= kernels["correlation_id"] < later.min() if len(later) else True
            is_cut_off |= fates.launched_at < part.begin_ns
        is_cut &= kernels["correlation_id"] != 0  # without an id, the call is in no part
        is_cut, is_cut_off = is_cut & orphans, is_cut_off & without
        cut = len(np.unique(kernels["correlation_id"][is_cut])) + int(is_cut_off.sum())
        orphans, without = orphans & ~is_cut, without & ~is_cut_off
    return {
        "launches_seen": len(fates.launched_at),
        "launches_matched": int(fates.matched.sum()),
        "launches_failed": int(fates.failed.sum()),
        "launches_captured": int(fates.captured.sum()),
        "launches_without_kernel": int(without.sum()),
        "kernels_without_launch": int(orphans.sum()),
        "launches_cut": cut,
        "peer_copies_unrecorded": len(
            unrecorded_peer_copies(columns["memcpys"], api_calls, strings, environment, part)
        ),
        "correlations_unmatched": _unmatched(columns["external_correlations"], columns["annotations"], part),
    }


class LaunchFates(NamedTuple):
    """The launches of a step with their kernels: one row for each correlation id."""

    launched_at: npt.NDArray[np.int64]
    """Start of the call, CUPTI's ns."""
    matched: npt.NDArray[np.bool_]
    failed: npt.NDArray[np.bool_]
    captured: npt.NDArray[np.bool_]

    @property
    def without_activity(self) -> npt.NDArray[np.bool_]:
        """The launches that succeeded without a recorded activity."""
        return ~(self.matched | self.failed | self.captured)

    @classmethod
    def of(cls, activities: Sequence[Columns], api_calls: Columns, strings: Sequence[str]) -> LaunchFates:
        """Match launches with activities.

        Args:
            activities: kernels, memcpys and memsets, including the rows that were set apart.
            api_calls: every API call, likewise.
            strings: the texts that ``name_id`` refers to.
        """
        is_launch = have_role(api_calls["name_id"], strings, ApiRole.LAUNCH)
        launches, launched_at = api_calls["correlation_id"][is_launch], api_calls["start_ns"][is_launch]
        if not (launches[1:] > launches[:-1]).all():
            launches, first = np.unique(launches, return_index=True)
            launched_at = launched_at[first]
        matched = are_among(launches, np.concatenate([columns["correlation_id"] for columns in activities]))
        is_failure = is_launch & (api_calls["return_value"] != 0)
        failed = ~matched & are_among(launches, api_calls["correlation_id"][is_failure])
        captured = ~matched & ~failed & _inside_capture(launched_at, api_calls, strings)
        return cls(launched_at, matched, failed, captured)


def without_launch(kernels: Columns, api_calls: Columns, calls_end_ns: int | None = None) -> npt.NDArray[np.bool_]:
    """Whether the launch of each kernel is missing; of no kernel where no calls were recorded at all.

    Args:
        kernels: any kernels.
        api_calls: every API call, including the rows that were set apart.
        calls_end_ns: the time from which calls were not recorded any more; None: all were.
    """
    known = api_calls["correlation_id"]
    if not len(known):
        return np.zeros(len(kernels["start_ns"]), bool)
    orphans = ~are_among(kernels["correlation_id"], known)
    if calls_end_ns is not None:
        earlier = known[(api_calls["end_ns"] > 0) & (api_calls["end_ns"] < calls_end_ns)]
        orphans &= kernels["start_ns"] < calls_end_ns
        orphans &= kernels["correlation_id"] <= (earlier.max() if len(earlier) else 0)
    return orphans


def unrecorded_peer_copies(
    memcpys: Columns,
    api_calls: Columns,
    strings: Sequence[str],
    environment: Mapping[str, Any],
    part: Part | None = None,
) -> npt.NDArray[np.int64]:
    """The calls that may have copied between GPUs, and have no record of a copy: the start of each, CUPTI's ns.

    Where there are several GPUs, the addresses of a copy may be of two of them. Without access of the GPUs to each
    other, a copy goes through the host and has the records of such copies. A call that names the GPUs and was captured
    into a graph counts once, although its copy runs at every launch.

    Args:
        memcpys: every copy, including the rows that were set apart.
        api_calls: every API call, likewise.
        strings: the texts that ``name_id`` refers to.
        environment: the recording's environment, which states the GPUs, and whether copies between them were recorded.
        part: the place in a longer recording. The last copies of a part that is continued may be in another part.
    """
    if environment.get(PEER_COPIES) is not False:
        return np.zeros(0, np.int64)
    is_copy = have_role(api_calls["name_id"], strings, ApiRole.PEER_COPY)
    if len(environment.get("devices") or ()) > 1:
        may_be_one = have_role(api_calls["name_id"], strings, ApiRole.COPY)
        if may_be_one.any():
            may_be_one &= ~_inside_capture(api_calls["start_ns"], api_calls, strings)
        if part is not None and part.is_continued:
            may_be_one &= api_calls["correlation_id"] < memcpys["correlation_id"].max(initial=0)
        is_copy |= may_be_one
    is_copy &= api_calls["return_value"] == 0
    if part is not None and part.begin_ns is not None:
        is_copy &= api_calls["start_ns"] >= part.begin_ns
    ids, first = np.unique(api_calls["correlation_id"][is_copy], return_index=True)
    is_lost = ~are_among(ids, memcpys["correlation_id"])
    return np.asarray(api_calls["start_ns"][is_copy][first[is_lost]])


def _inside_capture(times_ns: npt.NDArray[Any], api_calls: Columns, strings: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Whether each time lies in a capture of any stream by any thread, because captures may span threads."""
    ids = api_calls["name_id"]
    begins = np.sort(api_calls["end_ns"][have_role(ids, strings, ApiRole.CAPTURE_BEGIN)])
    ends = np.sort(api_calls["start_ns"][have_role(ids, strings, ApiRole.CAPTURE_END)])
    return np.searchsorted(begins, times_ns, side="right") > np.searchsorted(ends, times_ns, side="right")


def _unmatched(external: Columns, annotations: Columns, part: Part | None) -> int:
    """The number of launches under annotations of this package that are missing."""
    ours = external["external_id"][external["external_kind"] == ANNOTATION_EXTERNAL_KIND]
    if part is not None:
        ours = ours[ours & np.uint64((1 << ANNOTATION_BITS) - 1) >= part.first_annotation]
    return int((~are_among(ours, annotations["external_id"])).sum())
