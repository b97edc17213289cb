"""Recordings in files: ``.gpurec``.

A zip archive of ``meta.json`` and one ``TABLE/COLUMN.npy`` per column, readable by any program that reads zip and npy.
``meta.json`` holds ``format`` (always "collector recording"), ``version``, ``columns``, the ledger's ``launch_figures``
and the capture's strings, counters, clock, environment, and the details of annotations; of a part of a recording, which
counts the rows that its whole set apart but does not have them, also their numbers by table (``rows_apart``: invalid,
early, late). ``columns`` has the packing of
each column of each table (`collector.recording.column_packing.Packing`); a column of one value has no file. Columns are
read by name: columns that the file lacks are zeros, unknown columns are ignored, and only a newer version is refused.
The tables contain all rows, including those that the recording sets apart; reading the file separates them again. Equal
recordings make equal bytes.

``step`` in ``meta.json`` has what is stated of the step beside the recording: ``rank``, ``world_size``, ``unread``
(missing or repaired part of the file that it was read from -> number), and ``device_prefix``, which stands before the
names of devices in StepStats.

``arguments`` in ``meta.json`` has for each table the names and texts of what the file of another program said of rows
beyond the columns; ``arguments/TABLE/NUMBER.rows.npy`` and ``.codes.npy`` say which rows have which of these texts.

Files of version 1 hold the values themselves, and the names of each table's columns as ``tables``.
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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.errors import InvalidFileError
from collector.files.atomic_files import atomic_write, expanded
from collector.files.unpacking import check_columns_size
from collector.recording.column_packing import Constants, Packing, pack, unpack
from collector.recording.journal import load_journal
from collector.recording.journal_frames import MAGIC as JOURNAL_MAGIC
from collector.recording.journal_segments import load_segments
from collector.recording.launch_figures import LAUNCH_FIGURES
from collector.recording.recording import Recording
from collector.recording.row_arguments import ArgumentColumn, RowArguments
from collector.recording.schema import LATER_COLUMNS, LATER_TABLES, SCHEMA
from collector.recording.step_origin import NO_ORIGIN, StepOrigin
from collector.text.json_64_bit import json_64_bit

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from collector.recording.column_packing import Values

    _TableColumns = dict[str, dict[str, Values]]

FORMAT = "collector recording"
VERSION = 2
_COMPRESSION_LEVEL = 1
_WORTH_DEFLATING = 0.8
"""Bytes that deflate to more than this share are stored unchanged."""
_SAMPLE_BYTES = 1 << 18
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
_LARGEST_FIGURE = (1 << 63) - 1
_META = "meta.json"
"""The member with everything but the columns."""
_META_KEYS = ("strings", "counters", "clock", "environment", "details")
_OPTIONAL_KEYS = ("rows_apart",)


class RecordedStep(NamedTuple):
    """The content of a file: a recording, and the facts about its step that are not part of the recording."""

    recording: Recording
    device_prefix: str
    """The prefix of device names in StepStats: ``/job:worker/replica:0/task:3``, or empty."""
    origin: StepOrigin


def save_recording(
    recording: Recording, path: str | os.PathLike[str], device_prefix: str = "", origin: StepOrigin = NO_ORIGIN
) -> None:
    """Write ``recording`` to ``path`` completely or not at all.

    Args:
        recording: the recording.
        path: the file.
        device_prefix: the prefix of the step's device names in StepStats.
        origin: the rank of the step and the missing parts of its file.

    Raises:
        collector.OutputError: the file cannot be written.
    """
    capture: dict[str, Any] = dict(recording.to_capture())
    packed = {
        table: {column: pack(column, columns) for column in columns} for table, columns in capture["tables"].items()
    }
    meta = {
        "format": FORMAT,
        "version": VERSION,
        "columns": {
            table: {column: each.packing.as_dict() for column, each in columns.items()}
            for table, columns in packed.items()
        },
        **{key: capture[key] for key in _META_KEYS},
        "launch_figures": capture.get("launch_figures") or recording.launch_figures(),
        **{key: capture[key] for key in _OPTIONAL_KEYS if key in capture},
    }
    if step := origin.as_dict() | ({"device_prefix": device_prefix} if device_prefix else {}):
        meta["step"] = step
    if arguments := recording.arguments.tables:
        meta["arguments"] = {
            table: [{"name": name, "texts": column.texts} for name, column in columns.items()]
            for table, columns in arguments.items()
        }
    with atomic_write(path) as file, zipfile.ZipFile(file, "w") as archive:
        _add(archive, _META, json.dumps(meta, sort_keys=True, default=str).encode())
        for table, columns in packed.items():
            for column, each in columns.items():
                # The jumps come first, so that a cut file that has the numbers has the jumps, too.
                _add_array(archive, f"{table}/{column}.jumps.npy", each.jumps)
                _add_array(archive, f"{table}/{column}.npy", each.numbers)
        for table, arguments_of in arguments.items():
            for number, column_of in enumerate(arguments_of.values()):
                _add_array(archive, f"arguments/{table}/{number}.rows.npy", column_of.rows)
                _add_array(archive, f"arguments/{table}/{number}.codes.npy", column_of.codes)


def load_recording(path: str | os.PathLike[str], data: bytes | None = None) -> Recording:
    """Read a recording from ``path``, or from ``data`` if its bytes were read already; journals are accepted too.

    Raises:
        collector.InvalidFileError: the file is missing, not a recording, of a newer version, or damaged.
    """
    return load_recorded_step(path, data).recording


def load_recorded_step(path: str | os.PathLike[str], data: bytes | None = None) -> RecordedStep:
    """Like `load_recording`, with the device prefix and the origin of the step, which a journal does not state."""
    name = expanded(path)
    if data is None:
        try:
            if name.is_dir():
                return RecordedStep(load_segments(name), "", NO_ORIGIN)
            data = name.read_bytes()
        except OSError as error:
            raise InvalidFileError(f"{name}: {error.strerror or error}") from error
    if data.startswith(JOURNAL_MAGIC):
        return RecordedStep(load_journal(name, data), "", NO_ORIGIN)
    try:
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                check_columns_size(sum(member.file_size for member in archive.infolist()), name)
                names = set(archive.namelist())
                if names and not any(member == _META or member.endswith(".npy") for member in names):
                    what = "this is a zip archive that holds no recording"
                    raise InvalidFileError(f"{name}: {what}", "Unpack it, and give a file in it")
                content = _Unpacker(archive, data).content
                return _of_members(_Members(name, names, content, is_cut=False))
        except zipfile.BadZipFile as error:
            return _of_cut_file(name, data, error)
    except _DAMAGE as error:
        raise InvalidFileError(f"{name}: a damaged recording ({' '.join(str(error).split())})") from error


def _add_array(archive: zipfile.ZipFile, name: str, values: Values | None) -> None:
    if values is None:
        return
    npy = io.BytesIO()
    np.save(npy, values, allow_pickle=False)
    _add(archive, name, npy.getvalue())


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name)  # the default date is fixed, so equal recordings make equal files
    # Content that hardly shrinks is read faster if it is stored unchanged.
    sample = content[:_SAMPLE_BYTES]
    deflates = len(zlib.compress(sample, _COMPRESSION_LEVEL)) < _WORTH_DEFLATING * len(sample)
    entry.compress_type = zipfile.ZIP_DEFLATED if deflates else zipfile.ZIP_STORED
    archive.writestr(entry, content, compresslevel=_COMPRESSION_LEVEL)


class _Unpacker:
    """Unpacks an archive's members, and equal members only once: files of version 1 have many columns of zeros."""

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


