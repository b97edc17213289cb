"""The details of annotations that a source has received, each once, with the numbers by which the source knows them."""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from collector.recording.annotation_details import Details
    from collector.sources import Source

_MOST_PARTS = 1 << 16
"""The maximum number of parts (details, their inputs, frames of their stacks) that are kept if no records are in memory
either. A part takes up to 400 bytes, here and in the native library, and each segment of a journal repeats all parts.
"""
_TOLD_EVERY_S = 1.0
_LEFT_OUT = "annotations_without_details"
"""The figure of the ledger that counts annotations without details for lack of room."""


class KnownDetails:
    """The distinct details of annotations that a source has received, numbered from 1 on."""

    def __init__(self, source: Source, *, is_bounded: bool) -> None:
        self._note: Callable[[Details], None] = getattr(source, "note_details", _note_nowhere)
        self._note_facts: Callable[[Mapping[str, str], Mapping[str, int]], None] | None
        self._note_facts = getattr(source, "note_facts", None)
        self._lock = threading.Lock()
        self._numbers: dict[Details, int] = {}
        self.in_order: list[Details] = []
        self._room: float = _MOST_PARTS if is_bounded else math.inf
        self.left_out = 0
        """The number of annotations whose details were left out for lack of room."""
        self._told_s = -math.inf

    def number_of(self, details: Details) -> int:
        """The number of ``details``, possibly a new one; 0: there is no room for them."""
        with self._lock:  # so that the source gets them in order
            number = self._numbers.get(details, 0)
            parts = 1 + len(details.inputs) + len(details.stack)
            if not number and parts <= self._room:
                self._room -= parts
                self.in_order.append(details)
                number = self._numbers[details] = len(self.in_order)
                self._note(details)
            elif not number:
                self._leave_out()
            return number

    def continued(self, number: int) -> int:
        """The number of the same details for an annotation that continues, whose flops are already counted."""
        return self.number_of(self.in_order[number - 1].continued())

    def _leave_out(self) -> None:
        self.left_out += 1
        now = time.monotonic()
        if self._note_facts is not None and now - self._told_s >= _TOLD_EVERY_S:
            self._told_s = now
            self._note_facts({}, self.figures())

    def figures(self) -> dict[str, int]:
        """The figure of the ledger about them."""
        return {_LEFT_OUT: self.left_out}

    def unlock(self) -> None:
        """In a forked child: another thread of the parent may have held the lock."""
        self._lock = threading.Lock()

    def detach(self) -> None:
        """Never use the source again."""
        self._note, self._note_facts = _note_nowhere, None


def _note_nowhere(details: Details) -> None:
    pass
