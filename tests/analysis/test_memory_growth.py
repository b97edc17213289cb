"""Growth of memory from step to step, and the annotations that keep it."""

from __future__ import annotations

import importlib
import itertools
import sys

import numpy as np
import pytest

from collector.analysis import between, memory, memory_growth
from collector.analysis.annotation_paths import NO_ANNOTATION
from collector.analysis.memory_growth import BEFORE
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource
from collector.recording.cupti_enums import ALLOCATION, RELEASE

memory_growth_module = importlib.import_module("collector.analysis.memory_growth")
"""The function of this name hides it in the package."""


def operation(build, at, num_bytes, address, **values):
    """An allocation, or where the size is negative a release."""
    row = {"memory_kind": 3, "correlation_id": at + 1, "num_bytes": abs(num_bytes)}
    row["operation"] = ALLOCATION if num_bytes > 0 else RELEASE
    start_ns = build.clock["cupti_start_ns"] + at
    return build.raw("memory_operations", start_ns=start_ns, address=address, **(row | values))


@pytest.fixture
def leaking(build):
    """Four steps of 100 ns: each keeps 10 bytes under layer/cache; the first keeps 1000 under layer/weights."""
    for step in range(4):
        at = 100 * step
        build.annotation(f"step {step}", at, 100, 50 + step)
        build.annotation(f"step {step}/layer/cache", at + 10, 5, 60 + step, at + 11)
        build.annotation(f"step {step}/layer/work", at + 20, 20, 70 + step, at + 21, at + 31)
        operation(build, at + 10, 10, 100 + step)
        operation(build, at + 20, 500, 7)
        operation(build, at + 30, -500, 7)
    operation(build, 5, 1000, 8)
    build.annotation("step 0/layer/weights", 4, 4, 80, 6)
    return build


def test_steps_of_the_worked_example(leaking):
    answer = memory_growth(leaking.recording())
    assert [(row["mark_number"], row["name"], row["growth_bytes"]) for row in answer] == [
        (0, "step 0", 1010),
        (1, "step 1", 10),
        (2, "step 2", 10),
        (3, "step 3", 10),
    ]
    assert answer["end_bytes"].tolist() == [1010, 1020, 1030, 1040]
    assert answer["high_water_bytes"].tolist() == [1510, 1520, 1530, 1540]
    assert answer["allocations"].tolist() == [3, 2, 2, 2]
    assert answer["releases"].tolist() == [1] * 4
    assert answer.totals["growth_bytes"] == memory(leaking.recording())["end_bytes"].sum() == 1040
    assert [window.length_ns for window in answer.windows] == [100] * 4
    assert sorted(row for each in answer.evidence for row in each["memory_operations"].tolist()) == list(range(13))


def test_annotations_that_keep_memory_in_every_step_after_the_first(leaking):
    answer = memory_growth(leaking.recording(), by="op")
    columns = ("path", "growth_bytes", "growing_steps", "steps", "bytes_per_step", "verdict")
    assert [tuple(row[name] for name in columns) for row in answer] == [
        ("layer/cache", 30, 3, 3, 10, "every step"),
        ("layer/work", 0, 0, 3, 0, "no step"),
    ]
    (first, *_) = memory_growth(leaking.recording(), by="op", first_apart=False)
    assert (first["path"], first["growth_bytes"], first["verdict"]) == ("layer/weights", 1000, "some steps")


def test_a_release_counts_in_the_step_in_which_it_happens_and_for_the_annotation_that_allocated(leaking):
    operation(leaking, 350, -10, 101)
    assert memory_growth(leaking.recording())["growth_bytes"].tolist() == [1010, 10, 10, 0]
    (row, *_) = memory_growth(leaking.recording(), by="op")
    assert (row["path"], row["growth_bytes"], row["growing_steps"], row["verdict"]) == (
        "layer/cache", 20, 2, "some steps",
    )  # fmt: skip


def test_operations_between_steps_belong_to_none(build):
    build.annotation("step 0", 0, 50, 50).annotation("step 1", 100, 50, 51)
    for at, num_bytes, address in ((10, 10, 1), (50, 20, 2), (99, 40, 3), (100, 80, 4), (149, -80, 4), (150, 160, 5)):
        operation(build, at, num_bytes, address)
    answer = memory_growth(build.recording())
    assert answer["growth_bytes"].tolist() == [10, 0]
    assert answer["end_bytes"].tolist() == [10, 70]
    assert answer["high_water_bytes"].tolist() == [10, 150]


