"""Questions, and the answers that are joined from their parts if a question is put to several steps."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import numpy as np

from collector.analysis.activities import whole_graph_rows
from collector.analysis.answer import Answer, Column, check_units
from collector.analysis.empty_answers import why_empty
from collector.analysis.units import values_of
from collector.analysis.whole_graphs import whole_graphs
from collector.recording.recording import Recording
from collector.recording.schema import ACTIVITY_TABLES, LAUNCHED_TABLES, SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from collector.analysis.answer import Window
    from collector.formats.call_sums import CallSums
    from collector.formats.step import TracedStep
    from collector.recording.ledger import Ledger

Asked: TypeAlias = "Recording | TracedStep | Sequence[Recording | TracedStep]"
"""The possible subjects of a question: a recording, a loaded step or an ended session, or several of them."""


class Asking(Protocol):
    """The value that a question is put to: a recording, or the sums of a profile without start times."""

    @property
    def ledger(self) -> Ledger:
        """Numbers of records that were seen, kept and lost."""
        ...


Value = TypeVar("Value", bound=Asking)

_STEP = Column("step", "number", "Index of the step among those that were asked, from 0.")


@dataclass(frozen=True)
class Part:
    """The part of an answer that one recording contributes."""

    rows: Sequence[Sequence[Any]] | Mapping[str, npt.NDArray[Any]]
    """The rows, or their columns by name."""
    windows: Sequence[Window] = ()
    evidence: Sequence[Mapping[str, npt.NDArray[np.int64]]] = field(default=())
    """For each row; see `Answer.evidence`."""
    losses: Sequence[str] = ()
    """Losses of this answer that the recording's ledger does not state."""
    notes: Sequence[str] = ()
    """Notes that readers of the rows need."""

    @classmethod
    def ordered(
        cls,
        rows: Sequence[Sequence[Any]],
        evidence: Sequence[Mapping[str, npt.NDArray[np.int64]]],
        key: Callable[[Sequence[Any]], Any],
        notes: Sequence[str] = (),
    ) -> Part:
        """A part with its rows, and the evidence of each, in ascending order of a key of the rows."""
        order = sorted(range(len(rows)), key=lambda place: key(rows[place]))
        return cls([rows[place] for place in order], (), [evidence[place] for place in order], notes=notes)


