"""Journals of steps whose program ended before they did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.formats.file_format import Format

if TYPE_CHECKING:
    from collector.formats.file_content import FileContent
    from collector.formats.step import Step

_MAGIC = b"GPUJRNL"


def _read(content: FileContent) -> Step:
    from collector.formats.step import RecordingSource, Step
    from collector.recording.gpurec import load_recording

    recording = load_recording(content.name, content.data)
    cut = recording.counters["journal_bytes_cut"]
    cut_at = len(content.data) - cut if cut else None
    return Step(RecordingSource(recording), kind=FORMAT.name, path=content.name, cut_at=cut_at)


FORMAT = Format(
    name="journal",
    family="journals",
    origin="killed programs",
    begins=lambda head: head.startswith(_MAGIC),
    read=_read,
)
