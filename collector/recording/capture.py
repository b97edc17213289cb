"""A capture, which a source returns at the end of a step: plain columns, and the facts that only the source knows.

`collector.recording.recording` makes a Recording of it in the same way for every source: it selects the rows of the
step and determines the losses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from collector.recording.annotation_details import Details
    from collector.recording.row_arguments import RowArguments


ASYNC_NOT_KNOWN = 255
"""``is_async`` of copies and memsets in files that do not state it."""
NO_OBJECT = (1 << 32) - 1
"""CUPTI's number for the absence of a stream, an event or an instance of a GPU, where 0 is a valid number."""


class Instant(NamedTuple):
    """One instant of an open session, on CUPTI's clock and on the wall clock."""

    cupti_ns: int
    wall_ns: int
    uncertainty_ns: int


class Part(NamedTuple):
    """The place of a capture in a longer recording."""

    begin_ns: int | None
    """Everything after this time, in CUPTI's ns, is in this part or a later one; None: it is the first part."""
    first_annotation: int
    """The number of the first annotation that began in this part."""
    is_continued: bool
    """Whether there is a later part, which may have the activities of launches of this one."""
    has_calls_before: bool = False
    """Whether earlier parts have API calls."""


class _Details(TypedDict, total=False):
    details: Sequence[Details]
    """The details of annotations, at index ``details_id`` - 1; the session adds them."""
    launch_figures: Mapping[str, int]
    """`collector.recording.launch_figures.LAUNCH_FIGURES` as a file states them, so that they are not counted again."""
    rows_apart: Mapping[str, Sequence[int]]
    """Table -> the numbers of rows that `Recording.counts_apart` returns, where the capture lacks some of them."""
    part: Part
    """Present where the capture is a part of a longer recording."""
    arguments: RowArguments
    """Arguments of rows from the file of another program that have no column."""


class Capture(_Details):
    """The columns, names, counters, clock and environment of one step."""

    tables: dict[str, dict[str, npt.NDArray[np.generic]]]
    """Table -> column -> values, as in `collector.recording.schema.SCHEMA`; the tables that are recorded on request may
    be missing."""
    strings: list[str]
    """The texts that each ``name_id`` refers to: kernel names as recorded (mangled), API names, annotation paths."""
    counters: dict[str, int]
    """Facts about the capture itself: buffers, bytes, dropped records; see `collector.recording.ledger.Ledger`."""
    clock: dict[str, int]
    """cupti_start_ns, cupti_stop_ns, wall_start_ns, wall_stop_ns, uncertainty_ns."""
    environment: dict[str, Any]
    """driver_version, cupti_path, cupti_api_version, cuda_version, devices, simulated, source, ..."""


def empty_capture() -> Capture:
    """The capture of a step without any records."""
    import numpy as np

    from collector.recording.schema import SCHEMA

    return {
        "tables": {t: {c: np.zeros(0, dtype) for c, dtype in columns.items()} for t, columns in SCHEMA.items()},
        "strings": [],
        "counters": {},
        "clock": dict.fromkeys(
            ("cupti_start_ns", "cupti_stop_ns", "wall_start_ns", "wall_stop_ns", "uncertainty_ns"), 0
        ),
        "environment": {},
    }