class _Members(NamedTuple):
    """The members of a file, all of them or those before its cut."""

    path: Path
    names: set[str]
    content: Callable[[str], bytes]
    is_cut: bool

    def lacks(self, table: str, columns: list[str]) -> bool:
        """Whether one of a table's columns is missing because the file is cut off."""
        return self.is_cut and any(f"{table}/{column}.npy" not in self.names for column in columns)


def _of_members(members: _Members) -> RecordedStep:
    """The recording in an archive's members; tables of which a cut file lacks columns are empty and counted."""
    meta = json_64_bit(members.content(_META))
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise InvalidFileError(f"{members.path}: not a recording")
    if not (isinstance(meta.get("version"), int) and 1 <= meta["version"] <= VERSION):
        raise InvalidFileError(
            f"{members.path}: a recording of version {meta.get('version')}, this program reads version {VERSION}",
            "Upgrade cupti-collector",
        )
    tables, num_lost = _plain_tables(members, meta) if meta["version"] == 1 else _packed_tables(members, meta)
    meta.setdefault("details", [])  # files of older versions have none
    _check_types(meta)
    capture = {"tables": tables, **{key: meta[key] for key in _META_KEYS}}
    capture |= {key: meta[key] for key in _OPTIONAL_KEYS if key in meta}
    if num_lost:
        meta["counters"]["tables_cut_off"] = num_lost
    elif "launch_figures" in meta:
        capture["launch_figures"] = {name: meta["launch_figures"].get(name, 0) for name in LAUNCH_FIGURES}
    if arguments := _arguments(members, meta):
        capture["arguments"] = RowArguments(lambda: arguments)
    stated = meta.get("step", {})
    recording = Recording.from_capture(capture)  # type: ignore[arg-type]
    return RecordedStep(recording, str(stated.get("device_prefix", "")), StepOrigin.from_dict(stated))


def _check_types(meta: dict[str, Any]) -> None:
    """Raise ValueError for values of wrong types that `collector.recording.recording.Recording` does not check."""
    if not all(type(text) is str for text in meta["strings"]):
        raise ValueError("one of the strings is not text")
    for key in ("counters", "clock", "launch_figures"):
        for name, figure in meta.get(key, {}).items():
            if type(figure) is not int or figure > _LARGEST_FIGURE:
                raise ValueError(f"{key}: {name} is not a possible whole number")


