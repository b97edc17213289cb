"""The events of a Chrome trace as columns, from text that may be cut off, unclosed or malformed.

Chrome lets a trace lack its closing brackets, so a recorder that was killed leaves a file that still counts.
`collector._convert.ChromeScan` reads the text piece by piece; the values of the columns are made on request.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.recording.distinct import distinct_codes
from collector.recording.first_rows import distinct_rows
from collector.recording.row_arguments import ArgumentColumn
from collector.runtime.extension import convert_extension
from collector.text.library_path import without_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]

NO_BASE = "base time cut off (the times do not say the date)"
LARGEST_ID = (1 << 32) - 1
_UNCLOSED = "end of the file missing (its closing brackets are not there)"
_MAX_NANOS = 1 << 62
NO_TIME = -(1 << 63)
"""The value for an event without a time; `IMPOSSIBLE_TIME`: the value for a stated time that is impossible."""
IMPOSSIBLE_TIME = NO_TIME + 1
_MISSING = NO_TIME
_DIGITS = re.compile(r"[0-9]{1,18}")
_LONGEST_INT = 30
_ENTRIES_BEFORE_AN_EVENT = 1000
"""A list that begins with more entries that are not events is not searched for one."""
_DECODER = json.JSONDecoder(
    parse_float=str,  # so that nothing goes through a double
    parse_constant=str,
    # Python refuses to make numbers of thousands of digits.
    parse_int=lambda digits: int(digits) if len(digits) <= _LONGEST_INT else digits,
    strict=False,
)


class NotATraceError(ValueError):
    """Text without a list of events; `position` is a byte of the text."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(why)
        self.position = position


def holds_events(pieces: Iterable[bytes], *, is_list: bool) -> bool:
    """Whether a text has a list of events, read up to the first event.

    An empty or cut off list is one if it is the member of an object, whose name says so. A list alone may be anything
    in brackets, and must have an event.

    Args:
        pieces: the text.
        is_list: the text is a list alone.
    """
    scan = convert_extension.ChromeScan()
    for piece in pieces:
        goes_on = scan.feed(piece)
        if not goes_on or scan.num_entries > _ENTRIES_BEFORE_AN_EVENT or len(scan.phases()):
            break
    scan.finish()
    return scan.has_events and (len(scan.phases()) > 0 or not (is_list or scan.num_entries))


