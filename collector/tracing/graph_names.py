"""The names that a program gives its CUDA graphs, by the ids of CUPTI, which never repeat in a process."""

from __future__ import annotations

_MOST = 1 << 16
"""The maximum number of names; the earliest ones are forgotten."""
_names: dict[int, str] = {}


def name_graph(graph_id: int, name: str) -> None:
    """Name an executable graph; in outputs its launches have this name instead of an annotation's."""
    _names.pop(graph_id, None)
    if len(_names) == _MOST:
        _names.pop(next(iter(_names)))
    _names[graph_id] = name


def forget_graphs() -> None:
    """Forget all names: a simulated GPU counts graphs from 1 again."""
    _names.clear()


def graph_names() -> dict[int, str]:
    """The names by graph."""
    return dict(_names)