def _arguments(members: _Members, meta: dict[str, Any]) -> dict[str, dict[str, ArgumentColumn]]:
    """The arguments of rows, without those that the file lacks because it is cut off."""
    tables: dict[str, dict[str, ArgumentColumn]] = {}
    for table, columns in meta.get("arguments", {}).items():
        for number, column in enumerate(columns):
            files = [f"arguments/{table}/{number}.{part}.npy" for part in ("rows", "codes")]
            if members.is_cut and not members.names.issuperset(files):
                continue
            rows, codes = (_array(members.content(file)) for file in files)
            texts = [str(each) for each in column["texts"]]
            if len(rows) != len(codes) or (len(codes) and int(codes.max()) >= len(texts)):
                raise ValueError(f"the argument {column['name']!r} of table {table} does not fit together")
            tables.setdefault(str(table), {})[str(column["name"])] = ArgumentColumn(rows, codes, texts)
    return tables


def _packed_tables(members: _Members, meta: dict[str, Any]) -> tuple[_TableColumns, int]:
    """The columns of each table, and how many tables are lost."""
    packings = {
        table: {column: Packing(**fields) for column, fields in columns.items()}
        for table, columns in meta["columns"].items()
    }
    for table, of_table in packings.items():
        if len({packing.rows for packing in of_table.values()}) > 1:
            raise ValueError(f"the columns of table {table} have different numbers of rows")
    num_bytes = sum(packing.num_bytes for columns in packings.values() for packing in columns.values())
    check_columns_size(num_bytes, members.path)
    tables: _TableColumns = {}
    constants = Constants()
    lost = 0
    for table, schema in SCHEMA.items():
        packed = {column: packing for column, packing in packings.get(table, {}).items() if column in schema}
        if members.lacks(table, [column for column, packing in packed.items() if packing.value is None]):
            tables[table] = {column: np.zeros(0, dtype) for column, dtype in schema.items()}
            lost += 1
            continue
        columns = tables[table] = {}
        for column in sorted(packed, key=lambda name: bool(packed[name].column)):  # first the columns others refer to
            packing = packed[column]
            if packing.value is not None:
                columns[column] = constants.column(packing)
                continue
            jumps = _array(members.content(f"{table}/{column}.jumps.npy")) if packing.jumps else None
            columns[column] = unpack(packing, _array(members.content(f"{table}/{column}.npy")), jumps, columns)
    return tables, lost


def _plain_tables(members: _Members, meta: dict[str, Any]) -> tuple[_TableColumns, int]:
    """The columns of each table of a file of version 1, and how many tables are lost."""
    written = _columns_written(meta, members.names)
    tables: _TableColumns = {}
    lost = 0
    for table, schema in SCHEMA.items():
        if members.lacks(table, written.get(table, [])):
            tables[table] = {column: np.zeros(0, dtype) for column, dtype in schema.items()}
            lost += 1
            continue
        files = {column: f"{table}/{column}.npy" for column in schema}
        tables[table] = {
            column: _array(members.content(file))
            for column, file in files.items()
            if file in members.names or column in written.get(table, ())
        }
    return tables, lost


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


def _of_cut_file(name: Path, data: bytes, why: zipfile.BadZipFile) -> RecordedStep:
    """The complete members of an archive without its directory, which is at the end of the file."""
    members = _whole_members(name, data)
    if _META not in members:
        raise InvalidFileError(f"{name}: not a recording, or cut short ({why})") from why
    return _of_members(_Members(name, set(members), members.__getitem__, is_cut=True))


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
        check_columns_size(unpacked, name)
        content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, size + 1) if method else packed
        if len(content) != size or zlib.crc32(content) != checksum:
            break
        members[data[at + _MEMBER_HEAD.size :][:name_size].decode("utf-8", "replace")] = content
        at = start + packed_size
    return members


def _array(npy: bytes) -> Values:
    """The array in an npy file; a contiguous one-dimensional array of numbers is not copied."""
    if npy.startswith(_NPY):
        begin = _NPY_HEAD.size + _NPY_HEAD.unpack_from(npy)[1]
        shape, dtype = _shape_and_type(npy[:begin])
        if len(shape) == 1 and not dtype.hasobject and len(npy) - begin == shape[0] * dtype.itemsize:
            return np.frombuffer(npy, dtype, offset=begin)
    values: Values = np.lib.format.read_array(io.BytesIO(npy), allow_pickle=False)
    return values


@lru_cache(maxsize=256)
def _shape_and_type(head: bytes) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Parse the header of an npy file. Cached, because few are different and numpy parses each as Python code."""
    file = io.BytesIO(head)
    np.lib.format.read_magic(file)
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    return shape, dtype
