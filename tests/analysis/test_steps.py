"""The variation of steps, outliers, and the ops that explain them."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

from collector.analysis import between, memory_growth, steps
from collector.analysis.steps import modified_z
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource


def test_scores_of_the_worked_example():
    values = np.array([10.0, 12, 11, 13, 50])
    assert modified_z(values, values)[-1] == pytest.approx(25.631)
    assert np.median(values) == 12


def test_scores_where_most_are_equal():
    values = np.array([10.0, 10, 11, 10, 50])
    z = modified_z(values, values)
    assert (round(float(z[-1]), 2), z[0]) == (3.89, 0)
    assert modified_z(np.array([7.0, 7, 7]), np.array([7.0, 7, 7])).tolist() == [0, 0, 0]
    assert np.isnan(modified_z(np.array([9.0]), np.array([7.0, 7, 7]))).all()


@pytest.fixture
def make(build):
    """Makes a recording of a step of so many us, in which each op ran a kernel of so many us."""

    def made(microseconds, **ops):
        step = type(build)()
        step.clock["cupti_stop_ns"] = step.clock["cupti_start_ns"] + microseconds * 1000
        at = 0
        for number, (op, spent) in enumerate(ops.items(), 1):
            step.launch(number, at).kernel(f"kernel_{op}", at, spent * 1000, correlation_id=number)
            if op != "none":
                step.annotation(op, at, 600, number, number)
            at += spent * 1000
        return step.recording()

    return made


def test_an_outlier_and_the_op_that_explains_it(make):
    usual = [make(each, conv=4, fc=each - 6) for each in (10, 12, 11, 13)]
    answer = steps([make(90, conv=80, fc=4), *usual, make(50, conv=42, fc=6)])
    assert answer["verdict"].tolist() == ["first", "usual", "usual", "usual", "usual", "outlier"]
    row = list(answer)[-1]
    assert (row["step"], row["window_ns"], row["busy_ns"], row["activities"]) == (5, 50_000, 48_000, 2)
    assert (row["op"], row["op_excess_ns"]) == ("conv", 38_000)
    assert row["z"] == pytest.approx(0.6745 * 38)
    assert row["op_z"] > 3.5
    assert answer["op"].tolist()[:-1] == [""] * 5


def test_without_the_first_step_apart(make):
    answer = steps([make(each, conv=4) for each in (10, 12, 11, 13, 50)], first_apart=False)
    assert answer["z"][-1] == pytest.approx(25.631)
    assert answer["op"][-1] == "(idle)"


def test_a_first_step_beside_equal_ones_has_no_known_score(make):
    answer = steps([make(50, conv=4), *(make(20, conv=4) for _ in range(4))])
    assert np.isnan(answer["z"][0])
    assert answer["z"].tolist()[1:] == [0, 0, 0, 0]
    assert json.loads(json.dumps(answer.to_json(), allow_nan=False))["rows"][0][5] is None


def test_an_outlier_may_be_short(make):
    answer = steps([make(each, conv=each - 3) for each in (100, 103, 101, 102, 100, 20)])
    assert list(answer)[-1]["verdict"] == "outlier"
    assert (answer["op"][-1], answer["op_excess_ns"][-1]) == ("conv", -81_000)


def test_work_without_annotation_goes_by_its_kernel(make):
    answer = steps([make(each, none=each) for each in (9, 10, 12, 11, 13, 50)])
    assert answer["op"][-1] == "kernel_none"


@pytest.mark.parametrize(("activity", "op"), [("memcpy", "MEMCPYHtoD"), ("memset", "MEMSET")])
def test_copies_and_memsets_without_annotation_go_by_their_kind(build, activity, op):
    recordings = []
    for microseconds in (9, 10, 12, 11, 13, 50):
        step = type(build)()
        step.clock["cupti_stop_ns"] = step.clock["cupti_start_ns"] + microseconds * 1000
        getattr(step, activity)(0, microseconds * 1000)
        recordings.append(step.recording())
    assert steps(recordings)["op"].tolist() == [""] * 5 + [op]


def test_an_op_explains_an_outlier_rather_than_idle_time_that_differs_as_much(make):
    answer = steps([make(2 * each, conv=each) for each in (10, 10, 12, 11, 13, 50)])
    assert answer["op"].tolist() == [""] * 5 + ["conv"]


def test_few_steps_have_no_verdict(make):
    answer = steps([make(10, conv=4), make(12, conv=4), make(500, conv=4)])
    assert answer["verdict"].tolist() == ["first", "", ""]
    assert np.isnan(answer["z"]).all()


def test_one_recording_is_cut_by_the_annotations_that_mark_steps(build):
    build.environment["source"] = "profiler"
    for number, length in enumerate((200, 100, 110, 105, 400, 108)):
        start = number * 1000
        build.annotation(f"ProfilerStep#{number + 3}", start, length, number * 10 + 1)
        build.annotation("aten::mm", start + 10, 50, number * 10 + 2, number + 1)
        build.call("cudaLaunchKernel", start + 20, 5, correlation_id=number + 1)
        build.kernel("gemm", start + 500, length - 70, correlation_id=number + 1)  # it runs when the step is over
    answer = steps(build.recording())
    assert answer["name"].tolist() == [f"ProfilerStep#{number}" for number in range(3, 9)]
    assert answer["verdict"].tolist() == ["first", "usual", "usual", "usual", "outlier", "usual"]
    assert (answer["op"][4], answer["activities"].tolist()) == ("aten::mm", [1] * 6)
    assert [rows["kernels"].tolist() for rows in answer.evidence] == [[number] for number in range(6)]
    assert answer["busy_ns"].tolist() == [0] * 6


@pytest.mark.parametrize("source", ["native", "profiler"])
def test_a_part_has_no_steps_that_lie_outside_of_it_although_they_launched_its_work(build, source):
    build.environment["source"] = source
    for number in range(4):
        build.annotation(f"step {number}", 1000 * number, 1000, 500 + number, number + 1)
        build.call("cudaLaunchKernel", 1000 * number + 10, 20, correlation_id=number + 1)
        build.kernel("gemm", 1000 * number + 1100, 300, correlation_id=number + 1)
    recording = build.recording()
    answer = steps(between(recording, 2000, 4000))
    assert (answer["name"].tolist(), answer["busy_ns"].tolist()) == (["step 2", "step 3"], [300, 300])
    assert steps(between(recording, 2000, 3000))["name"].tolist() == [""]
    assert answer.notes == steps(recording).notes == ()
    note = "{} beyond the recording, or the part of it: only what happened inside counts."
    for bounds, cut in (((2001, 4000), "1 step reaches"), ((1500, 3999), "2 steps reach"), ((2001, 3000), None)):
        assert steps(between(recording, *bounds)).notes == ((note.format(cut),) if cut else ())
    assert {row["name"] for row in steps(recording)} == {f"step {number}" for number in range(4)}


def test_the_first_marked_step_of_each_recording_is_apart(build):
    for number, length in enumerate((400, 100, 110, 105)):
        build.annotation(f"ProfilerStep#{number}", number * 1000, length, number + 1)
    answer = steps([build.recording(), build.recording()])
    assert answer["verdict"].tolist() == ["first", "usual", "usual", "usual"] * 2


def test_a_device_is_busy_in_a_step_with_work_that_was_launched_before(build):
    build.environment["source"] = "profiler"
    for number in range(5):  # the host takes 20 ns a step, the device 100
        build.annotation(f"ProfilerStep#{number}", number * 20, 20, number * 10 + 1)
        build.call("cudaLaunchKernel", number * 20 + 1, 5, correlation_id=number + 1)
        build.kernel("gemm", 10 + number * 100, 100, correlation_id=number + 1)
    build.annotation("ProfilerStep#5", 100, 450, 99)  # it waits for the device
    answer = steps(build.recording())
    assert answer["busy_ns"].tolist() == [10, 20, 20, 20, 20, 410]
    assert answer["activities"].tolist() == [1, 1, 1, 1, 1, 0]
    assert (answer["verdict"][5], answer["op"][5]) == ("outlier", "(idle)")


def test_marks_inside_of_marks_and_single_marks(build):
    build.annotation("step", 0, 5000, 1).annotation("batch 1", 100, 100, 2).annotation("batch 2", 300, 100, 3)
    assert steps(build.recording())["name"].tolist() == [""]
    build.annotation("step", 6000, 500, 4)
    assert steps(build.recording())["name"].tolist() == ["step", "step"]
    assert steps(build.recording(), mark="batch .*")["name"].tolist() == ["batch 1", "batch 2"]


@pytest.mark.parametrize("ask", [steps, memory_growth, partial(memory_growth, by="op")])
def test_a_mark_that_no_annotations_have_is_noted(ask, build):
    build.annotation("epoch 1", 0, 100, 1).annotation("epoch 2", 200, 100, 2)
    note = "No recording is divided: fewer than two annotations have a whole name that mark={!r} matches."
    for mark in ("epoch", "nothing"):
        assert note.format(mark) in ask(build.recording(), mark=mark).notes
    for given in ({}, {"mark": "epoch .*"}):
        assert not [each for each in ask(build.recording(), **given).notes if "is divided" in each]


def test_a_mark_that_is_no_pattern(build):
    with pytest.raises(ValueError, match="is not a regular expression"):
        steps(build.recording(), mark="(")


@pytest.mark.medium
def test_steps_of_a_recorded_trace(load_trace):
    answer = steps(load_trace("hta/v100_rank1of2_profile_memory.json.gz"))
    assert len(answer) == 5
    assert all(name.startswith("ProfilerStep#") for name in answer["name"])


@pytest.mark.medium
def test_the_order_of_steps_after_the_first_does_not_matter(make):
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies

    @hypothesis.given(st.lists(st.integers(10, 60), min_size=1, max_size=8), st.randoms(use_true_random=False))
    def check(durations, random):
        given = [make(each, conv=each - 5, fc=3) for each in durations]
        answer = steps(given)
        order = [0, *random.sample(range(1, len(given)), len(given) - 1)]
        again = steps([given[place] for place in order])
        for name in ("window_ns", "verdict", "op", "op_excess_ns"):
            assert again[name].tolist() == answer[name][order].tolist()
        assert np.array_equal(again["z"], answer["z"][order], equal_nan=True)
        assert answer.totals == again.totals
        if len(given) > 3:
            usual = np.array(durations[1:]) * 1000.0
            assert np.array_equal(answer["z"][1:], modified_z(usual, usual))

    check()


def test_ranks_are_compared_with_themselves(make, build):
    """A slower rank is not an outlier in each of its steps."""
    fast = [make(each, conv=4) for each in (90, 10, 12, 11, 13, 50)]
    slow = [make(each, conv=4) for each in (900, 101, 102, 100, 103, 104)]
    alone = [steps(own) for own in (fast, slow)]
    mixed = [
        Step(RecordingSource(recording), rank=rank)
        for pair in zip(fast, slow, strict=True)
        for rank, recording in enumerate(pair)
    ]
    together = steps(mixed)
    assert together["step"].tolist() == list(range(12))
    for rank, answer in enumerate(alone):
        for column in ("window_ns", "verdict", "op", "op_excess_ns"):
            assert together[column].tolist()[rank::2] == answer[column].tolist()
        assert np.array_equal(together["z"][rank::2], answer["z"], equal_nan=True)
    assert together["verdict"].tolist().count("outlier") == 1


def test_marks_of_one_of_several_processes(build):
    """The steps of the others are not known: the answer says that their work counts in these steps."""
    for number in (1, 2):
        build.annotation(f"step {number}", 1000 * number, 900, number)
        for process in (41, 42):
            correlation = 100 * process + number
            build.call("cudaLaunchKernel", 1000 * number + 10, 5, correlation_id=correlation, process_id=process)
            build.kernel("k", 1000 * number + 20, 50, correlation_id=correlation, device_id=process - 41)
    answer = steps(build.recording())
    assert answer["activities"].tolist() == [2, 2]
    assert "the recording has 2 processes" in answer.notes[0]
    for call in build.rows["api_calls"]:
        call["process_id"] = 41
    assert steps(build.recording()).notes == ()
