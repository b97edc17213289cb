"""The origin of a step: its place among many processes, and the missing parts of the file that it was read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_LARGEST = (1 << 53) - 1


@dataclass(frozen=True)
class StepOrigin:
    """What a file states of its step beside columns and messages; files that are made of the step state the same."""

    rank: int | None = None
    """The rank among many processes, where it is stated."""
    world_size: int | None = None
    """The number of these processes, where it is stated."""
    unread: Mapping[str, int] = field(default_factory=dict)
    """Missing or repaired part of the file -> number; see `collector.recording.ledger.Ledger.unread`."""

    def as_dict(self) -> dict[str, Any]:
        """What is stated, as JSON has it."""
        stated = {"rank": self.rank, "world_size": self.world_size, "unread": dict(sorted(self.unread.items()))}
        return {name: value for name, value in stated.items() if value not in (None, {})}

    @classmethod
    def from_dict(cls, stated: Any) -> StepOrigin:
        """The inverse of `as_dict`, of the words of any file; what is none of them is left out."""
        given = stated if isinstance(stated, dict) else {}
        return cls(
            rank=whole_number(given.get("rank")),
            world_size=whole_number(given.get("world_size")) or None,
            unread=stated_counts(given.get("unread")),
        )


NO_ORIGIN = StepOrigin()
"""The origin of a step of which nothing is stated."""


def stated_counts(stated: Any) -> dict[str, int]:
    """Counts by name in the words of any file, without those that are 0 or no numbers."""
    counts = stated.items() if isinstance(stated, dict) else ()
    return {str(name): count for name, given in counts if (count := whole_number(given))}


def whole_number(value: Any) -> int | None:
    """A number from 0 on that JSON can hold; None for anything else."""
    return value if type(value) is int and 0 <= value <= _LARGEST else None
