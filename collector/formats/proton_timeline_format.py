"""Chrome traces of Triton's profiler Proton; see `collector.formats.proton_timeline`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.formats.file_content import begins_as_json
from collector.formats.file_format import Format

if TYPE_CHECKING:
    from collector.formats.file_content import FileContent
    from collector.formats.step import Step


def _sniff(content: FileContent) -> bool:
    from collector.formats.proton_timeline import is_proton

    return content.is_json and is_proton(content.chrome_events)


def _read(content: FileContent) -> Step:
    from collector.formats import profiler_timeline_format
    from collector.formats.proton_timeline import ProtonDialect

    return profiler_timeline_format.read(content, ProtonDialect(content.chrome_events))


FORMAT = Format(
    name="Chrome trace",
    family="Chrome traces",
    suffixes=(".json", ".json.gz"),
    origin="Triton",
    begins=begins_as_json,
    sniff=_sniff,
    is_likely=lambda content: content.has_events_if_json,
    read=_read,
)
