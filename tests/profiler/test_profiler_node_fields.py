"""Fields of many nodes read with numpy, compared with protobuf's parser on intact and on damaged bytes."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf.message import DecodeError

pytest.importorskip("hypothesis")

from hypothesis import given
from hypothesis import strategies as st
from reference import plain_node_fields
from reference.in_python import use_python

from collector.errors import InvalidFileError
from collector.profiler.device_columns import DeviceColumns
from collector.protos import DeviceStepStats

NUMBERS = {2: "all_start_micros", 4: "op_end_rel_micros", 9: "scheduled_micros", 10: "thread_id", 17: "scheduled_nanos"}
TEXTS = {1: "node_name", 8: "timeline_label"}

varints = st.one_of(st.integers(0, 300), st.integers(0, 2**64 - 1))


def varint(value: int, pad: int = 0) -> bytes:
    """On the wire; with ``pad``, with that many bytes more than are needed."""
    encoded = bytearray()
    while value > 0x7F or pad > 0:
        pad -= value <= 0x7F
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def _field(number: int, kind: int, value: int, text: bytes) -> bytes:
    content = {0: varint(value), 1: value.to_bytes(8, "little"), 2: varint(len(text)) + text, 5: text[:4].ljust(4)}
    return varint(number << 3 | kind, pad=value % 2) + content[kind]


field_numbers = st.one_of(st.integers(1, 20), st.sampled_from([31, 32, 100001, 2**29 - 1]))
texts = st.one_of(st.binary(max_size=12), st.sampled_from([b"a/b:sgemm", b"relu", "\u00fc".encode()]))
nodes = st.lists(st.builds(_field, field_numbers, st.sampled_from([0, 0, 2, 2, 1, 5]), varints, texts)).map(b"".join)
parts = st.one_of(
    nodes.map(lambda node: b"\x12" + varint(len(node), pad=len(node) % 3) + node),
    st.builds(_field, field_numbers.filter(lambda number: number > 3), st.sampled_from([0, 1, 2, 5]), varints, texts),
)
devices = st.lists(parts, max_size=6).map(b"".join)


@st.composite
def damaged_devices(draw: st.DrawFn) -> bytes:
    """A device of which some bytes were changed, or the end is missing."""
    data = bytearray(draw(devices))
    for at, byte in draw(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=4)):
        if at < len(data):
            data[at] = byte
    return bytes(data[: draw(st.integers(0, len(data)))]) if draw(st.booleans()) else bytes(data)


def _wrapped(values: object) -> list[int]:
    return [(value + 2**63) % 2**64 - 2**63 for value in values]


def _check(data: bytes) -> None:
    expected = DeviceStepStats()
    try:
        expected.ParseFromString(data)
    except DecodeError:
        expected = None
    reason = ""
    try:
        found = plain_node_fields.read_fields(memoryview(data), list(NUMBERS), list(TEXTS))
    except InvalidFileError as error:
        reason = str(error)
    if expected is None:  # protobuf looks into messages and texts that nobody asked for
        return
    if reason:  # groups are the one thing that protobuf passes over, and no step has
        assert "an unexpected wire type" in reason
        return
    assert found.count == len(expected.node_stats)
    for number, name in NUMBERS.items():
        values = found.numbers[number] & 0xFFFFFFFF if name == "thread_id" else found.numbers[number]
        assert values.tolist() == _wrapped(getattr(node, name) for node in expected.node_stats)
    for number, name in TEXTS.items():
        texts, index = plain_node_fields.distinct_texts(memoryview(data), *found.texts[number])
        assert [texts[place] for place in index] == [getattr(node, name) for node in expected.node_stats]
        assert len(set(texts)) == len(texts) == len(set(index.tolist()))


@pytest.mark.medium
@given(devices)
def test_fields_are_those_that_protobuf_reads(data):
    _check(data)


@pytest.mark.medium
@given(damaged_devices())
def test_damage_is_an_error_or_read_as_protobuf_reads_it(data):
    _check(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x12", "cut off"),
        (b"\x12\x05\x10", "beyond the end"),
        (b"\x12\x02\x10\x80", "cut off"),
        (b"\x12\x02\x0a\x7f", "beyond the end"),
        (b"\x12\x0b\x10" + b"\xff" * 10, "longer than 10 bytes"),
        (b"\x12\x02\x00\x01", "an invalid field number"),
        (b"\x12\x02\x13\x14", "an unexpected wire type"),
        (b"\x0b\x0c", "an unexpected wire type"),
        (b"\x12\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "beyond the end"),
    ],
)
def test_damage_is_named(data, reason):
    with pytest.raises(InvalidFileError, match=reason):
        plain_node_fields.read_fields(memoryview(data), [2], [1])


def test_a_span_beyond_the_end_is_refused():
    for begin, end in ((-1, 0), (2, 1), (0, 4)):
        with pytest.raises(IndexError):
            plain_node_fields.distinct_texts(memoryview(b"abc"), np.array([begin]), np.array([end]))


def test_columns_of_a_device_as_numpy_reads_them(monkeypatch):
    """Nanoseconds where they are given, else microseconds; the last of two values counts, in any order of fields."""
    use_python(monkeypatch)
    body = DeviceStepStats(device="/gpu:0/stream:all")
    body.node_stats.add(all_start_micros=5, op_end_rel_micros=2, all_start_nanos=5001, op_end_rel_nanos=2003)
    body.node_stats.add(all_start_micros=9, op_end_rel_micros=1, node_name="a", thread_id=7, timeline_label="a = b()")
    again = b"\x0a\x01b" + b"\x10\x08"
    data = body.SerializeToString() + b"\x12" + varint(len(again)) + again
    device = DeviceColumns(body.device, memoryview(data))
    assert len(device) == 3
    assert device.start_ns.tolist() == [5001, 9000, 8000]
    assert device.end_ns.tolist() == [7004, 10000, 8000]
    assert device.thread_id.tolist() == [0, 7, 0]
    assert device.names[0] == ["", "a", "b"]
    labels, index = device.labels_at(np.array([1, 0]))
    assert (labels, index.tolist()) == (["a = b()", ""], [0, 1])
