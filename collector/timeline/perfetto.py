"""Perfetto's trace files: their compression, and their recognition by the first bytes."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

Write = Callable[[Any], object]

_COMPRESSION_LEVEL = 3
_TRACE_PACKET = 1  # Trace.packet
_COMPRESSED_PACKETS = 50  # TracePacket.compressed_packets
_VARINT, _BYTES = 0, 2
_PACKET_FIELDS = {10: _VARINT, _COMPRESSED_PACKETS: _BYTES, 60: _BYTES}
"""Number -> wire type of the fields of which the first packet of a trace has one: sequence, packed packets, track."""


def deflated(write: Write) -> Write:
    """A `write` for whole packets that packs each piece into one deflated packet and hands that to the given `write`.

    Perfetto's own service writes such packets too; its viewers and trace processor read them in place of the packets
    inside. Names that occur only once, which interning cannot make smaller, shrink this way.
    """
    from collector.stepstats.varint import field_head

    def write_deflated(packets: Any) -> None:
        packed = zlib.compress(packets, _COMPRESSION_LEVEL)
        packet = field_head(_COMPRESSED_PACKETS, len(packed)) + packed
        write(field_head(_TRACE_PACKET, len(packet)) + packet)

    return write_deflated


def is_perfetto_trace(data: bytes) -> bool:
    """Whether bytes begin as a Perfetto trace does."""
    from collector.stepstats.salvage import fields_of_first

    return any(item.whole and _PACKET_FIELDS.get(item.number) == item.wire_type for item in fields_of_first(data))
