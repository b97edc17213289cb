"""Chrome traces of XProf's viewer, which TensorFlow 2 and JAX leave; see `collector.formats.xprof_trace`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.formats.file_content import begins_as_json
from collector.formats.file_format import Format

if TYPE_CHECKING:
    from collector.formats.file_content import FileContent
    from collector.formats.step import Step


def _sniff(content: FileContent) -> bool:
    from collector.formats.chrome_dialects import is_xprof

    return content.is_json and is_xprof(content.chrome_events)


def _read(content: FileContent) -> Step:
    from collector.formats import profiler_timeline_format
    from collector.formats.xprof_trace import XprofDialect

    return profiler_timeline_format.read(content, XprofDialect(content.chrome_events))


FORMAT = Format(
    name="Chrome trace",
    family="Chrome traces",
    suffixes=(".json", ".json.gz"),
    origin="XProf",
    begins=begins_as_json,
    sniff=_sniff,
    is_likely=lambda content: content.has_events_if_json,
    read=_read,
)
