"""Names of copy kinds for people."""

from __future__ import annotations

from collector.recording.cupti_enums import COPY_KINDS


def copy_kind_name(kind: int) -> str:
    """The name of a copy kind; of a kind that a newer CUPTI added its number."""
    return COPY_KINDS[kind] if kind < len(COPY_KINDS) else f"kind {kind}"
