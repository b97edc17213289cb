"""A recording: the results of one session as immutable columns, with a ledger and a clock."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.checked_arguments import check_time
from collector.recording.annotation_details import Details
from collector.recording.capture_tables import (
    ROWS_CUT,
    checked_columns,
    close_annotations,
    split_table,
    window_of,
    with_an_empty_text,
    with_capture_paths,
    without_those_of_tracing,
)
from collector.recording.distinct import distinct_values
from collector.recording.first_rows import first_rows, look_up
from collector.recording.launch_annotations import LaunchAnnotations
from collector.recording.launch_figures import LAUNCH_FIGURES, LaunchFates, launch_figures
from collector.recording.ledger import LOSSES, Ledger
from collector.recording.nesting import nested_annotations
from collector.recording.row_arguments import RowArguments
from collector.recording.row_index import RowIndex, united
from collector.recording.schema import (
    ACTIVITY_TABLES,
    LAUNCHED_TABLES,
    SCHEMA,
    Tables,
    TablesOfRecording,
)
from collector.recording.shed_kinds import calls_end_ns
from collector.recording.stream_devices import (
    FIRST_CONTEXTS,
    first_contexts,
    stated_by_number,
    stated_first_contexts,
    stream_places,
    with_first_contexts,
)
from collector.recording.table import Table
from collector.recording.unfinished_work import timeless_rows
from collector.recording.working_devices import devices_with_work, stated_working_devices, with_working_devices
from collector.runtime.later_modules import later_function
from collector.text.library_path import portable

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt
    import pandas as pd
    import pyarrow as pa

    from collector.recording.capture import Capture

__all__ = ["SCHEMA", "Clock", "Recording", "Tables"]


_BY_NUMBER = ("devices", "thread_names", "thread_devices")
"""The keys of the environment whose values are mappings of numbers: of devices or threads."""
_OF_THE_PROGRAM = frozenset({"annotations", "nvtx_ranges", "counter_samples", "graph_changes"})
"""Tables that the program fills itself. Their rows are not activities that CUPTI recorded."""
_TIMED = ("start_ns", "end_ns", "op_sequence")
"""Columns that are 0 in an annotation that stands for its name alone."""
SET_APART = ("invalid_timestamps", "unfinished", "lost_with_context", "early", "late")
"""The figures of the ledger about rows that are set apart."""
_NOTHING = "nothing_recorded"
"""The figure of the ledger of a recording without activities; a part states it as its whole does."""


@dataclass(frozen=True)
class Clock:
    """The relation of CUPTI's time to the wall clock, and the window of the step. All in ns."""

    cupti_start_ns: int
    """CUPTI's time when the step began. Earlier records do not belong to the step."""
    cupti_stop_ns: int
    """CUPTI's time when the step ended."""
    wall_start_ns: int
    """Wall clock (since the epoch) at ``cupti_start_ns``."""
    wall_stop_ns: int
    """Wall clock at ``cupti_stop_ns``."""
    uncertainty_ns: int
    """The maximum time between the readings of the two clocks."""

    @property
    def offset_ns(self) -> int:
        """The signed difference between wall time and CUPTI time, to be added to a CUPTI time.

        CUPTI counts in wall time on Linux, so an offset within the uncertainty of reading two clocks counts as 0.
        """
        offset = self.wall_start_ns - self.cupti_start_ns
        return 0 if abs(offset) <= self.uncertainty_ns else offset

    @property
    def window_ns(self) -> int:
        """Length of the step."""
        return self.cupti_stop_ns - self.cupti_start_ns

    def windowed(self, start_ns: int, end_ns: int) -> Clock:
        """The clock of a step that began and ended at these times of CUPTI's clock."""
        wall_ns = self.wall_start_ns - self.cupti_start_ns
        return Clock(start_ns, end_ns, start_ns + wall_ns, end_ns + wall_ns, self.uncertainty_ns)


