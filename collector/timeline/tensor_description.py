"""``TensorDescription`` in protobuf's text format, the same for every protobuf runtime and every class of message.

``str(message)`` differs between runtimes (escapes of non-ASCII text, layout), and TensorFlow's classes are not ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from collector.protos.types_pb2 import DataType

_ESCAPES = {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t", ord('"'): '\\"', ord("'"): "\\'", ord("\\"): "\\\\"}
_ESCAPES.update({code: f"\\{code:03o}" for code in (*range(0x20), 0x7F) if code not in _ESCAPES})


def tensor_description_text(description: Any) -> str:
    """The text of a ``TensorDescription`` of any class: one field per line, without absent and zero fields."""
    return "".join(line + "\n" for line in _description_lines(description))


def _description_lines(description: Any) -> Iterator[str]:
    if description.dtype:
        yield f"dtype: {_data_type_name(description.dtype)}"
    if _present(description, "shape"):
        yield from _block("shape", _shape_lines(description.shape))
    if _present(description, "allocation_description"):
        yield from _block("allocation_description", _allocation_lines(description.allocation_description))


def _present(message: Any, field: str) -> bool:
    has_field = getattr(message, "HasField", None)
    return bool(has_field(field)) if has_field else getattr(message, field, None) is not None


def _shape_lines(shape: Any) -> Iterator[str]:
    for dim in shape.dim:
        yield from _block("dim", _scalar_lines(dim, "size", "name"))
    yield from _scalar_lines(shape, "unknown_rank")


def _allocation_lines(allocation: Any) -> Iterator[str]:
    yield from _scalar_lines(
        allocation,
        "requested_bytes",
        "allocated_bytes",
        "allocator_name",
        "allocation_id",
        "has_single_reference",
        "ptr",
    )


def _scalar_lines(message: Any, *fields: str) -> Iterator[str]:
    for field in fields:
        value = getattr(message, field)
        if isinstance(value, str):
            if value:
                yield f'{field}: "{value.translate(_ESCAPES)}"'
        elif isinstance(value, bool):
            if value:
                yield f"{field}: true"
        elif value:
            yield f"{field}: {value}"


def _block(field: str, lines: Iterator[str]) -> Iterator[str]:
    yield f"{field} {{"
    for line in lines:
        yield "  " + line
    yield "}"


def _data_type_name(number: int) -> str:
    value = DataType.DESCRIPTOR.values_by_number.get(number)
    return value.name if value else str(number)