def test_a_recording_without_marks_is_one_step_and_several_are_compared(build):
    def step(kept, *, releases):
        own = type(build)()
        operation(own, 0, kept, 1)
        if releases:
            operation(own, 10, -releases, 2)
        return own.recording()

    recordings = [step(100, releases=0), step(30, releases=30), step(30, releases=10)]
    answer = memory_growth(recordings)
    assert (answer["step"].tolist(), answer["growth_bytes"].tolist()) == ([0, 1, 2], [100, 0, 20])
    assert set(answer["name"]) == {""}
    by_op = memory_growth(recordings, by="op")
    assert [(row["path"], row["growth_bytes"], row["verdict"]) for row in by_op] == [
        (NO_ANNOTATION, 60, "every step"),
        (BEFORE, -40, "no step"),
    ]
    assert by_op.losses[-1] == "step 2: 1 release of memory whose allocation was not recorded"
    (alone,) = memory_growth(recordings[0], by="op")
    assert (alone["growth_bytes"], alone["steps"], alone["verdict"]) == (100, 1, "")


def test_memory_at_an_address_that_is_allocated_again_was_released_then(build):
    operation(operation(build, 0, 100, 1), 10, 300, 1)
    answer = memory_growth(build.recording())
    assert (answer["growth_bytes"].tolist(), answer["releases"].tolist()) == ([300], [1])
    assert answer.losses == ("1 allocation at an address in use, whose release was not recorded",)


def test_kinds_devices_and_pools_are_apart(build):
    operation(build, 0, 100, 1)
    operation(build, 5, 7, 1, device_id=1)
    operation(build, 10, 50, 9, memory_kind=2)
    found = {(row["device_id"], row["memory"]): row["growth_bytes"] for row in memory_growth(build.recording())}
    assert found == {(0, "Device"): 100, (0, "Pinned"): 50, (1, "Device"): 7}
    assert len(memory_growth(build.recording(), by="op")) == 3


def test_nothing_was_recorded_and_bad_arguments(build):
    for by in ("step", "op"):
        assert len(memory_growth(build.recording(), by=by)) == len(memory_growth([], by=by)) == 0
    with pytest.raises(ValueError, match="counted by step, op"):
        memory_growth(build.recording(), by="pool")
    with pytest.raises(ValueError, match="is not a regular expression"):
        memory_growth(build.recording(), mark="(")


class CountedColumn(np.ndarray):
    """A column that counts the elements that NumPy's functions read from it."""

    read = 0

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        CountedColumn.read += len(self)
        plain = [each.view(np.ndarray) if isinstance(each, CountedColumn) else each for each in inputs]
        return getattr(ufunc, method)(*plain, **options)


def many_operations(build, steps, places, each):
    """Steps of 1,000 ns, in each of which each place gets allocations under five annotations, and keeps the first."""
    external = 0
    for step, place, number in itertools.product(range(steps), range(places), range(each)):
        at, own = 1000 * step + place * each + number, {"pool_address": place + 1}
        if not place and not number:
            build.annotation(f"step {step}", at, 1000, external := external + 1)
        build.annotation(f"step {step}/op {number % 5}", at, 1, external := external + 1, at + 1)
        operation(build, at, 64, 1 + at, **own)
        if number:
            operation(build, at + 500, -64, 1 + at, **own)
    return build


def test_many_steps_and_places_are_not_searched_for_each_other(build, monkeypatch):
    """Each change is read a few times, and not once for each step and place."""
    recording = many_operations(build, steps=40, places=10, each=6).recording()
    of = memory_growth_module._Changes.of

    def counted(*given):
        return memory_growth_module._Changes(*(column.view(CountedColumn) for column in of(*given)))

    monkeypatch.setattr(memory_growth_module._Changes, "of", counted)
    CountedColumn.read = 0
    answer = memory_growth(recording)
    assert CountedColumn.read < 20 * len(recording.memory_operations)
    assert len(answer) == 400
    assert set(answer["growth_bytes"]) == {64}
    assert answer.totals["allocations"] == 2400
    assert answer["end_bytes"].tolist() == [64 * (step + 1) for step in range(40) for _ in range(10)]


def lines_run(function):
    """The number of lines of the module that a call of the function runs."""
    count = 0

    def traced(frame, event, _):
        nonlocal count
        count += event == "line"
        return traced if frame.f_code.co_filename == memory_growth_module.__file__ else None

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def test_the_operations_of_annotations_are_summed_without_a_loop_over_them(build):
    few = many_operations(type(build)(), steps=3, places=2, each=5).recording()
    many = many_operations(build, steps=3, places=2, each=100).recording()
    assert lines_run(lambda: memory_growth(many, by="op")) == lines_run(lambda: memory_growth(few, by="op"))
    rows = [(row["path"], row["growth_bytes"], row["growing_steps"]) for row in memory_growth(many, by="op")]
    assert sorted(rows) == sorted([("op 0", 2 * 64, 2), *((f"op {number}", 0, 0) for number in range(1, 5))] * 2)


