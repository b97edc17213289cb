"""Many NodeExecStats at once.

Making a message of each node from Python costs a microsecond and an object that the garbage collector then walks; a
step can have millions. So nodes are put together as wire bytes, whose numbers numpy lays out for all nodes in one
go, and protobuf parses them device by device. Numbers are padded to equal length per field, which every protobuf parser
reads and none writes: these bytes are to be parsed, not to be kept.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.protos import DeviceStepStats, NodeExecStats

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

_VARINT, _LENGTH_DELIMITED = 0, 2
_NODES_PARSED_AT_ONCE = 1 << 12  # their bytes stay in the cache


def encode_nodes(names: Sequence[str], labels: Sequence[str], numbers: Mapping[str, npt.NDArray[Any]]) -> list[bytes]:
    """Return each node's wire bytes, as an element of ``DeviceStepStats.node_stats``.

    Args:
        names: ``node_name`` of each node.
        labels: ``timeline_label`` of each node.
        numbers: the other fields by name, all as long as ``names``; int64, or fit to become so.
    """
    if not names:
        return []
    fields = NodeExecStats.DESCRIPTOR.fields_by_name
    matrix = np.concatenate([_varints(fields[name].number, values) for name, values in numbers.items()], axis=1)
    width, packed = matrix.shape[1], matrix.tobytes()
    heads = _Heads(width)
    begins = range(0, len(packed), width)
    return [
        heads[texts] + packed[begin : begin + width]
        for texts, begin in zip(zip(names, labels, strict=True), begins, strict=True)
    ]


def add_nodes(device: DeviceStepStats, nodes: Iterable[bytes]) -> None:
    """Add the nodes that `encode_nodes` made to ``device``."""
    rest = iter(nodes)
    while chunk := b"".join(islice(rest, _NODES_PARSED_AT_ONCE)):
        device.MergeFromString(chunk)


class _Heads(dict[tuple[str, str], bytes]):
    """What stands before a node's numbers: its tag and length, its name and label. The same for many nodes."""

    def __init__(self, numbers_width: int) -> None:
        super().__init__()
        self._numbers_width = numbers_width

    def __missing__(self, texts: tuple[str, str]) -> bytes:
        name, label = texts
        body = NodeExecStats(node_name=name, timeline_label=label).SerializeToString()
        tag = DeviceStepStats.NODE_STATS_FIELD_NUMBER << 3 | _LENGTH_DELIMITED
        head = self[texts] = bytes([tag]) + _varint(len(body) + self._numbers_width) + body
        return head


def _varints(field: int, values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Tag and value of one field for every node: one row each, all rows equally long."""
    tag = np.frombuffer(_varint(field << 3 | _VARINT), np.uint8)
    unsigned = values.astype(np.int64).view(np.uint64)  # a negative int64 is its two's complement, in ten bytes
    width = max(-(-int(unsigned.max()).bit_length() // 7), 1)
    rows = np.empty((len(values), len(tag) + width), np.uint8)
    rows[:, : len(tag)] = tag
    for byte in range(width):
        rows[:, len(tag) + byte] = (unsigned >> np.uint64(7 * byte)).astype(np.uint8) & 0x7F | 0x80
    rows[:, -1] &= 0x7F
    return rows


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
