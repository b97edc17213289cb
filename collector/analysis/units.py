"""The units of columns: how their values are stored and shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.text.quantities import size_text, time_text
from collector.text.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt


class Unit(NamedTuple):
    """The unit of a column."""

    dtype: type[Any]
    """int64, float64 or object, which is text; NaN stands for what is not known."""
    shown: Callable[[Any], str]
    """A value for people; an unknown one is empty."""


def _float(form: str) -> Unit:
    return Unit(np.float64, lambda value: "" if value != value else format(value, form))


UNITS: Mapping[str, Unit] = {
    "ns": Unit(np.int64, lambda value: f"-{time_text(-value)}" if value < 0 else time_text(value)),
    "bytes": Unit(np.int64, size_text),
    "bytes/s": Unit(np.float64, lambda value: "" if value != value else f"{value / 1e9:.4g} GB/s"),
    "count": Unit(np.int64, lambda value: f"{value:,}"),
    "share": _float(".1%"),
    "ratio": _float(".3g"),
    "value": _float(".15g"),
    "number": Unit(np.int64, str),
    "text": Unit(object, printable),
}
"""Name -> unit. A share of 1 is all. A value is a figure of a query, whose unit is not known. A number is that of a
device, a stream and the like."""


def values_of(rows: Sequence[Any], unit: str) -> npt.NDArray[Any]:
    """The values of a column as an array of the type of its unit."""
    return np.array(rows, dtype=UNITS[unit].dtype)
