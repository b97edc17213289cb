"""The content of a file that may hold a trace: its unpacked bytes, and properties by which formats recognise it."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import InvalidFileError
from collector.files.unpacking import GZIP, MAX_BYTES, GzipPieces
from collector.runtime.signal_handlers import error_of_handler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.formats.chrome_events import ChromeEvents

_HEAD_BYTES = 1 << 16
"""The number of bytes that are read first, to recognise the format."""
_PIECE_BYTES = 1 << 20
_SPACES = re.compile(rb"[\xef\xbb\xbf \t\r\n]*")
"""Bytes that may precede the first letter of a text."""
_JSON_AFTER_LINE_FEED = re.compile(rb"(?=[\t\n\r -\xff]{124})[\t\n\r ]+(?:\{[\t\n\r ]*\"|\[[\t\n\r ]*\{)")
"""JSON with which no protobuf message can begin.

A device or a step whose length is a space or a bracket holds a control character, unless it holds nothing but a name,
whose length is a letter.
"""

CheckHead = Callable[[bytes, Path, int], None]
"""Refuses a file by its first bytes, its name and the number of its bytes, before all of it is read."""


class FileContent:
    """The content of a file, which is read, unpacked and parsed on request."""

    def __init__(self, name: Path, head: bytes, whole: bytes | None, num_bytes: int, readable: str) -> None:
        """Hold what was read of a file so far; see `content_of`."""
        self.name = name
        self.suffix = name.suffix.lower()
        """The last suffix of the name in lower case, without ``.gz`` if the file is packed."""
        self.skipped: Counter[str] = Counter()
        """Reason -> how many pieces were left out or mended on the way."""
        self.readable = readable
        """The formats that can be read, for errors."""
        self.head = head
        """The first bytes, unpacked."""
        self._whole = whole
        """All bytes as they are in the file, where they cannot be read again; else None."""
        self.num_bytes = num_bytes
        """The size of the file, without unpacking it."""
        self._is_packed = False

    def unpack_head(self) -> None:
        """Treat the file as packed: `head` is the unpacked form of its first bytes."""
        self._is_packed = True
        self.suffix = next((each.lower() for each in reversed(self.name.suffixes) if each != ".gz"), "")
        pieces = self.pieces()
        head = b""
        for piece in pieces:
            head += piece
            if len(head) >= _HEAD_BYTES:
                break
        self.head = head[:_HEAD_BYTES]

    def pieces(self) -> Iterator[bytes]:
        """The content piece by piece, unpacked.

        Raises:
            collector.InvalidFileError: it cannot be read, or unpacks to more than a trace of its size can hold.
        """
        if not self._is_packed:
            yield from self._packed_pieces()
            return
        found = GzipPieces(self._packed_pieces(), self.num_bytes, self.name)
        is_empty = True
        for piece in found:
            is_empty &= not piece
            yield piece
        if found.damage:
            if is_empty:
                raise InvalidFileError(f"{self.name}: damaged gzip ({found.damage})")
            self.skipped["damaged gzip streams"] = 1
        elif found.is_cut:
            self.skipped["gzip streams cut off"] = 1

    def _packed_pieces(self) -> Iterator[bytes]:
        if self._whole is not None:
            yield self._whole
            return
        with _reading(self.name), self.name.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                yield piece

    @cached_property
    def data(self) -> bytes:
        """All of the content, unpacked. Content that is not packed is in memory once; joining pieces doubles it."""
        if self._is_packed:
            return b"".join(self.pieces())
        if self._whole is not None:
            return self._whole
        with _reading(self.name):
            return self.name.read_bytes()

    @property
    def plain_file(self) -> Path | None:
        """The file, if it holds the content unpacked and can be opened again; else None."""
        return None if self._is_packed or not self.name.is_file() else self.name

    @property
    def is_blank(self) -> bool:
        """Whether it contains only white space."""
        return not first_letter(self.head) and not first_letter(self.data)

    @cached_property
    def is_json(self) -> bool:
        """Whether it is text that begins JSON.

        A message may begin so: a device of 91 or 123 bytes begins with a line feed and a bracket.
        """
        if not begins_as_json(self.head) or self.head[:1] != b"\n":
            return begins_as_json(self.head)
        if _JSON_AFTER_LINE_FEED.match(self.head):
            return True
        from collector.stepstats.salvage import WireError, fields, foreign
        from collector.stepstats.wire import is_run_metadata

        if foreign(self.data, is_run_metadata(self.data)) is not None:
            return True
        try:
            first = next(fields(memoryview(self.data)))
            return not (first.whole and all(item.whole for item in fields(first.payload)))
        except WireError:
            return True

    @cached_property
    def has_events_if_json(self) -> bool:
        """Whether it has events of a Chrome trace, or is not JSON; read up to the first event."""
        from collector.formats.chrome_events import holds_events

        return not self.is_json or holds_events(self.pieces(), is_list=first_letter(self.head) == b"[")

    @cached_property
    def chrome_events(self) -> ChromeEvents:
        """The events of a Chrome trace.

        Raises:
            collector.InvalidFileError: the content is not a Chrome trace.
        """
        from collector.formats.chrome_events import ChromeEvents, NotATraceError

        try:
            found = ChromeEvents(self.pieces())
        except NotATraceError as error:
            raise self.error(f"{error} (character {error.position})") from error
        found.skipped.update(self.skipped)
        return found

    def error(self, why: str) -> InvalidFileError:
        """The error that the file cannot be read, with the formats that can be."""
        return InvalidFileError(f"{self.name}: {why}", self.readable)


def first_letter(head: bytes) -> bytes:
    """The first byte of a text that is not white space; ``b""``: there is none."""
    end = len(_SPACES.match(head)[0])  # type: ignore[index]
    return head[end : end + 1]


def begins_as_json(head: bytes) -> bool:
    """Whether a text begins with an object or a list."""
    return first_letter(head) in (b"{", b"[")


def content_of(name: Path, check_head: CheckHead, readable: str) -> FileContent:
    """Look at a file, or read a pipe; gzip is unpacked.

    Args:
        name: the path of the file.
        readable: the formats that can be read, for errors.
        check_head: called once with the first bytes, packed or not, and again with their unpacked form.

    Raises:
        collector.InvalidFileError: it cannot be read, or its first bytes or its size show that it is not a trace.
    """
    content = _opened(name, check_head, readable)
    if content.head.startswith(GZIP):
        num_bytes = content.num_bytes
        content.unpack_head()
        if len(content.head) == _HEAD_BYTES:
            check_head(content.head, name, num_bytes)
    return content


def _opened(name: Path, check_head: CheckHead, readable: str) -> FileContent:
    """The bytes of a file or a pipe, packed as they are."""
    with _reading(name), name.open("rb") as file:
        head = file.read(_HEAD_BYTES)
        if len(head) < _HEAD_BYTES:
            return FileContent(name, head, head, len(head), readable)
        about = os.fstat(file.fileno())
        if not head.startswith(GZIP):
            check_head(head, name, about.st_size)
        if about.st_size > MAX_BYTES:
            raise InvalidFileError(f"{name}: larger than {MAX_BYTES >> 30} GiB")
        if stat.S_ISREG(about.st_mode):
            return FileContent(name, head, None, about.st_size, readable)
        data = head + file.read(MAX_BYTES + 1 - len(head))  # a pipe does not say how much will come
    if len(data) > MAX_BYTES:
        raise InvalidFileError(f"{name}: larger than {MAX_BYTES >> 30} GiB")
    return FileContent(name, head, data, len(data), readable)


@contextlib.contextmanager
def _reading(name: Path) -> Iterator[None]:
    """Raise the system's errors about a file as `collector.InvalidFileError`."""
    try:
        yield
    except OSError as error:
        if error_of_handler(error) is not None:
            raise
        raise InvalidFileError(f"{name}: {error.strerror or error}") from error
