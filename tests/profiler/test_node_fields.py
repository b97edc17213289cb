"""Fields of many nodes: the native reader compared with the numpy reader, on intact and on damaged bytes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st
from properties import examples
from reference import plain_node_fields

from collector.errors import InvalidFileError
from collector.profiler import node_fields
from collector.protos import Activity, DeviceStepStats, NodeExecStats
from collector.runtime.extension import convert_extension


def _strategies():
    """The devices of the test of the reader with numpy."""
    path = Path(__file__).with_name("test_profiler_node_fields.py")
    spec = importlib.util.spec_from_file_location("profiler_node_fields_strategies", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


made = _strategies()
NUMBERS, TEXTS = list(made.NUMBERS), list(made.TEXTS)


def _read(read, texts, data: bytes):
    try:
        fields = read(memoryview(data), NUMBERS, TEXTS)
    except InvalidFileError:
        return "damaged"
    columns = {number: values.tolist() for number, values in fields.numbers.items()}
    spans = {number: (begins.tolist(), ends.tolist()) for number, (begins, ends) in fields.texts.items()}
    distinct = {}
    for number, (begins, ends) in fields.texts.items():
        names, index = texts(memoryview(data), begins, ends)
        distinct[number] = (names, index.tolist())
    return fields.count, columns, spans, distinct


@pytest.mark.medium
@settings(max_examples=examples(300))
@given(st.one_of(made.devices, made.damaged_devices(), st.binary(max_size=60)))
def test_both_readers_agree(data):
    natively = _read(node_fields.read_fields, node_fields.distinct_texts, data)
    assert natively == _read(plain_node_fields.read_fields, plain_node_fields.distinct_texts, data)


def test_all_fields_of_a_node_cut_anywhere():
    """Every prefix of a device ends in a node, or is an error to both."""
    node = (
        b"\x0a\x03a:b\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x20\x07\x42\x02xy\x50\x2a\x88\x01\x05\x31" + b"8" * 8
    )
    data = b"\x0a\x01d" + 2 * (b"\x12" + bytes([len(node)]) + node)
    whole = {0: 0, 3: 0, 5 + len(node): 1, 7 + 2 * len(node): 2}
    for end in range(len(data) + 1):
        natively = _read(node_fields.read_fields, node_fields.distinct_texts, data[:end])
        by_numpy = _read(plain_node_fields.read_fields, plain_node_fields.distinct_texts, data[:end])
        assert natively == by_numpy
        assert ("damaged" if natively == "damaged" else natively[0]) == whole.get(end, "damaged")
    assert natively[1][2] == [-1, -1]


def test_what_cannot_be_asked_for():
    for field in (32, 100000, 100003):
        with pytest.raises(ValueError, match="cannot be requested"):
            convert_extension.node_columns(b"", [field], [])
    with pytest.raises(ValueError, match="contiguous bytes"):
        convert_extension.node_columns(memoryview(b"abcd")[::2], [2], [])
    for begin, end in ((-1, 0), (2, 1), (0, 4), (2**62, 2**62)):
        with pytest.raises(IndexError):
            convert_extension.distinct_texts(b"abc", np.array([begin]), np.array([end]))
    with pytest.raises(ValueError, match="as many begins as ends"):
        convert_extension.distinct_texts(b"abc", np.array([0]), np.array([0, 1]))


def test_columns_of_activities_are_what_protobuf_reads():
    activities = [
        Activity(kind=Activity.KERNEL, grid_x=-1, stream_id=2**32 - 1),
        None,
        Activity(kind=Activity.MEMCPY, num_bytes=2**63),
    ]
    device = DeviceStepStats(node_stats=[NodeExecStats(activity=each) for each in activities])
    data = memoryview(device.SerializeToString())
    begins, ends = node_fields.read_fields(data, [], [NodeExecStats.ACTIVITY_FIELD_NUMBER]).texts[100002]
    assert (ends > begins).tolist() == [True, False, True]
    for column, expected in {
        "kind": [Activity.KERNEL, 0, Activity.MEMCPY],
        "grid_x": [-1, 0, 0],
        "stream_id": [2**32 - 1, 0, 0],
        "num_bytes": [0, 0, -(2**63)],
    }.items():
        field = Activity.DESCRIPTOR.fields_by_name[column].number
        assert node_fields.message_numbers(data, begins, ends, [field])[field].tolist() == expected
    with pytest.raises(InvalidFileError, match="not a whole step"):
        node_fields.message_numbers(data, begins, ends - (ends > begins), [1])
    with pytest.raises(IndexError):
        node_fields.message_numbers(data, begins, ends + len(data), [1])


def test_texts_that_are_not_utf8_are_distinguished():
    texts, index = node_fields.distinct_texts(memoryview(b"\xff\xfeab"), np.array([0, 1, 2, 0]), np.array([1, 2, 4, 1]))
    assert texts == ["\ufffd", "\ufffd", "ab"]
    assert index.tolist() == [0, 1, 2, 0]
