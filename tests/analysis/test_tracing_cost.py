"""The cost of tracing."""

from __future__ import annotations

import pytest

import collector
from collector.analysis import between, code_loading, tracing_cost
from collector.analysis.tracing_cost import DECODE_THREAD, OF_THE_WHOLE, UNKNOWN

FLUSH, LOADING = 1 << 16, 5 << 16


def overhead(build, kind, start, duration):
    start_ns = build.clock["cupti_start_ns"] + start
    return build.raw("overheads", overhead_kind=kind, start_ns=start_ns, end_ns=start_ns + duration)


def test_overheads_by_kind_and_the_decode_thread(build):
    overhead(overhead(overhead(build, FLUSH, 100, 500), FLUSH, 300, 500), LOADING, 2000, 3000)
    build.counters.update(decode_cpu_ns=2000, records_decoded=7)
    answer = tracing_cost(build.recording())
    assert [tuple(row.values()) for row in answer] == [
        ("Lazy Function Loading", 1, 3000, 3000, 0.003),
        (DECODE_THREAD, 7, 2000, 2000, 0.002),
        ("Buffer Flush", 2, 1000, 700, 0.0007),
    ]
    assert answer.notes == ()
    assert answer.totals == {"total_ns": 6000}
    assert [{table: rows.tolist() for table, rows in each.items()} for each in answer.evidence] == [
        {"overheads": [2]},
        {},
        {"overheads": [0, 1]},
    ]


def test_of_a_part_of_a_step_the_shares_are_of_the_time_between_its_ends(build):
    overhead(overhead(overhead(build, FLUSH, 100, 500), FLUSH, 300, 500), LOADING, 550, 3000)
    build.counters.update(decode_cpu_ns=2000, records_decoded=7)
    part = between(build.recording(), 500, 600)
    assert [tuple(row.values()) for row in tracing_cost(part)] == [
        ("Lazy Function Loading", 1, 3000, 50, 0.5),
        ("Buffer Flush", 2, 1000, 100, 1),
    ]
    (loading,) = code_loading(part)
    assert (loading["total_ns"], loading["covered_ns"], loading["share"]) == (3000, 50, 0.5)


@pytest.mark.parametrize("bounds", [(500, 600), (0, 1_000_000)])
def test_the_cpu_time_of_the_decode_thread_is_that_of_the_whole_recording(build, tmp_path, bounds):
    overhead(build, FLUSH, 100, 900).counters.update(decode_cpu_ns=2000, records_decoded=7)
    between(build.recording(), *bounds).save(tmp_path / "part.gpurec")
    for part in (between(build.recording(), *bounds), collector.load(tmp_path / "part.gpurec")):
        answer = tracing_cost(part)
        assert (answer["kind"].tolist(), answer.notes) == (["Buffer Flush"], (OF_THE_WHOLE,))


def test_a_cost_that_a_file_does_not_state_is_unknown(build):
    answer = tracing_cost([build.recording(), build.recording()])
    assert (len(answer), answer.notes) == (0, (UNKNOWN, "The file has no overheads of CUPTI."))


def test_kinds_of_a_newer_cupti(build):
    overhead(overhead(build, 77 << 16, 100, 500), 0, 700, 100)
    assert [(row["kind"], row["count"]) for row in tracing_cost(build.recording())] == [("Overhead", 2)]


@pytest.mark.simulator
@pytest.mark.parametrize("suffix", [".gpurec", ".pb", ".json", ".pbtxt"])
def test_the_decode_thread_s_time_is_in_every_file(tmp_path, suffix):
    pytest.importorskip("collector._native", reason="the native extension is not built")
    from collector.testing import SimulatedGpu

    with SimulatedGpu() as gpu, collector.trace() as step:
        for _ in range(200):
            gpu.launch("kernel")
        gpu.synchronize()
    (row,) = (row for row in tracing_cost(step) if row["kind"] == DECODE_THREAD)
    assert row["total_ns"] == step.ledger.decode_cpu_ns > 0
    step.save(tmp_path / f"step{suffix}")
    (again,) = (row for row in tracing_cost(collector.load(tmp_path / f"step{suffix}")) if row["kind"] == DECODE_THREAD)
    assert (again["total_ns"], again["count"]) == (row["total_ns"], row["count"])
