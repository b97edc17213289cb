"""The question how other versions of libcupti behave with this driver."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asked_apart import ask_apart
from asked_card import LIBCUPTI
from carried_libraries import found_libraries, unpacked
from notes import Notes

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
        f"{len(found)} files in {card.libraries.name}: with each, a step of 400 kernels, 200 copies and 5 launches of "
        "a graph of 20 kernels inside collector.trace(strict=True); where that fails, a client of a few direct calls"
    )

    def ask(place: tuple[int, Path]) -> list[tuple[str, str, str, dict[str, Any]]]:
        index, file = place
        library = unpacked(file, card.folder / f"library-{index}")
        label = str(file.relative_to(card.libraries or Path()))
        answers = [(label, "collector", *_step_with(card, library, "collector"))]
        if answers[0][3].get("kernels") != KERNELS:  # whether it is the library or the collector
            answers.append((label, "raw", *_step_with(card, library, "raw")))
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


def _step_with(card: Card, library: Path, way: str) -> tuple[str, dict[str, Any]]:
    """How the process of one step ended, and what it noted."""
    end, notes, errors = answer = ask_apart(card, "step", way, STEP_SECONDS, **{LIBCUPTI: str(library)})
    told = [note["saw"] for note in notes if "saw" in note]
    last = errors.strip().splitlines()[-1:] if end != "ended" else []
    return end, answer.figures | {"text": "; ".join([*told, *last])}
