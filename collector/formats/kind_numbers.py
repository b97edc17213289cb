"""CUPTI's numbers of kinds of copies and memory, by the names that traces give them."""

from __future__ import annotations

from collector.recording.cupti_enums import COPY_KINDS, MEMORY_KINDS

_COPY_KINDS = {name: number for number, name in enumerate(COPY_KINDS)}
_MEMORY_KINDS = {name.lower(): number for number, name in enumerate(MEMORY_KINDS)}


def copy_kind_number(name: str) -> int:
    """CUPTI's number of ``HtoD``; 0 for what is none of its kinds."""
    return _COPY_KINDS.get(name, 0)


def is_copy_kind(name: str) -> bool:
    """Whether a name is that of one of CUPTI's kinds of copies."""
    return name in _COPY_KINDS


def memory_kind_number(name: str) -> int:
    """CUPTI's number of ``Pageable`` or ``device static``; 0 for what is none of its kinds."""
    return _MEMORY_KINDS.get(_plain(name), 0)


def is_memory_kind(name: str) -> bool:
    """Whether a name, such as ``pinned`` or ``device_static``, is that of one of CUPTI's kinds of memory."""
    return _plain(name) in _MEMORY_KINDS


def _plain(name: str) -> str:
    return name.lower().replace(" ", "").replace("_", "")
