"""The times that the profiler gives to each scope of a step."""

from __future__ import annotations

from typing import Any

from collector import profiler

EVERY_SCOPE = {
    "account_type_regexes": [".*"],
    "start_name_regexes": [".*"],
    "show_name_regexes": [".*"],
    "select": ["micros", "occurrence"],
    "output": "none",
    "max_depth": 100,
}


def times_by_scope(metadata: Any) -> dict[str, tuple[int, int, int]]:
    """Scope -> the microseconds of the accelerator, of the host, and of both, of a ``RunMetadata``."""
    own = profiler.Profiler()
    own.add_recorded_step(0, metadata)
    found = {}

    def visit(node: Any) -> None:
        found[node.name] = (node.accelerator_exec_micros, node.cpu_exec_micros, node.exec_micros)
        for child in node.children:
            visit(child)

    visit(own.profile_name_scope(EVERY_SCOPE))
    return found
