"""CUPTI's numbers of kinds of copies and memory, by the names that traces give them."""

from __future__ import annotations

from collector.recording.cupti_enums import COPY_KINDS, MEMORY_KINDS
from collector.recording.kind_names import kind_number

_COPY_KINDS = {name: number for number, name in enumerate(COPY_KINDS)}
_MEMORY_KINDS = {name.lower(): number for number, name in enumerate(MEMORY_KINDS)}


def copy_kind_number(name: str) -> int:
    """CUPTI's number of a copy kind such as ``HtoD``; 0 for any other name."""
    return _copy_kind(name) or 0


def is_copy_kind(name: str) -> bool:
    """Whether a name is that of one of CUPTI's kinds of copies."""
    return _copy_kind(name) is not None


def memory_kind_number(name: str) -> int:
    """CUPTI's number of a kind of memory such as ``Pageable`` or ``device static``; 0 for any other name."""
    return _memory_kind(name) or 0


def is_memory_kind(name: str) -> bool:
    """Whether a name, such as ``pinned`` or ``device_static``, is that of one of CUPTI's kinds of memory."""
    return _memory_kind(name) is not None


def _copy_kind(name: str) -> int | None:
    return kind_number(_COPY_KINDS, name.replace("_", " "))


def _memory_kind(name: str) -> int | None:
    return kind_number(_MEMORY_KINDS, name.lower().replace(" ", "").replace("_", ""))
