"""CUPTI's numbers of kinds of copies and memory, by the names that traces give them."""

from __future__ import annotations

from collector.recording.cupti_enums import COPY_KINDS, MEMORY_KINDS

_COPY_KINDS = {name: number for number, name in enumerate(COPY_KINDS)}
_MEMORY_KINDS = {name.lower(): number for number, name in enumerate(MEMORY_KINDS)}


def copy_kind_number(name: str) -> int:
    """CUPTI's number of ``HtoD``; 0 for what is none of its kinds."""
    return _COPY_KINDS.get(name, 0)


def memory_kind_number(name: str) -> int:
    """CUPTI's number of ``Pageable`` or ``device static``; 0 for what is none of its kinds."""
    return _MEMORY_KINDS.get(name.lower().replace(" ", ""), 0)
