"""Journals: the records of programs that were killed, and of those that `collector run` has run."""

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
    from collector.recording.journal import process_of
    from collector.runtime.launcher_ranks import launched_rank, launched_world_size

    recording = load_recording(content.name, content.data)
    cut = recording.counters["journal_bytes_cut"]
    cut_at = len(content.data) - cut if cut else None
    process = process_of(content.data)
    return Step(
        RecordingSource(recording),
        kind=FORMAT.name,
        path=content.name,
        cut_at=cut_at,
        rank=launched_rank(process.variables),
        world_size=launched_world_size(process.variables),
        process=process,
    )


FORMAT = Format(
    name="journal",
    family="journals",
    origin="killed programs",
    begins=lambda head: head.startswith(_MAGIC),
    read=_read,
)
