"""The origin of a step: its place among many processes, and the missing parts of the file that it was read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_LARGEST = (1 << 53) - 1


@dataclass(frozen=True)
class StepOrigin:
    """The origin of a step as its file states it; files that are converted from it state the same."""

    rank: int | None = None
    """The rank among many processes, where it is stated."""
    world_size: int | None = None
    """The number of these processes, where it is stated."""
    unread: Mapping[str, int] = field(default_factory=dict)
    """Missing or repaired part of the file -> number; see `collector.recording.ledger.Ledger.unread`."""

    def as_dict(self) -> dict[str, Any]:
        """The stated fields, in the form for JSON."""
        stated = {"rank": self.rank, "world_size": self.world_size, "unread": dict(sorted(self.unread.items()))}
        return {name: value for name, value in stated.items() if value not in (None, {})}

    @classmethod
    def from_dict(cls, stated: Any) -> StepOrigin:
        """The inverse of `as_dict`, for the JSON of any file; values of wrong types are left out."""
        given = stated if isinstance(stated, dict) else {}
        return cls(
            rank=stated_number(given.get("rank")),
            world_size=stated_number(given.get("world_size")) or None,
            unread=stated_counts(given.get("unread")),
        )


NO_ORIGIN = StepOrigin()
"""The origin of a step whose file states nothing about it."""


def stated_counts(stated: Any) -> dict[str, int]:
    """Counts by name from the JSON of any file, without those that are 0 or not numbers."""
    counts = stated.items() if isinstance(stated, dict) else ()
    return {str(name): count for name, given in counts if (count := stated_number(given))}


def stated_number(value: Any) -> int | None:
    """A number from 0 on that JSON can hold; None for anything else."""
    return value if type(value) is int and 0 <= value <= _LARGEST else None
