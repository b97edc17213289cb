"""Parts of a capture: each by itself is what it is among all."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import given
from hypothesis import strategies as st

from collector.recording.capture import Instant, empty_capture
from collector.recording.capture_window import FOREVER_NS, Span, begin_at, begin_when_enabled, candidates, keep_spans

TIMES = st.integers(0, 60)
IDS = st.integers(0, 12)


def columns(draw, capture, table, **strategies):
    """Rows of a table, of which all other columns are 0."""
    count = draw(st.integers(0, 12))
    found = {name: np.zeros(count, column.dtype) for name, column in capture["tables"][table].items()}
    for name, strategy in strategies.items():
        values = draw(st.lists(strategy, min_size=count, max_size=count))
        found[name] = np.array(values, found[name].dtype)
    capture["tables"][table] = found


@st.composite
def captures(draw):
    capture = empty_capture()
    capture["tables"].setdefault(
        "external_correlations", {"correlation_id": np.zeros(0, "u8"), "external_id": np.zeros(0, "u8")}
    )
    columns(draw, capture, "api_calls", start_ns=TIMES, end_ns=TIMES, correlation_id=IDS)
    for table in ("kernels", "memcpys"):
        columns(draw, capture, table, start_ns=TIMES, end_ns=TIMES, correlation_id=IDS, captured_external_id=IDS)
    columns(draw, capture, "graph_launches", start_ns=TIMES, end_ns=TIMES, correlation_id=IDS)
    columns(draw, capture, "memory_operations", start_ns=TIMES)
    columns(draw, capture, "external_correlations", correlation_id=IDS, external_id=IDS)
    columns(draw, capture, "annotations", start_ns=TIMES, end_ns=TIMES, external_id=IDS)
    return capture


@st.composite
def parts(draw):
    """Parts in the order of time, without overlap; the last one may have no end."""
    bounds = sorted(draw(st.sets(st.integers(1, 60), max_size=8)))
    spans = [Span(begin, end) for begin, end in zip(bounds[::2], bounds[1::2], strict=False)]
    return [*spans, Span(bounds[-1], FOREVER_NS)] if len(bounds) % 2 else spans


def copied(capture):
    return capture | {"tables": {table: dict(columns) for table, columns in capture["tables"].items()}}


def as_lists(capture):
    return {table: {name: each.tolist() for name, each in rows.items()} for table, rows in capture["tables"].items()}


@pytest.mark.medium
@given(captures(), parts(), st.booleans())
def test_the_candidates_of_a_part_hold_all_that_is_kept_of_it(capture, spans, has_other_calls):
    before = as_lists(capture)
    found = list(candidates(capture, spans))
    assert len(found) == len(spans)
    for span, few in zip(spans, found, strict=True):
        whole = copied(capture)
        keep_spans(whole, [span], has_other_calls=has_other_calls)
        keep_spans(few, [span], has_other_calls=has_other_calls)
        assert as_lists(few) == as_lists(whole)
    assert as_lists(capture) == before


@pytest.mark.medium
@given(captures(), parts())
def test_calls_and_names_of_all_parts_are_those_of_each(capture, spans):
    """Where every call was recorded. A call without a time belongs to each part that has another call of its id."""
    whole = copied(capture)
    keep_spans(whole, spans)
    starts = []
    for span in spans:
        one = copied(capture)
        keep_spans(one, [span])
        starts += one["tables"]["api_calls"]["start_ns"].tolist()
    kept = whole["tables"]["api_calls"]["start_ns"].tolist()
    assert sorted(filter(None, starts)) == sorted(filter(None, kept))


def whole_graphs(calls, launches):
    """A capture of graphs that were recorded as a whole: (start, correlation id) of calls and of their launches."""
    capture = empty_capture()
    for table, rows in (("api_calls", calls), ("graph_launches", launches)):
        own = {name: np.zeros(len(rows), column.dtype) for name, column in capture["tables"][table].items()}
        own["start_ns"] = np.array([start for start, _ in rows], "i8")
        own["end_ns"] = own["start_ns"] + 5
        own["correlation_id"] = np.array([number for _, number in rows], "u4")
        capture["tables"][table] = own
    return capture


@pytest.mark.parametrize("has_other_calls", [True, False])
def test_a_graph_that_runs_after_the_range_of_its_launch_is_kept_with_it(has_other_calls):
    inside, outside = [(100, 1), (110, 2)], [(300, 3)]
    capture = whole_graphs([*inside, *(outside if has_other_calls else [])], [(105, 1), (400, 2), (410, 3)])
    keep_spans(capture, [Span(100, 200)], has_other_calls=has_other_calls)
    assert capture["tables"]["graph_launches"]["correlation_id"].tolist() == [1, 2]


def test_a_graph_that_runs_in_a_range_and_was_launched_before_it_is_left_out():
    capture = whole_graphs([(100, 2), (110, 3)], [(105, 1), (120, 2)])
    keep_spans(capture, [Span(100, 200)], has_other_calls=False)
    assert capture["tables"]["graph_launches"]["correlation_id"].tolist() == [2]


@pytest.mark.medium
@given(captures(), st.integers(1, 60))
def test_a_capture_begins_when_its_kinds_are_enabled_or_with_its_first_row(capture, enabled_ns):
    """No row from its former begin on lies before it."""
    clock, former = capture["clock"], 1
    clock |= {"cupti_start_ns": former, "wall_start_ns": former + 1000}
    begin_when_enabled(capture, enabled_ns)
    timed = ("api_calls", "kernels", "memcpys", "graph_launches", "memory_operations", "annotations")
    starts = np.concatenate([capture["tables"][name]["start_ns"] for name in timed])
    assert clock["cupti_start_ns"] == min([enabled_ns, *starts[starts >= former]])
    assert clock["wall_start_ns"] - clock["cupti_start_ns"] == 1000


def test_a_capture_without_its_warm_up_does_not_state_what_decoding_both_took():
    capture = empty_capture()
    capture["counters"] |= {"decode_cpu_ns": 5000, "records_decoded": 70, "records_dropped": 2}
    capture["clock"]["cupti_stop_ns"] = 100
    begin_at(capture, Instant(50, 50, 0))
    assert not {"decode_cpu_ns", "records_decoded"} & capture["counters"].keys()
    assert capture["counters"]["records_dropped"] == 2
