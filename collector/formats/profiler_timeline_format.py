"""Chrome traces of PyTorch's profiler (Kineto), and of any other program; see `collector.formats.profiler_timeline`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.formats.file_content import begins_as_json
from collector.formats.file_format import Format

if TYPE_CHECKING:
    from collector.formats.file_content import FileContent
    from collector.formats.profiler_dialect import ProfilerDialect
    from collector.formats.step import Step


def _read(content: FileContent) -> Step:
    from collector.formats.merged_profiles import profile_dialect

    return read(content, profile_dialect(content.chrome_events))


def read(content: FileContent, dialect: ProfilerDialect) -> Step:
    """The step that a profiler's trace shows.

    Raises:
        collector.InvalidFileError: nothing in it can be read.
    """
    from collector.formats.chrome_step import chrome_step
    from collector.formats.profiler_timeline import ProfilerTrace

    trace = ProfilerTrace(dialect)
    step = chrome_step(content, FORMAT.name, trace, is_empty=trace.is_empty)
    if trace.is_empty and dialect.found.num_entries:
        raise content.error("JSON with a list in which nothing is an event with a time")
    return step


FORMAT = Format(
    name="Chrome trace",
    family="Chrome traces",
    suffixes=(".json", ".json.gz"),
    origin="PyTorch",
    begins=begins_as_json,
    sniff=lambda content: content.is_json,
    is_likely=lambda content: content.has_events_if_json,
    read=_read,
)
