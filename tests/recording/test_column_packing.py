"""Columns of a `.gpurec` file: few bytes for small differences, and exact values."""

from __future__ import annotations

import numpy as np
import pytest

from collector.recording.column_packing import Constants, Packing, pack, unpack

START = 1_700_000_000_000_000_000


def round_trip(columns):
    """The columns as they are unpacked, and how each was packed."""
    packed = {name: pack(name, columns) for name in columns}
    found = {}
    for name in sorted(packed, key=lambda name: bool(packed[name].packing.column)):
        packing, numbers, jumps = packed[name]
        again = Packing(**packing.as_dict())
        assert again == packing
        if packing.value is None:
            found[name] = unpack(again, numbers, jumps, found)
        else:
            assert numbers is None
            assert jumps is None
            found[name] = Constants().column(again)
    for name, values in columns.items():
        assert found[name].dtype == values.dtype
        assert found[name].tolist() == values.tolist()
    return packed


def test_a_constant_takes_no_bytes():
    packed = round_trip({"grid_x": np.full(1000, 7, np.int32), "device_id": np.zeros(1000, np.uint32)})
    assert packed["grid_x"].packing.value == 7
    assert packed["device_id"].packing.value == 0


def test_times_take_as_many_bytes_as_they_differ_from_the_row_before_and_ends_from_their_starts():
    rng = np.random.default_rng(1)
    starts = START + np.cumsum(rng.integers(1_000, 1_200, 5_000))
    ends = starts + rng.integers(500, 30_000, 5_000)
    packed = round_trip({"start_ns": starts, "end_ns": ends})
    assert packed["start_ns"].packing.before
    assert packed["start_ns"].numbers.dtype == np.uint8
    assert packed["end_ns"].packing.column == "start_ns"
    assert packed["end_ns"].numbers.dtype == np.uint16


def test_rows_that_were_set_apart_do_not_widen_the_others():
    """Zeros for times that CUPTI did not know, and the next stream's first row, which is earlier again."""
    starts = START + 1_000 * np.arange(10_000)
    starts[5_000:] -= 5_000_000
    starts[[17, 18]] = 0
    packed = round_trip({"start_ns": starts})
    assert packed["start_ns"].numbers.dtype == np.uint8
    assert packed["start_ns"].jumps.shape[1] <= 6


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("rows", [0, 1, 2, 40, 5_000])
def test_every_value_of_every_type_is_kept(dtype, rows):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(rows)
    any_values = rng.integers(info.min, info.max, rows, dtype=dtype, endpoint=True)
    few = (any_values % 9).astype(dtype)
    few[rows // 2 : rows // 2 + 3] = info.max
    few[rows // 3 : rows // 3 + 2] = info.min
    columns = {"start_ns": any_values, "end_ns": np.sort(any_values), "other": few}
    round_trip(columns)


@pytest.mark.parametrize(
    ("packing", "numbers", "jumps"),
    [
        (Packing("<i8", 3), np.zeros(2, np.uint8), None),
        (Packing("<i8", 3), np.zeros((3, 1), np.uint8), None),
        (Packing("<i8", 3), np.zeros(3, np.float64), None),
        (Packing("<f8", 3), np.zeros(3, np.uint8), None),
        (Packing("<i8", 3, jumps=True), np.zeros(3, np.uint8), None),
        (Packing("<i8", 3, jumps=True), np.zeros(3, np.uint8), np.array([[3], [1]])),
        (Packing("<i8", 3, jumps=True), np.zeros(3, np.uint8), np.array([[-1], [1]])),
        (Packing("<i8", 3, jumps=True), np.zeros(3, np.uint8), np.zeros(3)),
    ],
)
def test_numbers_that_are_not_those_of_the_packing_are_refused(packing, numbers, jumps):
    with pytest.raises(ValueError, match="column"):
        unpack(packing, numbers, jumps, {})
