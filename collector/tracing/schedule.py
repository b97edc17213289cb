"""Schedules: the steps of a program that are traced, such as three of every hundred.

>>> import collector
>>> schedule = collector.schedule(wait=97, warmup=2, active=1)
>>> with collector.trace("step{step}.pftrace", schedule=schedule) as session:
...     for batch in batches:
...         train(batch)
...         session.step()
"""

from __future__ import annotations

import enum
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from collector.checked_arguments import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable


class Action(enum.IntEnum):
    """The action in one step. Names and numbers are those of ``torch.profiler.ProfilerAction``."""

    NONE = 0
    WARMUP = 1
    """Record, and discard the records: the first records of a session, which cost most, fall into these steps."""
    RECORD = 2
    RECORD_AND_SAVE = 3
    """The last step of a window."""


def action_of(given: object) -> Action:
    """The action that a schedule returned: one of ours, or of PyTorch's by its name. Raises TypeError for others."""
    name = getattr(given, "name", None)
    if isinstance(name, str) and name in Action.__members__:
        return Action[name]
    raise TypeError(f"a schedule returned {given!r}: one of {', '.join(Action.__members__)} is needed")


@dataclass(frozen=True)
class Schedule:
    """Cycles of steps: some without tracing, some to warm up, some that are traced. Made by `schedule`."""

    wait: int
    warmup: int
    active: int
    repeat: int = 0
    skip_first: int = 0

    def __post_init__(self) -> None:
        """Raise TypeError or ValueError for impossible numbers."""
        for name in ("wait", "warmup", "active", "repeat", "skip_first"):
            number = whole_number(name, getattr(self, name), least=int(name == "active"))
            object.__setattr__(self, name, number)

    def __call__(self, step: int) -> Action:
        """The action in a step, counted from 0."""
        place = step - self.skip_first
        length = self.wait + self.warmup + self.active
        if place < 0 or (self.repeat and place >= self.repeat * length):
            return Action.NONE
        place %= length
        if place < self.wait:
            return Action.NONE
        if place < self.wait + self.warmup:
            return Action.WARMUP
        return Action.RECORD if place < length - 1 else Action.RECORD_AND_SAVE

    @property
    def has_one_window(self) -> bool:
        """Whether there is at most one window."""
        return self.repeat == 1


@dataclass
class SecondsSchedule:
    """A window each time that some seconds have passed since the last one, or since the begin. Made by `every`."""

    seconds: float
    active: int = 1
    warmup: int = 0
    clock: Callable[[], float] = time.monotonic
    _since: float = field(default=0.0, init=False, repr=False)
    _first: int | None = field(default=None, init=False, repr=False)
    """The first step of the window, which may be one to warm up; None: it is not due yet."""

    def __post_init__(self) -> None:
        """Raise TypeError or ValueError for impossible numbers."""
        if isinstance(self.seconds, bool) or not isinstance(self.seconds, (int, float)):
            raise TypeError(f"seconds takes a number, not {self.seconds!r}")
        if not self.seconds > 0:
            raise ValueError(f"seconds is {self.seconds}: a number above 0 is needed")
        for name, least in (("active", 1), ("warmup", 0)):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least=least))

    def __call__(self, step: int) -> Action:
        """The action in a step. Called once for each, in order; step 0 begins anew."""
        if step == 0:
            self._since, self._first = self.clock(), None
        if self._first is None and self.clock() - self._since >= self.seconds:
            self._first = step
        if self._first is None:
            return Action.NONE
        place = step - self._first
        if place < self.warmup:
            return Action.WARMUP
        if place < self.warmup + self.active - 1:
            return Action.RECORD
        if place == self.warmup + self.active - 1:
            return Action.RECORD_AND_SAVE
        self._since, self._first = self.clock(), None
        return Action.NONE


def schedule(wait: int = 0, warmup: int = 0, active: int = 1, repeat: int = 0, *, skip_first: int = 0) -> Schedule:
    """Return a schedule for ``collector.trace(schedule=...)``: cycles of ``wait + warmup + active`` steps.

    The meaning is that of ``torch.profiler.schedule``, whose result can be used instead.

    Args:
        wait: steps at the begin of each cycle in which nothing is recorded, and which cost nothing.
        warmup: the following steps, whose records are discarded. The first records of a session are the most expensive
            ones, because libcupti allocates memory and instruments modules; without warm-up they would be in the
            result.
        active: the steps after that, whose records are the result.
        repeat: the number of cycles; 0: until the program ends.
        skip_first: steps before the first cycle.

    Raises:
        TypeError: a number is not whole.
        ValueError: a number is negative, or ``active`` is 0.
    """
    return Schedule(wait, warmup, active, repeat, skip_first)


def every(
    *, steps: int | None = None, seconds: float | None = None, active: int = 1, warmup: int = 0
) -> Schedule | SecondsSchedule:
    """Return a schedule that traces at intervals.

    Args:
        steps: trace the last steps of each group of this many: with 100 the hundredth, the two hundredth, …
        seconds: trace when this many seconds have passed since the last window, or since the begin.
        active: the steps of one window.
        warmup: steps before the window, whose records are discarded.

    Raises:
        TypeError: a number has the wrong type.
        ValueError: both or neither of ``steps`` and ``seconds`` are given, or a window does not fit into ``steps``.
    """
    if (steps is None) == (seconds is None):
        given = "neither steps nor seconds is given" if steps is None else "steps and seconds are both given"
        raise ValueError(f"{given}: give one")
    if seconds is not None:
        return SecondsSchedule(seconds, active, warmup)
    active, warmup = whole_number("active", active), whole_number("warmup", warmup)
    wait = whole_number("steps", steps) - active - warmup
    if wait < 0:
        needed = active + warmup
        raise ValueError(f"steps is {steps}: at least {needed} is needed for active={active} and warmup={warmup}")
    return Schedule(wait, warmup, active)
