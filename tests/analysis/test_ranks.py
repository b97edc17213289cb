"""Stragglers among ranks."""

from __future__ import annotations

import json

import pytest

import collector
from collector.analysis import between, devices, ranks
from collector.errors import CollectorError
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource

NAME = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
TOLD = ("Collective name", "Process Group Name", "In msg nelems")


@pytest.fixture
def of_rank(build):
    """Makes the recording of a rank of its collectives, each (start, end) or (start, end, name)."""

    def made(*collectives, ahead_ns=0):
        step = type(build)()
        for start, end, *name in collectives:
            step.kernel(name[0] if name else NAME, start + ahead_ns, end - start)
        step.kernel("gemm", 0, 5)
        return step.recording()

    return made


def test_the_worked_example(of_rank):
    steps = [of_rank((10, 50)), of_rank((12, 51)), of_rank((40, 50))]
    answer = ranks(steps, clock_offsets={0: 0, 1: 0, 2: 0})
    assert [(row["rank"], row["last"], row["caused_ns"], row["wait_ns"]) for row in answer] == [
        (2, 1, 58, 0),
        (0, 0, 0, 30),
        (1, 0, 0, 28),
    ]
    (collective,) = ranks(steps, by="collective", clock_offsets=None)
    assert collective["name"].startswith(NAME)
    figures = ("ranks", "straggler", "skew_ns", "cost_ns", "transfer_ns")
    assert [collective[name] for name in figures] == [3, 2, 30, 58, 10]


def test_ranks_that_begin_at_once_do_not_wait(of_rank):
    steps = [of_rank((10, 50)), of_rank((10, 40))]
    answer = ranks(steps, clock_offsets=None)
    assert [(row["rank"], row["last"], row["wait_ns"], row["clock"]) for row in answer] == [
        (0, 0, 0, "believed"),
        (1, 0, 0, "believed"),
    ]
    (collective,) = ranks(steps, by="collective", clock_offsets=None)
    assert (collective["straggler"], collective["skew_ns"], collective["transfer_ns"]) == (0, 0, 30)


def test_a_part_of_a_step_has_its_path_its_rank_and_its_devices(of_rank, tmp_path):
    recording = of_rank((10, 50))
    stated = Step(RecordingSource(recording), path=tmp_path / "rank4.pb", kind="journal", rank=3, world_size=8)
    part = between(stated, 0, 20)
    assert (part.path, part.rank, part.world_size, part.kind) == (stated.path, 3, 8, "journal")
    assert len(part.recording.kernels) == 2
    assert part.recording.clock.window_ns == 20
    named = Step(RecordingSource(recording, "/job:worker/replica:0/task:5"))
    named.save(tmp_path / "step.pb")
    for step in (named, collector.load(tmp_path / "step.pb")):
        again = between(step, 0, 20)
        assert {device.device.split("/gpu")[0] for device in again.step_stats.dev_stats} == {named.device_prefix}
        answer = ranks([again, between(stated, 0, 60)], clock_offsets=None)
        assert set(answer["rank"]) == {3, 5}
    assert isinstance(between(recording, 0, 20), type(recording))
    loaded = collector.load(tmp_path / "step.pb", window=(0, 20e-9))
    assert set(loaded.device_names()) >= set(again.device_names())


def test_files_of_unknown_ranks_are_not_ranks(of_rank, tmp_path):
    """They may be two runs of one program, of which a page compares one with the other."""
    recordings = [of_rank((10, 50)), of_rank((40, 50))]
    for name, recording in zip(("before", "after"), recordings, strict=True):
        recording.save(tmp_path / f"{name}.pb")
    steps = [collector.load(tmp_path / f"{name}.pb") for name in ("before", "after")]
    with pytest.raises(CollectorError, match="at least two ranks: 0 were given"):
        ranks(steps, clock_offsets=None)
    assert set(ranks(recordings, clock_offsets=None)["rank"]) == {0, 1}


def test_offsets_are_taken_off(of_rank):
    steps = [of_rank((10, 50)), of_rank((40, 50), ahead_ns=100)]
    answer = ranks(steps, clock_offsets={0: 0, 1: 100})
    assert [(row["rank"], row["caused_ns"], row["clock_offset_ns"]) for row in answer] == [(1, 30, 100), (0, 0, 0)]


