"""Likely causes of a step without GPU work; for a file of another program, its actual content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.analysis.annotation_paths import is_own_recording
from collector.recording.ledger import TIMES_LOST
from collector.recording.schema import LAUNCHED_TABLES
from collector.text.wording import counted, listed

if TYPE_CHECKING:
    from collector.recording.recording import Recording

_LIKELY_CAUSES = (
    "no launch was recorded; likely causes: the GPU work ran in another process (trace it there), it went through "
    "another copy of the CUDA libraries than the one that is traced (see: collector info), or nothing ran on a GPU"
)


_OF_HOST = {
    "annotations": "{:,} annotation[|s]",
    "api_calls": "{:,} call[|s] of CUDA",
    "nvtx_ranges": "{:,} NVTX range[|s]",
    "other_ranges": "{:,} other range[|s]",
}
"""Table -> its rows in words, of what a file without GPU work may hold."""


def no_launches(recording: Recording) -> str:
    """The likely causes in one line if a traced step has neither launches nor GPU work; else ``""``.

    Where records are known to be lost or removed, they may be those of launches, and the ledger has the cause.

    For the file of another program the line states its content, because nothing else is known.
    """
    has_work = any(len(getattr(recording, name)) for name in LAUNCHED_TABLES)
    ledger = recording.ledger
    is_known = ledger.launches_seen or ledger.untraced or ledger.rows_forgotten
    if has_work or is_known or any(getattr(ledger, name) for name in TIMES_LOST):
        return ""
    if is_own_recording(recording):
        return _LIKELY_CAUSES
    counts = ((text, len(getattr(recording, name))) for name, text in _OF_HOST.items())
    held = [counted(text, count) for text, count in counts if count]
    return f"the file has no GPU work: no kernel, copy or memset, and no launch; it has {listed(held) or 'no event'}"
