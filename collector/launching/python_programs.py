"""Messages that Python programs leave beside their journals: reasons why ``collector run --python`` has no names."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from collector.text.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from collector.launching.process_journals import TracedProcess

_WITHOUT_SITE = "Python was started without site or its environment (-S, -I, -E), or the program replaced PYTHONPATH"


def unnamed_programs(folder: Path, processes: Iterable[TracedProcess]) -> list[str]:
    """One line for each reason why Python programs that were recorded have no names, or not all.

    Args:
        folder: the folder of the journals, where ``collector/adapters/python_startup`` leaves its lines.
        processes: the recorded processes.
    """
    found = defaultdict[str, list[str]](list)
    for process in processes:
        if process.step.process is None or not process.step.process.is_python:
            continue
        path = folder / f"{process.identity.host}-{process.identity.process_id}.python"
        try:
            lines = path.read_text("utf-8", errors="replace").splitlines()
        except OSError:
            lines = [_WITHOUT_SITE]
        for reason in dict.fromkeys(filter(None, lines)):
            found[reason].append(process.name)
    return [f"{_and_others(names)}: no names of Python: {reason}" for reason, names in sorted(found.items())]


def _and_others(names: list[str]) -> str:
    return names[0] + (counted(" and {} more process[|es]", len(names) - 1) if len(names) > 1 else "")
