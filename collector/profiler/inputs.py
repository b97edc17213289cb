"""Reads messages from files: binary or text, optionally gzip'd."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

from google.protobuf import text_format
from google.protobuf.message import DecodeError, Message

from collector.errors import InvalidFileError
from collector.files.unpacking import GZIP, unpack_gzip
from collector.protos import GraphDef, OpLogProto, ProfileProto, RunMetadata
from collector.stepstats.message_size import MAX_MESSAGE_BYTES
from collector.stepstats.proto_text import parse_text
from collector.stepstats.salvage import WireError, fields
from collector.stepstats.wire import fields_of
from collector.text.wording import counted

M = TypeVar("M", bound=Message)


def load(source: M | Message | str | os.PathLike[str] | bytes, kind: type[M]) -> M:
    """The message in ``source``, which may be a message, too; TensorFlow's messages are converted to ours.

    Raises:
        InvalidFileError: ``source`` contains something else, or cannot be read.
    """
    if isinstance(source, kind):
        return source
    if isinstance(source, bytes):
        return parse(source, kind, "these bytes")
    if isinstance(source, Message) and source.DESCRIPTOR.name == kind.DESCRIPTOR.name:  # TensorFlow's own
        return kind.FromString(source.SerializeToString())
    if isinstance(source, Message):
        raise InvalidFileError(f"a {source.DESCRIPTOR.name} was given where a {kind.DESCRIPTOR.name} is expected")
    path = Path(source)
    try:
        data = _read(path, kind)
    except OSError as error:
        raise InvalidFileError(f"{path} cannot be read: {error.strerror}") from error
    if not data:
        raise InvalidFileError(f"{path} is empty", f"Give a file with {_named(kind)}")
    return parse(data, kind, str(path))


def _read(path: Path, kind: type[Message]) -> bytes:
    """The bytes of a file, unless its first byte or its size show that it contains no message."""
    with path.open("rb") as file:
        head = file.read(len(GZIP))
        if head.startswith(b"\0"):
            remedy = f"Give a file with {_named(kind)}"
            raise InvalidFileError(f"{path} is no {kind.DESCRIPTOR.name} (byte 0 is 0)", remedy)
        if head != GZIP and os.fstat(file.fileno()).st_size > MAX_MESSAGE_BYTES:
            raise InvalidFileError(f"{path} is larger than the 2 GiB that a protobuf message can be")
        return head + file.read()


def parse(data: bytes, kind: type[M], name: str) -> M:
    """The message in ``data``; ``name`` is used in errors.

    Raises:
        InvalidFileError: the data is not such a message.
    """
    if data[:2] == GZIP:
        unpacked = unpack_gzip(data, name)
        if unpacked.damage or unpacked.is_cut:
            why = unpacked.damage or "its end is missing"
            raise InvalidFileError(f"{name} is a broken gzip file of {counted('{} byte[|s]', len(data))}: {why}")
        data = unpacked.content
    message = kind()
    if kind is ProfileProto and not _has_map_entries(data):
        return _parse_text(data, kind, name)
    try:
        message.ParseFromString(data)
    except DecodeError:
        return _parse_text(data, kind, name)
    if data and _is_foreign(message):
        return _parse_text(data, kind, name)
    return message


def _has_map_entries(data: bytes) -> bool:
    """Whether the entries of a profile's map of nodes have keys and values; protobuf 4.21 crashes on others."""
    entries = (
        content
        for number, content in fields_of(memoryview(data))
        if number == ProfileProto.NODES_FIELD_NUMBER and content is not None
    )
    return all(
        (number, content is None) in ((1, True), (2, False))
        for entry in entries
        for number, content in fields_of(entry)
    )


def _is_foreign(message: Message) -> bool:
    """Whether a message was parsed from another type's bytes, which the wire format often permits.

    In that case no field was recognised, its names are not names, or it has fields that no version of the type ever
    had.
    """
    if not message.ListFields():
        return True
    if isinstance(message, GraphDef):
        return not all(_is_name(node.name) and _is_name(node.op) for node in message.node)
    if isinstance(message, RunMetadata):
        return not message.step_stats.dev_stats and _has_unknown_fields(message.step_stats)
    if isinstance(message, OpLogProto) and not all(_is_name(entry.name) for entry in message.log_entries):
        return True
    return isinstance(message, OpLogProto | ProfileProto) and _has_unknown_fields(message)


def _is_name(text: str) -> bool:
    """Whether a text is a name: messages of other types, read as a name, contain tags and lengths."""
    return bool(text) and text.isprintable()


def _has_unknown_fields(message: Message) -> bool:
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    return known.ByteSize() < message.ByteSize()


def _named(kind: type[Message]) -> str:
    name = kind.DESCRIPTOR.name
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _parse_text(data: bytes, kind: type[M], name: str) -> M:
    """Parses text. A newer TensorFlow's text may have unknown fields; text of another type has no known ones."""
    wanted = kind.DESCRIPTOR.name
    try:
        message = parse_text(data.decode("utf-8"), kind())
    except (UnicodeDecodeError, text_format.ParseError, RecursionError) as error:
        raise InvalidFileError(
            f"{name} is no {wanted}, neither binary nor text ({_binary_place(data)}; {_text_place(error)})",
            f"Give a file with {_named(kind)}",
        ) from error
    if _is_foreign(message):
        raise InvalidFileError(f"{name} is no {wanted}: it has none of its fields", f"Give a file with {_named(kind)}")
    return message


def _binary_place(data: bytes) -> str:
    """The place at which bytes stop being a message."""
    try:
        for field in fields(memoryview(data)):
            if not field.whole:
                return f"byte {len(data)}: the end, inside field {field.number}"
    except WireError as error:
        return f"byte {error.position}: {error}"
    return "byte 0: fields of another message"


def _text_place(error: UnicodeDecodeError | text_format.ParseError | RecursionError) -> str:
    """The place at which text stops being a message."""
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start}: no UTF-8"
    if isinstance(error, RecursionError):
        return "text nested too deeply"
    return f"line {error.GetLine() or 1}, column {error.GetColumn() or 1}: another word"
