"""StepStats and RunMetadata in protobuf's wire format (``.pb``), ours and TensorFlow's.

The bytes are kept as they are. They are parsed into a message on request, or if they are damaged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.errors import InvalidFileError
from collector.files.atomic_files import atomic_write
from collector.formats.file_format import Format, Writable
from collector.stepstats.message_size import MAX_MESSAGE_BYTES, check_message_size

if TYPE_CHECKING:
    from pathlib import Path

    from collector.formats.file_content import FileContent
    from collector.formats.step import Step


def _check_head(head: bytes) -> str:
    from collector.stepstats.salvage import WireError, fields

    try:
        next(fields(memoryview(head)))
    except WireError as error:
        return _no_message(error.position, error)
    return ""


def _read(content: FileContent) -> Step:
    from google.protobuf.message import DecodeError

    from collector.formats.stated_origin import stated_origin
    from collector.formats.step import Step
    from collector.formats.step_sources import MessageSource, StepSource, WireSource
    from collector.stepstats.salvage import foreign, salvage
    from collector.stepstats.whole_message import size_if_whole
    from collector.stepstats.wire import is_run_metadata, provenance_of, run_metadata_of

    data, name = content.data, content.name
    whole = is_run_metadata(data)
    kind = "RunMetadata" if whole else "StepStats"
    size = size_if_whole(data, whole)
    if size is not None:
        source: StepSource = WireSource(data, is_run_metadata=whole, size=size)
    else:
        try:
            source = MessageSource(run_metadata_of(data, whole))
        except DecodeError:
            saved = salvage(data, whole)
            content.skipped.update(saved.skipped)
            place = saved.error.position if saved.error else None
            if not any(device.node_stats for device in saved.run_metadata.step_stats.dev_stats):
                raise content.error(_no_message(place, saved.error or "no node in it can be read")) from None
            stated = stated_origin(saved.run_metadata.provenance)
            return Step(
                MessageSource(saved.run_metadata),
                kind=kind,
                path=name,
                skipped=content.skipped,
                cut_at=place,
                rank=stated.rank,
                world_size=stated.world_size,
            )
    stranger = foreign(data, whole)
    if stranger is not None:
        raise content.error(_no_message(stranger.position, stranger))
    stated = stated_origin(provenance_of(data) if whole else None)
    return Step(source, kind=kind, path=name, skipped=content.skipped, rank=stated.rank, world_size=stated.world_size)


def _is_likely(content: FileContent) -> bool:
    if _check_head(content.head):
        return False
    if content.num_bytes > MAX_MESSAGE_BYTES:
        return True  # reading it says so
    try:
        _read(content)  # which makes no messages
    except InvalidFileError:
        return False
    return True


def _no_message(position: int | None, why: object) -> str:
    reason = why if position is None else f"at byte {position}: {why}"
    return f"not a StepStats or RunMetadata message ({reason})"


def _write(step: Writable, path: Path) -> None:
    data = step.serialized()
    check_message_size(len(data), path)
    with atomic_write(path) as file:
        file.write(data)


FORMAT = Format(
    name="RunMetadata",
    family="StepStats and RunMetadata",
    suffixes=(".pb",),
    use="RunMetadata, for other tools",
    is_likely=_is_likely,
    read=_read,
    check_head=_check_head,
    max_bytes=MAX_MESSAGE_BYTES,
    limit="the 2 GiB that a protobuf message can be",
    write=_write,
)
