"""StepStats and RunMetadata in protobuf's text format (``.pbtxt``)."""

from __future__ import annotations

import re
from io import TextIOWrapper
from typing import TYPE_CHECKING

from collector.errors import InvalidFileError
from collector.files.atomic_files import atomic_write
from collector.formats.file_format import Format, Writable

if TYPE_CHECKING:
    from pathlib import Path

    from collector.formats.file_content import FileContent
    from collector.formats.step import Step
    from collector.protos import RunMetadata, StepStats

_BEGINNING = re.compile(
    rb"(?:\s|#[^\n]*\n)*(step_stats|dev_stats|cost_graph|partition_graphs|function_graphs|provenance)\s*[:{<]"
)


def _read(content: FileContent) -> Step:
    from google.protobuf import text_format

    from collector.formats.stated_origin import stated_origin
    from collector.formats.step import Step
    from collector.formats.step_sources import MessageSource
    from collector.protos import RunMetadata, StepStats
    from collector.stepstats.proto_text import parse_text

    name = content.name
    text = content.data.decode("utf-8", "replace")
    if "\ufffd" in text:
        content.skipped["bytes that are not UTF-8 (mended)"] += text.count("\ufffd")
    beginning = _BEGINNING.match(content.data)
    is_step = beginning is not None and beginning[1] == b"dev_stats"
    message: RunMetadata | StepStats = StepStats() if is_step else RunMetadata()
    try:
        parse_text(text, message)
    except text_format.ParseError as error:
        place = f"line {error.GetLine()}, column {error.GetColumn()}" if error.GetLine() else "its end"
        raise InvalidFileError(f"{name}: broken proto text at {place} ({_one_line(error)})") from error
    except RecursionError as error:
        raise InvalidFileError(f"{name}: proto text nested too deeply") from error
    kind = type(message).__name__
    whole = RunMetadata(step_stats=message) if isinstance(message, StepStats) else message
    stated = stated_origin(whole.provenance)
    return Step(
        MessageSource(whole),
        kind=kind,
        path=name,
        skipped=content.skipped,
        rank=stated.rank,
        world_size=stated.world_size,
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _write(step: Writable, path: Path) -> None:
    from google.protobuf import text_format

    message = step.run_metadata
    with atomic_write(path) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="")  # the whole text would take several times its size
        try:
            text_format.PrintMessage(message, text)
        finally:
            text.detach()


FORMAT = Format(
    name="RunMetadata as text",
    family="StepStats and RunMetadata",
    suffixes=(".pbtxt",),
    use="the same as text",
    begins=lambda head: _BEGINNING.match(head) is not None,
    read=_read,
    write=_write,
)