class RankStep(Step):
    """A step of a rank and a run."""

    def __init__(self, recording, rank, run=""):
        super().__init__(RecordingSource(recording))
        self.rank, self.run = rank, run


@pytest.mark.parametrize("order", ["by rank", "by step"])
@pytest.mark.parametrize("of", ["rank", "run"])
def test_the_first_step_of_each_run_and_rank_is_left_out(build, order, of):
    """The steps of the second rank or run follow those of the first one, or are between them."""

    def step(number, rank):
        own = type(build)()
        operation(own, 0, 1000 if number == 0 else 10, 1)
        names = {"rank": rank} if of == "rank" else {"rank": 0, "run": f"run {rank}"}
        return RankStep(own.recording(), **names)

    steps = [step(number, rank) for rank in range(2) for number in range(4)]
    if order == "by step":
        steps = [each for pair in zip(steps[:4], steps[4:], strict=True) for each in pair]
    (row,) = memory_growth(steps, by="op")
    assert (row["growth_bytes"], row["steps"], row["verdict"]) == (60, 6, "every step")
    (whole,) = memory_growth(steps, by="op", first_apart=False)
    assert (whole["growth_bytes"], whole["steps"]) == (2060, 8)
    alone = [memory_growth([each for each in steps if (each.rank, each.run) == own], by="op") for own in
             dict.fromkeys((each.rank, each.run) for each in steps)]  # fmt: skip
    assert sum(answer.totals["growth_bytes"] for answer in alone) == row["growth_bytes"]


def test_the_only_step_of_a_rank_is_not_left_out(build):
    recordings = []
    for rank in range(2):
        own = type(build)()
        operation(own, 0, 10 + rank, 1)
        recordings.append(RankStep(own.recording(), rank))
    (row,) = memory_growth(recordings, by="op")
    assert (row["growth_bytes"], row["steps"]) == (21, 2)


def test_memory_that_is_released_when_a_step_begins_is_not_held_in_it(build):
    build.annotation("step 1", 100, 100, 501).annotation("step 2", 200, 100, 502)
    for at, num_bytes, address in ((50, 1000, 1), (100, -1000, 1), (150, 10, 2), (160, 500, 3), (200, -500, 3)):
        operation(build, at, num_bytes, address)
    assert memory_growth(build.recording())["high_water_bytes"].tolist() == [510, 10]


def test_steps_that_reach_beyond_a_part_are_stated(build):
    for number in range(4):
        build.annotation(f"step {number}", 100 * number, 100, 500 + number)
        operation(build, 100 * number + 10, 64, number)
    part = between(build.recording(), 150, 400)
    (note,) = memory_growth(part).notes
    assert note == "1 step reaches beyond the recording, or the part of it: only what happened inside counts."
    assert memory_growth(part)["growth_bytes"].tolist() == [0, 64, 64]
    assert memory_growth(part, by="op", first_apart=False).notes == (note,)
    assert memory_growth(part, by="op").notes == ()  # the first step is left out


@pytest.mark.medium
def test_growth_is_that_of_a_slow_count(build):
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies
    operations = st.lists(
        st.tuples(st.integers(0, 99), st.integers(1, 9), st.integers(1, 5), st.booleans()),
        max_size=40,
        unique_by=lambda each: each[0],
    )

    @hypothesis.given(operations, st.lists(st.integers(1, 98), min_size=1, max_size=3, unique=True))
    def check(operations, cuts):
        made = type(build)()
        bounds = [0, *sorted(cuts), 100]
        for number, (start, end) in enumerate(itertools.pairwise(bounds)):
            made.annotation(f"step {number}", start, end - start, 500 + number)
        growth, held, ends, highs = [0] * (len(bounds) - 1), {}, [], []
        operations = sorted(operations)
        for at, num_bytes, address, is_allocation in operations:
            operation(made, at, num_bytes if is_allocation else -num_bytes, address)
        for number, (start, end) in enumerate(itertools.pairwise(bounds)):
            high = 0 if any(each[0] == start for each in operations) else sum(held.values())
            for _, num_bytes, address, is_allocation in (each for each in operations if start <= each[0] < end):
                before = held.pop(address, None)
                if is_allocation:
                    held[address] = num_bytes
                    growth[number] += num_bytes - (before or 0)
                else:
                    growth[number] -= num_bytes if before is None else before
                high = max(high, sum(held.values()))
            highs.append(high)
            ends.append(sum(held.values()))
        answer = memory_growth(made.recording())
        if operations:
            assert answer["growth_bytes"].tolist() == growth
            assert answer["end_bytes"].tolist() == ends
            assert answer["high_water_bytes"].tolist() == highs
            by_op = memory_growth(made.recording(), by="op", first_apart=False)
            assert by_op.totals == {"growth_bytes": sum(growth)}

    check()
