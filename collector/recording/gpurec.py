"""Recordings in files: ``.gpurec``.

A zip archive of ``meta.json`` and one ``TABLE/COLUMN.npy`` per column, so that anything that reads zip and npy can read
it. ``meta.json`` holds ``format`` (always "collector recording"), ``version``, the columns of each table, and the
capture's strings, counters, clock, environment, and the details of annotations. Columns are read by name: those that
the file lacks are zeros, those that are not known are left out, and only a newer version is refused. All rows are in
the tables, also those that the recording sets apart: reading the file sorts them out again. Equal recordings make equal
bytes.
"""

from __future__ import annotations

import io
import json
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

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
"""The head of a member of a zip archive: method, checksum, packed and whole size, sizes of name and extra field."""
_META_KEYS = ("strings", "counters", "clock", "environment", "details")


def save_recording(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write ``recording`` to ``path``, whole or not at all.

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
    """Read a recording from ``path``, or from ``data`` where its bytes are at hand already; a journal is one too.

    Raises:
        collector.InvalidFileError: it is not there, not a recording, of a newer version, or damaged.
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
                return _of_members(name, set(archive.namelist()), archive.open)
        except zipfile.BadZipFile as error:
            return _of_cut_file(name, data, error)
    except _DAMAGE as error:
        raise InvalidFileError(f"{name}: a damaged recording ({' '.join(str(error).split())})") from error


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name)  # its fixed date keeps equal recordings equal files
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content, compresslevel=_COMPRESSION_LEVEL)


def _of_members(
    name: Path, files: set[str], open_member: Callable[[str], IO[bytes]], tables_cut_off: int = 0
) -> Recording:
    """The recording in an archive's members, with a count of the tables that were not whole and are empty here."""
    with open_member("meta.json") as file:
        meta = json.load(file)
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
            column: _read(open_member, f"{table}/{column}.npy")
            for column in columns
            if f"{table}/{column}.npy" in files or column in written.get(table, ())
        }
        for table, columns in SCHEMA.items()
    }
    meta.setdefault("details", [])  # files of older programs have none
    if tables_cut_off:
        meta["counters"]["tables_cut_off"] = tables_cut_off
    return Recording.from_capture({"tables": tables, **{key: meta[key] for key in _META_KEYS}})  # type: ignore[typeddict-item]


def _columns_written(meta: dict[str, Any], files: set[str]) -> dict[str, list[str]]:
    """Table -> the columns that were written into the file, be they there or not."""
    if "tables" in meta:
        return {str(table): list(columns) for table, columns in meta["tables"].items()}
    # The first files do not tell: what came later may have been written.
    begun = {name.partition("/")[0] for name in files}
    return {
        table: [column for column in columns if (table, column) not in LATER_COLUMNS]
        for table, columns in SCHEMA.items()
        if table in begun or table not in LATER_TABLES
    }


def _of_cut_file(name: Path, data: bytes, why: zipfile.BadZipFile) -> Recording:
    """The complete members of an archive that lacks its directory, which is at the end of the file."""
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
    return _of_members(name, set(members), lambda member: io.BytesIO(members[member]), lost)


def _whole_members(name: Path, data: bytes) -> dict[str, bytes]:
    """The members of a zip archive, read from its start up to the first that is not whole."""
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


def _read(open_member: Callable[[str], IO[bytes]], name: str) -> np.ndarray[Any, np.dtype[Any]]:
    with open_member(name) as file:
        values: np.ndarray[Any, np.dtype[Any]] = np.lib.format.read_array(file, allow_pickle=False)
    return values
