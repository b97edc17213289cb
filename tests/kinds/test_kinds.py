"""The description of record kinds in `native/kinds/`: its generated files are current, and the decoder
reads the records of every version of CUPTI by it."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import re
import struct
import sys
from types import ModuleType
from typing import Any

import pytest

from collector import _native
from collector.recording.cupti_enums import MEMORY_KINDS
from collector.recording.schema import RECORDS, SCHEMA

if sys.version_info < (3, 11):
    pytest.skip("the description of kinds is read with tomllib", allow_module_level=True)

CUDA_VERSIONS = [12000, 12020, 12030, 12040, 12050, 12060, 12080, 12090, 13000, 13010, 13020, 13030, 13040, 13050]
GARBAGE = 0xA5
CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i32": "i", "i64": "q", "text": "Q", "pointer": "Q"}
BITS = {"u1": 8, "u2": 16, "u4": 32, "u8": 64, "i1": 8, "i4": 32, "i8": 64}
NAME = b"named_text"


@pytest.fixture(scope="module")
def described(load_script) -> ModuleType:
    return load_script("generate_kinds")


@pytest.fixture(scope="module")
def kinds(described) -> Any:
    return described.read()


def test_outputs_are_current(described, kinds, root) -> None:
    for name, make in described.OUTPUTS.items():
        assert (root / name).read_text() == make(kinds), f"{name} is not what `make kinds` writes"


def heap_text(text: bytes) -> int:
    """Text in memory that whoever reads it frees."""
    libc = ctypes.CDLL(None)
    libc.strdup.restype = ctypes.c_void_p
    return libc.strdup(text)


def record_bytes(described: ModuleType, record: Any, cuda: int, numbers: dict[str, int], address: int) -> bytes:
    """A record whose every field has a value of its own, and garbage where the version has no field."""
    size = [num_bytes for version, num_bytes in record.sizes.items() if described.cuda_number(version) <= cuda][-1]
    data = bytearray([GARBAGE]) * size
    struct.pack_into("<I", data, 0, record.number)
    for field in record.members.values():
        if described.cuda_number(field.since) > cuda:
            continue
        value = numbers[record.member(field)]
        if field.type == "text":
            value = address
            if field.freed_since and described.cuda_number(field.freed_since) <= cuda:
                value = heap_text(NAME)
        if field.type == "pointer":
            value = 0
        struct.pack_into("<" + CODES[field.type], data, field.at, value)
    return bytes(data)


def expected_row(described: ModuleType, kinds: Any, table: Any, record: Any, cuda: int, numbers: dict) -> dict:
    """What a row must hold, by the description alone; names as text."""
    row: dict[str, Any] = {}
    for name, column in sorted(table.columns.items(), key=lambda item: bool(item[1].when)):
        field = record.field_of(name)
        is_there = field is not None and described.cuda_number(field.since) <= cuda
        if column.when:
            ((other, entries),) = column.when.items()
            values = kinds.enums[table.columns[other].enum]["values"]
            is_there = is_there and row[other] in [values[entry] for entry in entries]
        if name in record.constants:
            row[name] = record.constants[name]
        elif field is not None and field.type == "text":
            row[name] = NAME.decode() if is_there else ""
        elif not is_there:
            row[name] = 0
        else:
            value = numbers[record.member(field)]
            value = {"flag": value & 1, "truth": int(value != 0)}.get(field.conversion, value)
            row[name] = min(value, 2 ** (BITS[column.type] - column.type.startswith("i")) - 1)
    return row


@pytest.mark.parametrize("cuda", CUDA_VERSIONS)
@pytest.mark.parametrize("name", [record.name for record in RECORDS])
def test_each_field_reaches_its_column_where_the_version_has_it(described, kinds, name, cuda) -> None:
    text = ctypes.create_string_buffer(NAME)
    ((table, record),) = [(t, r) for t in kinds.tables for r in t.records if r.name == name]
    conditional = {other: column.when[other] for column in table.columns.values() for other in column.when or ()}
    choices = [{}]
    for other in conditional:  # every entry of the enumeration that columns depend on
        entries = kinds.enums[table.columns[other].enum]["values"].values()
        choices = [{**choice, record.member(record.field_of(other)): e} for choice in choices for e in entries]
    for choice in choices:
        members = [record.member(field) for field in record.members.values()]
        numbers = {member: 3 + 2 * index for index, member in enumerate(members)} | choice
        data = record_bytes(described, record, cuda, numbers, ctypes.addressof(text))
        decoded = _native.decode_buffer(data, cuda)
        assert decoded["counters"] == {"records_decoded": 1, "records_unknown_kind": 0, "bytes_unparsed": 0}
        found = {column: int(values[0]) for column, values in decoded["tables"][table.name].items()}
        if "name_id" in found:
            found["name_id"] = decoded["strings"][found["name_id"]]
        expected = expected_row(described, kinds, table, record, cuda, numbers)
        for column in table.columns.values():
            if column.looked_up:
                found[column.name] = expected[column.name]
        assert found == expected


BLOCK_BYTES = 64 << 20
"""More than glibc ever takes from its heap: such a block is mapped by itself, and unmapped when it is freed."""


def is_mapped(address: int) -> bool:
    """Whether the memory at an address is mapped."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.msync.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    page = address & -mmap.PAGESIZE
    return libc.msync(page, mmap.PAGESIZE, 1) == 0 or ctypes.get_errno() != errno.ENOMEM


