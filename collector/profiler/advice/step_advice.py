"""Advice on a recorded step: the findings of all checkers, and the options that set their thresholds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import collector.profiler.advice.step_checkers  # noqa: F401  # its functions register themselves
from collector.profiler.advice.checker_registry import CHECKERS, Advice
from collector.profiler.advice.step_activity import Activity, AdvisedStep


def thresholds() -> dict[str, str]:
    """Option -> help of every threshold: ``<checker>.<limit>``."""
    return {
        f"{each.name}.{limit}": f"{(each.check.__doc__ or '').splitlines()[0]} (default {default:g})"
        for each in CHECKERS.values()
        for limit, default in each.limits.items()
    }


def advise(step: AdvisedStep, options: Mapping[str, str] | None = None) -> list[Advice]:
    """The findings of all checkers, largest saving first, without those that save nothing.

    Args:
        step: the recorded step.
        options: thresholds by ``<checker>.<limit>``; others are ignored.
    """
    given = options or {}
    activity = Activity(step)
    found: list[Advice] = []
    for each in CHECKERS.values():
        limits = {name: float(given.get(f"{each.name}.{name}", value)) for name, value in each.limits.items()}
        advice = (one for one in each.check(activity, limits) if one.gain is None or one.gain.time_ns)
        found += [replace(one, checker=each.name) for one in advice]
    return sorted(found, key=lambda one: (-1.0 if one.gain is None else 1 - one.gain.share, one.checker, one.line))


def text(advice: Iterable[Advice], options: Mapping[str, str] | None = None) -> str:
    """One line per finding; with the option ``explain``, followed by its evidence."""
    explain = (options or {}).get("explain", "false") == "true"
    lines = []
    for one in advice:
        lines.append(f"{one.severity.name.lower():<7}{one.checker}: {one.line}")
        if explain:
            lines.extend(f"       {evidence}" for evidence in one.evidence)
    return "".join(f"{line}\n" for line in lines) or "nothing to advise\n"
