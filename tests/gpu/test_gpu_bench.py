"""The benchmark harness on a real card: known durations, the cache, events, graphs, sensors, ceilings."""

from __future__ import annotations

import ctypes
import statistics

import pytest

pytest.importorskip("scipy")

from collector import bench
from collector.bench.roofline import MeasuresCeilings, ceilings

SIZE = 8 << 20  # fits into the L2 of every card of today, and takes microseconds
SECONDS = 4.0
"""The limit of a comparison: its medians are compared with tolerances of 10 %, which need no long one."""


@pytest.fixture
def gpu(cuda):
    cuda.use()
    return bench.find_gpu()


def spinning(cuda, nanoseconds):
    kept = ctypes.c_longlong(nanoseconds)
    return lambda stream=0: cuda.launch("spin", kept, stream=stream)


def scaling(cuda, address):
    count, factor, target = ctypes.c_int(SIZE // 4), ctypes.c_float(1.0), ctypes.c_void_p(address)
    grid = (SIZE // 4 // 256, 1, 1)
    return lambda: cuda.launch("scale", target, factor, count, grid=grid, block=(256, 1, 1))


@pytest.fixture
def memory(cuda):
    address = cuda.allocate(SIZE)
    yield address
    cuda.synchronize()
    cuda.free(address)


def has_warning(comparison, *words):
    return [each for each in comparison.warnings if any(word in each for word in words)]


@pytest.mark.parametrize("graph_calls", [0, 5], ids=["calls", "graphs"])
def test_kernels_of_known_duration_have_their_ratio(cuda, gpu, graph_calls):
    arms = {"40 us": spinning(cuda, 40_000), "60 us": spinning(cuda, 60_000)}
    report = bench.compare(arms, gpu=gpu, graph_calls=graph_calls, cache="hot", max_seconds=SECONDS)
    comparison = report.comparison
    assert not comparison.failures
    assert comparison.ratios["60 us"].interval.estimate == pytest.approx(1.5, rel=0.1)
    assert report.verdicts[0]["60 us"] == "slower"
    assert comparison.arms["40 us"].median_ns.estimate == pytest.approx(40_000, rel=0.1)
    assert comparison.arms["40 us"].launches == 1
    kernels = list(comparison.arms["40 us"].kernels)
    # A missing node of a graph, which is instantiated before the session, is missing here.
    assert kernels == ["spin"] * (graph_calls or 1), f"{len(kernels)} of {graph_calls or 1}: {comparison.warnings}"
    assert not has_warning(comparison, "not complete", "lose records")


def test_events_agree_with_cupti(cuda, gpu, real_gpu):
    comparison = bench.compare({"60 us": spinning(cuda, 60_000)}, gpu=gpu, max_seconds=SECONDS).comparison
    assert statistics.median(comparison.arms["60 us"].event_ns) == pytest.approx(60_000, rel=0.2)
    assert not has_warning(comparison, "CUDA events")


def test_the_cache_is_cold_or_hot_as_asked(cuda, gpu, memory, real_gpu):
    medians = {}
    for cache in ("cold", "hot"):
        arms = {"scale": scaling(cuda, memory)}
        comparison = bench.compare(arms, gpu=gpu, cache=cache, bytes=2 * SIZE, max_seconds=SECONDS).comparison
        assert not has_warning(comparison, "cache was not")
        assert statistics.median(comparison.probe_cold_ns) > 1.1 * statistics.median(comparison.probe_hot_ns)
        medians[cache] = comparison.arms["scale"].median_ns.estimate
    assert medians["cold"] > 1.1 * medians["hot"]


def test_a_call_that_launches_nothing_or_fails_leaves_the_other(cuda, gpu):
    arms = {"spin": spinning(cuda, 20_000), "idle": lambda: None, "greedy": lambda: cuda.allocate(1 << 50)}
    comparison = bench.compare(arms, gpu=gpu, max_rounds=40).comparison
    assert set(comparison.arms) == {"spin"}
    assert "launches nothing" in comparison.failures["idle"]
    assert "needs more memory than is available" in comparison.failures["greedy"]


def test_the_sensors_answer(gpu, real_gpu):
    pytest.importorskip("pynvml")
    state = gpu.state()
    assert state is not None
    assert state.sm_clock_mhz is None or state.sm_clock_mhz > 100
    assert state.temperature_c is None or 0 < state.temperature_c < 120
    assert gpu.l2_bytes >= 1 << 20


def test_the_cards_ceilings_are_those_of_a_card(gpu, real_gpu, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert isinstance(gpu, MeasuresCeilings)
    found = ceilings(gpu)
    assert found is not None
    assert 5e10 < found.bytes_per_s < 5e13
    assert found.flop_per_s is None or 1e12 < found.flop_per_s < 1e16
    assert ceilings(gpu) == found
