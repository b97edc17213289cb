"""Journals: the records of programs that were killed, and of those that `collector run` has run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.formats.file_format import Format

if TYPE_CHECKING:
    from pathlib import Path

    from collector.formats.file_content import FileContent
    from collector.formats.step import Step
    from collector.recording.journal import JournalProcess, WindowNs
    from collector.recording.recording import Recording

_MAGIC = b"GPUJRNL"


def _read(content: FileContent) -> Step:
    from collector.recording.gpurec import load_recording
    from collector.recording.journal import process_of

    recording = load_recording(content.name, content.data)
    cut = recording.counters["journal_bytes_cut"]
    cut_at = len(content.data) - cut if cut else None
    return _step(recording, content.name, process_of(content.data), cut_at)


def read_segments(folder: Path, window_ns: WindowNs = (None, None)) -> Step:
    """Read a journal that is a folder of segments; for the arguments see `collector.recording.journal_segments`."""
    from collector.recording.journal_segments import load_segments, process_of_segments

    return _step(load_segments(folder, window_ns), folder, process_of_segments(folder))


def read_part(path: Path, window_ns: WindowNs) -> Step:
    """Read a part of a journal that is one file; the other rows are never in memory."""
    from collector.recording.journal import process_of
    from collector.recording.journal_segments import contents_of, load_journal_file

    return _step(load_journal_file(path, window_ns), path, process_of(contents_of(path)))


def _step(recording: Recording, path: Path, process: JournalProcess, cut_at: int | None = None) -> Step:
    from collector.formats.step import RecordingSource, Step
    from collector.runtime.launcher_ranks import launched_rank, launched_world_size

    return Step(
        RecordingSource(recording),
        kind=FORMAT.name,
        path=path,
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
