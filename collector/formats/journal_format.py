"""Journals: the records of killed programs, and of programs that were run by `collector run`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from collector.formats.file_format import Format

if TYPE_CHECKING:
    from pathlib import Path

    from collector.formats.file_content import FileContent
    from collector.formats.step import Step
    from collector.recording.journal_contents import WindowNs
    from collector.recording.journal_facts import Extent, JournalProcess
    from collector.recording.recording import Recording

_MAGIC = b"GPUJRNL"
_DEVICE_PREFIX = re.compile(r"/job:[A-Za-z][A-Za-z0-9_.-]*/replica:0/task:(?P<rank>[0-9]{1,10})")


def _read(content: FileContent) -> Step:
    from collector.recording.gpurec import load_recording
    from collector.recording.journal_facts import process_of

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
    from collector.recording.journal_facts import process_of
    from collector.recording.journal_segments import contents_of, load_journal_file

    return _step(load_journal_file(path, window_ns), path, process_of(contents_of(path)))


class PartToDraw(NamedTuple):
    """The part of a journal that a timeline shows."""

    step: Step
    extent: Extent
    """The extent of the whole journal."""


def part_to_draw(path: Path, window_ns: WindowNs, *, with_memory: bool) -> PartToDraw | None:
    """Read the rows that the timeline of a part of a journal needs, so that the rest is never in memory.

    Args:
        path: the file, or the folder of segments.
        window_ns: the part, since the beginning of the whole.
        with_memory: whether the timeline has the counters of memory, which depend on all earlier allocations.

    Returns:
        The part; None: the whole is needed.

    Raises:
        collector.InvalidFileError: it is not readable.
    """
    from collector.recording.journal_segments import extent_of_journal
    from collector.recording.possible_times import FAR_NS

    extent = extent_of_journal(path)
    if not 0 < extent.first_ns <= extent.last_ns <= extent.first_ns + FAR_NS:
        return None
    if with_memory and "memory_operations" in extent.tables:
        return None
    step = read_segments(path, window_ns) if path.is_dir() else read_part(path, window_ns)
    has_memory = with_memory and len(step.recording.memory_operations)
    if has_memory or "capture_ranges_recorded" in step.recording.counters:
        return None
    return PartToDraw(step, extent)


def read_ranges(step: Step) -> list[Step]:
    """The ranges of a program whose journal has only these (``collector run --capture-range``), each as a step."""
    from collector.recording.journal_segments import load_captured_ranges

    assert step.path is not None
    assert step.process is not None
    return [_step(each, step.path, step.process) for each in load_captured_ranges(step.path)]


def _step(recording: Recording, path: Path, process: JournalProcess, cut_at: int | None = None) -> Step:
    from collector.formats.step import Step
    from collector.formats.step_sources import RecordingSource
    from collector.runtime.launcher_ranks import launched_rank, launched_world_size

    prefix = _DEVICE_PREFIX.fullmatch(process.device_prefix)
    return Step(
        RecordingSource(recording, prefix[0] if prefix else ""),
        kind=FORMAT.name,
        path=path,
        cut_at=cut_at,
        rank=int(prefix["rank"]) if prefix else launched_rank(process.variables),
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
