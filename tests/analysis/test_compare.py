"""Comparison of steps: sums that add up, new and gone keys, and verdicts."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from collector import analysis
from collector.analysis.compare import BY
from collector.recording.recording import Recording
from tests.support.captures import CaptureBuilder


def step(*kernels, copies=(), length=100_000):
    """A step of kernels (name, op, ns), one after the other, with 100 ns between them."""
    build = CaptureBuilder()
    build.clock["cupti_stop_ns"] = build.clock["wall_stop_ns"] = build.clock["cupti_start_ns"] + length
    at = 1000
    ops = sorted({op for _, op, _ in kernels if op})
    for number, (name, op, duration) in enumerate(kernels, 1):
        build.call("cudaLaunchKernel_v7000", at - 90, 20, correlation_id=number)
        build.kernel(name, at, duration, correlation_id=number)
        if op:
            build.raw("external_correlations", correlation_id=number, external_id=ops.index(op) + 1, external_kind=5)
        at += duration + 100
    for number, op in enumerate(ops, 1):
        build.annotation(op, 10, at, number)
    for duration in copies:
        build.memcpy(at, duration)
        at += duration
    return recorded_here(build)


def recorded_here(build):
    """The recording as one of `collector.trace`, whose annotations have whole paths."""
    capture = build.capture()
    capture["environment"]["source"] = "native"
    return Recording.from_capture(capture)


def steps(count, spread=3, **durations):
    """Steps of one kernel each by name, whose durations differ a little."""
    random = np.random.default_rng(len(durations))
    return [
        step(*((name, name, duration + int(random.integers(spread))) for name, duration in durations.items()))
        for _ in range(count)
    ]


def verdicts(answer):
    return {row[answer.columns[0].name]: row["verdict"] for row in answer}


def test_the_sums_of_one_step_against_another():
    before = step(("gemm", "layer/mm", 500), ("relu", "layer/act", 100), ("old", "", 40))
    now = step(("gemm", "layer/mm", 700), ("gemm", "layer/mm", 50), ("relu", "layer/act", 90), ("fused", "", 30))
    answer = analysis.compare(before, now)
    assert [(row["path"], row["before_ns"], row["now_ns"], row["change_ns"]) for row in answer] == [
        ("layer/mm", 500, 750, 250),
        ("layer/act", 100, 90, -10),
        ("(no annotation)", 40, 30, -10),
    ]
    assert answer.totals == {"before_steps": 1, "now_steps": 1, "before_ns": 640, "now_ns": 870, "change_ns": 230}
    assert [row["count_now"] for row in answer] == [2, 1, 1]
    kernels = analysis.compare(before, now, by="kernel")
    assert [(row["name"], row["change_ns"]) for row in kernels] == [
        ("gemm", 250), ("old", -40), ("fused", 30), ("relu", -10),
    ]  # fmt: skip
    assert kernels.totals["change_ns"] == 230


def test_with_one_step_of_each_side_the_sums_are_shown_and_no_verdict():
    pytest.importorskip("scipy")
    answer = analysis.compare(step(("k", "", 50_000)), step(("k", "", 90_000)), by="kernel")
    assert verdicts(answer) == {"k": "not enough steps"}
    assert answer.notes == ("Not enough steps: 1 key needs 4 steps of each side for a verdict, and there are 1 and 1.",)
    assert answer["change_ns"].tolist() == [40_000]
    assert answer.notes[0] in str(answer)


@pytest.mark.medium
def test_verdicts_of_eight_steps():
    pytest.importorskip("scipy")
    before = steps(8, worse=10_000, better=9000, equal=8000, tiny=20, gone=3000)
    now = steps(8, worse=12_000, better=7000, equal=8000, tiny=40, added=3000)
    answer = analysis.compare(before, now, by="kernel")
    assert verdicts(answer) == {
        "worse": "slower",
        "better": "faster",
        "equal": "no change shown",
        "tiny": "small",
        "gone": "gone",
        "added": "new",
    }
    (worse,) = (row for row in answer if row["name"] == "worse")
    assert worse["low"] < 1.2 < worse["high"]
    assert not answer.notes
    assert verdicts(analysis.compare(before, now, by="step")) == {"step": "no change shown"}


@pytest.mark.medium
def test_what_is_compared_adds_up_to_the_whole():
    before = [step(("a", "x", 500 + n), ("b", "y", 70), copies=(30, n)) for n in range(3)]
    now = [step(("a", "x", 450), ("c", "z", 33 + n), copies=(n, n), length=100_001) for n in range(7)]
    for by in BY:
        answer = analysis.compare(before, now, by=by)
        assert answer["change_ns"].sum() == answer.totals["change_ns"]
        assert answer["change_ns"].tolist() == (answer["now_ns"] - answer["before_ns"]).tolist()
    work = analysis.compare(before, now, by="op").totals
    assert work["before_ns"] == sum(500 + n + 70 + 30 + n for n in range(3)) // 3
    assert work["now_ns"] == sum(450 + 33 + n + n + n for n in range(7)) // 7
    assert analysis.compare(before, now, by="time").totals["now_ns"] == 100_001
    idle, time = (analysis.compare(before, now, by=by) for by in ("idle", "time"))
    causes = {row["cause"]: row["now_ns"] for row in idle}
    assert set(causes) >= {"launch latency", "tail"}
    parts = {row["part"]: row["now_ns"] for row in time}
    assert all(abs(parts[f"idle: {cause}"] - spent) <= 1 for cause, spent in causes.items() if spent)


def test_the_times_of_several_devices_count_together():
    build = CaptureBuilder()
    for device, duration in enumerate((300, 500)):
        build.call("cudaLaunchKernel_v7000", 10 * device, 5, correlation_id=device + 1)
        build.kernel("k", 1000, duration, device_id=device, correlation_id=device + 1)
    step = recorded_here(build)
    parts = {row["part"]: row["before_ns"] for row in analysis.compare(step, step, by="time")}
    assert parts["compute"] == 300 + 500
    assert sum(parts.values()) == 2 * step.clock.window_ns
    (kernel,) = analysis.compare(step, step, by="kernel")
    assert (kernel["count_before"], kernel["before_ns"]) == (2, 300 + 500)


@pytest.mark.medium
def test_parts_add_up_whatever_the_steps_hold():
    hypothesis = pytest.importorskip("hypothesis")
    from hypothesis import strategies as st
    from properties import examples

    kernel = st.tuples(st.sampled_from("abc"), st.sampled_from(["", "x", "x/y"]), st.integers(0, 5000))
    some = st.lists(st.lists(kernel, max_size=5), min_size=1, max_size=4)

    tested = [
        [[("a", "", duration)] for duration in side] for side in ((1287, 3077, 3820, 1919), (2305, 4986, 4025, 4904))
    ]

    @hypothesis.settings(deadline=None, max_examples=examples(30))
    @hypothesis.given(some, some, st.sampled_from(["op", "kernel", "time", "idle", "step"]))
    @hypothesis.example(*tested, "kernel")
    def check(before, now, by):
        sides = [[step(*each) for each in side] for side in (before, now)]
        answer = analysis.compare(*sides, by=by)
        back = analysis.compare(*sides[::-1], by=by)
        assert answer["change_ns"].sum() == answer.totals["change_ns"] == -back.totals["change_ns"]
        if by in ("op", "kernel"):
            sums = [sum(spent for each in side for _, _, spent in each) // len(side) for side in (before, now)]
            assert answer.totals["change_ns"] == sums[1] - sums[0]
        turned = analysis.compare(sides[0][::-1], sides[1], by=by)
        assert turned.to_csv() == answer.to_csv()

    check()


def marked(names, durations):
    """One recording with steps that are marked by annotations; each launches one kernel."""
    build = CaptureBuilder()
    build.clock["cupti_stop_ns"] = build.clock["wall_stop_ns"] = build.clock["cupti_start_ns"] + 10_000_000
    for number, duration in enumerate(durations, 1):
        start = 100_000 * number
        build.call("cudaLaunchKernel_v7000", start + 10, 20, correlation_id=number)
        build.kernel("k", start + 100, duration, correlation_id=number)
        build.annotation(f"{names}#{number}", start, 90_000, 2 * number)
        build.annotation(f"{names}#{number}/layer", start + 5, 100, 2 * number + 1, number)
    return recorded_here(build)


def test_steps_that_are_marked_in_one_recording_are_steps():
    pytest.importorskip("scipy")
    before = marked("ProfilerStep", [1000, 1010, 1020, 1030])
    now = marked("ProfilerStep", [3000, 3010, 3020, 3030])
    answer = analysis.compare(before, now)
    assert verdicts(answer) == {"layer": "slower"}
    assert answer.totals["before_steps"] == 4
    assert answer.totals["change_ns"] == 2000
    assert {window.length_ns for window in answer.windows} == {90_000}
    assert answer.notes == (
        "Each side is one recording, so the variation from run to run is unknown: a standard deviation of 1% is "
        "assumed. Compare several recordings of each side to have it measured.",
    )
    several = analysis.compare([before, before], [now, now])
    assert (several.notes, verdicts(several)) == ((), {"layer": "slower"})


def test_a_change_of_the_whole_step_below_the_least_effect_is_small():
    pytest.importorskip("scipy")
    sides = [[step(length=length + n) for n in range(8)] for length in (100_000, 100_500)]
    assert verdicts(analysis.compare(*sides, by="step")) == {"step": "small"}
    assert verdicts(analysis.compare(*sides, by="step", least_effect=0.001)) == {"step": "slower"}


def running_ahead(steps, kernel_ns):
    """Steps of 100 ns of the host, each of which launches a kernel that runs after the kernels before."""
    build = CaptureBuilder()
    for number in range(steps):
        build.annotation(f"ProfilerStep#{number}", number * 100, 100, number + 1)
        build.call("cudaLaunchKernel_v7000", number * 100 + 10, 20, correlation_id=number + 1)
        build.kernel("k", 1000 + number * kernel_ns, kernel_ns, correlation_id=number + 1)
    build.annotation(f"ProfilerStep#{steps}", steps * 100, 4000, steps + 1)
    return recorded_here(build)


@pytest.mark.parametrize("source", ["native", "kineto"])
def test_ops_of_marked_steps_inside_another_annotation_have_no_names_of_steps(source):
    build = CaptureBuilder()
    build.environment["source"] = source
    around = ("epoch/", "epoch/ProfilerStep#{}/") if source == "native" else ("", "")
    build.annotation("epoch", 0, 900_000, 1)
    for number in range(3):
        start = 10_000 + 100_000 * number
        build.annotation(f"{around[0]}ProfilerStep#{number}", start, 90_000, 10 + number)
        build.annotation(f"{around[1].format(number)}conv", start + 500, 500, 20 + number, 1 + number)
        build.call("cudaLaunchKernel", start + 600, 100, correlation_id=1 + number)
        build.kernel("gemm", start + 5_000, 1_000, correlation_id=1 + number)
    recording = build.recording()
    (row,) = analysis.compare(recording, recording)
    assert (row["path"], row["count_now"], row["now_ns"]) == ("conv", 1, 1_000)


def test_steps_that_reach_beyond_a_part_are_stated():
    recording = marked("ProfilerStep", [1000, 1010, 1020, 1030])
    first = analysis.steps(recording).windows[0]
    began = first.start_ns - recording.clock.cupti_start_ns
    part = analysis.between(recording, began + 1, recording.clock.window_ns)
    note = "now: 1 step reaches beyond the recording, or the part of it: only what happened inside counts."
    assert note in analysis.compare(recording, part, by="time").notes
    assert note not in analysis.compare(recording, recording, by="time").notes


def test_the_time_of_a_step_is_that_of_the_work_that_ran_in_it():
    step = running_ahead(10, 400)
    answer = analysis.compare(step, step, by="time")
    sums = {row["part"]: row["now_ns"] * 11 for row in answer}
    assert sums == pytest.approx({"compute": 4000, "idle: tail": 1000}, abs=11)  # the kernels fill the last step
    (idle,) = analysis.compare(step, step, by="idle")
    assert (idle["cause"], idle["now_ns"]) == ("tail", 1000 // 11)
    kernels = analysis.compare(step, step, by="kernel")
    assert kernels["count_now"].tolist() == [10 / 11]


def test_steps_are_not_cut_out_of_their_recording_one_by_one(monkeypatch):
    """Which takes milliseconds for each step, and a long run has a hundred thousand of them."""
    recording = marked("step", [1000] * 20)
    monkeypatch.setattr(Recording, "part_of_rows", None)
    for by in BY:
        assert analysis.compare(recording, recording, by=by).totals["now_steps"] == 20


def test_without_scipy_the_sums_are_shown_and_one_line_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    answer = analysis.compare(steps(8, k=1000), steps(8, k=2000), by="kernel")
    assert verdicts(answer) == {"k": ""}
    assert answer.notes == (
        "There are no intervals and no verdicts: scipy is not installed. Run: pip install 'cupti-collector[bench]'",
    )
    assert answer["ratio"][0] == pytest.approx(2, rel=0.01)
    json.dumps(answer.to_json(), allow_nan=False)


def test_losses_of_both_sides_are_named():
    build = CaptureBuilder()
    build.counters["records_dropped"] = 3
    lossy = build.kernel("k", 100).recording()
    assert any(loss.startswith("now: CUPTI dropped 3") for loss in analysis.compare(lossy, lossy).losses)
    assert analysis.compare([lossy, lossy], lossy).losses[1].startswith("before, step 1: ")


@pytest.mark.parametrize(
    ("before", "by", "says"),
    [
        ([], "op", "no steps"),
        (None, "weather", "by='weather': steps are compared by step, time"),
        (None, ["op"], r"by=\['op'\]: steps are compared by step, time"),
    ],
)
def test_what_cannot_be_compared(before, by, says):
    with pytest.raises(ValueError, match=says):
        analysis.compare(step() if before is None else before, step(), by=by)


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.05, float("nan")])
def test_a_rate_of_false_discoveries_lies_between_0_and_1(rate):
    with pytest.raises(ValueError, match="between 0 and 1"):
        analysis.compare(step(("k", "", 5)), step(("k", "", 9)), by="kernel", false_discoveries=rate)


def test_a_very_small_rate_needs_very_many_steps():
    pytest.importorskip("scipy")
    answer = analysis.compare(
        step(("k", "", 50_000)), step(("k", "", 90_000)), by="kernel", false_discoveries=sys.float_info.min
    )
    assert answer.notes == (
        "Not enough steps: 1 key needs 515 steps of each side for a verdict, and there are 1 and 1.",
    )


def test_steps_of_nothing_compare_to_nothing():
    answer = analysis.compare(step(), step())
    assert len(answer) == 0
    assert answer.totals["change_ns"] == 0
