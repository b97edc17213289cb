"""Checks of the arguments of public functions; their errors name the argument, the value, and valid values."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any


def whole_number(name: str, value: Any, *, least: int | None = None) -> int:
    """The number as an ``int``; the integers of NumPy are such numbers.

    Raises:
        TypeError: it is no whole number.
        ValueError: it is less than ``least``.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} takes a whole number, not {value!r}")
    number = operator.index(value)
    if least is not None and number < least:
        raise ValueError(f"{name} is {number}: at least {least} is needed")
    return number


def real_number(name: str, value: Any) -> Any:
    """The number itself, whole or not.

    Raises:
        TypeError: it is no number.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} takes a number, not {value!r}")
    return value


def check_time(name: str, value: Any) -> None:
    """Check a time, whole or not, which may be infinite.

    Raises:
        TypeError: it is no number.
        ValueError: it is NaN.
    """
    if real_number(name, value) != value:
        raise ValueError(f"{name} is {value!r}: NaN is no time")


def time_range(name: str, value: Any) -> tuple[int | None, int | None]:
    """Start and end in ns, of which each may be None for an open end.

    Raises:
        TypeError: it is not two whole numbers or None.
        ValueError: the end is before the start.
    """
    sides = tuple(value) if isinstance(value, (tuple, list)) else ()
    if len(sides) != 2 or not all(side is None or _is_whole(side) for side in sides):
        raise TypeError(f"{name} takes two whole numbers of ns, of which each may be None, not {value!r}")
    start, end = (None if side is None else operator.index(side) for side in sides)
    if start is not None and end is not None and end < start:
        raise ValueError(f"{name} ends at {end} ns, before it begins at {start} ns: exchange the two")
    return start, end


def regular_expression(name: str, value: Any, flags: int = 0) -> re.Pattern[str]:
    """The compiled expression.

    Raises:
        TypeError: it is no text.
        ValueError: it is no regular expression.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} takes a regular expression as text, not {value!r}")
    try:
        return re.compile(value, flags)
    except re.error as error:
        raise ValueError(
            f"{name}={value!r} is no regular expression: {error}. "
            r"Write \ before a character that stands for itself, such as \("
        ) from error


def plain_text(name: str, value: Any) -> str:
    """The text itself.

    Raises:
        TypeError: it is no text.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} takes text, not {value!r}")
    return value


def switch(name: str, value: Any) -> bool:
    """The value of an option that is on or off; 0, 1 and the truth values of NumPy are such values.

    Raises:
        TypeError: it is another one.
    """
    is_truth_value = type(value).__name__ in ("bool", "bool_")  # NumPy's is one of these, and is not imported for it
    if is_truth_value or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise TypeError(f"{name} takes True or False, not {value!r}")


def whole_numbers(name: str, value: Any) -> set[int]:
    """Several numbers, such as those of steps.

    Raises:
        TypeError: they are not several whole numbers.
        ValueError: one is negative.
    """
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"{name} takes several whole numbers, not {value!r}: write a list")
    return {whole_number(name, each, least=0) for each in value}


def mapping(name: str, value: Any) -> Mapping[str, Any]:
    """Options by name.

    Raises:
        TypeError: it is no mapping.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} takes a dict of options, not {value!r}")
    return value


def function(name: str, value: Any) -> None:
    """Check that a value can be called.

    Raises:
        TypeError: it cannot.
    """
    if not callable(value):
        raise TypeError(f"{name} takes a function, not {value!r}")


def _is_whole(value: object) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)
