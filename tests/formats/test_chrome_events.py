"""Chrome traces as columns, compared with Python's own JSON decoder, and read in pieces of any size."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import example, given, settings
from hypothesis import strategies as st
from properties import examples

import collector
from collector.formats.chrome_events import IMPOSSIBLE_TIME, NO_TIME, ChromeEvents, NotATraceError

IDS = st.one_of(st.integers(-5, 1 << 65), st.text(max_size=4), st.none())
TIMES = st.one_of(
    st.integers(-(10**17), 10**17),
    st.decimals(allow_nan=False, allow_infinity=False, places=5, min_value=-(10**12), max_value=10**12),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(1 << 70), 1 << 70), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=6,
)
EVENTS = st.fixed_dictionaries(
    {"ph": st.sampled_from("XBEMisf")},
    optional={
        "name": st.text(max_size=12),
        "cat": st.sampled_from(["kernel", "cpu_op", "é\0", ""]),
        "pid": IDS,
        "tid": IDS,
        "ts": TIMES,
        "dur": TIMES,
        "args": st.dictionaries(st.text(max_size=6), VALUES, max_size=5),
        "other": VALUES,
    },
)


def as_text(events, metadata, *, ascii_only):
    """JSON with the decimals as they are."""

    def plain(value):
        return f"@{value:f}@" if isinstance(value, Decimal) else value

    events = [{key: plain(value) for key, value in event.items()} for event in events]
    text = json.dumps({**metadata, "traceEvents": events, "displayTimeUnit": "ns"}, ensure_ascii=ascii_only)
    return text.replace('"@', "").replace('@"', "")


def nanoseconds(value):
    if value is None:
        return NO_TIME
    found = round(Decimal(value).scaleb(3))
    return found if abs(found) < 1 << 62 else IMPOSSIBLE_TIME


def pieces_of(data, sizes):
    at = 0
    for size in sizes:
        yield data[at : at + size]
        at += size
    yield data[at:]


def shown(text):
    return text.encode("utf-8", "replace").decode()


@pytest.mark.medium
@settings(deadline=None, max_examples=examples(200))
@given(
    events=st.lists(EVENTS, max_size=6),
    metadata=st.dictionaries(st.text(max_size=6), VALUES, max_size=3),
    sizes=st.lists(st.integers(0, 40), max_size=40),
    ascii_only=st.booleans(),
)
@example(events=[], metadata={}, sizes=[1] * 30, ascii_only=True)
def test_columns_say_what_the_decoder_says(events, metadata, sizes, ascii_only):
    metadata.pop("traceEvents", None)
    if "@" in json.dumps([events, metadata], default=str):
        return  # the mark of decimals
    written = as_text(events, metadata, ascii_only=ascii_only).encode("utf-8", "replace")
    found = ChromeEvents(pieces_of(written, sizes))
    rows = np.arange(len(events))
    names, index = found.names(rows)
    assert [names[place] for place in index.tolist()] == [shown(event.get("name", "")) for event in events]
    categories, index = found.categories(rows)
    assert [categories[place] for place in index.tolist()] == [event.get("cat", "") for event in events]
    assert found.starts_ns(rows).tolist() == [nanoseconds(event.get("ts")) for event in events]
    assert found.durations_ns(rows).tolist() == [nanoseconds(event.get("dur")) for event in events]
    tracks = [found.tracks[number] for number in found.track_numbers(rows).tolist()]
    if ascii_only:
        assert tracks == [(event.get("pid"), event.get("tid")) for event in events]
        assert [list(arguments) for arguments in found.arguments_of(rows)] == [
            [shown(name) for name in event.get("args", {})] for event in events
        ]
    whole = {**metadata, "displayTimeUnit": "ns"}
    assert {shown(name) for name in found.metadata} == {shown(name) for name in whole}
    assert found.num_entries == len(events)
    assert not found.is_cut


@pytest.mark.medium
@settings(deadline=None, max_examples=examples(300))
@given(events=st.lists(EVENTS, min_size=1, max_size=4), cut=st.integers(0, 400), junk=st.binary(max_size=5))
def test_damage_gives_the_events_before_it_or_an_error(events, cut, junk):
    written = as_text(events, {}, ascii_only=True).encode()
    damaged = written[:cut] + junk + written[cut + 2 :]
    try:
        found = ChromeEvents([damaged])
    except NotATraceError:
        return
    rows = found.rows("XBEMisf")
    for row, arguments in zip(rows.tolist(), found.arguments_of(rows), strict=True):
        assert len(found.phase_of(row)) == 1
        assert all(isinstance(name, str) for name in arguments)
    assert found.cut_at is None or 0 <= found.cut_at <= len(damaged)


def test_numbers_of_an_argument_are_whole_numbers_or_their_digits():
    values = [4, "5", "soon", 2**32, -1, 2**64, 1.5, None, True, "007"]
    events = [{"ph": "X", "args": {"n": value}} for value in values] + [{"ph": "X"}]
    found = ChromeEvents([json.dumps(events).encode()])
    rows = found.rows("X")
    assert found.integers("n", rows).tolist() == [4, 5, -1, -1, -1, -1, -1, -1, -1, 7, -1]
    assert found.integers("n", rows, 2**63 - 1).tolist()[3] == 2**32
    assert found.integers("none", rows).tolist() == [-1] * 11
    assert found.all_values("n", rows) == [4, "5", "soon", 2**32, -1, 2**64, "1.5", None, True, "007", None]
    assert found.has("n", rows).tolist() == [True] * 10 + [False]


def test_names_of_processes_and_threads_are_those_said_last():
    events = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "first"}},
        {"ph": "M", "name": "process_name", "pid": "1", "args": {"name": "text"}},
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "last"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "main", "device": "/cpu:0"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": "x", "args": {}},
    ]
    found = ChromeEvents([json.dumps(events).encode()])
    assert found.process_names == {1: "last", "1": "text"}
    assert found.described_threads == {(1, 2): {"name": "main", "device": "/cpu:0"}}
    assert found.thread_names == [(1, 2, "main"), (1, "x", "")]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_trace_is_read_piece_by_piece(tmp_path, pack):
    """More than the pieces that a file is read in, with pieces that end inside of events."""
    kernel = '{"ph":"X","cat":"kernel","name":"k%d","pid":0,"tid":7,"ts":%d.5,"dur":1,"args":{"stream":7}}'
    path = tmp_path / "trace.json"
    path.write_bytes(pack(("[" + ",".join(kernel % (i % 3, 10 * i + 1) for i in range(30_000)) + "]").encode()))
    assert path.stat().st_size > 1 << 16
    kernels = collector.load(path).recording.kernels
    assert len(kernels) == 30_000
    assert kernels.start_ns.tolist() == [10_000 * i + 1500 for i in range(30_000)]
    assert set(kernels.recorded_names()) == {"k0", "k1", "k2"}


def test_arguments_whose_names_are_not_utf8_are_distinguished():
    event = b'{"ph":"X","pid":1,"ts":1,"dur":1,"args":{"\xff":1,"\xfe":2,"last":3}}'
    found = ChromeEvents([b'{"traceEvents":[' + event + b"]}"])
    assert found.argument_counts() == {"\ufffd": 2, "last": 1}
    assert [each["last"] for each in found.arguments_of(found.rows("X"))] == [3]
