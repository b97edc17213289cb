"""The queue depth of each stream."""

from __future__ import annotations

import pytest

from collector.analysis import queue


def test_the_worked_example(example):
    rows = {row["depth"]: row["duration_ns"] for row in queue(example, by="depth") if row["stream_id"] == 7}
    assert rows == {0: 430, 1: 305, 2: 130, 3: 25}
    found = {row["stream_id"]: row for row in queue(example)}
    assert found.keys() == {7, 8, 9}
    assert (found[7]["activities"], found[7]["window_ns"], found[7]["empty_ns"]) == (6, 890, 430)
    assert (found[7]["max_depth"], found[7]["mean_depth"]) == (3, (305 + 2 * 130 + 3 * 25) / 890)


def test_shares_and_rows_of_the_worked_example(example):
    made_of = {7: {"kernels": [*range(6)]}, 8: {"memcpys": [0]}, 9: {"kernels": [6]}}
    for by in ("stream", "depth"):
        answer = queue(example, by=by)
        for row, evidence in zip(answer, answer.evidence, strict=True):
            found = {table: rows.tolist() for table, rows in evidence.items()}
            assert found == made_of[row["stream_id"]]
    shares = {row["depth"]: row["share"] for row in queue(example, by="depth") if row["stream_id"] == 7}
    assert shares == {0: 430 / 890, 1: 305 / 890, 2: 130 / 890, 3: 25 / 890}
    assert queue(example)["empty_share"][0] == 430 / 890


def test_what_began_before_its_call_was_never_queued(build):
    build.launch(5, 1000).kernel("k", 900, 500, correlation_id=5)
    build.launch(6, 2000).kernel("k", 2500, 500, correlation_id=6)
    answer = queue(build.recording())
    assert [(row["activities"], row["max_depth"], row["window_ns"], row["empty_ns"]) for row in answer] == [
        (1, 1, 500, 0)
    ]
    assert "1 activity began before the call, as the clocks disagree: never queued" in answer.losses


def test_what_began_with_its_call_agrees_with_it(build):
    build.launch(5, 1000).kernel("k", 1000, 500, correlation_id=5)
    answer = queue(build.recording())
    assert ([row["max_depth"] for row in answer], answer.losses) == ([0], ())


def test_what_has_no_call_is_counted_and_left_out(build):
    build.kernel("k", 900, 500, correlation_id=5).kernel("l", 1900, 500)
    answer = queue(build.recording())
    assert len(answer) == 0
    assert "2 activities without a recorded call: when they were queued is not known" in answer.losses
    losses = queue([build.recording()]).losses
    assert "step 0: 2 activities without a recorded call: when they were queued is not known" in losses


def test_an_unknown_division_of_depths_is_refused(example):
    with pytest.raises(ValueError, match="by='colour': depths of queues are counted by stream, depth"):
        queue(example, by="colour")


def test_depths_add_up_whatever_was_launched(build):
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies
    kernels = st.lists(
        st.tuples(st.integers(0, 900), st.integers(0, 50), st.integers(1, 5), st.integers(7, 8)), max_size=12
    )
    calls = st.lists(st.integers(0, 900), max_size=5)

    @hypothesis.given(kernels, calls)
    def check(kernels, calls):
        made = type(build)()
        for start, duration, correlation, stream in kernels:
            made.kernel("k", start, duration, correlation_id=correlation, stream_id=stream)
        for number, start in enumerate(calls):
            made.call("cudaGraphLaunch", start, 10, correlation_id=number + 1)
        recording = made.recording()
        by_depth = list(queue(recording, by="depth"))
        for row in queue(recording):
            own = [each for each in by_depth if each["stream_id"] == row["stream_id"]]
            assert sum(each["duration_ns"] for each in own) == row["window_ns"]
            assert row["max_depth"] <= row["activities"] <= len(kernels)
            assert all(each["duration_ns"] > 0 for each in own)

    check()


@pytest.mark.medium
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("hta/v100_rank1of2_diff_test_graphs.json.gz", marks=pytest.mark.slow),
        "nsys_ai/h100_2gpu_1s.sqlite.gz",
    ],
)
def test_recorded_traces_add_up(load_trace, name):
    recording = load_trace(name).recording
    answer = queue(recording)
    assert answer.totals["activities"] > 0
    assert answer.totals["window_ns"] == queue(recording, by="depth").totals["duration_ns"]
