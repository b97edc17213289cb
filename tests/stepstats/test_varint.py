"""Numbers on the wire."""

import pytest
from google.protobuf.wrappers_pb2 import UInt64Value

pytest.importorskip("hypothesis")

from hypothesis import given
from hypothesis import strategies as st

from collector.stepstats import varint


@given(st.integers(1, 2**64 - 1), st.binary(max_size=4))
def test_numbers_are_those_of_protobuf_both_ways(value: int, behind: bytes) -> None:
    encoded = varint.encode(value)
    assert UInt64Value.FromString(b"\x08" + encoded).value == value
    assert UInt64Value(value=value).SerializeToString() == b"\x08" + encoded
    assert varint.decode(b"\xff" + encoded + behind, 1) == (value, 1 + len(encoded))
    assert varint.decode(memoryview(encoded), 0) == (value, len(encoded))


@given(st.integers(0, 2**64 - 1).map(varint.encode), st.data())
def test_a_number_cut_off_is_reported_with_the_place(encoded: bytes, data: st.DataObject) -> None:
    kept = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(varint.VarintError, match="cut off by the end") as caught:
        varint.decode(encoded[:kept], 0)
    assert caught.value.position == kept


def test_no_number_is_longer_than_ten_bytes() -> None:
    assert varint.decode(b"\xff" * 9 + b"\x01", 0) == (2**64 - 1, 10)
    with pytest.raises(varint.VarintError, match="longer than 10 bytes") as caught:
        varint.decode(b"\x80" * 11, 0)
    assert caught.value.position == varint.LONGEST
