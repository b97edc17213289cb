"""The values of a benchmark's axes as a report stores them, and the title made of them, by which baselines are found.

A title must be the same in every process, and in a report before and after it was stored.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.checked_arguments import mapping, plain_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def stored_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return axis -> value as in a stored report: a text, a finite number, a truth value or None.

    A function, a class or a module has its name; any other object has its text, without the address of its memory.
    """
    return {axis: _stored(value) for axis, value in parameters.items()}


def benchmark_title(name: str, parameters: Mapping[str, Any]) -> str:
    """``saxpy[n=256]``."""
    values = ",".join(f"{axis}={value}" for axis, value in stored_parameters(parameters).items())
    return f"{name}[{values}]" if values else name


def axis_columns(axes: Iterable[str], others: Collection[str]) -> dict[str, str]:
    """Return axis -> the name of its column in a table that has ``others``, too: one of these becomes ``axis arm``."""
    return {axis: f"axis {axis}" if axis in others else axis for axis in axes}


def _stored(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    # Of these types alone: JSON and the text of a number that is the member of an enumeration differ.
    if type(value) in (type(None), bool, int, str) or (type(value) is float and math.isfinite(value)):
        return value
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else _ADDRESS.sub("", str(value))


def check_names(arms: Any) -> None:
    """Check that arms are a mapping from texts, which reports and baselines are matched by.

    Raises:
        TypeError: they are not.
    """
    for name in mapping("arms", arms, "functions by name"):
        plain_text("a name in arms", name)
