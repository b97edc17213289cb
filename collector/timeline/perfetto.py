"""Perfetto's trace files on their way to disk."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from collector.stepstats.node_columns import field_head

Write = Callable[[Any], object]

_COMPRESSION_LEVEL = 3
_TRACE_PACKET = 1  # Trace.packet
_COMPRESSED_PACKETS = 50  # TracePacket.compressed_packets


def deflated(write: Write) -> Write:
    """A `write` for whole packets that packs each piece into one deflated packet and hands that to the given `write`.

    Perfetto's own service writes such packets too; its viewers and trace processor read them in place of the packets
    inside. Names that occur only once, which interning cannot make smaller, shrink this way.
    """

    def write_deflated(packets: Any) -> None:
        packed = zlib.compress(packets, _COMPRESSION_LEVEL)
        packet = field_head(_COMPRESSED_PACKETS, len(packed)) + packed
        write(field_head(_TRACE_PACKET, len(packet)) + packet)

    return write_deflated
