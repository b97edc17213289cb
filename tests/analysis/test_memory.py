"""Allocated memory over time, and its holders at the high-water mark."""

from __future__ import annotations

import pytest

from collector.analysis import copies, memory
from collector.analysis.annotation_paths import NO_ANNOTATION
from collector.analysis.memory import memory_over_time
from collector.recording.cupti_enums import ALLOCATION, RELEASE

DEVICE, PINNED = 3, 2


def operation(build, at, num_bytes, address, **values):
    """An allocation, or where the size is negative a release."""
    kind = ALLOCATION if num_bytes > 0 else RELEASE
    row = {"memory_kind": DEVICE, "correlation_id": at + 1, "operation": kind, "num_bytes": abs(num_bytes)}
    start_ns = build.clock["cupti_start_ns"] + at
    return build.raw("memory_operations", start_ns=start_ns, address=address, **(row | values))


@pytest.fixture
def example(build):
    """+100 under init, +300 and +200 under forward, -300, +50, -200."""
    for at, (num_bytes, address) in enumerate([(100, 1), (300, 2), (200, 3), (-300, 2), (50, 4), (-200, 3)]):
        operation(build, at * 10, num_bytes, address)
    build.annotation("init", 0, 5, 70, 1).annotation("forward", 6, 30, 71, 11, 21)
    return build.recording()


def test_the_high_water_of_the_worked_example(example):
    (row,) = memory(example)
    assert row == {
        "device_id": 0,
        "memory": "Device",
        "pool": "",
        "allocations": 4,
        "frees": 2,
        "unknown_frees": 0,
        "allocated_bytes": 650,
        "high_water_bytes": 600,
        "high_water_ns": 20,
        "end_bytes": 150,
        "pool_used_bytes": 0,
        "pool_reserved_bytes": 0,
    }


def test_who_held_it_in_the_worked_example(example):
    answer = memory(example, by="op")
    assert [(row["path"], row["allocations"], row["live_bytes"]) for row in answer] == [
        ("forward", 2, 500),
        ("init", 1, 100),
    ]
    assert answer["share"].sum() == pytest.approx(1)
    assert answer.evidence[0]["memory_operations"].tolist() == [1, 2]


def test_a_moment_has_one_amount_of_memory_whatever_happened_in_it(build):
    """Also where memory is released at the moment of its allocation."""
    operation(build, 10, 100, 1, correlation_id=1)
    operation(build, 10, -100, 1, correlation_id=2)
    operation(build, 20, 50, 2)
    operation(build, 30, -50, 2)
    operation(build, 30, 70, 3)
    ((place, times, held),) = memory_over_time(build.recording())
    assert place == (0, "Device", "")
    assert (times - build.clock["cupti_start_ns"]).tolist() == [10, 20, 30]
    assert held.tolist() == [0, 50, 70]


def test_kinds_that_a_newer_cupti_added_have_one_name_everywhere(build):
    operation(build, 0, 100, 1, memory_kind=8)
    operation(build, 10, 50, 2, memory_kind=9)
    build.memcpy(20, src_kind=8, dst_kind=9, num_bytes=4)
    recording = build.recording()
    assert [row["memory"] for row in memory(recording)] == ["kind 8", "kind 9"]
    assert [(row["source"], row["target"]) for row in copies(recording)] == [("kind 8", "kind 9")]


def test_kinds_devices_and_pools_are_apart(build):
    operation(build, 0, 100, 1)
    operation(build, 5, 7, 1, device_id=1)
    operation(build, 10, 50, 9, memory_kind=PINNED)
    pool = {"pool_type": 1, "pool_address": 0xF00}
    operation(build, 20, 30, 11, **pool, pool_bytes=1000, pool_used_bytes=30)
    operation(build, 30, 40, 12, **pool, pool_bytes=2000, pool_used_bytes=70)
    operation(build, 40, -1, 11, **pool, pool_bytes=2000, pool_used_bytes=40)
    answer = memory(build.recording())
    found = {(row["device_id"], row["memory"], row["pool"]): row for row in answer}
    assert {place: row["high_water_bytes"] for place, row in found.items()} == {
        (0, "Device", ""): 100,
        (0, "Pinned", ""): 50,
        (0, "Device", "0xf00"): 70,
        (1, "Device", ""): 7,
    }
    of_pool = found[0, "Device", "0xf00"]
    assert (of_pool["pool_used_bytes"], of_pool["pool_reserved_bytes"], of_pool["end_bytes"]) == (70, 2000, 40)
    made_of = [evidence["memory_operations"].tolist() for evidence in answer.evidence]
    assert dict(zip(found, made_of, strict=True)) == {
        (0, "Device", ""): [0],
        (0, "Pinned", ""): [2],
        (0, "Device", "0xf00"): [3, 4, 5],
        (1, "Device", ""): [1],
    }


