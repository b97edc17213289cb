"""Chrome traces that TensorFlow's Timeline writes; see `collector.formats.tensorflow_timeline`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.formats.file_content import begins_as_json
from collector.formats.file_format import Format

if TYPE_CHECKING:
    from collector.formats.file_content import FileContent
    from collector.formats.step import Step


def _sniff(content: FileContent) -> bool:
    from collector.formats.chrome_dialects import is_tensorflow

    return content.is_json and is_tensorflow(content.chrome_events)


def _read(content: FileContent) -> Step:
    from collector.formats.chrome_step import chrome_step
    from collector.formats.step_sources import MessageSource
    from collector.formats.tensorflow_timeline import to_step_stats
    from collector.protos import RunMetadata

    found = content.chrome_events
    metadata = RunMetadata(step_stats=to_step_stats(found))
    is_empty = not metadata.step_stats.dev_stats
    return chrome_step(content, FORMAT.name, MessageSource(metadata), is_empty=is_empty)


FORMAT = Format(
    name="TensorFlow timeline",
    family="Chrome traces",
    suffixes=(".json", ".json.gz"),
    origin="TensorFlow",
    begins=begins_as_json,
    sniff=_sniff,
    is_likely=lambda content: content.has_events_if_json,
    read=_read,
)
