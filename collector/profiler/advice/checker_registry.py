"""The registry of checkers of recorded steps. A checker is a function that ``@checker`` registers with its thresholds.

>>> @checker("many_kernels", rows="kernels/name", kernels=100_000)
... def many_kernels(activity, limits):
...     '''A step of very many kernels.'''
...     if activity.kernel_count >= limits["kernels"]:
...         yield Advice(f"{activity.kernel_count} kernels in one step", Gain(2_000_000, 0.01))
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from collector.profiler.advice.step_activity import Activity
from collector.text.quantities import time_text


class Severity(enum.IntEnum):
    """The possible gain, largest first."""

    WRONG = 0
    """The recording is incomplete."""
    HIGH = 1
    """At least a tenth of the step can be saved."""
    MEDIUM = 2
    """At least a fiftieth."""
    NOTE = 3


_LEAST_SHARES = {Severity.HIGH: 0.1, Severity.MEDIUM: 0.02, Severity.NOTE: 0.0}


class Gain(NamedTuple):
    """An upper bound of the time that the remedy of a finding could save."""

    time_ns: int
    share: float
    """The part of the step, from 0 to 1, or of another time that `of` names."""
    of: str = "the step"

    @property
    def severity(self) -> Severity:
        """The severity that follows from the share."""
        return next(each for each, least in _LEAST_SHARES.items() if self.share >= least)

    def __str__(self) -> str:
        percent = f"{self.share:.0%}" if self.share >= 0.1 else f"{100 * self.share:.2g}%"
        return f"saves at most {time_text(self.time_ns)}, {percent} of {self.of}"


@dataclass(frozen=True)
class Advice:
    """One finding."""

    line: str
    """The cause, the remedy and the gain, in one line."""
    gain: Gain | None
    """None: the recording is incomplete, which is more severe than any gain."""
    evidence: tuple[str, ...] = ()
    """The kernels, their times and places."""
    checker: str = ""

    @property
    def severity(self) -> Severity:
        """The severity that follows from the gain."""
        return Severity.WRONG if self.gain is None else self.gain.severity


Check = Callable[[Activity, Mapping[str, float]], Iterable[Advice]]


@dataclass(frozen=True)
class Checker:
    """A registered check and its thresholds."""

    name: str
    check: Check
    limits: dict[str, float]
    rows: str
    """The answer with the rows that its findings are about, as the page names it: ``copies`` or ``kernels/name``."""
    cause: str
    """The cause of the idle time that its findings are about, as `collector.analysis.idle` names it; ``""``: none."""


CHECKERS: dict[str, Checker] = {}
"""Checkers by name, in the order of their registration."""


def checker(name: str, *, rows: str, cause: str = "", **limits: float) -> Callable[[Check], Check]:
    """Registers a function as checker ``name``.

    Args:
        name: its name.
        rows: see `Checker`.
        cause: see `Checker`.
        limits: its thresholds and their defaults.
    """

    def register(check: Check) -> Check:
        CHECKERS[name] = Checker(name, check, limits, rows, cause)
        return check

    return register
