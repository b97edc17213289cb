"""Activities with impossible times, repeated rows, distant clocks and 64-bit ids: answers state their omissions."""

from __future__ import annotations

import pytest

from collector.analysis import concurrency, critical_path, devices, overlap, queue, streams

QUESTIONS = (concurrency, critical_path, devices, overlap, queue, streams)
LARGE = (1 << 63) + 5


@pytest.fixture
def bad(build, start_ns):
    """One good kernel, and beside it one of each kind of bad ones."""
    build.call("cudaLaunchKernel", 10, 5, correlation_id=1)
    build.kernel("good", 100, 100, correlation_id=1, graph_node_id=LARGE)
    build.raw("kernels", start_ns=-5, end_ns=start_ns + 5, stream_id=7)
    build.kernel("ends before it starts", 50, -20)
    build.kernel("late", 500_000, 1 << 62)
    build.raw("memcpys", start_ns=-(1 << 63), end_ns=(1 << 63) - 1, num_bytes=(1 << 64) - 1)
    return build


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.__name__)
def test_impossible_times_are_left_out_and_counted(bad, question):
    answer = question(bad.recording())
    assert len(answer) > 0
    said = "\n".join(answer.losses)
    assert "3 activities have no usable time" in said
    assert "1 activity ends after the step" in said
    for row in answer:
        assert all(value >= -1 for value in row.values() if not isinstance(value, str))


def test_figures_are_those_of_the_good_ones(bad):
    assert devices(bad.recording())["busy_ns"].tolist() == [100]
    assert critical_path(bad.recording()).totals["total_ns"] == 190
    assert queue(bad.recording())["window_ns"].tolist() == [90]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.__name__)
def test_repeated_rows_are_counted(build, question):
    for _ in range(3):
        build.kernel("k", 100, 100, correlation_id=1)
    build.kernel("k", 100, 100, correlation_id=2).call("cudaLaunchKernel", 10, 5, correlation_id=1)
    answer = question(build.recording())
    said = "2 activities equal others in every column: times count once, numbers and sums each"
    assert said in answer.losses
    (row,) = devices(build.recording())
    assert (row["busy_ns"], row["activities"]) == (100, 4)


def test_the_file_with_repeated_kernels(load_trace):
    answer = streams(load_trace("broken_derived/repeated_kernels.json.gz"))
    assert [row["busy_ns"] for row in answer] == [291_000]
    assert any(loss.startswith("130 activities equal others in every column") for loss in answer.losses)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.__name__)
def test_several_ranks_whose_clocks_are_years_apart_answer_each_for_itself(build, question):
    def rank(shift_ns):
        made = type(build)()
        clock = made.clock.items()
        made.clock = {name: value + shift_ns if name.startswith("cupti") else value for name, value in clock}
        made.call("cudaLaunchKernel", 10 + shift_ns, 5, correlation_id=1)
        return made.kernel("k", 100 + shift_ns, 100, correlation_id=1).recording()

    one, far = rank(0), rank(-(10**18))
    both, alone = question([one, far]), question(one)
    figures = [name for name in both.values if name not in ("step", "start_ns")]
    assert len(both) == 2 * len(alone)
    for number in (0, 1):
        own = both["step"] == number
        assert all((both[name][own] == alone[name]).all() for name in figures)
