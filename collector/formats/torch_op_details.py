"""Details of ops as PyTorch's profiler states them: shapes, types and values of their arguments, and their stack."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from collector.formats.chrome_events import text
from collector.recording.annotation_details import Argument, Details, Frame
from collector.text.library_path import portable

if TYPE_CHECKING:
    from collector.formats.chrome_events import ChromeEvents, Numbers

_SHAPES = ("Input Dims", "Input dims")
"""The argument's names; PyTorch 1.7 writes the second one."""
_TYPES = "Input type"
_VALUES = "Concrete Inputs"
_STACK = "Call stack"
SEQUENCE = "Sequence number"
"""Autograd's number of an op, which the op's backward pass has, too."""
ARGUMENTS = frozenset({*_SHAPES, _TYPES, _VALUES, _STACK, SEQUENCE})
"""The arguments of events that are read here."""
_LARGEST_SIZE = (1 << 63) - 1
_MOST_ARGUMENTS = 1000
_FRAME = re.compile(r"(.+)\((\d{1,9})\): (.+)", re.DOTALL)


class OpDetails(NamedTuple):
    """Distinct details, and the index of each op's details among them."""

    details: list[Details]
    places: Numbers


def op_details(found: ChromeEvents, rows: Numbers) -> OpDetails:
    """The details of the ops in these rows; empty ones where the file states none."""
    stated, places = found.distinct_values((*_SHAPES, _TYPES, _VALUES, _STACK), rows)
    return OpDetails([_details(*each) for each in stated], places)


def _details(shapes: Any, early_shapes: Any, types: Any, values: Any, stack: Any) -> Details:
    shapes, types, values = (_list(each) for each in (shapes or early_shapes, types, values))
    count = max(map(len, (shapes, types, values)))
    padded = (each + [None] * (count - len(each)) for each in (shapes, types, values))
    known = tuple(
        Argument(_shape(shape), _word(dtype), _word(value)) for shape, dtype, value in zip(*padded, strict=True)
    )
    is_stated = any(each != Argument() for each in known)
    return Details(arguments=known if is_stated else (), stack=_stack(stack))


def _list(value: Any) -> list[Any]:
    return value[:_MOST_ARGUMENTS] if isinstance(value, list) else []


def _shape(value: Any) -> tuple[int, ...] | tuple[tuple[int, ...], ...]:
    """A tensor's sizes, or those of each tensor of a list; ``()`` for anything else."""
    if not isinstance(value, list):
        return ()
    if value and all(isinstance(each, list) and _are_sizes(each) for each in value):
        return tuple(tuple(each) for each in value)
    return tuple(value) if _are_sizes(value) else ()


def _are_sizes(values: list[Any]) -> bool:
    return all(type(each) is int and 0 <= each <= _LARGEST_SIZE for each in values)


def _word(value: Any) -> str:
    return text(value) if isinstance(value, str) else ""


def _stack(value: Any) -> tuple[Frame, ...]:
    """The frames of a stack, which PyTorch writes from the innermost outwards."""
    lines = value.split(";") if isinstance(value, str) else []
    parts = [part for line in reversed(lines) if (part := _FRAME.fullmatch(line))]
    return tuple(Frame(_file(part[1]), int(part[2]), text(part[3]), 0) for part in parts)


def _file(path: str) -> str:
    """A file's path without folders of the user's."""
    return text(portable(path) if path.startswith("/") else path)
