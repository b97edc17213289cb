"""The valid values of a stored report's fields, so that a damaged file is refused when it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_GREATEST = 1e100  # sums and squares of such numbers are finite

Holds = Callable[[Any], bool]


def is_number(value: Any) -> bool:
    """Whether it is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -_GREATEST < value < _GREATEST


def is_positive(value: Any) -> bool:
    """Whether it is a finite number above 0."""
    return is_number(value) and value > 0


def _is_count(value: Any) -> bool:
    return is_number(value) and isinstance(value, int) and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_any(value: Any) -> bool:
    """Whether ``value`` may describe a benchmark: anything except an infinite or undefined number."""
    return is_number(value) or not isinstance(value, (int, float)) or isinstance(value, bool)


def _is_share(value: Any) -> bool:
    return is_number(value) and 0 <= value < 1


def _or_none(holds: Holds) -> Holds:
    return lambda value: value is None or holds(value)


def _list_of(holds: Holds, *, fewest: int = 0) -> Holds:
    return lambda value: isinstance(value, list) and len(value) >= fewest and all(map(holds, value))


def _mapping_of(holds: Holds) -> Holds:
    return lambda value: isinstance(value, Mapping) and all(map(holds, value.values()))


def _is_roof(value: Any) -> bool:
    """Whether it is a `collector.bench.roofline.Ceilings`."""
    if not isinstance(value, Mapping):
        return False
    return all(_or_none(is_positive)(rate) for name, rate in value.items() if name != "measured_with")


ARM: dict[str, Holds] = {
    "times_ns": _list_of(_is_any),  # checked later, with separate errors
    "span_ns": _list_of(is_number),
    "kernel_ns": _mapping_of(_list_of(is_number, fewest=1)),
    "throttled_ns": _list_of(is_number),
    "event_ns": _list_of(is_number),
    "kernels": _list_of(_is_text),
    "launches": _is_count,
    "copies": _is_count,
    "memsets": _is_count,
    "synchronizations": _is_count,
    "calls_per_sample": lambda value: _is_count(value) and value > 0,
    "facts": _mapping_of(_is_any),
}
"""Fields of `collector.bench.benchmark_report.Arm`."""

COMPARISON: dict[str, Holds] = {
    "reference": _is_text,
    "name": _is_text,
    "parameters": _mapping_of(_is_any),
    "design": lambda value: isinstance(value, Mapping),
    "flops": _or_none(is_positive),
    "bytes": _or_none(is_positive),
    "ceilings": _or_none(_is_roof),
    "failures": _mapping_of(_is_text),
    "warnings": _list_of(_is_text),
    "rounds": _is_count,
    "warm_up_rounds": _is_count,
    "throttled_rounds": _is_count,
    "seconds": is_number,
    "stopped_by": _is_text,
    "states": _list_of(lambda value: isinstance(value, Mapping)),
    "probe_cold_ns": _list_of(is_number),
    "probe_hot_ns": _list_of(is_number),
    "event_overhead_ns": is_number,
    "clock_step_ns": lambda value: is_number(value) and value >= 0,
    "unit": _is_text,
    "run_rounds": _list_of(lambda value: _is_count(value) and value > 0),
}
"""Fields of `collector.bench.benchmark_report.Comparison`, without its arms."""

DESIGN: dict[str, Holds] = {
    "clock": lambda value: value in ("cupti", "wall", "cpu", "returned", "reported"),
    "cache": lambda value: value in ("cold", "hot"),
    "graph_calls": _is_count,
    "precision": _is_share,
    "same_within": _is_share,
    "seed": _is_count,
}
"""Fields of `collector.bench.design.Design` that are used from a stored report."""


def checked(content: Mapping[str, Any], fields: Mapping[str, Holds], of: str) -> dict[str, Any]:
    """Return those of ``fields`` that ``content`` has.

    Raises:
        ValueError: a field has an invalid value.
    """
    for name, holds in fields.items():
        if name in content and not holds(content[name]):
            raise ValueError(f"{name} of {of} is {str(content[name])[:50]!r}")
    return {name: content[name] for name in fields if name in content}


def checked_environment(content: Any) -> dict[str, Any]:
    """Return the environment of a report.

    Raises:
        ValueError: it is not a mapping, or an entry that identifies the card is not text.
    """
    if not isinstance(content, Mapping) or not isinstance(content.get("gpu_uuid", ""), str):
        raise ValueError("its environment names no card")
    return dict(content)
