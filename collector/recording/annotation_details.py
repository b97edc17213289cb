"""Metadata of annotations: op type, flops, bytes, inputs, Python stack, and shapes and types of arguments."""

from __future__ import annotations

import math
import numbers
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

from collector.text.surrogates import without_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import FrameType

_LARGEST = 2**63 - 1
"""The largest number that TensorFlow's messages can hold."""


def _number(value: Any) -> int:
    """Return a whole number. Raises TypeError for other values, and ValueError for more than 64 bits."""
    number = index(value)
    if abs(number) > _LARGEST:
        raise ValueError(f"{number} is too large for the details of an annotation")
    return number


class Frame(NamedTuple):
    """One frame of a Python stack."""

    file: str
    line: int
    function: str
    first_line: int
    """The first line of the function's definition; 0: not known."""


class Argument(NamedTuple):
    """One argument of an op, as a profiler states it."""

    shape: tuple[int, ...] | tuple[tuple[int, ...], ...] = ()
    """Sizes of a tensor, or the shapes of a list of tensors; ``()``: a scalar, or none is stated."""
    type: str = ""
    """``float``, ``Scalar``, ``TensorList``, …; ``""``: none is stated."""
    value: str = ""
    """The value of a scalar; ``""``: none is stated."""

    @classmethod
    def from_fields(cls, fields: Iterable[Any]) -> Argument:
        """The inverse of ``tuple()``; also accepts the result of a trip through JSON."""
        shape, dtype, value = fields
        sizes = tuple(tuple(map(_number, each)) if isinstance(each, (list, tuple)) else _number(each) for each in shape)
        return cls(sizes, str(dtype), str(value))  # type: ignore[arg-type]  # sizes or shapes, never both


class Details(NamedTuple):
    """The details of one run of an annotation. The numbers exclude those of nested annotations."""

    flops: int = 0
    """Float operations."""
    num_bytes: int = 0
    """Bytes of memory traffic, or another quantity that the program counts in bytes."""
    op: str = ""
    """The op type; ``""`` if not given."""
    inputs: tuple[str, ...] = ()
    """Names of the annotations whose results it uses, as given by the program; see `resolve`."""
    stack: tuple[Frame, ...] = ()
    """The stack at the annotation's entry, outermost frame first; empty unless it was requested."""
    arguments: tuple[Argument, ...] = ()
    """The arguments of the op with their shapes, where the file of another profiler states them."""

    @classmethod
    def of(cls, flops: Any = None, num_bytes: Any = None, op: Any = None, inputs: Any = None) -> Details:
        """The checked arguments of ``annotate``; None means not given.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: a number is negative, not finite or beyond 64 bits, or a text is empty.
        """
        return cls(_count("flops", flops), _count("bytes", num_bytes), _op(op), _names(inputs))

    @classmethod
    def from_fields(cls, fields: Iterable[Any]) -> Details:
        """The inverse of ``tuple()``; also accepts the result of a trip through JSON."""
        flops, num_bytes, op, inputs, stack, *more = fields  # files of older versions have no arguments
        frames = tuple(Frame(str(file), _number(line), str(name), _number(first)) for file, line, name, first in stack)
        arguments = tuple(Argument.from_fields(each) for each in (more[0] if more else ()))
        return cls(_number(flops), _number(num_bytes), str(op), tuple(map(str, inputs)), frames, arguments)

    def continued(self) -> Details:
        """The same details without the numbers that must not count again when the annotation continues."""
        return self._replace(flops=0, num_bytes=0)


def stack_of(frame: FrameType | None, own_places: tuple[str, ...]) -> tuple[Frame, ...]:
    """The stack that ends with ``frame``, outermost first, without frames whose files begin with ``own_places``."""
    frames = []
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(own_places):
            line = frame.f_lineno or code.co_firstlineno  # some instructions belong to no line
            frames.append(
                Frame(without_surrogates(code.co_filename), line, without_surrogates(code.co_name), code.co_firstlineno)
            )
        frame = frame.f_back
    return tuple(reversed(frames))


def resolve(path: str, inputs: Iterable[str], known: Mapping[str, Any] | frozenset[str]) -> list[str]:
    """The paths of the inputs of the annotation ``path``.

    A name refers to the nearest annotation with that name: beside ``path``, else beside its parent, and so on outwards,
    as for names in nested scopes. A name that is not in ``known`` is kept unchanged.
    """
    found = []
    for name in inputs:
        around, candidate = path, name
        while around:
            around = around.rpartition("/")[0]
            candidate = f"{around}/{name}" if around else name
            if candidate in known and candidate != path:
                break
        found.append(candidate)
    return found


def _count(what: str, value: Any) -> int:
    if value is None:
        return 0
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number:
        raise TypeError(f"annotate({what}=) takes a number, not {type(value).__name__}")
    if not math.isfinite(value) or not 0 <= value <= _LARGEST:
        raise ValueError(f"annotate({what}=) takes a number from 0 to 2**63 - 1, not {value}")
    return int(value)


def _op(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"annotate(op=) takes text, not {type(value).__name__}")
    if not value.strip():
        raise ValueError("annotate(op=) is empty; leave it out where there is no type to give")
    return without_surrogates(value)


def _names(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str | bytes):
        raise TypeError(f"annotate(inputs=) takes a list of names, not one: write inputs=[{value!r}]")
    try:
        names = tuple(value)
    except TypeError:
        raise TypeError(f"annotate(inputs=) takes a list of names, not {type(value).__name__}") from None
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"annotate(inputs=) takes names of annotations, not {type(name).__name__}")
        if not name.strip("/ "):
            raise ValueError("annotate(inputs=) has an empty name in it")
    return tuple(map(without_surrogates, names))
