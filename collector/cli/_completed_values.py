"""Values of arguments that a shell offers for completion, where the parser accepts others as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

_ATTRIBUTE = "completed_values"


@dataclass(frozen=True)
class CompletedValues:
    """The values of an argument, and their form."""

    values: Callable[[], Iterable[str]]
    """Called when the script of a shell is printed."""
    separator: str = ""
    """Between several values in one word; empty: a word is one value."""
    before_folder: bool = False
    """Whether the value is the first of two words, and the second one is a folder."""


def complete_values(action: argparse.Action, completed: CompletedValues) -> None:
    """State the values that a shell offers for an argument."""
    setattr(action, _ATTRIBUTE, completed)


def completed_values(action: argparse.Action) -> CompletedValues | None:
    """The values that were stated for an argument; None: there are none."""
    found: CompletedValues | None = getattr(action, _ATTRIBUTE, None)
    return found