class Recording(TablesOfRecording):
    """The result of one session: columns, ledger and clock. Immutable; made by `from_capture`, `load` or a session.

    The tables of `Tables` are attributes (``recording.kernels``) and contain the rows within the step, in the order of
    `collector.recording.schema.ORDER`. All other rows are kept in the same tables under `invalid`, `early` and `late`;
    the ledger counts them.
    """

    def __init__(
        self,
        parts: tuple[Tables, Tables, Tables, Tables],
        strings: tuple[str, ...],
        clock: Clock,
        ledger: Ledger,
        counters: Mapping[str, int],
        environment: Mapping[str, Any],
        details: Iterable[Details] = (),
        arguments: RowArguments | None = None,
        apart: Mapping[str, tuple[int, int, int]] | None = None,
    ) -> None:
        """Keep the parts (kept, invalid, early, late) unchanged; `from_capture` makes them.

        ``apart`` has the numbers that `counts_apart` returns, by table, where the parts lack some of these rows.
        """
        self._annotated = LaunchAnnotations(
            [part.annotations.columns for part in parts], parts[0].external_correlations.columns, strings
        )
        self._tables, self.invalid, self.early, self.late = (
            Tables(*(table.launched_under(self._annotated) for table in _each(part))) for part in parts
        )
        for item in fields(Tables):
            setattr(self, item.name, getattr(self._tables, item.name))
        self.strings = strings
        """The texts that each ``name_id`` refers to."""
        self.clock = clock
        self.ledger = ledger
        self.counters = MappingProxyType(dict(counters))
        """The counts of the source."""
        self.environment = MappingProxyType(dict(environment))
        """Driver, libcupti, devices, simulated, source."""
        self.details = tuple(details)
        """Metadata of annotations at index ``annotations.details_id`` - 1; 0 means none."""
        self.arguments = arguments or RowArguments()
        """Arguments of rows from the file of another program that have no column, as text."""
        self._apart = apart
        self._row_indices: dict[str, RowIndex] = {}
        self._frozen = True

    def __setattr__(self, name: str, value: object) -> None:
        if getattr(self, "_frozen", False):
            raise AttributeError(f"a recording cannot be changed: {name}")
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return Recording.from_capture, (self.to_capture(),)

    def __repr__(self) -> str:
        kept = {item.name: len(getattr(self, item.name)) for item in fields(Tables)}
        return f"<Recording {', '.join(f'{name}: {count}' for name, count in kept.items() if count) or 'empty'}>"

    @property
    def parts(self) -> tuple[Tables, Tables, Tables, Tables]:
        """All rows: those of the step, and the `invalid`, `early` and `late` rows."""
        return self._tables, self.invalid, self.early, self.late

    def counts_apart(self, table: str) -> tuple[int, int, int]:
        """The numbers of rows of a table that are `invalid`, `early` and `late`, without those of `are_names_alone`.

        A recording of a dataset counts such rows, but does not have them.
        """
        if self._apart is not None:
            return self._apart.get(table, (0, 0, 0))
        names = int(are_names_alone(self.invalid.annotations).sum()) if table == "annotations" else 0
        invalid, early, late = (len(getattr(part, table)) for part in (self.invalid, self.early, self.late))
        return invalid - names, early, late

    @property
    def is_part(self) -> bool:
        """Whether it was cut out of another recording (`between`, `part_of_rows`), whose counts its ledger has."""
        return ROWS_CUT in self.counters

    @property
    def has_work(self) -> bool:
        """Whether it has any call or GPU work."""
        return any(len(getattr(self, name)) for name in ("api_calls", *LAUNCHED_TABLES))

    @property
    def out_of_window(self) -> Tables:
        """The rows of `early` and `late` together."""
        return Tables(*(_joined([part, late]) for part, late in zip(_each(self.early), _each(self.late), strict=True)))

    @classmethod
    def from_capture(cls, capture: Capture) -> Recording:
        """Sort a source's columns, set apart the rows outside the step, and fill the ledger.

        Raises:
            ValueError: the capture does not follow the schema, which is a bug of the source.
        """
        strings = tuple(capture["strings"])
        clock = Clock(**{item.name: int(capture["clock"][item.name]) for item in fields(Clock)})
        window = window_of(capture)
        columns = {name: checked_columns(name, capture["tables"].get(name), len(strings)) for name in SCHEMA}
        environment = dict(capture["environment"])
        environment |= {key: stated_by_number(environment[key]) for key in _BY_NUMBER if key in environment}
        strings = with_an_empty_text(columns, strings)
        columns["overheads"] = without_those_of_tracing(columns["overheads"], window)
        close_annotations(columns["annotations"], clock.cupti_stop_ns)
        strings = with_capture_paths(columns, window, strings)
        split = [split_table(name, values, window, strings) for name, values in columns.items()]
        kept, invalid, early, late = (Tables(*tables) for tables in zip(*split, strict=True))
        counters = {name: int(value) for name, value in capture["counters"].items()}
        of_launches = capture.get("launch_figures")
        if of_launches is None:
            until_ns = calls_end_ns(counters, clock.cupti_start_ns)
            of_launches = launch_figures(columns, strings, environment, capture.get("part"), until_ns)
        num_invalid = len(invalid) - int(are_names_alone(invalid.annotations).sum())
        apart = {"invalid_timestamps": num_invalid, "early": len(early), "late": len(late)}
        for cause, tables in timeless_rows(kept, invalid, counters)._asdict().items():
            apart[cause] = sum(int(rows.sum()) for rows in tables.values())
        apart = {figure: own + counters.get(figure, 0) for figure, own in apart.items()}
        stated = stated_counts_apart(capture["rows_apart"]) if "rows_apart" in capture else None
        if stated is not None:
            for place, figure in enumerate(("invalid_timestamps", "early", "late")):
                apart[figure] = sum(counts[place] for counts in stated.values())
        ledger = _balance(columns, kept, apart, counters, of_launches, environment)
        details = [Details.from_fields(each) for each in capture.get("details", ())]
        if (columns["annotations"]["details_id"] > len(details)).any():
            raise ValueError("an annotation's details_id points beyond the capture's details")
        if isinstance(path := environment.get("cupti_path"), str):
            environment["cupti_path"] = portable(path)  # it is written into all outputs of the recording
        if FIRST_CONTEXTS in environment:
            environment = with_first_contexts(environment, stated_first_contexts(environment), _activities(kept))
        parts = (kept, invalid, early, late)
        return cls(parts, strings, clock, ledger, counters, environment, details, capture.get("arguments"), stated)

    def between(self, start_ns: int | None = None, end_ns: int | None = None, clock: Clock | None = None) -> Recording:
        """Return the part of the recording that overlaps a range of CUPTI's times; either end may be open.

        The calls and annotations under which the rows of the part were launched are kept, whatever their times, as are
        the annotations around these, and around an annotation without length at an end of the part. Rows that the
        recording sets apart are left out, except for the names of such annotations. The ledger counts the launches of
        the part and keeps all other counts of the whole recording; ``source_counters["rows_cut"]`` is the number of
        rows left out. The environment states the devices that have work in the recording (`WORKING_DEVICES`) if one of
        them has none in the part, in which it was idle therefore.

        Args:
            start_ns: begin of the range.
            end_ns: end of the range.
            clock: the window of the part; None: that of the recording.

        Raises:
            ValueError: the end is before the start, or one of them is NaN.
            TypeError: one of the times is not a number.
        """
        for name, side in (("start_ns", start_ns), ("end_ns", end_ns)):
            if side is not None:
                check_time(name, side)
        if start_ns is not None and end_ns is not None and end_ns < start_ns:
            raise ValueError(f"a part of a recording does not end before it starts, as {start_ns} to {end_ns} ns does")
        overlaps = {item.name: _overlaps(getattr(self, item.name), start_ns, end_ns) for item in fields(Tables)}
        at_ends = np.isin(self.annotations.start_ns, [end for end in (start_ns, end_ns) if end is not None])
        moments = np.flatnonzero(
            overlaps["annotations"] & at_ends & (self.annotations.end_ns == self.annotations.start_ns)
        )
        if len(moments):  # the annotations around others overlap the range themselves
            overlaps["annotations"][self._with_parents(moments)] = True
        part = self._with_own_ledger(
            self.part_of_rows({name: np.flatnonzero(mask) for name, mask in overlaps.items()}, clock)
        )
        environment = with_working_devices(part.environment, self.working_devices, part._tables)
        return part if environment == part.environment else part.restated(environment=environment)

    def part(self, masks: Mapping[str, npt.NDArray[np.bool_]]) -> Recording:
        """Return the rows of each table that a mask selects, with the calls and annotations that launched them.

        Args:
            masks: by table, whether each row is selected. External correlations and collectives follow from the others.
        """
        return self.part_of_rows({name: np.flatnonzero(mask) for name, mask in masks.items()})

    def part_of_rows(self, rows: Mapping[str, npt.NDArray[np.int64]], clock: Clock | None = None) -> Recording:
        """Return some rows of each table with the calls and annotations that launched them, and those around these.

        The time that this takes depends on the number of these rows alone, so that a recording can be divided into
        many parts. The ledger keeps the counts of the whole recording.

        Args:
            rows: by table the selected rows, ascending; of other tables all rows are selected. External correlations
                and collectives follow from the others.
            clock: the window of the part; None: that of the recording.
        """
        rows = dict(rows)
        launched = {name: self._chosen(name, rows) for name in LAUNCHED_TABLES}
        caused = np.concatenate([table.correlation_id for table in launched.values()])
        rows["collectives"] = self._row_index("collectives", "correlation_id").rows_of(caused)
        if "api_calls" in rows:
            launches = self.launch_rows(caused)
            rows["api_calls"] = united(rows["api_calls"], launches[launches >= 0], len(self.api_calls))
        caused = np.concatenate([caused, self._chosen("api_calls", rows).correlation_id])
        rows["external_correlations"] = self._row_index("external_correlations", "correlation_id").rows_of(caused)
        owners = [self._chosen("external_correlations", rows).external_id]
        owners += [ids[ids != 0] for ids in (launched[name].captured_external_id for name in ACTIVITY_TABLES)]
        names = self._row_index("_annotations_apart", "external_id").rows_of(np.concatenate(owners))
        if "annotations" in rows:
            around = self._row_index("annotations", "external_id").rows_of(np.concatenate(owners))
            rows["annotations"] = united(rows["annotations"], self._with_parents(around), len(self.annotations))
        kept = Tables(**{item.name: self._chosen(item.name, rows) for item in fields(Tables)})
        environment: Mapping[str, Any] = self.environment
        if self.first_contexts:
            environment = with_first_contexts(environment, self.first_contexts, _activities(kept))
        none = self._no_rows
        named = replace(none, annotations=_names_alone(self._annotations_apart[names]))
        cut = self._num_rows - len(kept) - len(names)
        of_whole = {name: count for name in (*SET_APART, _NOTHING) if (count := getattr(self.ledger, name))}
        counters = {**self.counters, **of_whole, ROWS_CUT: self.counters.get(ROWS_CUT, 0) + cut}
        figures = {item.name: len(getattr(kept, item.name)) for item in fields(Tables)}
        ledger = Ledger.from_dict({**self.ledger.as_dict(), **figures, ROWS_CUT: counters[ROWS_CUT]})

        def rows_in_parts(name: str) -> npt.NDArray[np.int64]:
            own = rows[name] if name in rows else np.arange(len(getattr(self, name)), dtype=np.int64)
            return np.concatenate([own, names + len(self.annotations)]) if name == "annotations" else own

        return Recording(
            (kept, named, none, none),
            self.strings,
            clock or self.clock,
            ledger,
            counters,
            environment,
            self.details,
            self.arguments.part(rows_in_parts),
            self._all_counts_apart,
        )

    @cached_property
    def _num_rows(self) -> int:
        return sum(map(len, self.parts))

    @cached_property
    def _all_counts_apart(self) -> dict[str, tuple[int, int, int]]:
        return {name: self.counts_apart(name) for name in SCHEMA}

    @cached_property
    def working_devices(self) -> tuple[int, ...]:
        """The ids of the devices that have work in it, or in the whole of which it is a part, in order."""
        return tuple(sorted({*devices_with_work(self._tables), *stated_working_devices(self.environment)}))

    @cached_property
    def idle_devices(self) -> tuple[int, ...]:
        """The devices of `working_devices` that have no work in this recording; only a part can have any."""
        stated = stated_working_devices(self.environment)
        with_work = devices_with_work(self._tables) if stated else ()
        return tuple(device for device in stated if device not in with_work)

    @cached_property
    def first_contexts(self) -> dict[tuple[int, int], int]:
        """Device and stream -> lowest context, of the streams that several contexts use, here or in the whole."""
        return first_contexts(stream_places(_activities(self._tables)), stated_first_contexts(self.environment))

    def _chosen(self, name: str, rows: Mapping[str, npt.NDArray[np.int64]]) -> Table:
        """The chosen rows of a table, which are ascending; the table itself if these are all, or none are named."""
        table: Table = getattr(self, name)
        return table if len(rows.get(name, table)) == len(table) else table[rows[name]]

    def _row_index(self, table: str, column: str) -> RowIndex:
        """The rows of a table by a column of ids."""
        if table not in self._row_indices:
            self._row_indices[table] = RowIndex(getattr(self, table)[column])
        return self._row_indices[table]

    def restated(
        self,
        *,
        clock: Clock | None = None,
        ledger: Ledger | None = None,
        environment: Mapping[str, Any] | None = None,
    ) -> Recording:
        """Return the same rows with another clock, ledger or environment, as their file states them."""
        return Recording(
            self.parts,
            self.strings,
            clock or self.clock,
            ledger or self.ledger,
            self.counters,
            self.environment if environment is None else environment,
            self.details,
            self.arguments,
            self._apart,
        )

    def to_capture(self) -> Capture:
        """The recording in the form in which a source returns it: every row, including those set apart."""
        capture: Capture = {
            "tables": {name: self._columns(name) for name in SCHEMA},
            "strings": list(self.strings),
            "counters": dict(self.counters),
            "clock": {item.name: getattr(self.clock, item.name) for item in fields(Clock)},
            "environment": dict(self.environment),
            "details": self.details,
            "arguments": self.arguments,
        }
        if self.ledger.launches_cut or self.counters.get(ROWS_CUT):  # they cannot be counted again
            capture["launch_figures"] = self.launch_figures()
        if lacking := {table: counts for table, counts in (self._apart or {}).items() if any(counts)}:
            capture["rows_apart"] = lacking
        return capture

    def launch_figures(self) -> dict[str, int]:
        """`LAUNCH_FIGURES`; for a part its own, although its ledger is that of the whole.

        If a bound of the part lies between a launch and its activities, ``launches_cut`` counts it. The losses are at
        most those of the whole recording.
        """
        whole = {name: getattr(self.ledger, name) for name in LAUNCH_FIGURES}
        is_counted = whole["launches_cut"] or not self.counters.get(ROWS_CUT)
        return whole if is_counted else self._own_launch_figures(whole)

    def _own_launch_figures(self, whole: Mapping[str, int]) -> dict[str, int]:
        """Like `launch_figures`; ``whole`` has the most that each figure may be if it counts losses."""
        columns = {name: self._columns(name) for name in SCHEMA}
        until_ns = calls_end_ns(self.counters, self.clock.cupti_start_ns)
        own = launch_figures(columns, self.strings, self.environment, None, until_ns)
        own["peer_copies_unrecorded"] = min(own["peer_copies_unrecorded"], whole["peer_copies_unrecorded"])
        for name in ("launches_without_kernel", "kernels_without_launch"):
            lost = min(own[name], whole[name])
            own["launches_cut"] += own[name] - lost
            own[name] = lost
        return own

    def _columns(self, table: str) -> dict[str, npt.NDArray[Any]]:
        """The columns of a table with all rows, those that are set apart as well."""
        return _joined([getattr(part, table) for part in self.parts]).columns

    def _with_own_ledger(self, part: Recording) -> Recording:
        """A part of this recording with a ledger that counts the launches of the part alone."""
        if not part.counters[ROWS_CUT]:
            return part
        whole = {name: getattr(self.ledger, name) for name in LAUNCH_FIGURES}
        if lost := whole["launches_without_kernel"]:
            activities = [self._columns(name) for name in LAUNCHED_TABLES]
            fates = LaunchFates.of(activities, part.api_calls.columns, self.strings)
            whole["launches_without_kernel"] = min(lost, int(fates.without_activity.sum()))
        ledger = Ledger.from_dict({**part.ledger.as_dict(), **part._own_launch_figures(whole)})
        return part.restated(ledger=replace(ledger, unread=part.ledger.unread))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the recording to ``path`` in the format of its suffix, completely or not at all.

        Only ``.gpurec`` contains all of it and can be read by `load`. See `collector.recording.gpurec`.

        Raises:
            collector.UnknownFormatError: the suffix belongs to no format.
            collector.OutputError: the file cannot be written.
        """
        later_function("save_in_format")(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Recording:
        """Read a recording that `save` wrote. Raises `collector.InvalidFileError` for anything else."""
        recording: Recording = later_function("load_recording")(path)
        return recording

    def summary(self, *, color: bool | None = None) -> str:
        """The recording as a few tables for a terminal.

        Args:
            color: whether to use terminal colours; None: if standard output is a terminal that shows them.
        """
        text: str = later_function("summarize")(self, color=color)
        return text

    def _repr_html_(self) -> str:
        text: str = later_function("overview_html")(self)
        return text

    def to_arrow(self) -> dict[str, pa.Table]:
        """Every table by name as a pyarrow table; see `collector.recording.table.Table.to_arrow`."""
        return {item.name: getattr(self, item.name).to_arrow() for item in fields(Tables)}

    def to_pandas(self) -> dict[str, pd.DataFrame]:
        """Every table by name as a pandas data frame; see `collector.recording.table.Table.to_pandas`."""
        return {item.name: getattr(self, item.name).to_pandas() for item in fields(Tables)}

    def launch_rows(self, correlation_ids: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The row in ``api_calls`` of the launching call of each correlation id, or -1 if it was not recorded.

        A runtime call and the driver call inside it share an id; the result is the outer call, which starts first.
        """
        return look_up(correlation_ids, *self._launches)

    @cached_property
    def all_annotations(self) -> Table:
        """All annotations, including those set apart: one that began before the step may contain launches."""
        return _joined([part.annotations for part in self.parts])

    def annotation_rows(self, correlation_ids: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """For each correlation id the row in `all_annotations` of the annotation around its launch, or -1."""
        return self._annotated.rows_of(correlation_ids)

    def annotation_ids(
        self, correlation_ids: npt.NDArray[Any], captured_ids: npt.NDArray[Any] | None = None
    ) -> npt.NDArray[np.int64]:
        """For each correlation id the ``strings`` index of the annotation around its launch, or -1.

        With the annotations around the captures of activities (``captured_external_id``), the index of both paths.
        """
        return self._annotated.name_ids_of(correlation_ids, captured_ids)

    def capture_annotation_rows(self, captured_ids: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """For each ``captured_external_id`` the row in `all_annotations` of the annotation, or -1."""
        return self._annotated.capture_rows_of(captured_ids)

    def annotations_of(self, table: Table) -> list[str]:
        """For each row of ``table`` the path of the annotation around its launch, or ``""``."""
        return table.launched_under(self._annotated).annotations()

    def _with_parents(self, annotations: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """These rows of ``annotations``, and the rows of all annotations that enclose them, in no order."""
        found = [annotations]
        while len(found[-1]):
            parents = self._annotation_parents[found[-1]]
            found.append(distinct_values(parents[parents >= 0]))
        return np.concatenate(found)

    @cached_property
    def _annotation_parents(self) -> npt.NDArray[np.int64]:
        """For each annotation the row of the annotation that encloses it on its thread; -1: none does."""
        return nested_annotations(self.annotations)[0]

    @cached_property
    def _annotations_apart(self) -> Table:
        """The annotations that are set apart."""
        _, *apart = self.parts
        return _joined([part.annotations for part in apart])

    @cached_property
    def _no_rows(self) -> Tables:
        return Tables(*(table[:0] for table in _each(self._tables)))

    @cached_property
    def _launches(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        # api_calls are sorted by time, so the first row of each id is the outer call.
        return first_rows(self.api_calls.correlation_id)


def stated_counts_apart(stated: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, int, int]]:
    """The numbers that `Recording.counts_apart` returns, by table, as a file states them.

    Raises:
        ValueError: they are not three numbers of each table.
    """
    found = {}
    for table, counts in stated.items():
        if len(counts) != 3 or not all(type(count) is int and 0 <= count < 1 << 63 for count in counts):
            raise ValueError(f"rows_apart: {table} does not have three possible whole numbers")
        invalid, early, late = counts
        found[table] = (invalid, early, late)
    return found


def _overlaps(table: Table, start_ns: int | None, end_ns: int | None) -> npt.NDArray[np.bool_]:
    """Whether each row overlaps a range, more than at its ends; a row without length counts at the ends as well."""
    columns = table.columns
    overlaps = np.ones(len(table), bool)
    if "start_ns" not in columns:
        return overlaps
    starts = columns["start_ns"]
    ends = columns.get("end_ns", starts)
    is_moment = starts == ends
    if end_ns is not None:
        overlaps &= (starts < end_ns) | (is_moment & (starts == end_ns))
    if start_ns is not None:
        overlaps &= (ends > start_ns) | (is_moment & (ends == start_ns))
    return overlaps


def _activities(tables: Tables) -> dict[str, dict[str, npt.NDArray[Any]]]:
    """The columns of the tables of activities."""
    return {name: getattr(tables, name).columns for name in ACTIVITY_TABLES}


def _each(tables: Tables) -> list[Table]:
    return [getattr(tables, item.name) for item in fields(Tables)]


def are_names_alone(annotations: Table) -> npt.NDArray[np.bool_]:
    """Whether each annotation has no times, because it stands for its name alone: it is set apart, which is no loss."""
    is_alone: npt.NDArray[np.bool_] = (annotations.start_ns == 0) & (annotations.end_ns == 0)
    return is_alone


def _names_alone(annotations: Table) -> Table:
    """The annotations without their times and their links to backward passes; see `are_names_alone`."""
    left_out = {
        name: np.zeros(len(annotations), dtype) for name, dtype in SCHEMA["annotations"].items() if name in _TIMED
    }
    return Table(annotations.name, {**annotations.columns, **left_out}, annotations._strings, annotations._annotations)


def _joined(parts: list[Table]) -> Table:
    filled = [part for part in parts if len(part)]
    if len(filled) < 2:
        return filled[0] if filled else parts[0]
    columns = {name: np.concatenate([part.columns[name] for part in filled]) for name in parts[0].columns}
    return Table(parts[0].name, columns, parts[0]._strings, parts[0]._annotations)


def _balance(
    columns: Mapping[str, Mapping[str, npt.NDArray[Any]]],
    kept: Tables,
    apart: Mapping[str, int],
    counters: Mapping[str, int],
    of_launches: Mapping[str, int],
    environment: Mapping[str, Any],
) -> Ledger:
    # A program that CUPTI watches can annotate a step in which it does nothing; other files may have ranges alone.
    not_counted = _OF_THE_PROGRAM if "cupti_api_version" in environment else frozenset()
    timed = (name for name in SCHEMA if "start_ns" in columns[name] and name not in not_counted)
    is_empty = not any(len(columns[name]["start_ns"]) for name in timed)
    # The counters of a part have the figures of the whole, and those of other files the figures that these state.
    return Ledger.from_dict(
        {
            **counters,
            _NOTHING: int(
                is_empty
                and (
                    counters.get(_NOTHING, 0) > 0
                    or (
                        ROWS_CUT not in counters and not any(counters.get(name) for name in (*LOSSES, "rows_forgotten"))
                    )
                )
            ),
            **{item.name: len(getattr(kept, item.name)) for item in fields(Tables)},
            **of_launches,
            **apart,
        }
    )
