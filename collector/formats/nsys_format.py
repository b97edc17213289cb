"""Exports of Nsight Systems (``nsys export --type sqlite``); see `collector.formats.nsys_columns`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.errors import InvalidFileError
from collector.formats.file_format import Format

if TYPE_CHECKING:
    from collector.formats.file_content import FileContent
    from collector.formats.step import Step

_SQLITE = b"SQLite format 3\0"


def _read(content: FileContent) -> Step:
    from collector.formats.nsys_columns import NsysColumns
    from collector.formats.nsys_database import opened
    from collector.formats.step import Step
    from collector.formats.step_sources import RecordingSource

    with opened(content) as database:
        recording = NsysColumns(database).recording()
        skipped = content.skipped + database.skipped
    return Step(RecordingSource(recording), kind=FORMAT.name, path=content.name, skipped=skipped)


def _is_likely(content: FileContent) -> bool:
    from collector.formats.nsys_database import opened

    if content.plain_file is None:  # opening it would unpack all of it
        return True
    try:
        with opened(content):
            return True
    except InvalidFileError:
        return False


FORMAT = Format(
    name="Nsight Systems export",
    family="exports of Nsight Systems",
    suffixes=(".sqlite",),
    begins=lambda head: head.startswith(_SQLITE),
    is_likely=_is_likely,
    read=_read,
)
