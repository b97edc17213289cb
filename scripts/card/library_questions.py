"""The question how other versions of libcupti behave with this driver."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asked_card import LIBCUPTI, ROOT
from carried_libraries import found_libraries, unpacked
from notes import Notes, read_notes

if TYPE_CHECKING:
    from asked_card import Card

STEP_SECONDS = 12
KERNELS = 500
"""Of the step, those of graphs among them."""


def libraries(notes: Notes, card: Card, part: str) -> None:
    """A traced step with each libcupti in the folder, in processes of their own."""
    if card.libraries is None:
        notes.saw("not asked: --libraries names no folder")
        return
    found = found_libraries(card.libraries)
    notes.did(
        f"{len(found)} files in {card.libraries}: with each, a step of 400 kernels, 200 copies and 5 launches of a "
        "graph of 20 kernels inside collector.trace(strict=True); where that fails, a client of a few direct calls"
    )

    def ask(place: tuple[int, Path]) -> list[tuple[str, str, str, dict[str, Any]]]:
        index, file = place
        library = unpacked(file, card.folder / f"library-{index}")
        label = str(file.relative_to(card.libraries or Path()))
        answers = [(label, "collector", *_step_with(card, library, "collector", index))]
        if answers[0][3].get("kernels") != KERNELS:  # whether it is the library or the collector
            answers.append((label, "raw", *_step_with(card, library, "raw", index)))
        return answers

    with ThreadPoolExecutor(2 if card.is_simulated else 6) as pool:
        answers = [answer for each in pool.map(ask, enumerate(found)) for answer in each]
    notes.table(("file", "through", "end", "observed"), ((*each[:3], each[3]["text"]) for each in answers))
    worked = [label for label, way, _, figures in answers if way == "collector" and figures.get("kernels") == KERNELS]
    notes.saw(
        f"all {KERNELS} kernels through the collector with {len(worked)} of {len(found)}: "
        f"{', '.join(worked) or 'none'}",
        worked=worked, answers={f"{label}, {way}": [end, figures] for label, way, end, figures in answers},
    )  # fmt: skip


def _step_with(card: Card, library: Path, way: str, index: int) -> tuple[str, dict[str, Any]]:
    """How the process of one step ended, and what it noted."""
    file = card.folder / f"step-{index}-{way}.notes"
    script = ROOT / "scripts" / "gpu_questions.py"
    command = [sys.executable, str(script), "--ask", "step", "--part", way, "--notes", str(file)]
    command += ["--simulated"] if card.is_simulated else []
    try:
        done = subprocess.run(
            command, env=os.environ | {LIBCUPTI: str(library)}, cwd=card.folder, capture_output=True, text=True,
            timeout=STEP_SECONDS, check=False,
        )  # fmt: skip
        end, errors = ended(done.returncode), done.stderr
    except subprocess.TimeoutExpired as expired:
        end, errors = f"did not end within {STEP_SECONDS} s", (expired.stderr or b"").decode(errors="replace")
    notes = read_notes(file)
    figures: dict[str, Any] = {}
    for note in notes:
        figures |= note.get("figures", {})
    told = [note["saw"] for note in notes if "saw" in note]
    last = errors.strip().splitlines()[-1:] if end != "ended" else []
    return end, figures | {"text": "; ".join([*told, *last])}


def ended(status: int) -> str:
    """An exit status in words."""
    if status == 0:
        return "ended"
    if status < 0:
        return f"died of {signal.Signals(-status).name}"
    return f"ended with exit status {status}"
