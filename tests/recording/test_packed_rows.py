"""Packed rows of journals: the native writer and the reader in Python are twins."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st
from properties import examples

from collector import _native
from collector.recording import journal_frames, packed_rows
from collector.recording.annotation_numbers import ANNOTATION_BITS
from collector.recording.packed_rows import unpack_rows

FORMAT = Path(__file__).resolve().parents[2] / "native/capture/journal_format.h"
TYPES = ["<u1", "<i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8"]


@st.composite
def tables(draw):
    """A layout and rows of it: columns of constants, steps, and any values."""
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=5))
    count = draw(st.integers(1, 40))
    layout = np.dtype([(f"c{number}", kind) for number, kind in enumerate(types)], align=draw(st.booleans()))
    rows = np.zeros(count, layout)
    for name in layout.names:
        limits = np.iinfo(layout[name])
        number = st.integers(int(limits.min), int(limits.max))
        shape = draw(st.sampled_from(["constant", "steps", "any"]))
        if shape == "constant":
            rows[name] = draw(number)
        elif shape == "any":
            rows[name] = draw(st.lists(number, min_size=count, max_size=count))
        else:
            steps = np.array(draw(st.lists(st.integers(0, 300), min_size=count, max_size=count)), "u8")
            values = np.cumsum(steps) + np.uint64(draw(number) & ((1 << 64) - 1))
            rows[name] = values.astype(f"u{layout[name].itemsize}").view(layout[name])
    return layout, rows


def packed(layout: np.dtype, rows: np.ndarray) -> bytes | None:
    columns = [(layout.fields[name][1], layout[name].itemsize, layout[name].kind == "i") for name in layout.names]
    return _native.pack_rows(rows.tobytes(), layout.itemsize, columns)


@pytest.mark.medium
@settings(max_examples=examples(400), deadline=None)
@given(table=tables())
def test_what_is_packed_is_unpacked(table):
    layout, rows = table
    data = packed(layout, rows)
    if data is None:
        return
    assert len(data) < len(rows) * layout.itemsize
    found = unpack_rows(b"head" + data, 4, 4 + len(data), layout, len(rows))
    assert list(found) == list(layout.names)
    for name in layout.names:
        np.testing.assert_array_equal(found[name], rows[name])
        assert found[name].dtype == layout[name]


@pytest.mark.medium
@settings(max_examples=examples(300), deadline=None)
@given(table=tables(), length=st.integers(0, 200), at=st.integers(0, 500), value=st.binary(max_size=3))
def test_damaged_packed_rows_are_columns_or_a_value_error(table, length, at, value):
    layout, rows = table
    data = packed(layout, rows) or b""
    data = data[: max(0, len(data) - length)]
    data = data[:at] + value + data[at + len(value) :]
    try:
        found = unpack_rows(data, 0, len(data), layout, len(rows))
    except (ValueError, struct.error):
        return
    assert all(len(column) == len(rows) for column in found.values())


def test_rows_like_those_of_launches_take_few_bytes():
    """A block of kernels: constant shapes, correlation ids in steps of 2, times with some jitter."""
    layout = np.dtype([("start", "<i8"), ("end", "<i8"), ("id", "<u4"), ("name", "<u4"), ("grid", "<i4", (1,))[:2]])
    rows = np.zeros(3000, layout)
    jitter = np.random.default_rng(5).integers(0, 900, 3000)
    rows["start"] = 1_700_000_000_000_000_000 + np.cumsum(9_000 + jitter)
    rows["end"] = rows["start"] + 2_000 + jitter
    rows["id"] = np.arange(3000) * 2
    rows["name"] = np.arange(3000) % 7
    data = packed(layout, rows)
    assert data is not None
    assert len(data) / 3000 < 6  # 2 for the start, 2 for the end, 1 for the name


def test_few_rows_or_rows_without_order_are_not_packed():
    layout = np.dtype([("value", "<u8")])
    assert packed(layout, np.zeros(1, layout)) is None
    rows = np.zeros(100, layout)
    rows["value"] = np.random.default_rng(1).integers(0, 1 << 63, 100, dtype="u8") * 2
    assert packed(layout, rows) is None


@pytest.mark.parametrize("count", [0, 5000, 1 << 31])
def test_a_damaged_number_of_rows_asks_for_no_memory(count):
    """A column without residuals would have any number of rows."""
    layout = np.dtype([("value", "<u8")])
    with pytest.raises(ValueError, match="packed rows in one block"):
        unpack_rows(bytes(10), 0, 10, layout, count)


def test_the_twins_agree_about_the_format():
    text = FORMAT.read_text()
    assert f'kMagic{{"GPUJRNL\\{journal_frames.VERSION}", 8}}' in text
    assert f"kAnnotationBits = {ANNOTATION_BITS};" in text
    assert f"kMostPackedRows = {packed_rows._MOST_ROWS};" in text
    assert f"kFrame = {journal_frames.FRAME_MARK:#x};" in text
    assert f"kRepeated = {journal_frames.FrameFlags.REPEATED.value}," in text
    for number, name in enumerate(journal_frames.BLOCK_KINDS, 1):
        camel = "".join(word.capitalize() for word in name.split("_"))
        assert f"k{camel} = {number}," in text
    codings = (packed_rows._VALUES, packed_rows._DIFFERENCES, packed_rows._FROM_COLUMN)
    for number, name in zip(codings, ("kValues", "kDifferences", "kFromColumn"), strict=True):
        assert f"{name} = {number}," in text