def test_releases_of_unknown_memory_are_a_loss(build):
    operation(build, 0, -100, 1).counters["records_dropped"] = 1
    operation(build, 10, 100, 1)
    operation(build, 20, -100, 1)
    operation(build, 30, -100, 1)
    answer = memory(build.recording())
    (row,) = answer
    assert (row["frees"], row["unknown_frees"], row["high_water_bytes"]) == (1, 2, 100)
    assert answer.losses[-1] == "2 releases of memory whose allocation was not recorded"
    assert len(answer.losses) == 2
    (row,) = memory([build.recording()])
    assert row["step"] == 0
    assert memory([build.recording()]).losses[-1].startswith("step 0: 2 releases")


def test_an_address_that_is_allocated_again_was_released(build):
    operation(operation(build, 0, 100, 1), 10, 300, 1)
    answer = memory(build.recording())
    assert (answer["high_water_bytes"].tolist(), answer["frees"].tolist()) == ([300], [0])
    assert answer.losses == ("1 allocation at an address in use, whose release was not recorded",)


def test_operations_that_cannot_be(build):
    operation(build, 0, 2**63, 2**64 - 1)
    operation(build, 1, 10, 2**63, operation=7)
    operation(build, 2, 10, 2**63)
    answer = memory(build.recording())
    assert answer["high_water_bytes"].tolist() == [10]
    assert answer.losses == ("2 memory operations of an unknown kind or an impossible size",)
    with pytest.raises(ValueError, match="counted by pool, op"):
        memory(build.recording(), by="stream")


@pytest.mark.medium
def test_the_high_water_of_a_recorded_trace_of_pytorch(load_trace):
    """The figures are those of a running sum over its memory events."""
    (row,) = memory(load_trace("hta/v100_rank1of2_profile_memory.json.gz"))
    figures = ("allocations", "frees", "unknown_frees", "high_water_bytes", "end_bytes")
    assert [row[name] for name in figures] == [13_385, 13_385, 0, 2_532_893_696, 0]


def test_nothing_was_recorded(build):
    assert len(memory(build.recording())) == len(memory(build.recording(), by="op")) == 0


@pytest.mark.medium
def test_the_high_water_is_that_of_a_slow_count(build):
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies
    operations = st.lists(
        st.tuples(st.integers(0, 40), st.sampled_from([-1, 1, 2, 5]), st.integers(1, 5)),
        max_size=30,
        unique_by=lambda x: x[0],
    )

    @hypothesis.given(operations, st.randoms(use_true_random=False))
    def check(operations, random):
        made = type(build)()
        held, high_water, at_high_water, unknown = {}, 0, {}, 0
        for at, num_bytes, address in sorted(operations):
            operation(made, at, num_bytes, address)
            if num_bytes > 0:
                held[address] = num_bytes
            else:
                unknown += held.pop(address, None) is None
            if sum(held.values()) > high_water:
                high_water, at_high_water = sum(held.values()), dict(held)
        answer = memory(made.recording())
        if operations:
            (row,) = answer
            assert (row["high_water_bytes"], row["unknown_frees"]) == (high_water, unknown)
            assert row["end_bytes"] == sum(held.values())
            live = memory(made.recording(), by="op")
            assert live.totals == {"allocations": len(at_high_water), "live_bytes": high_water}
            assert set(live["path"]) <= {NO_ANNOTATION}
        random.shuffle(made.rows["memory_operations"])
        assert memory(made.recording()).to_json() == answer.to_json()

    check()
