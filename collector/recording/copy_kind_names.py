"""Display names of copy kinds."""

from __future__ import annotations

from collector.recording.cupti_enums import COPY_KINDS


def copy_kind_name(kind: int) -> str:
    """The name of a copy kind, or its number if a newer CUPTI added it."""
    return COPY_KINDS[kind] if kind < len(COPY_KINDS) else f"kind {kind}"