@pytest.mark.skipif("COLLECTOR_SANITIZED" in os.environ, reason="a sanitizer's heap keeps what is freed")
@pytest.mark.parametrize("cuda", [12030, 12040, 13050])
def test_the_data_of_an_overhead_is_freed_where_cupti_documents_that_it_is_the_clients(described, kinds, cuda) -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    (record,) = [record for table in kinds.tables for record in table.records if record.name == "overhead"]
    numbers = {record.member(field): 1 for field in record.members.values()}
    freed = []
    for kind in kinds.enums["OverheadKind"]["values"].values():
        block = libc.malloc(BLOCK_BYTES)
        middle = block + BLOCK_BYTES // 2  # other threads may map something where the block ended, but not so much
        assert is_mapped(middle)
        data = bytearray(record_bytes(described, record, cuda, numbers | {"overheadKind": kind}, 0))
        if cuda >= 12040:
            struct.pack_into("<Q", data, 48, block)
        _native.decode_buffer(bytes(data), cuda)
        if is_mapped(middle):
            libc.free(block)
            assert not is_mapped(middle)
        else:
            freed.append(kind)
    assert freed == ([6 << 16] if cuda >= 12040 else [])


def test_the_schema_has_every_table_and_column(kinds) -> None:
    assert {table.name: {c.name: c.type for c in table.columns.values()} for table in kinds.tables} == SCHEMA


TOYS = """
table = "toys"
number = 99
row = "Toy"
doc = "Toys."
added = true
order = ["start_ns"]

[columns]
start_ns = {}
toy_type = { type = "u1", field = 901, enum = "ToyType", doc = "Kind of the toy." }
toy_address = { type = "u8", field = 902, doc = "Address of the toy." }
memory_kind = {}
name_id = {}

[enums.ToyType]
type = "u32"
prefix = ""
values = { Unknown = 0, Ball = 1, Doll = 7 }
texts = { Unknown = "Toy" }
unlisted = "Unknown"
table = "TOY_TYPES"
doc = "Names of toys."

[shown]
device = "toys"
name = "toy_type"
arguments = [
  { key = "address", column = "toy_address", hexadecimal = true, always = true },
  { key = "memory", column = "memory_kind" },
  { key = "called", column = "name_id" },
]
"""
"""The description of a kind of activity, as docs/architecture.md says that it is added."""


