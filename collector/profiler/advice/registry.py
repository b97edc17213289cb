"""Advice on recorded steps. A checker is one function; ``@checker`` registers it with its thresholds.

>>> @checker("many_kernels", kernels=100_000)
... def many_kernels(activity, limits):
...     '''A step of very many kernels.'''
...     if activity.kernel_count >= limits["kernels"]:
...         yield Advice(Severity.NOTE, f"{activity.kernel_count} kernels in one step")
"""

from __future__ import annotations

import enum
import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from collector.profiler.advice.activity import Activity
from collector.profiler.recorded import RecordedStep


class Severity(enum.IntEnum):
    """How much there is to gain, most first."""

    WRONG = 0
    """What was recorded is not the whole truth."""
    HIGH = 1
    MEDIUM = 2
    NOTE = 3


@dataclass(frozen=True)
class Advice:
    """One finding."""

    severity: Severity
    line: str
    """What is the matter and what to do, in one line."""
    evidence: tuple[str, ...] = ()
    """Which kernels, how long, where."""
    checker: str = ""


Check = Callable[[Activity, Mapping[str, float]], Iterable[Advice]]


@dataclass(frozen=True)
class _Checker:
    name: str
    check: Check
    limits: dict[str, float]


_CHECKERS: dict[str, _Checker] = {}


def checker(name: str, **limits: float) -> Callable[[Check], Check]:
    """Registers a function as checker ``name``; ``limits`` are its thresholds and their defaults."""

    def register(check: Check) -> Check:
        _CHECKERS[name] = _Checker(name, check, limits)
        return check

    return register


def _load() -> dict[str, _Checker]:
    importlib.import_module("collector.profiler.advice.recorded")
    return _CHECKERS


def thresholds() -> dict[str, str]:
    """Option -> help of every threshold: ``<checker>.<limit>``."""
    return {
        f"{each.name}.{limit}": f"{(each.check.__doc__ or '').splitlines()[0]} (default {default:g})"
        for each in _load().values()
        for limit, default in each.limits.items()
    }


def advise(step: RecordedStep, options: Mapping[str, str] | None = None) -> list[Advice]:
    """What all checkers find, most to gain first.

    Args:
        step: what was recorded.
        options: thresholds by ``<checker>.<limit>``; others are ignored.
    """
    given = options or {}
    activity = Activity(step)
    found: list[Advice] = []
    for each in _load().values():
        limits = {name: float(given.get(f"{each.name}.{name}", value)) for name, value in each.limits.items()}
        found += [Advice(one.severity, one.line, one.evidence, each.name) for one in each.check(activity, limits)]
    return sorted(found, key=lambda one: (one.severity, one.checker, one.line))


def text(advice: Iterable[Advice], options: Mapping[str, str] | None = None) -> str:
    """One line each; with the option ``explain`` the evidence below it."""
    explain = (options or {}).get("explain", "false") == "true"
    lines = []
    for one in advice:
        lines.append(f"{one.severity.name.lower():<7}{one.checker}: {one.line}")
        if explain:
            lines.extend(f"       {evidence}" for evidence in one.evidence)
    return "".join(f"{line}\n" for line in lines) or "nothing to advise\n"
