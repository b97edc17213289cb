"""The answers to a question as they come: each is a line of a file, so that those before a crash remain."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def append_line(file: Path, content: dict[str, Any]) -> None:
    """Add a line of JSON to a file."""
    with file.open("a") as lines:
        lines.write(json.dumps(content, default=str) + "\n")


@dataclass(frozen=True)
class Notes:
    """Writes the notes of one part of a question."""

    file: Path

    def _add(self, note: dict[str, Any]) -> None:
        append_line(self.file, note)

    def did(self, text: str) -> None:
        """State what was done, before what came out of it."""
        self._add({"did": text})

    def saw(self, text: str, **figures: Any) -> None:
        """State what came out. The figures in it are kept by name, too."""
        self._add({"saw": text, "figures": figures})

    def table(self, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Show a table, unless it has no rows."""
        if texts := [[str(cell) for cell in row] for row in rows]:
            self._add({"table": [list(header), *texts]})


def read_notes(file: Path) -> list[dict[str, Any]]:
    """The notes in a file, which a process that died may have left with half a line at its end."""
    if not file.exists():
        return []
    notes = []
    for line in file.read_text(errors="replace").splitlines():
        try:
            notes.append(json.loads(line))
        except ValueError:
            break
    return notes


def all_figures(notes: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The figures of all notes by name."""
    found: dict[str, Any] = {}
    for note in notes:
        found |= note.get("figures", {})
    return found


def counted(counts: dict[Any, int]) -> str:
    """``2 of a, 1 of b``, or ``none``."""
    return ", ".join(f"{count} of {name}" for name, count in counts.items()) or "none"
