"""Recordings in files (``.gpurec``): all that a session recorded, column by column."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from collector.errors import UnknownFormatError
from collector.formats.file_format import Format, Writable

if TYPE_CHECKING:
    from pathlib import Path

    from collector.formats.file_content import FileContent
    from collector.formats.step import Step

_ZIP = b"PK\x03\x04"


def _read(content: FileContent) -> Step:
    import io
    import zipfile

    from collector.formats.step import Step
    from collector.formats.step_sources import RecordingSource
    from collector.recording.gpurec import load_recorded_step
    from collector.stepstats.device_prefixes import is_device_prefix

    recording, prefix, origin = load_recorded_step(content.name, content.data)
    is_cut = recording.ledger.tables_cut_off and not zipfile.is_zipfile(io.BytesIO(content.data))
    return Step(
        RecordingSource(recording, prefix if is_device_prefix(prefix) else "", unread=origin.unread),
        kind=FORMAT.name,
        path=content.name,
        cut_at=len(content.data) if is_cut else None,
        rank=origin.rank,
        world_size=origin.world_size,
    )


def _write(step: Writable, path: Path) -> None:
    from collector.recording.gpurec import save_recording
    from collector.recording.schema import SCHEMA

    recording = step.recording
    if not step.is_recording and not any(len(getattr(recording, table)) for table in SCHEMA):
        raise UnknownFormatError(f"{path}: the step holds nothing that a recording has columns for")
    origin = replace(step.origin, unread=recording.ledger.unread)
    save_recording(recording, path, step.common_prefix, origin)


FORMAT = Format(
    name="recording",
    family="recordings",
    suffixes=(".gpurec",),
    use="the recording itself",
    begins=lambda head: head.startswith(_ZIP),
    is_likely=lambda content: b"meta.json" in content.head,  # no other zip archive
    read=_read,
    write=_write,
)
