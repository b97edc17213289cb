"""Likely causes of a step without GPU work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.recording.schema import LAUNCHED_TABLES

if TYPE_CHECKING:
    from collector.recording.recording import Recording

_LIKELY_CAUSES = (
    "no launch was recorded; likely causes: the GPU work ran in another process (trace it there), it went through "
    "another copy of the CUDA libraries than the one that is traced (see: collector info), or nothing ran on a GPU"
)


def no_launches(recording: Recording) -> str:
    """The likely causes in one line if a traced step has neither launches nor GPU work; else ``""``."""
    has_work = any(len(getattr(recording, name)) for name in LAUNCHED_TABLES)
    return "" if has_work or recording.ledger.launches_seen or recording.ledger.untraced else _LIKELY_CAUSES