class ChromeEvents:
    """The events of one file, in its order, and the file's other members.

    An event is a row: a number from 0 on. Events that have no phase are not rows.
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        """Read a Chrome trace: an object with ``traceEvents`` or a bare list, whole or cut off.

        Raises:
            NotATraceError: the text holds no list of events.
        """
        self._scan = convert_extension.ChromeScan()
        is_read = True
        for piece in pieces:  # to their end, so that damage behind the trace is seen as well
            is_read = is_read and self._scan.feed(piece)
        self._scan.finish()
        failure, at = self._scan.failure, self._scan.failed_at
        if failure == "nested too deeply" and not self._scan.num_entries:
            raise NotATraceError(0, failure)
        if not self._scan.has_events:
            if failure == "neither a JSON object nor a list":
                raise NotATraceError(at, failure)
            is_cut = not self._scan.is_closed
            what = "JSON that is cut off or wrong before its list" if is_cut else "JSON without a list"
            raise NotATraceError(0, f"{what} of trace events")
        self.not_kept: Counter[str] = Counter()
        """Argument -> the number of events of which its value was left out."""
        self.skipped: Counter[str] = Counter()
        """Reason -> how many pieces were left out or mended."""
        self.cut_at: int | None = None
        """Byte from which on nothing could be read, or None."""
        self.num_entries = self._scan.num_entries
        """Entries of the list of events, be they events or not."""
        if failure is not None:
            self.cut_at = at
            self.skipped["unreadable rest of the file"] += 1
        elif not self._scan.is_closed:
            self.skipped[_UNCLOSED] += 1
        if self._scan.num_ill_formed:
            first = self._scan.first_ill_formed
            self.skipped[f"bytes that are not UTF-8 (the first at byte {first}; mended)"] = self._scan.num_ill_formed
        for reason, count in (
            ("events that are not objects", self._scan.num_not_objects),
            ("arguments of too many different names", self._scan.num_arguments_left_out),
            ("arguments that are not numbers of JSON (NaN or Infinity)", self._scan.num_not_finite),
        ):
            if count:
                self.skipped[reason] += count

    @property
    def is_cut(self) -> bool:
        """Whether the end of the file is missing or cannot be read."""
        return self.cut_at is not None or _UNCLOSED in self.skipped

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """The other members of the top level (those before the cut, where the file is cut off)."""
        return {name: value_of(written) for name, written in self._scan.members()}

    # --- columns

    def rows(self, phases: str) -> Numbers:
        """The events that have one of these phases."""
        is_one = np.zeros(256, bool)
        is_one[np.frombuffer(phases.encode(), np.uint8)] = True
        found: Numbers = np.flatnonzero(is_one[self._phases])
        return found

    def rows_without(self, phases: str) -> Numbers:
        """The events that have none of these phases."""
        is_one = np.ones(256, bool)
        is_one[np.frombuffer(phases.encode(), np.uint8)] = False
        found: Numbers = np.flatnonzero(is_one[self._phases])
        return found

    def have_phase(self, phase: str, rows: Numbers) -> npt.NDArray[np.bool_]:
        """Whether events have a phase."""
        found: npt.NDArray[np.bool_] = self._phases[rows] == ord(phase)
        return found

    def phase_of(self, row: int) -> str:
        """The phase of one event."""
        return chr(self._phases[row])

    def phases(self, rows: Numbers) -> npt.NDArray[np.uint8]:
        """The phases of events, as the codes of their letters."""
        return self._phases[rows]

    @cached_property
    def _phases(self) -> npt.NDArray[np.uint8]:
        return self._scan.phases()

    def starts_ns(self, rows: Numbers) -> Numbers:
        """The starts of events, ns; `has_time` tells which of them are times."""
        return self._scan.starts_ns(rows)

    def durations_ns(self, rows: Numbers) -> Numbers:
        """The durations of events, ns; `has_time` tells which of them are times."""
        return self._scan.durations_ns(rows)

    def whole_micros(self, rows: Numbers) -> tuple[list[int | None], list[int | None]]:
        """Starts and durations of events in microseconds, of any size; None where one is not a whole number."""
        starts = self._whole_micros(self.starts_ns(rows), self._scan.written_starts(rows))
        return starts, self._whole_micros(self.durations_ns(rows), self._scan.written_durations(rows))

    def _whole_micros(self, times_ns: Numbers, written: Numbers) -> list[int | None]:
        micros, rest = np.divmod(times_ns, 1000)
        is_known = (has_time(times_ns) & (rest == 0)).tolist()
        found = [each if known else None for each, known in zip(micros.tolist(), is_known, strict=True)]
        texts = self._scan.texts(written[written >= 0])
        for place, text_written in zip(np.flatnonzero(written >= 0).tolist(), texts, strict=True):
            value = value_of(text_written)
            found[place] = value if type(value) is int else None
        return found

    def names(self, rows: Numbers) -> tuple[list[str], Numbers]:
        """The distinct names, and the index of each event's name among them."""
        return self._texts_of(self._scan.names(rows))

    def categories(self, rows: Numbers) -> tuple[list[str], Numbers]:
        """The distinct categories (``""`` for none), and the index of each event's category among them."""
        return self._texts_of(self._scan.categories(rows))

    @property
    def has_categories(self) -> bool:
        """Whether any event has a category."""
        return self._scan.has_categories()

    def track_numbers(self, rows: Numbers) -> Numbers:
        """The place in `tracks` of each event's process and thread."""
        return self._scan.track_numbers(rows).astype(np.int64)

    @cached_property
    def tracks(self) -> list[tuple[Any, Any]]:
        """Process and thread ids, which are numbers, texts or anything else; None where an event states none."""
        return [(_id_of(process), _id_of(thread)) for process, thread in self._scan.tracks()]

    def _texts_of(self, numbers: npt.NDArray[Any]) -> tuple[list[str], Numbers]:
        """The distinct texts of these numbers in the order of the file, and the place of each among them."""
        found, places = _used(numbers)
        return self._scan.texts(found), places[numbers]

    # --- arguments

    @cached_property
    def _arguments(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self._argument_names)}

    @cached_property
    def _argument_names(self) -> list[str]:
        """The names of arguments by number. Names with different bytes that are not UTF-8 may be the same text."""
        return self._scan.argument_names()

    def integers(self, argument: str, rows: Numbers, largest: int = LARGEST_ID) -> Numbers:
        """An argument as whole numbers, also if written as text; -1 where it is not from 0 to ``largest``."""
        number = self._arguments.get(argument)
        if number is None:
            return np.full(len(rows), -1, np.int64)
        found = self._scan.numbers(number, rows, -1)
        values, places = self.values(argument, rows)
        if values:
            digits = [int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else -1 for value in values]
            found = np.where(places >= 0, np.array([*digits, -1], np.int64)[places], found)
        return np.where((found >= 0) & (found <= largest), found, -1)

    def signed_integers(self, argument: str, rows: Numbers) -> Numbers:
        """An argument that is a whole number of either sign; 0 where it is something else."""
        number = self._arguments.get(argument)
        return np.zeros(len(rows), np.int64) if number is None else self._scan.numbers(number, rows, 0)

    def values(self, argument: str, rows: Numbers) -> tuple[list[Any], Numbers]:
        """The distinct values of any argument, and the index of each event's value among them; -1: none."""
        number = self._arguments.get(argument)
        if number is None:
            return [], np.full(len(rows), -1, np.int64)
        given = self._scan.argument_texts(number, rows)
        has = given >= 0
        if not has.any():
            return [], given
        distinct, places = _used(given[has])
        values = [
            text if place % 2 == 0 else value_of(text)
            for place, text in zip(distinct.tolist(), self._scan.texts(distinct), strict=True)
        ]
        return values, np.where(has, places[np.where(has, given, 0)], -1)

    def all_values(self, argument: str, rows: Numbers) -> list[Any]:
        """An argument of each event, of any type; None where it has none."""
        number = self._arguments.get(argument)
        if number is None:
            return [None] * len(rows)
        values, places = self.values(argument, rows)
        whole = self._scan.numbers(number, rows, _MISSING).tolist()
        return [
            values[place] if place >= 0 else None if found == _MISSING else found
            for place, found in zip(places.tolist(), whole, strict=True)
        ]

    def has(self, argument: str, rows: Numbers) -> npt.NDArray[np.bool_]:
        """Whether events have an argument."""
        number = self._arguments.get(argument)
        if number is None:
            return np.zeros(len(rows), bool)
        found: npt.NDArray[np.bool_] = (self._scan.numbers(number, rows, _MISSING) != _MISSING) | (
            self._scan.argument_texts(number, rows) >= 0
        )
        return found

    def arguments_of(self, rows: Numbers) -> Iterator[dict[str, Any]]:
        """All arguments of each event, in their order in the file."""
        names = self._argument_names
        used = self._scan.shape_numbers()[rows].tolist()
        shapes = self._scan.shapes()
        needed = sorted({argument for shape in set(used) for argument in shapes[shape]})
        columns = {argument: self.all_values(names[argument], rows) for argument in needed}
        for place, shape in enumerate(used):
            yield {names[argument]: columns[argument][place] for argument in shapes[shape]}

    def argument_column(self, argument: str, rows: Numbers) -> ArgumentColumn | None:
        """An argument of events as text, without the names of home folders; None where no event has it."""
        number = self._arguments.get(argument)
        if number is None:
            return None
        whole = self._scan.numbers(number, rows, _MISSING)
        given = self._scan.argument_texts(number, rows)
        is_whole = whole != _MISSING
        if not (is_whole | (given >= 0)).any():
            return None
        numbers, number_codes = distinct_codes(whole[is_whole])
        used, text_codes = distinct_codes(given[~is_whole & (given >= 0)])
        codes = np.zeros(len(rows), np.uint32)
        codes[is_whole] = number_codes
        codes[~is_whole & (given >= 0)] = len(numbers) + text_codes
        held = np.flatnonzero(is_whole | (given >= 0))
        texts = [*map(str, numbers.tolist()), *(without_home(text(each)) for each in self._scan.texts(used))]
        return ArgumentColumn(held.astype(np.uint32), codes[held], texts)

    def distinct_values(self, arguments: Iterable[str], rows: Numbers) -> tuple[list[list[Any]], Numbers]:
        """The distinct combinations of these arguments (None: missing), and the index of each event's combination."""
        columns = [self.values(argument, rows) for argument in arguments]
        first, codes = distinct_rows([places for _, places in columns])
        stated = [
            [values[place] if place >= 0 else None for place in places[first].tolist()] for values, places in columns
        ]
        return [list(each) for each in zip(*stated, strict=True)], codes

    def argument_counts(self, rows: Numbers | None = None) -> Counter[str]:
        """The number of events that have each argument, of these or of all but events of metadata."""
        shapes = self._scan.shape_numbers()[self._phases != ord("M") if rows is None else rows]
        names = self._argument_names
        found: Counter[str] = Counter()
        for shape, count in zip(self._scan.shapes(), np.bincount(shapes).tolist(), strict=False):
            for argument in set(shape) if count else ():
                found[names[argument]] += count
        return found

    # --- what events say of processes and threads

    @cached_property
    def process_names(self) -> dict[Any, str]:
        """Process id -> its name, in file order; the last name of an id counts."""
        names = {}
        for (process, _), arguments in self._described("process_name"):
            if isinstance(process, (int, str)):
                names[process] = text(arguments.get("name", ""))
        return names

    @cached_property
    def described_threads(self) -> dict[tuple[int, int], dict[str, Any]]:
        """Process and thread id -> the thread's metadata, such as ``name``; the last event of an id counts."""
        return {
            (process, thread): arguments
            for (process, thread), arguments in self._described("thread_name")
            if isinstance(process, int) and isinstance(thread, int)
        }

    @cached_property
    def thread_names(self) -> list[tuple[Any, Any, str]]:
        """Process id, thread id and name, in the order of the file."""
        return [(*track, text(about.get("name", ""))) for track, about in self._described("thread_name")]

    def _described(self, kind: str) -> Iterator[tuple[tuple[Any, Any], dict[str, Any]]]:
        """Process and thread id, and the arguments, of the events of metadata that have this name."""
        rows = self.rows("M")
        names, index = self.names(rows)
        rows = rows[np.array([name == kind for name in names] or [False], bool)[index]] if len(rows) else rows
        tracks = self.track_numbers(rows).tolist()
        for track, arguments in zip(tracks, self.arguments_of(rows), strict=True):
            yield self.tracks[track], arguments


