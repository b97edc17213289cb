"""Recordings in files: ``.gpurec``.

A zip archive of ``meta.json`` and one ``TABLE/COLUMN.npy`` per column, readable by any program that reads zip and npy.
``meta.json`` holds ``format`` (always "collector recording"), ``version``, the columns of each table, and the capture's
strings, counters, clock, environment, and the details of annotations. Columns are read by name: columns that the file
lacks are zeros, unknown columns are ignored, and only a newer version is refused. The tables contain all rows,
including those that the recording sets apart; reading the file separates them again. Equal recordings make equal bytes.
"""

from __future__ import annotations

import io
import json
import struct
import tokenize
import zipfile
import zlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.errors import InvalidFileError
from collector.files.atomic_files import atomic_write, expanded
from collector.files.unpacking import check_size
from collector.recording import journal
from collector.recording.recording import Recording
from collector.recording.schema import LATER_COLUMNS, LATER_TABLES, SCHEMA

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

FORMAT = "collector recording"
VERSION = 1
_COMPRESSION_LEVEL = 1
_DAMAGE = (
    zlib.error,
    struct.error,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    EOFError,
    RuntimeError,
    MemoryError,
    SyntaxError,
    tokenize.TokenError,
)
"""The exceptions that zip, npy and json raise for damaged bytes."""
_MEMBER = b"PK\x03\x04"
_MEMBER_HEAD = struct.Struct("<8xH4xIIIHH")
"""The header of a zip archive's member: method, checksum, packed and whole size, sizes of name and extra field."""
_NPY = b"\x93NUMPY\1\0"
_NPY_HEAD = struct.Struct("<8sH")
"""The signature of an npy file of version 1, followed by the size of the rest of its header."""
_META_KEYS = ("strings", "counters", "clock", "environment", "details")


def save_recording(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write ``recording`` to ``path`` completely or not at all.

    Raises:
        collector.OutputError: the file cannot be written.
    """
    capture: dict[str, Any] = dict(recording.to_capture())
    meta = {
        "format": FORMAT,
        "version": VERSION,
        "tables": {table: list(columns) for table, columns in capture["tables"].items()},
        **{key: capture[key] for key in _META_KEYS},
    }
    with atomic_write(path) as file, zipfile.ZipFile(file, "w") as archive:
        _add(archive, "meta.json", json.dumps(meta, sort_keys=True, default=str).encode())
        for table, columns in capture["tables"].items():
            for column, values in columns.items():
                npy = io.BytesIO()
                np.save(npy, values, allow_pickle=False)
                _add(archive, f"{table}/{column}.npy", npy.getvalue())


def load_recording(path: str | os.PathLike[str], data: bytes | None = None) -> Recording:
    """Read a recording from ``path``, or from ``data`` if its bytes were read already; journals are accepted too.

    Raises:
        collector.InvalidFileError: the file is missing, not a recording, of a newer version, or damaged.
    """
    name = expanded(path)
    if data is None:
        try:
            data = name.read_bytes()
        except OSError as error:
            raise InvalidFileError(f"{name}: {error.strerror or error}") from error
    if data.startswith(journal.MAGIC):
        return journal.load_journal(name, data)
    try:
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                check_size(sum(member.file_size for member in archive.infolist()), len(data), name)
                return _of_members(name, set(archive.namelist()), _Unpacker(archive, data).content)
        except zipfile.BadZipFile as error:
            return _of_cut_file(name, data, error)
    except _DAMAGE as error:
        raise InvalidFileError(f"{name}: a damaged recording ({' '.join(str(error).split())})") from error


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name)  # the default date is fixed, so equal recordings make equal files
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content, compresslevel=_COMPRESSION_LEVEL)


class _Unpacker:
    """Unpacks an archive's members, and equal members only once: a table has many columns of zeros."""

    def __init__(self, archive: zipfile.ZipFile, data: bytes) -> None:
        self._archive = archive
        self._data = data
        self._unpacked: dict[tuple[bytes, int, int], bytes] = {}

    def content(self, name: str) -> bytes:
        """A member's content; members with equal bytes share one object."""
        member = self._archive.getinfo(name)
        head = self._data[member.header_offset : member.header_offset + _MEMBER_HEAD.size]
        if member.compress_type != zipfile.ZIP_DEFLATED or member.flag_bits & 1 or not head.startswith(_MEMBER):
            return self._archive.read(member)
        *_, name_size, extra_size = _MEMBER_HEAD.unpack(head)
        start = member.header_offset + _MEMBER_HEAD.size + name_size + extra_size
        packed = self._data[start : start + member.compress_size]
        key = packed, member.file_size, member.CRC
        if key not in self._unpacked:
            content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, member.file_size + 1)
            is_whole = len(content) == member.file_size and zlib.crc32(content) == member.CRC
            self._unpacked[key] = content if is_whole else self._archive.read(member)  # raises the error
        return self._unpacked[key]


