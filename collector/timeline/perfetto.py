"""Recognition of Perfetto's trace files by their first bytes."""

from __future__ import annotations

_VARINT, _BYTES = 0, 2
_PACKET_FIELDS = {10: _VARINT, 50: _BYTES, 60: _BYTES}
"""Number -> wire type of the fields that the first packet of a trace may have: sequence, packed packets, track."""


def is_perfetto_trace(data: bytes) -> bool:
    """Whether bytes begin like a Perfetto trace."""
    from collector.stepstats.salvage import fields_of_first

    return any(item.whole and _PACKET_FIELDS.get(item.number) == item.wire_type for item in fields_of_first(data))
