"""Questions that another question asks in processes of their own, because what they do may end the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from asked_card import ROOT
from notes import all_figures, read_notes

if TYPE_CHECKING:
    from asked_card import Card


class ApartAnswer(NamedTuple):
    """What came out of a process."""

    end: str
    """``ended``, or how it ended otherwise."""
    notes: list[dict[str, Any]]
    errors: str
    """What it printed on standard error."""

    @property
    def figures(self) -> dict[str, Any]:
        """All figures by name."""
        return all_figures(self.notes)


def ask_apart(card: Card, question: str, part: str, seconds: float, **variables: str) -> ApartAnswer:
    """Ask one part of a question of `gpu_questions` in a process; ``variables`` are added to its environment."""
    with tempfile.TemporaryDirectory(dir=card.folder) as folder:
        file = Path(folder) / "notes"
        command = [sys.executable, str(ROOT / "scripts" / "gpu_questions.py"), "--ask", question, "--part", part]
        command += ["--notes", str(file), *(["--simulated"] if card.is_simulated else [])]
        try:
            done = subprocess.run(
                command, env=os.environ | variables, cwd=folder, capture_output=True, text=True, timeout=seconds,
                check=False,
            )  # fmt: skip
            end, errors = ended(done.returncode), done.stderr
        except subprocess.TimeoutExpired as expired:
            end, errors = f"did not end within {seconds:.0f} s", (expired.stderr or b"").decode(errors="replace")
        return ApartAnswer(end, read_notes(file), errors)


def ended(status: int) -> str:
    """An exit status in words."""
    if status == 0:
        return "ended"
    if status < 0:
        return f"died of {signal.Signals(-status).name}"
    return f"ended with exit status {status}"