def described_with(described: ModuleType, root: Any, folder: Any, toys: str) -> Any:
    """The description with one kind more."""
    for path in (root / "native/kinds").glob("*.toml"):
        (folder / path.name).write_text(path.read_text())
    (folder / "toys.toml").write_text(toys)
    return described.read(folder)


def test_a_description_alone_determines_how_its_rows_are_drawn(described, root, tmp_path, monkeypatch) -> None:
    kinds = described_with(described, root, tmp_path, TOYS)
    enums, shown = ModuleType("enums"), {}
    exec(described.enums_module(kinds), vars(enums))
    monkeypatch.setattr("collector.recording.cupti_enums", enums)
    exec(described.shown_tables(kinds), shown)
    assert shown["SIDE_TABLES"]["toys"] == ("toys", "toy_type", {0: "Toy", 1: "Ball", 7: "Doll"})
    assert list(shown["SIDE_TABLES"]) == sorted(
        shown["SIDE_TABLES"], key=lambda name: shown["SIDE_TABLES"][name].device
    )
    assert shown["TABLE_ARGUMENTS"]["toys"] == (
        ("address", "toy_address", "Hexadecimal", True, {}),
        ("memory", "memory_kind", "Kind", False, dict(enumerate(MEMORY_KINDS))),
        ("called", "name_id", "Text", False, {}),
    )
    header = described.activities(kinds).replace("\n     ", " ")
    side = 'kToy, "toys", "/cpu:0/toys", "toy_type", ActivityField::kToyType, toy_type_text, false, false}'
    assert side in header
    assert (
        '{TableKind::kToy, "memory", ActivityField::kMemoryKind, ArgumentForm::kKind, false, memory_kind_text}'
        in header
    )


@pytest.mark.parametrize(
    ("right", "wrong", "complaint"),
    [
        ('column = "toy_address"', 'column = "toy_adress"', "no columns to show: {'toy_adress'}"),
        ('device = "toys"', 'device = "Toys/1"', "no name of a device"),
        ('name = "toy_type"', 'name = "toy_address"', "toys.toy_address has no texts"),
        ('unlisted = "Unknown"', "", "toys.toy_type: kinds that name nodes"),
        ('unlisted = "Unknown"', 'unlisted = "Ball"', "toys.toy_type: kinds that name nodes"),
        ('column = "memory_kind"', 'column = "start_ns"', "negative numbers"),
        ("added = true", "added = true\nis_activity = false", "no activities"),
    ],
)
def test_a_way_of_drawing_that_cannot_be_is_refused(described, root, tmp_path, right, wrong, complaint) -> None:
    assert right in TOYS
    with pytest.raises(ValueError, match=re.escape(complaint)):
        described_with(described, root, tmp_path, TOYS.replace(right, wrong))


def test_there_is_room_for_the_column_with_the_largest_number(described, root, tmp_path) -> None:
    for path in (root / "native/kinds").glob("*.toml"):
        (tmp_path / path.name).write_text(path.read_text().replace("field = 74,", "field = 1234,"))
    assert "kNumActivityFields = 1235;" in described.activities(described.read(tmp_path))


@pytest.mark.parametrize(
    ("right", "wrong", "complaint"),
    [
        ("at = 8, type", "at = 6, type", "cannot lie at 6"),
        ('column = "external_id"', 'column = "outer_id"', "fills no column of external_correlations"),
        ('"12.0" = 24', '"12.0" = 16', "shorter than its fields"),
        ("field = 42", "field = 41", "two columns have one field number"),
        ("number = 5", "number = 6", "two tables have one number"),
    ],
)
def test_a_description_that_contradicts_itself_is_refused(described, root, tmp_path, right, wrong, complaint) -> None:
    for path in (root / "native/kinds").glob("*.toml"):
        text = path.read_text()
        if path.stem == "external_correlations":
            assert right in text
            text = text.replace(right, wrong)
        (tmp_path / path.name).write_text(text)
    with pytest.raises(ValueError, match=complaint):
        described.read(tmp_path)