def _used(numbers: npt.NDArray[Any]) -> tuple[Numbers, Numbers]:
    """The distinct numbers of texts in order, and by number its place among them. Texts are numbered from 0 on."""
    is_there = np.zeros(int(numbers.max(initial=0)) + 1, bool)
    is_there[numbers] = True
    return np.flatnonzero(is_there), np.cumsum(is_there) - 1


def has_time(times_ns: Numbers) -> npt.NDArray[np.bool_]:
    """Whether these are times: an event may state no time, or one that is impossible or not a number."""
    found: npt.NDArray[np.bool_] = times_ns > IMPOSSIBLE_TIME
    return found


def value_of(written: str) -> Any:
    """A JSON value; numbers with a fraction stay text."""
    try:
        return _DECODER.decode(written)
    except (ValueError, RecursionError):  # a mended text need not be JSON
        return written


def _id_of(written: str) -> Any:
    return value_of(written) if written else None


def per_place(values: list[Any], make: Callable[[Any], int], missing: int = -1) -> Numbers:
    """The result for each value, and at the end `missing`, which index -1 finds."""
    return np.array([*(make(value) for value in values), missing], np.int64)


def possible_base(nanos: int, skipped: Counter[str]) -> int:
    """The wall time that a file states for its time 0; an impossible one is taken as 0 and counted."""
    if -_MAX_NANOS < nanos < _MAX_NANOS:
        return nanos
    skipped["impossible base times (taken as 0)"] += 1
    return 0


def text(value: Any) -> str:
    """A JSON value as text that protobuf takes: a lone surrogate becomes a question mark."""
    return str(value).encode("utf-8", "replace").decode("utf-8")