@dataclass(frozen=True)
class Question:
    """A question with the columns of its answer."""

    name: str
    definition: str
    columns: tuple[Column, ...]
    summed: tuple[str, ...] = ()
    """Columns whose totals the answer has."""
    tables: tuple[str, ...] = ACTIVITY_TABLES
    """The tables from whose rows the answer is computed."""
    otherwise: str = ""
    """One sentence with the reason why the answer can be empty although these tables have rows."""
    counts_graphs: bool = False
    """Whether a launch of a CUDA graph that was recorded as a whole counts as an activity."""

    def __post_init__(self) -> None:
        check_units(self.columns)
        names = [column.name for column in self.columns]
        for what, given, known in (("column", self.summed, names), ("table", self.tables, SCHEMA)):
            unknown = [each for each in given if each not in known]
            if unknown:
                raise ValueError(f"question {self.name}: no {what} {unknown[0]!r}; there are {', '.join(known)}")

    def ask(self, given: Asked, ask: Callable[[Recording], Part]) -> Answer:
        """The answer for one step; for several steps their rows in order, behind a column ``step``."""
        return self.ask_each(recordings_in(given), ask, is_one=not isinstance(given, Sequence))

    def ask_each(self, asked: Sequence[Value], ask: Callable[[Value], Part], *, is_one: bool) -> Answer:
        """The answer for one value; for several values their rows in order, behind a column ``step``."""
        parts = [ask(value) for value in asked]
        tables = [self._values(part) for part in parts]
        columns = self.columns
        if not is_one:
            columns = (_STEP, *columns)
            tables = [
                {_STEP.name: np.full(len(next(iter(table.values()))), number, np.int64), **table}
                for number, table in enumerate(tables)
            ]
        if len(tables) == 1:
            values = tables[0]
        else:
            values = {
                column.name: np.concatenate([table[column.name] for table in tables])
                if tables
                else values_of([], column.unit)
                for column in columns
            }
        losses = [
            loss if is_one else f"step {number}: {loss}"
            for number, (value, part) in enumerate(zip(asked, parts, strict=True))
            for loss in (*value.ledger.losses(), *part.losses)
        ]
        return self._answer(columns, values, parts, losses, asked, is_one=is_one)

    def ask_together(self, given: Asked, ask: Callable[[Sequence[Recording]], Part]) -> Answer:
        """The answer for all steps together; the question's own columns name the step of each row."""
        is_one = not isinstance(given, Sequence)
        recordings = recordings_in(given)
        part = ask(recordings)
        losses = [
            loss if is_one else f"step {number}: {loss}"
            for number, recording in enumerate(recordings)
            for loss in recording.ledger.losses()
        ]
        all_losses = [*losses, *part.losses]
        return self._answer(self.columns, self._values(part), [part], all_losses, recordings, is_one=is_one)

    def _answer(
        self,
        columns: tuple[Column, ...],
        values: Mapping[str, npt.NDArray[Any]],
        parts: Sequence[Part],
        losses: Sequence[str],
        asked: Sequence[Asking],
        *,
        is_one: bool,
    ) -> Answer:
        notes = [note for part in parts for note in part.notes]
        recordings = [each for each in asked if isinstance(each, Recording)]
        if not set(ACTIVITY_TABLES).isdisjoint(self.tables) and "graph_launches" not in self.tables:
            notes.append(whole_graphs(recordings, are_counted=self.counts_graphs))
        if not len(next(iter(values.values()))):
            without_times = "The profile has no kernels."
            is_of_sums = len(recordings) < len(asked)
            has_graphs = self.counts_graphs and any(len(whole_graph_rows(each)) for each in recordings)
            tables = LAUNCHED_TABLES if has_graphs else self.tables
            notes.append(without_times if is_of_sums else why_empty(recordings, tables, self.otherwise))
        return Answer(
            question=self.name,
            definition=self.definition,
            columns=columns,
            values=values,
            totals={name: values[name].sum().item() for name in self.summed},
            windows=tuple(window for part in parts for window in part.windows),
            losses=tuple(losses),
            evidence=parts[0].evidence if is_one else (),
            notes=tuple(dict.fromkeys(filter(None, notes))),
        )

    def _values(self, part: Part) -> dict[str, npt.NDArray[Any]]:
        if not isinstance(part.rows, Sequence):
            columns = {column: part.rows[column.name] for column in self.columns}
            return {each.name: values if len(values) else values_of([], each.unit) for each, values in columns.items()}
        return {
            column.name: values_of([row[place] for row in part.rows], column.unit)
            for place, column in enumerate(self.columns)
        }


def question_by(questions: Mapping[str, Question], by: str, counted: str) -> Question:
    """The question for a value of ``by``.

    Args:
        questions: value of ``by`` -> question.
        by: the value that was given.
        counted: subject and verb of the error: ``kernels are``.

    Raises:
        ValueError: there is no such question.
    """
    if by not in list(questions):  # a list is equal to none, and cannot be a key
        raise ValueError(f"by={by!r}: {counted} counted by {', '.join(questions)}")
    return questions[by]


def recording_in(given: Recording | TracedStep) -> Recording:
    """The recording of a step.

    Raises:
        TypeError: the value is neither a step nor a recording, but for example the name of a file.
    """
    _check(given)
    return given if isinstance(given, Recording) else given.recording


def _check(given: object) -> None:
    if not isinstance(given, Recording) and not hasattr(type(given), "recording"):
        if isinstance(given, (str, bytes, os.PathLike)):
            raise TypeError(
                "a question takes steps and recordings, not the name of a file: load it first, by collector.load(path)"
            )
        raise TypeError(f"a question takes steps and recordings, not {type(given).__name__}")


def steps_in(given: Asked) -> Sequence[Recording | TracedStep]:
    """One or several steps as a sequence; for errors see `recording_in`."""
    steps = given if isinstance(given, Sequence) and not isinstance(given, (str, bytes)) else [given]
    for each in steps:
        _check(each)
    return steps


def recordings_in(given: Asked) -> list[Recording]:
    """The recordings of one step or of several."""
    return [recording_in(each) for each in steps_in(given)]


def sums_in(given: Asked) -> list[CallSums]:
    """The sums of profiles without start times; empty unless every given step holds only sums."""
    steps = steps_in(given)
    found = [None if isinstance(each, Recording) else each.sums for each in steps]
    sums = [each for each in found if each is not None]
    return sums if len(sums) == len(found) else []
