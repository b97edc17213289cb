"""Chrome traces that this project drew, read back; see `collector.formats.collector_timeline`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.formats.file_content import begins_as_json
from collector.formats.file_format import Format

if TYPE_CHECKING:
    from collector.formats.file_content import FileContent
    from collector.formats.step import Step


def _sniff(content: FileContent) -> bool:
    if not content.is_json:
        return False
    from collector.formats.chrome_dialects import is_cut_timeline, stated_base

    found = content.chrome_events
    return stated_base(found) is not None or is_cut_timeline(found)


def _read(content: FileContent) -> Step:
    from collector.formats.chrome_step import chrome_step
    from collector.formats.collector_timeline import CollectorTrace

    trace = CollectorTrace(content.chrome_events)
    return chrome_step(content, FORMAT.name, trace, is_empty=trace.is_empty, origin="otherData")


FORMAT = Format(
    name="collector timeline",
    family="Chrome traces",
    suffixes=(".json", ".json.gz"),
    origin="this program",
    begins=begins_as_json,
    sniff=_sniff,
    is_likely=lambda content: content.has_events_if_json,
    read=_read,
)
