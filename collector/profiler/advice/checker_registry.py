"""The registry of checkers of recorded steps. A checker is a function that ``@checker`` registers with its thresholds.

>>> @checker("many_kernels", kernels=100_000)
... def many_kernels(activity, limits):
...     '''A step of very many kernels.'''
...     if activity.kernel_count >= limits["kernels"]:
...         yield Advice(Severity.NOTE, f"{activity.kernel_count} kernels in one step")
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from collector.profiler.advice.step_activity import Activity


class Severity(enum.IntEnum):
    """The possible gain, largest first."""

    WRONG = 0
    """The recording is incomplete."""
    HIGH = 1
    MEDIUM = 2
    NOTE = 3


@dataclass(frozen=True)
class Advice:
    """One finding."""

    severity: Severity
    line: str
    """The cause and the remedy, in one line."""
    evidence: tuple[str, ...] = ()
    """The kernels, their times and places."""
    checker: str = ""


Check = Callable[[Activity, Mapping[str, float]], Iterable[Advice]]


@dataclass(frozen=True)
class Checker:
    """A registered check and its thresholds."""

    name: str
    check: Check
    limits: dict[str, float]


CHECKERS: dict[str, Checker] = {}
"""Checkers by name, in the order of their registration."""


def checker(name: str, **limits: float) -> Callable[[Check], Check]:
    """Registers a function as checker ``name``; ``limits`` are its thresholds and their defaults."""

    def register(check: Check) -> Check:
        CHECKERS[name] = Checker(name, check, limits)
        return check

    return register
