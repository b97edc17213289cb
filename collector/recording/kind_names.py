"""Display names of copy kinds and of kinds of memory."""

from __future__ import annotations

from collector.recording.cupti_enums import COPY_KINDS, MEMORY_KINDS


def copy_kind_name(kind: int) -> str:
    """The name of a copy kind, or its number if a newer CUPTI added it."""
    return _name(COPY_KINDS, kind)


def memory_kind_name(kind: int) -> str:
    """The name of a kind of memory, or its number if a newer CUPTI added it."""
    return _name(MEMORY_KINDS, kind)


def _name(names: tuple[str, ...], kind: int) -> str:
    return names[kind] if kind < len(names) else f"kind {kind}"
