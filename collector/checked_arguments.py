"""Checks of the arguments of public functions. Their errors name the argument, its value, and the valid values."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any


def whole_number(name: str, value: Any, *, least: int | None = None) -> int:
    """Return an integer, which may be one of NumPy's, as an ``int``.

    Raises:
        TypeError: the value is not a whole number.
        ValueError: the number is less than ``least``.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} takes a whole number, not {value!r}")
    number = operator.index(value)
    if least is not None and number < least:
        raise ValueError(f"{name} is {number}: at least {least} is needed")
    return number


def real_number(name: str, value: Any) -> Any:
    """Return a real number unchanged.

    Raises:
        TypeError: the value is not a number.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} takes a number, not {value!r}")
    return value


def check_time(name: str, value: Any) -> None:
    """Check a time, which may be fractional or infinite.

    Raises:
        TypeError: the value is not a number.
        ValueError: the value is NaN.
    """
    if real_number(name, value) != value:
        raise ValueError(f"{name} is {value!r}: NaN is not a time")


def time_range(name: str, value: Any) -> tuple[int | None, int | None]:
    """Return the start and the end of a range in ns; None stands for an open end.

    Raises:
        TypeError: the value is not a pair of whole numbers or None.
        ValueError: the end is before the start.
    """
    sides = tuple(value) if isinstance(value, (tuple, list)) else ()
    if len(sides) != 2 or not all(side is None or _is_whole(side) for side in sides):
        raise TypeError(f"{name} takes a pair of whole numbers in ns, or None for an open end, not {value!r}")
    start, end = (None if side is None else operator.index(side) for side in sides)
    if start is not None and end is not None and end < start:
        raise ValueError(f"{name} ends at {end} ns, before it begins at {start} ns: swap the two")
    return start, end


def regular_expression(name: str, value: Any, flags: int = 0) -> re.Pattern[str]:
    """Compile a regular expression.

    Raises:
        TypeError: the value is not text.
        ValueError: the text is not a regular expression.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} takes a regular expression as text, not {value!r}")
    try:
        return re.compile(value, flags)
    except re.error as error:
        raise ValueError(
            f"{name}={value!r} is not a regular expression: {error}. "
            r"Escape a character that stands for itself with \, such as \("
        ) from error


def plain_text(name: str, value: Any) -> str:
    """Return a text unchanged.

    Raises:
        TypeError: the value is not text.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} takes text, not {value!r}")
    return value


def switch(name: str, value: Any) -> bool:
    """Return a boolean option as ``bool``; it may also be 0, 1 or one of NumPy's booleans.

    Raises:
        TypeError: the value is anything else.
    """
    is_truth_value = type(value).__name__ in ("bool", "bool_")  # by name, so that NumPy is not imported
    if is_truth_value or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise TypeError(f"{name} takes True or False, not {value!r}")


def whole_numbers(name: str, value: Any) -> set[int]:
    """Return several whole numbers, e.g. the numbers of steps, as a set.

    Raises:
        TypeError: the value is not an iterable of whole numbers.
        ValueError: a number is negative.
    """
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"{name} takes several whole numbers, not {value!r}: write a list")
    return {whole_number(name, each, least=0) for each in value}


def mapping(name: str, value: Any, of: str = "options") -> Mapping[str, Any]:
    """Return a mapping, by default of options by name, unchanged.

    Raises:
        TypeError: the value is not a mapping.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} takes a dict of {of}, not {value!r}")
    return value


def check_function(name: str, value: Any) -> None:
    """Check that a value can be called.

    Raises:
        TypeError: the value cannot be called.
    """
    if not callable(value):
        raise TypeError(f"{name} takes a function, not {value!r}")


def _is_whole(value: object) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)
