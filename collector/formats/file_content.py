"""The content of a file that may hold a trace: its bytes, unpacked, and what several formats look for in it."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import InvalidFileError
from collector.files.unpacking import GZIP, MAX_BYTES, unpack_gzip

if TYPE_CHECKING:
    from collector.formats.chrome_events import ChromeEvents

_HEAD_BYTES = 1 << 16
"""Read of a file before the rest, to see what it is."""
_SPACES = re.compile(rb"[\xef\xbb\xbf \t\r\n]*")
"""Bytes that may stand before the first letter of a text."""

CheckHead = Callable[[bytes, Path, int], None]
"""Refuses a file by its first bytes, its name and the number of its bytes, before all of it is read."""


@dataclass
class FileContent:
    """The content of a file, unpacked and parsed when it is asked for."""

    name: Path
    data: bytes
    """Unpacked."""
    suffix: str = ""
    """The last of the name, without ``.gz`` where the file was packed; in lower case."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Reason -> how many pieces were left out or mended on the way."""
    readable: str = ""
    """The formats that can be read, for errors."""

    @cached_property
    def is_json(self) -> bool:
        """Whether it is text that begins JSON.

        A message may begin so: a device of 91 or 123 bytes begins with a line feed and a bracket.
        """
        if not begins_as_json(self.data) or self.data[:1] != b"\n":
            return begins_as_json(self.data)
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
    def chrome_events(self) -> ChromeEvents:
        """The events of a Chrome trace.

        Raises:
            collector.InvalidFileError: it is none.
        """
        from collector.formats.chrome_events import NotATraceError, parse

        mended: Counter[str] = Counter()
        try:
            text = self.data.decode("utf-8")
        except UnicodeDecodeError as error:
            text = self.data.decode("utf-8", "replace")
            mended[f"bytes that are not UTF-8 (the first at byte {error.start}; mended)"] = text.count("\ufffd")
        try:
            found = parse(text)
        except NotATraceError as error:
            raise self.error(f"{error} (character {error.position})") from error
        if found.events and {"frame", "children"} <= found.events[0].keys() and "ph" not in found.events[0]:
            what = "a profile of Proton, which holds sums by call path but no times to draw"
            raise InvalidFileError(f"{self.name}: this is {what}", "Record a trace instead")
        found.skipped.update(mended)
        found.skipped.update(self.skipped)
        return found

    def error(self, why: str) -> InvalidFileError:
        """The error that the file cannot be read, with the formats that can be."""
        return InvalidFileError(f"{self.name}: {why}", self.readable)


def first_letter(head: bytes) -> bytes:
    """The first byte of a text that is no space; ``b""`` where there is none."""
    end = len(_SPACES.match(head)[0])  # type: ignore[index]
    return head[end : end + 1]


def begins_as_json(head: bytes) -> bool:
    """Whether a text begins with an object or a list."""
    return first_letter(head) in (b"{", b"[")


def content_of(name: Path, check_head: CheckHead, readable: str) -> FileContent:
    """Read a file or a pipe; gzip is unpacked.

    Args:
        name: of the file.
        readable: what can be read, for errors.
        check_head: called once with the first bytes, packed or not, and again with what they unpack to.

    Raises:
        collector.InvalidFileError: it cannot be read, or its first bytes or their number say that it is no trace.
    """
    data = bytes_of(name, check_head)
    content = FileContent(name, data, name.suffix.lower(), readable=readable)
    if data.startswith(GZIP):
        content.suffix = next((each.lower() for each in reversed(name.suffixes) if each != ".gz"), "")
        with contextlib.suppress(zlib.error):
            head = zlib.decompressobj(wbits=31).decompress(data, _HEAD_BYTES)
            if len(head) == _HEAD_BYTES:
                check_head(head, name, len(data))
        content.data, damage, is_cut = unpack_gzip(data, name)
        if damage:
            if not content.data:
                raise InvalidFileError(f"{name}: damaged gzip ({damage})")
            content.skipped["damaged gzip streams"] += 1
        elif is_cut:
            content.skipped["gzip streams cut off"] += 1
    return content


def bytes_of(name: Path, check_head: CheckHead) -> bytes:
    """The bytes of a file or a pipe, packed as they are; see `content_of`.

    Raises:
        collector.InvalidFileError: it cannot be read, or is larger than any trace.
    """
    try:
        with name.open("rb") as file:
            head = file.read(_HEAD_BYTES)
            if len(head) < _HEAD_BYTES:
                return head
            about = os.fstat(file.fileno())
            if not head.startswith(GZIP):
                check_head(head, name, about.st_size)
            if about.st_size > MAX_BYTES:
                raise InvalidFileError(f"{name}: larger than {MAX_BYTES >> 30} GiB")
            if stat.S_ISREG(about.st_mode):
                file.seek(0)
                return file.read()
            data = head + file.read(MAX_BYTES + 1 - len(head))  # a pipe does not say how much will come
    except OSError as error:
        raise InvalidFileError(f"{name}: {error.strerror or error}") from error
    if len(data) > MAX_BYTES:
        raise InvalidFileError(f"{name}: larger than {MAX_BYTES >> 30} GiB")
    return data