def test_offsets_are_estimated_and_waits_within_their_error_are_none(of_rank):
    ends = [20_000 * number + 7 * number**2 for number in range(1, 40)]
    first = of_rank(*((end - 6_000, end) for end in ends))
    jitter = [(number * 37) % 100 for number in range(len(ends))]
    second = of_rank(*((end - 5_900 + late, end + late) for end, late in zip(ends, jitter, strict=True)), ahead_ns=7)
    third = of_rank(*((end - 1_000, end) for end in ends), ahead_ns=90_000)
    answer = ranks([first, second, third])
    by_rank = {row["rank"]: row for row in answer}
    assert by_rank[0]["clock"] == "reference"
    assert by_rank[2]["clock_offset_ns"] == 90_000
    assert by_rank[1]["clock_error_ns"] > 0
    assert (answer["rank"][0], by_rank[2]["last"]) == (2, len(ends))
    assert by_rank[2]["caused_ns"] == answer.totals["wait_ns"]
    alone = ranks([first, second])
    assert all(
        wait == 0 or wait > by_rank[1]["clock_error_ns"] for wait in ranks([first, second], by="collective")["cost_ns"]
    )
    assert alone.totals["wait_ns"] == alone.totals["caused_ns"]


def test_an_error_that_is_not_known_is_noted_and_not_stated_as_certain(of_rank):
    """One common moment gives an offset, and nothing to compare it with."""
    steps = [of_rank((10_000, 50_000)), of_rank((20_000, 50_000), ahead_ns=90_000)]
    answer = ranks(steps)
    assert {row["rank"]: (row["clock_offset_ns"], row["clock"]) for row in answer} == {
        0: (0, "reference"),
        1: (90_000, "estimated"),
    }
    why = "Where one collective in common determines the offset of a clock, its error is not known and counts as 0"
    assert answer.notes[-1] == f"{why}: rank 1."
    assert not any("not known" in note for note in ranks(steps, clock_offsets={0: 0, 1: 90_000}).notes)


def test_a_collective_that_one_trace_lacks_leaves_the_others_together(of_rank):
    ends = (100, 200, 300)
    steps = [of_rank(*((end - 30, end) for end in ends)), of_rank(*((end - 10, end) for end in ends[1:]))]
    answer = ranks(steps, clock_offsets=None)
    assert [(row["rank"], row["collectives"], row["caused_ns"]) for row in answer] == [(1, 2, 40), (0, 2, 0)]
    assert answer.losses == ("1 collective is left out: no other rank has a partner of it",)


def test_groups_that_run_the_same_without_each_other(of_rank):
    steps = [of_rank((10, 50)), of_rank((20, 50)), of_rank((510, 550)), of_rank((540, 550))]
    answer = ranks(steps, clock_offsets=None)
    assert {row["rank"]: row["caused_ns"] for row in answer} == {0: 0, 1: 10, 2: 0, 3: 30}


def test_names_that_differ_are_different_collectives(of_rank):
    steps = [of_rank((10, 50, "ncclKernel_AllGather")), of_rank((20, 50, "ncclKernel_AllReduce"))]
    assert ranks(steps, clock_offsets=None).totals["wait_ns"] == 0


def test_clocks_that_are_not_known_to_each_other_are_refused(of_rank):
    steps = [of_rank((10, 50)), of_rank((5_000, 9_000), (12_000, 12_500))]
    with pytest.raises(collector.CollectorError, match="cannot be related: no collectives that they have in common"):
        ranks(steps)
    assert devices(steps).totals["activities"] == 5
    with pytest.raises(collector.CollectorError, match="at least two ranks: 1 was given"):
        ranks(steps[0])
    with pytest.raises(ValueError, match="counted by rank, collective"):
        ranks(steps, by="step")


def test_ranks_without_a_known_clock_are_left_out(of_rank):
    steps = [of_rank((10, 50)), of_rank((20, 50)), of_rank((30, 50))]
    answer = ranks(steps, clock_offsets={0: 0, 2: 0})
    assert sorted(answer["rank"]) == [0, 2]
    assert answer.losses[0].startswith("rank 1 is left out")


def torch_rank(path, rank, starts):
    """A trace of PyTorch's profiler of a rank: kernels of one name and shape that end together, (start, end, group)."""
    arguments = {"device": 0, "stream": 7, "grid": [8, 1, 1], "block": [512, 1, 1]}
    events = [
        {"ph": "X", "cat": "kernel", "name": NAME, "pid": 0, "tid": 7, "ts": start, "dur": end - start,
         "args": {**arguments, "correlation": place + 1,
                  **(dict(zip(TOLD, ("allreduce", group, 64), strict=True)) if group else {})}}
        for place, (start, end, group) in enumerate(starts)
    ]  # fmt: skip
    path.write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": rank, "world_size": 2}}))
    return path


STATED_RANKS = [[(10, 50, "tp"), (60, 100, "dp")], [(20, 50, "tp"), (90, 100, "dp"), (101, 102, "")]]


