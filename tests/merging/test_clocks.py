"""Clock offsets between ranks, compared with known offsets."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace

import numpy as np
import pytest

import collector
from collector.merging.clocks import collective_moments, estimate_offsets, joined
from collector.merging.collectives import matched_collectives
from collector.merging.stated_collectives import moments_of_step
from collector.protos import DeviceStepStats, NodeExecStats, StepStats

SECOND = 10**9
NAME = (0, "ncclDevKernel_AllReduce_Sum_f32")


class Job:
    """Collectives as they were, and what each rank's clock and tracer made of them."""

    def __init__(self, seed, count=200, period_ns=5_000_000):
        self.random = random.Random(seed)
        gaps = [self.random.randint(period_ns // 2, period_ns) for _ in range(count)]
        self.ends = np.cumsum(gaps)

    def seen(self, ahead_ns, jitter_ns=2_000, missing=0.0, extra=0, drift_ppm=0.0, late=0, first=0):
        """Rows of start and end on a rank's own clock, `late` of them with the end told far too late."""
        rows = []
        for at, end in enumerate(self.ends[first:]):
            if self.random.random() < missing:
                continue
            end = int(end) + self.random.randint(0, jitter_ns)
            if late and at % (len(self.ends) // late) == 1:
                end += self.random.randint(100_000, 400_000)
            rows.append((end - self.random.randint(30_000, 500_000), end))
        last = int(self.ends[-1])
        for _ in range(extra):
            end = self.random.randint(0, last)
            rows.append((end - 40_000, end))
        drifted = [[round(time * (1 + drift_ppm / 1e6)) + ahead_ns for time in row] for row in sorted(rows)]
        return {NAME: np.array(sorted(drifted, key=lambda row: row[1]))}


AHEAD = (0, 1_234, -87_654_321, 3 * SECOND, 40 * 24 * 3600 * SECOND)


@pytest.mark.parametrize("ahead_ns", AHEAD)
@pytest.mark.parametrize(
    ("faults", "within_ns"),
    [
        ({}, 2_000),
        ({"missing": 0.5}, 2_000),
        ({"first": 13}, 2_000),
        ({"extra": 150}, 2_000),
        ({"late": 40}, 2_000),
        ({"missing": 0.3, "extra": 60, "late": 20, "first": 5}, 2_000),
        ({"jitter_ns": 60_000}, 12_000),
    ],
    ids=str,
)
def test_the_offset_is_found_whatever_is_missing_or_too_much(ahead_ns, faults, within_ns):
    for seed in range(3):
        job = Job(seed)
        clock = estimate_offsets({0: job.seen(0, missing=faults.get("missing", 0)), 1: job.seen(ahead_ns, **faults)})[1]
        assert clock.source == "estimated"
        assert abs(clock.offset_ns - ahead_ns - faults.get("jitter_ns", 2_000) / 2 + 1_000) <= within_ns
        assert clock.out_of_order == 0
        assert abs(clock.offset_ns - ahead_ns) <= clock.spread_ns
        assert clock.error_ns <= clock.spread_ns <= 2 * faults.get("jitter_ns", 4_000)


def test_stragglers_are_not_moments_that_agree():
    job = Job(1)
    clock = estimate_offsets({0: job.seen(0), 1: job.seen(5_000, late=40)})[1]
    assert (clock.markers, clock.disagreeing) == (160, 40)


@pytest.mark.parametrize("drift_ppm", [-30, 5, 30])
def test_drift_is_in_the_spread(drift_ppm):
    """A clock that runs 30 ppm fast gains 24 µs over 0.8 s; the offset is that of the middle."""
    job = Job(2)
    length_ns = int(job.ends[-1])
    clock = estimate_offsets({0: job.seen(0), 1: job.seen(SECOND, drift_ppm=drift_ppm)})[1]
    for moment_ns in (0, length_ns // 2, length_ns):
        true_ns = SECOND + moment_ns * drift_ppm / 1e6
        assert abs(clock.offset_ns - true_ns) <= clock.spread_ns + 2_000
    assert abs(clock.offset_ns - SECOND - length_ns / 2 * drift_ppm / 1e6) <= 3_000
    assert clock.markers >= 190


def test_the_error_of_a_rank_is_unknown_if_that_of_the_rank_between_is():
    def of(name, *ends):
        return {(0, name): np.array([(end - 1_000, end) for end in ends])}

    often = [20_000 * number + 7 * number**2 for number in range(1, 40)]
    between = of("a", 150_000) | of("b", *often)
    offsets = estimate_offsets({0: of("a", 50_000), 1: between, 2: of("b", *(end + 70_000 for end in often))})
    assert [(each.offset_ns, each.error_ns, each.spread_ns) for each in offsets.values()] == [
        (0, None, None),
        (100_000, None, None),
        (170_000, None, None),
    ]


def test_ranks_of_other_groups_are_compared_through_those_they_share_one_with():
    """Tensor-parallel pairs (0, 1) and (2, 3), data-parallel pairs (0, 2) and (1, 3); collectives look alike."""
    ahead = {0: 0, 1: 700_000, 2: -2 * SECOND, 3: 12_345_678}
    groups = {"01": Job(3), "23": Job(4), "02": Job(5), "13": Job(6)}
    markers = {
        rank: {
            (0, f"allreduce group:{group}"): job.seen(ns)[NAME] for group, job in groups.items() if str(rank) in group
        }
        for rank, ns in ahead.items()
    }
    offsets = estimate_offsets(markers)
    assert all(abs(offsets[rank].offset_ns - ns) <= 4_000 for rank, ns in ahead.items())
    assert [offsets[rank].through for rank in ahead] == [None, None, None, 1]
    assert offsets[3].error_ns > offsets[1].error_ns > 0  # errors add up
    # Where traces do not say the group, a rank's moments are those of all its groups.
    unnamed = {rank: {NAME: joined(*own.values())} for rank, own in markers.items()}
    assert estimate_offsets(unnamed) == {
        rank: replace(clock, disagreeing=200) if rank else clock for rank, clock in offsets.items()
    }


def test_collectives_that_no_two_ranks_share_move_no_clock():
    for seed in range(20):
        one, other = Job(seed, count=40), Job(1000 + seed, count=37)
        clock = estimate_offsets({0: one.seen(0), 1: other.seen(0)})[1]
        assert (clock.offset_ns, clock.error_ns, clock.source, clock.markers) == (0, None, "none", 0)
        assert clock.disagreeing == 37


def test_equally_many_strangers_move_no_clock_either():
    one, other = Job(7, count=30), Job(8, count=30)
    assert estimate_offsets({0: one.seen(0), 1: other.seen(0)})[1].source == "none"


@pytest.mark.medium
def test_many_moments_are_found_by_a_sample():
    job = Job(9, count=20_000, period_ns=500_000)
    clock = estimate_offsets({0: job.seen(0, missing=0.1), 1: job.seen(-777_777, first=321)})[1]
    assert abs(clock.offset_ns + 777_777) <= 2_000
    assert clock.markers > 0.8 * 20_000


@pytest.mark.parametrize("count", [5, 20, 200])
@pytest.mark.parametrize("ahead_ns", [0, 300, 100_000, -3 * SECOND])
@pytest.mark.parametrize("steps", [1, 5, 200])
def test_moments_with_sequence_numbers_need_not_be_far_apart(count, ahead_ns, steps):
    """Each name occurs once then; clocks that agree better than the ends scatter are known as well as others."""
    job = Job(11, count=count)

    def numbered(seen):
        return {(at * steps // count, f"allreduce seq:{at}"): row[None] for at, row in enumerate(seen[NAME])}

    clock = estimate_offsets({0: numbered(job.seen(0)), 1: numbered(job.seen(ahead_ns))})[1]
    assert (clock.source, clock.markers, clock.disagreeing) == ("estimated", count, 0)
    assert abs(clock.offset_ns - ahead_ns) <= 2_000


def test_strangers_with_equal_sequence_numbers_move_no_clock():
    for seed in range(20):
        rows = [Job(seed, count=40).seen(0)[NAME], Job(1000 + seed, count=40).seen(0)[NAME]]
        one, other = ({(0, f"allreduce seq:{at}"): row[None] for at, row in enumerate(own)} for own in rows)
        clock = estimate_offsets({0: one, 1: other})[1]
        assert (clock.source, clock.disagreeing) == ("none", 40)


@pytest.mark.parametrize("drift_ppm", [0, 10, 50])
@pytest.mark.parametrize("drifting", [0, 1, 2])
def test_collectives_of_two_ranks_whose_clocks_drift_are_matched(drift_ppm, drifting):
    """Groups of two ranks each, which are told apart by their names, as launch shapes do."""
    groups = {"01": Job(3, count=50), "02": Job(4, count=50), "12": Job(5, count=50)}
    ahead = {0: 0, 1: 3_000_000, 2: -2 * SECOND}
    markers = {
        rank: {
            (0, f"allreduce group:{group}"): job.seen(ns, drift_ppm=drift_ppm if rank == drifting else 0)[NAME]
            for group, job in groups.items()
            if str(rank) in group
        }
        for rank, ns in ahead.items()
    }
    found, alone = matched_collectives(markers, estimate_offsets(markers))
    assert (len(found), alone) == (150, 0)


def test_few_moments_are_taken_by_their_order():
    def rows(*ends):
        return {(0, "barrier"): np.array([(end - 50_000, end) for end in ends])}

    one = estimate_offsets({0: rows(5_000), 1: rows(9_000)})[1]
    assert (one.offset_ns, one.error_ns, one.spread_ns, one.markers) == (4_000, None, None, 1)
    two = estimate_offsets({0: rows(5_000, 90_000), 1: rows(505_000, 600_000)})[1]
    assert (two.offset_ns, two.error_ns, two.spread_ns, two.markers) == (505_000, 5_000, 5_000, 2)
    within_its_error = estimate_offsets({0: rows(5_000, 90_000), 1: rows(4_000, 92_000)})[1]
    assert within_its_error.source == "none"


def test_an_impossible_order_is_counted():
    """The third began on the second rank after it had ended on the first: no collective of the two."""
    ours = np.array([(9_000, 10_000), (19_000, 20_000), (30_500, 30_600)])
    theirs = np.array([(9_100, 10_000), (19_200, 20_000), (29_000, 30_000)])
    clock = estimate_offsets({0: {(0, "a"): theirs}, 1: {(0, "a"): ours + 500_000}})[1]
    assert (clock.offset_ns, clock.markers, clock.out_of_order) == (500_000, 3, 1)


def kernel(label, end_ns=10_000, name="k:k"):
    return NodeExecStats(node_name=name, timeline_label=label, all_start_nanos=end_ns - 500, all_end_rel_nanos=500)


def test_names_hold_what_is_the_same_on_all_ranks():
    labels = [
        "ncclKernel_A(x) regs:96 shm:7 grid:16,1,1 block:640,1,1",
        "ncclKernel_B() regs:96 collective:allreduce group:2 seq:7 elements:128 dtype:Float",
        "ncclKernel_C() collective:all_to_allv group:2 elements:128",
        "ncclKernel_D() collective:send group:3 seq:2 elements:5",
        "ncclKernel_D() collective:recv group:3 seq:9 elements:5",
        "sgemm",
    ]
    nodes = [kernel(label) for label in labels]
    devices = ["/gpu:0/stream:7", "/gpu:0/stream:all", "/gpu:0/annotations", "/cpu:0"]
    step = StepStats(dev_stats=[DeviceStepStats(device=device, node_stats=nodes) for device in devices])
    found = collective_moments(step, 4)
    assert {name: len(rows) for (_, name), rows in found.items()} == {
        "ncclKernel_A(x) grid:16,1,1 block:640,1,1": 1,
        "ncclKernel_B() collective:allreduce group:2 seq:7 dtype:Float elements:128": 1,
        "ncclKernel_C() collective:all_to_allv group:2": 1,
        "ncclKernel_D() collective:pair group:3": 2,
    }
    assert {number for number, _ in found} == {4}


def test_what_gpus_ran_counts_and_not_when_hosts_asked_for_it():
    gpu = DeviceStepStats(
        device="/gpu:0/stream:7", node_stats=[kernel("ncclKernel()", 900), kernel("ncclKernel()", 700)]
    )
    host = DeviceStepStats(device="/cpu:0", node_stats=[kernel("", name="nccl:all_reduce")])
    [(key, rows)] = collective_moments(StepStats(dev_stats=[host, gpu]), 0).items()
    assert (key, rows.tolist()) == ((0, "ncclKernel()"), [[200, 700], [400, 900]])
    [(key, _)] = collective_moments(StepStats(dev_stats=[host]), 0).items()
    assert key == (0, "nccl:all_reduce")
    assert not collective_moments(StepStats(dev_stats=[host]), 0, re.compile("barrier"))


def test_pytorchs_description_of_a_collective_identifies_it(tmp_path):
    """Sequence numbers pair moments that are as regular as a pendulum, of which one rank misses the first."""

    def trace(rank, ahead_us, first):
        events = [
            {
                "ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 7,
                "ts": 1e15 + ahead_us + 1000 * seq, "dur": 100,
                "args": {
                    "device": 0, "stream": 7, "Collective name": "allreduce", "Process Group Name": "mesh_tp",
                    "Seq": seq, "In msg nelems": 1024, "dtype": "Float", "Process Group Ranks": "[0, 1]",
                },
            }
            for seq in range(first, 9)
        ]  # fmt: skip
        path = tmp_path / f"rank{rank}.json"
        path.write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": rank}}))
        return moments_of_step(collector.load(path), 0).stated

    markers = {0: trace(0, 0, 0), 1: trace(1, 250, 1)}
    [key, *_] = markers[0]
    assert key == (0, "ncclDevKernel_AllReduce collective:allreduce group:mesh_tp dtype:Float elements:1024")
    clock = estimate_offsets(markers)[1]
    assert (clock.offset_ns, clock.error_ns, clock.markers, clock.disagreeing) == (250_000, 0, 8, 0)


def test_the_recorded_ranks_of_one_job(shared, tmp_path):
    """Two of 128 ranks, each a sample of what ran: the true offset is not known, but what it says must be possible."""
    folder = shared / "data/gpu_traces/hta/sampled_of128"
    traces = [collector.load(folder / f"rank{rank}.json.gz") for rank in (0, 1)]
    markers = {rank: moments_of_step(trace, 0).named for rank, trace in enumerate(traces)}
    clock = estimate_offsets(markers)[1]
    assert (clock.source, clock.offset_ns, clock.markers, clock.disagreeing) == ("estimated", 0, 5, 5)
    assert (clock.error_ns, clock.spread_ns, clock.out_of_order) == (55_000, 332_000, 0)
    # The same sample with one clock put wrong gives just that.
    moved = {0: markers[0], 1: {key: rows + 123_456_789 for key, rows in markers[1].items()}}
    assert estimate_offsets(moved)[1].offset_ns == 123_456_789
