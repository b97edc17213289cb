"""Values of variables from a checkpoint, in the form of the ``tensor_value`` attribute."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collector.profiler.checkpoint import Checkpoint
from collector.protos import DataType, TFProfTensorProto

_LONGEST_TEXT = 10_000
"""The maximum number of printed characters of one value."""


class Variables:
    """Looks up values and writes them out."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint

    def value_of(self, name: str) -> tuple[str, TFProfTensorProto] | None:
        """The lines below a node's own line, and the value in its message; None if the node is not a variable."""
        if name not in self._checkpoint:
            return None
        value = self._checkpoint.read(name)
        return text(value), to_proto(value, self._checkpoint.dtype(name))


def to_proto(value: NDArray[np.generic], dtype: DataType) -> TFProfTensorProto:
    """The value in row-major order, in the field of its kind."""
    proto = TFProfTensorProto(dtype=dtype)
    flat = value.reshape(-1)
    if value.dtype.kind == "f":
        proto.value_double.extend(flat.astype(np.float64).tolist())
    elif value.dtype.kind in "iub":
        proto.value_int64.extend(flat.astype(np.int64).tolist())
    else:
        proto.value_str.extend(item.decode("utf-8", "replace") for item in flat.tolist())
    return proto


def text(value: NDArray[np.generic]) -> str:
    """Nested brackets; floats with two decimals, text in quotes; long values are truncated."""
    lines = _nested(value)
    if len(lines) > _LONGEST_TEXT:
        return f"{lines[:_LONGEST_TEXT]}...omitted from display\n\n"
    return lines + "\n"


def _nested(value: NDArray[np.generic]) -> str:
    if value.ndim == 0:
        return _item(value.item())
    if value.ndim == 1:
        return "[" + " ".join(_item(item) for item in value.tolist()) + "],\n"
    return "[" + "".join(_nested(row) for row in value) + "],\n"


def _item(item: object) -> str:
    if isinstance(item, float):
        return f"{item:.2f}"
    if isinstance(item, bytes):
        return f"'{item.decode('utf-8', 'replace')}'"
    return str(item)