@pytest.mark.parametrize("suffix", ["", ".gpurec", ".pb", ".json"])
def test_collectives_are_those_that_the_table_states_however_the_step_was_saved(tmp_path, suffix):
    steps = []
    for rank, starts in enumerate(STATED_RANKS):
        step = collector.load(torch_rank(tmp_path / f"of_rank{rank}.json", rank, starts))
        if suffix:
            step.recording.save(tmp_path / f"rank{rank}{suffix}")
            step = collector.load(tmp_path / f"rank{rank}{suffix}")
        steps.append(step)
    answer = ranks(steps, by="collective", clock_offsets=None)
    found = [(row["name"].removeprefix(NAME), row["cost_ns"]) for row in answer]
    assert found == [
        (f" collective:allreduce group:{group} grid:8,1,1 block:512,1,1 elements:64", cost)
        for group, cost in (("dp", 30_000), ("tp", 10_000))
    ]
    assert answer.losses[-1] == "1 collective is left out: no other rank has a partner of it"
    (note,) = answer.notes
    assert note.startswith("Collectives are those that the traces state, with their process groups")
    assert "those that the traces state" in answer.text()


def test_collectives_are_recognised_by_names_where_a_trace_does_not_state_them(tmp_path):
    unstated = [(start, end, "") for start, end, _ in STATED_RANKS[1][:2]]
    both = [[starts, unstated] for starts in (STATED_RANKS[0], [(start, end, "") for start, end, _ in STATED_RANKS[0]])]
    says = ["because some of the traces do not state them", "the traces state no process groups"]
    for traces, said in zip(both, says, strict=True):
        steps = [
            collector.load(torch_rank(tmp_path / f"rank{rank}.json", rank, starts))
            for rank, starts in enumerate(traces)
        ]
        answer = ranks(steps, by="collective", clock_offsets=None)
        assert sorted(answer["cost_ns"]) == [10_000, 30_000]
        assert said in answer.notes[0]


def test_a_rank_without_collectives_leaves_what_the_others_state(tmp_path):
    starts = [*STATED_RANKS, []]
    steps = [collector.load(torch_rank(tmp_path / f"rank{rank}.json", rank, each)) for rank, each in enumerate(starts)]
    assert "the traces state" in ranks(steps[:2], clock_offsets=None).notes[0]
    answer = ranks(steps, clock_offsets=None)
    assert "those that the traces state" in answer.notes[0]
    assert {row["rank"]: row["caused_ns"] for row in answer} == {0: 0, 1: 40_000, 2: 0}


def test_ranks_are_known_by_their_files(of_rank, tmp_path):
    for rank, start in ((7, 40), (3, 10)):
        of_rank((start, 50)).save(tmp_path / f"rank{rank}.gpurec")
    loaded = [collector.load(tmp_path / f"rank{rank}.gpurec") for rank in (7, 3)]
    answer = ranks(loaded, clock_offsets=None)
    assert answer["rank"].tolist() == [7, 3]
    assert ranks([*loaded, of_rank((10, 50))], clock_offsets=None).losses[0] == (
        "1 step is left out: the rank is not known"
    )


@pytest.mark.medium
def test_recorded_ranks(load_trace):
    answer = ranks([load_trace(f"hta/sampled_of128/rank{rank}.json.gz") for rank in (0, 1)])
    found = {row["rank"]: row for row in answer}
    assert found[1]["clock_error_ns"] == 55_000
    assert found[0]["collectives"] == found[1]["collectives"] == 5
    assert answer.totals["caused_ns"] == answer.totals["wait_ns"]


@pytest.mark.medium
def test_the_order_of_files_and_rows_does_not_matter(of_rank, tmp_path):
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies
    starts = st.lists(st.lists(st.integers(0, 900), min_size=3, max_size=3), min_size=1, max_size=6)

    @hypothesis.given(starts, st.permutations(range(3)))
    def check(starts, order):
        steps = []
        for rank in range(3):
            runs = [(number * 2000 + own[rank], number * 2000 + 1000) for number, own in enumerate(starts)]
            steps.append(of_rank(*(runs if rank else reversed(runs))))
        answer, each = ranks(steps, clock_offsets=None), ranks(steps, by="collective", clock_offsets=None)
        assert answer.totals["caused_ns"] == answer.totals["wait_ns"] == each.totals["cost_ns"]
        assert each.totals["cost_ns"] == sum(max(own) * 3 - sum(own) for own in starts)
        assert len(each) == len(starts)
        again = ranks([steps[rank] for rank in order], clock_offsets=None)
        assert again.totals == answer.totals

    check()
