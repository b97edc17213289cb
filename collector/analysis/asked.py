"""How a question is put to one step or to many, and its parts become one answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from collector.analysis.answer import Answer, Column, values_of
from collector.recording.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from collector.analysis.answer import Window
    from collector.formats.step import TracedStep

Asked: TypeAlias = "Recording | TracedStep | Sequence[Recording | TracedStep]"
"""What a question can be put to: a recording, a loaded step or an ended session, or several of them."""

_STEP = Column("step", "number", "Which of the steps that were asked, counted from 0.")


@dataclass(frozen=True)
class Part:
    """What one recording has to say."""

    rows: Sequence[Sequence[Any]] | Mapping[str, npt.NDArray[Any]]
    """The rows, or their columns by name."""
    windows: Sequence[Window] = ()
    evidence: Sequence[Mapping[str, npt.NDArray[np.int64]]] = field(default=())
    """Of each row; see `Answer.evidence`."""
    losses: Sequence[str] = ()
    """What this answer lacks, beside what the ledger of the recording says."""
    notes: Sequence[str] = ()
    """What else has to be known to read the rows."""


@dataclass(frozen=True)
class Question:
    """A question with the columns of its answer."""

    name: str
    definition: str
    columns: tuple[Column, ...]
    summed: tuple[str, ...] = ()
    """Columns of which the answer has totals."""

    def ask(self, given: Asked, ask: Callable[[Recording], Part]) -> Answer:
        """The answer for one step, or of several one below the other with a column ``step``."""
        is_one = not isinstance(given, Sequence)
        recordings = [recording_in(each) for each in (given if isinstance(given, Sequence) else [given])]
        parts = [ask(recording) for recording in recordings]
        tables = [self._values(part) for part in parts]
        columns = self.columns
        if not is_one:
            columns = (_STEP, *columns)
            tables = [
                {_STEP.name: np.full(len(next(iter(table.values()))), number, np.int64), **table}
                for number, table in enumerate(tables)
            ]
        values = {
            column.name: np.concatenate([table[column.name] for table in tables])
            if tables
            else values_of([], column.unit)
            for column in columns
        }
        losses = [
            loss if is_one else f"step {number}: {loss}"
            for number, (recording, part) in enumerate(zip(recordings, parts, strict=True))
            for loss in (*recording.ledger.losses(), *part.losses)
        ]
        return self._answer(columns, values, parts, losses, is_one=is_one)

    def ask_together(self, given: Asked, ask: Callable[[Sequence[Recording]], Part]) -> Answer:
        """The answer that all steps have together; which step a row is about is for its own columns to say."""
        is_one = not isinstance(given, Sequence)
        recordings = [recording_in(each) for each in (given if isinstance(given, Sequence) else [given])]
        part = ask(recordings)
        losses = [
            loss if is_one else f"step {number}: {loss}"
            for number, recording in enumerate(recordings)
            for loss in recording.ledger.losses()
        ]
        return self._answer(self.columns, self._values(part), [part], [*losses, *part.losses], is_one=is_one)

    def _answer(
        self,
        columns: tuple[Column, ...],
        values: Mapping[str, npt.NDArray[Any]],
        parts: Sequence[Part],
        losses: Sequence[str],
        *,
        is_one: bool,
    ) -> Answer:
        return Answer(
            question=self.name,
            definition=self.definition,
            columns=columns,
            values=values,
            totals={name: values[name].sum().item() for name in self.summed},
            windows=tuple(window for part in parts for window in part.windows),
            losses=tuple(losses),
            evidence=parts[0].evidence if is_one else (),
            notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        )

    def _values(self, part: Part) -> dict[str, npt.NDArray[Any]]:
        if not isinstance(part.rows, Sequence):
            return {column.name: part.rows[column.name] for column in self.columns}
        return {
            column.name: values_of([row[place] for row in part.rows], column.unit)
            for place, column in enumerate(self.columns)
        }


def recording_in(given: Recording | TracedStep) -> Recording:
    """The columns of what was given."""
    return given if isinstance(given, Recording) else given.recording