def _of_members(name: Path, files: set[str], content: Callable[[str], bytes], tables_cut_off: int = 0) -> Recording:
    """The recording in an archive's members. Incomplete tables are empty, and their number is counted."""
    meta = json.loads(content("meta.json"))
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise InvalidFileError(f"{name}: not a recording")
    if not (isinstance(meta.get("version"), int) and 1 <= meta["version"] <= VERSION):
        raise InvalidFileError(
            f"{name}: a recording of version {meta.get('version')}, this program reads version {VERSION}",
            "Upgrade cupti-collector",
        )
    written = _columns_written(meta, files)
    tables = {
        table: {
            column: _array(content(f"{table}/{column}.npy"))
            for column in columns
            if f"{table}/{column}.npy" in files or column in written.get(table, ())
        }
        for table, columns in SCHEMA.items()
    }
    meta.setdefault("details", [])  # files of older versions have none
    if tables_cut_off:
        meta["counters"]["tables_cut_off"] = tables_cut_off
    return Recording.from_capture({"tables": tables, **{key: meta[key] for key in _META_KEYS}})  # type: ignore[typeddict-item]


def _columns_written(meta: dict[str, Any], files: set[str]) -> dict[str, list[str]]:
    """Table -> the columns that were written into the file, whether or not they are still in it."""
    if "tables" in meta:
        return {str(table): list(columns) for table, columns in meta["tables"].items()}
    # The first version has no list of columns: columns added later may have been written.
    begun = {name.partition("/")[0] for name in files}
    return {
        table: [column for column in columns if (table, column) not in LATER_COLUMNS]
        for table, columns in SCHEMA.items()
        if table in begun or table not in LATER_TABLES
    }


def _of_cut_file(name: Path, data: bytes, why: zipfile.BadZipFile) -> Recording:
    """The complete members of an archive without its directory, which is at the end of the file."""
    members = _whole_members(name, data)
    if "meta.json" not in members:
        raise InvalidFileError(f"{name}: not a recording, or cut short ({why})") from why
    lost = 0
    for table, columns in _columns_written(json.loads(members["meta.json"]), set(members)).items():
        if table not in SCHEMA or all(f"{table}/{column}.npy" in members for column in columns):
            continue
        lost += 1
        for column, dtype in SCHEMA[table].items():
            npy = io.BytesIO()
            np.save(npy, np.zeros(0, dtype))
            members[f"{table}/{column}.npy"] = npy.getvalue()
    return _of_members(name, set(members), members.__getitem__, lost)


def _whole_members(name: Path, data: bytes) -> dict[str, bytes]:
    """The members of a zip archive, read from its start up to the first incomplete one."""
    members: dict[str, bytes] = {}
    at = unpacked = 0
    while data.startswith(_MEMBER, at) and len(data) >= at + _MEMBER_HEAD.size:
        method, checksum, packed_size, size, name_size, extra_size = _MEMBER_HEAD.unpack_from(data, at)
        start = at + _MEMBER_HEAD.size + name_size + extra_size
        packed = data[start : start + packed_size]
        if len(packed) < packed_size:
            break
        unpacked += size
        check_size(unpacked, len(data), name)
        content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, size + 1) if method else packed
        if len(content) != size or zlib.crc32(content) != checksum:
            break
        members[data[at + _MEMBER_HEAD.size :][:name_size].decode("utf-8", "replace")] = content
        at = start + packed_size
    return members


def _array(npy: bytes) -> np.ndarray[Any, np.dtype[Any]]:
    """The array in an npy file; a contiguous one-dimensional array of numbers is not copied."""
    if npy.startswith(_NPY):
        begin = _NPY_HEAD.size + _NPY_HEAD.unpack_from(npy)[1]
        shape, dtype = _shape_and_type(npy[:begin])
        if len(shape) == 1 and not dtype.hasobject and len(npy) - begin == shape[0] * dtype.itemsize:
            return np.frombuffer(npy, dtype, offset=begin)
    values: np.ndarray[Any, np.dtype[Any]] = np.lib.format.read_array(io.BytesIO(npy), allow_pickle=False)
    return values


@lru_cache(maxsize=256)
def _shape_and_type(head: bytes) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Parse the header of an npy file. Cached, because few are different and numpy parses each as Python code."""
    file = io.BytesIO(head)
    np.lib.format.read_magic(file)
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    return shape, dtype
