"""Arms that cannot be measured are named, and the other arms are reported."""

from __future__ import annotations

import numpy as np
import pytest

from collector import bench

pytest.importorskip("scipy")

pytestmark = pytest.mark.simulator


@pytest.fixture
def card():
    with bench.SimulatedCard(seed=1) as made:
        yield made


def raises():
    raise RuntimeError("no such kernel")


def needs_too_much():
    raise RuntimeError("CUDA out of memory: tried to allocate 1 TiB")


class OutOfMemoryError(Exception):
    """As CuPy's."""


def has_no_memory():
    raise OutOfMemoryError("Error allocating 512 bytes")


def cuda_has_no_memory():
    raise RuntimeError("cuMemAlloc failed with <CUresult.CUDA_ERROR_OUT_OF_MEMORY: 2>")


def host_has_no_memory():
    raise MemoryError


def generates():
    yield raises()


async def waits():
    raises()


async def generates_and_waits():
    yield raises()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("call", "word"),
    [(generates, "generator"), (waits, "coroutine"), (generates_and_waits, "async generator")],
)
@pytest.mark.parametrize("options", [{}, {"clock": "wall"}, {"clock": "cpu", "check": bench.allclose(rtol=1)}])
def test_an_arm_whose_body_does_not_run_is_not_measured(card, call, word, options):
    good = card.kernel("good", 10_000)
    arms = {"good": lambda: good() or 1, "bad": call}
    comparison = bench.compare(arms, gpu=card, max_rounds=30, **options).comparison
    assert set(comparison.arms) == {"good"}
    told = comparison.failures["bad"]
    assert told.startswith(
        f"arm 'bad': it returned a{'n' if word[0] == 'a' else ''} {word}, and its body did not run. "
    )


@pytest.mark.parametrize(
    ("arms", "options", "error"),
    [
        ({1: raises}, {}, "a name in arms takes text, not 1"),
        ([raises], {}, "arms takes a dict of functions by name, not "),
        ({"a": raises}, {"check": 3}, "check takes a function, not 3"),
        ({"a": raises}, {"max_seconds": "1"}, "max_seconds takes a number, not '1'"),
        ({"a": raises}, {"min_rounds": 6.5}, "min_rounds takes a whole number, not 6.5"),
        ({"a": raises}, {"graph_calls": None}, "graph_calls takes a whole number, not None"),
        ({"a": raises}, {"flops": "9"}, "flops takes a number, not '9'"),
    ],
)
def test_arguments_of_the_wrong_type_are_named(arms, options, error):
    with pytest.raises(TypeError, match=error):
        bench.compare(arms, **options)


def test_names_of_programs_are_texts():
    with pytest.raises(TypeError, match="a name in arms takes text, not 1"):
        bench.compare_processes({1: bench.Process(["true"])}, {"time": "ns"})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (has_no_memory, "needs more memory than is available"),
        (cuda_has_no_memory, "needs more memory than is available"),
        (host_has_no_memory, "needs more memory than is available"),
        (lambda: None, "launches nothing"),
        (raises, "raised RuntimeError: no such kernel"),
        (needs_too_much, "needs more memory than is available"),
    ],
    ids=["memory-cupy", "memory-cuda", "memory-host", "nothing", "raises", "memory-torch"],
)
@pytest.mark.parametrize("first", [False, True], ids=["as-arm", "as-reference"])
def test_the_arm_is_named_and_the_others_are_measured(card, call, message, first):
    good = {"one": card.kernel("one", 10_000), "two": card.kernel("two", 11_000)}
    comparison = bench.compare({"bad": call, **good} if first else {**good, "bad": call}, gpu=card, seed=1).comparison
    assert set(comparison.arms) == {"one", "two"}
    assert set(comparison.failures) == {"bad"}
    assert "'bad'" in comparison.failures["bad"]
    assert message in comparison.failures["bad"]
    assert comparison.ratios["two"].interval.estimate == pytest.approx(1.1, rel=0.02)
    assert any("relative to one" in each for each in comparison.warnings) == first


def test_an_arm_that_raises_only_later_is_taken_out(card):
    kernel, left = card.kernel("late", 10_000), iter(range(70))

    def late():
        if next(left, None) is None:
            raise ValueError("used up")
        kernel()

    comparison = bench.compare({"good": card.kernel("good", 10_000), "late": late}, gpu=card).comparison
    assert "used up" in comparison.failures["late"]
    assert comparison.rounds >= 30


def test_a_varying_kernel_set_is_reported_call_by_call(card):
    kernel, extra, calls = card.kernel("main", 10_000), card.kernel("extra", 1_000), iter(range(10**6))

    def varying():
        kernel()
        if next(calls) % 5 == 4:
            extra()

    comparison = bench.compare({"good": card.kernel("good", 10_000), "varying": varying}, gpu=card).comparison
    why = comparison.failures["varying"]
    assert "its kernels vary: 12 of 60 calls (rounds 3, 8, 13, 18, 23, 28, 33, 38 and 4 more)" in why
    assert "extra, main instead of main" in why


def test_wrong_results_are_found_before_anything_is_timed(card):
    right, nan = np.arange(4.0), np.array([0.0, 1.0, np.nan, 3.0])
    arms = {
        "nan first": card.kernel("n", 10_000, result=nan),
        "right": card.kernel("r", 10_000, result=right),
        "close": card.kernel("c", 10_000, result=right + 1e-9),
        "wrong": card.kernel("w", 10_000, result=right + 1),
        "shape": card.kernel("s", 10_000, result=right[:2]),
        "nan": card.kernel("m", 10_000, result=nan),
        "none": card.kernel("o", 10_000),
    }
    comparison = bench.compare(arms, gpu=card, check=bench.allclose()).comparison
    assert set(comparison.arms) == {"right", "close"}
    assert "1 of 4 values are NaN" in comparison.failures["nan first"]
    assert "compared with 'right': 4 of 4 values differ, the worst by 1" in comparison.failures["wrong"]
    assert "shape (2,) instead of (4,)" in comparison.failures["shape"]
    assert "NaN" in comparison.failures["nan"]
    assert "returned None" in comparison.failures["none"]


def test_arms_that_write_into_the_same_memory_are_compared_all_the_same(card):
    shared = np.zeros(4)

    def arm(name, value):
        kernel = card.kernel(name, 10_000)

        def call():
            kernel()
            shared[:] = value
            return shared

        return call

    arms = {"right": arm("r", 1.0), "wrong": arm("w", 2.0)}
    comparison = bench.compare(arms, gpu=card, check=bench.allclose(), max_rounds=40).comparison
    assert "4 of 4 values differ, the worst by 1" in comparison.failures["wrong"]


def test_processes_of_others_are_named(card, monkeypatch):
    from collector.bench.gpu import CardState

    monkeypatch.setattr(card, "state", lambda: CardState(1980, 3201, 50, 300.0, (), (4242, 17)))
    comparison = bench.compare({"a": card.kernel("a", 10_000)}, gpu=card, max_rounds=40).comparison
    assert "other processes compute on this card: 17, 4242" in comparison.warnings


def test_a_rate_above_the_roof_is_reported(card):
    comparison = bench.compare({"a": card.kernel("a", 10_000)}, gpu=card, bytes=1e9, max_rounds=40).comparison
    assert any(each.startswith("a: more than the measured ceilings allow") for each in comparison.warnings)


@pytest.mark.parametrize("value", [None, -1.0, float("nan"), "5"])
def test_a_call_that_returns_no_time_is_reported(value):
    arms = {"good": lambda: 5.0, "bad": lambda: value}
    comparison = bench.compare(arms, gpu=bench.Host(), clock="returned", max_rounds=40).comparison
    assert "returns its ns" in comparison.failures["bad"]
    assert comparison.arms["good"].median_ns.estimate == 5.0


def test_traces_that_always_say_the_same_harmless_thing_are_used_and_it_is_reported(card):
    card.gpu.inject("unknown_kind", count=-1)
    comparison = bench.compare({"a": card.kernel("a", 10_000)}, gpu=card, max_rounds=40).comparison
    assert comparison.arms["a"].median_ns.estimate == pytest.approx(10_000, rel=0.02)
    assert any("the traces are not complete: " in each and "kind" in each for each in comparison.warnings)


def test_events_that_cannot_be_had_cost_no_figures(card, monkeypatch):
    def refuse():
        raise RuntimeError("no events here")

    monkeypatch.setattr(card, "event_overhead_ns", refuse)
    comparison = bench.compare({"a": card.kernel("a", 10_000)}, gpu=card, max_rounds=40).comparison
    assert comparison.arms["a"].event_ns == []
    assert "not compared with CUDA events: no events here" in comparison.warnings


def test_a_trace_that_is_incomplete_once_is_made_again(card):
    card.gpu.inject("dropped_record", count=1, after=5)
    arms = {"a": card.kernel("a", 10_000)}
    comparison = bench.compare(arms, gpu=card, max_rounds=40, precision=1e-9).comparison
    assert comparison.rounds == 40
    assert not any("complete" in each for each in comparison.warnings)


def test_traces_that_keep_losing_records_are_an_error(card):
    card.gpu.inject("dropped_record", count=-1)
    with pytest.raises(bench.BenchmarkError, match=r"the traces lose records: CUPTI dropped \d+ records"):
        bench.compare({"a": card.kernel("a", 10_000)}, gpu=card, max_rounds=40)


def test_with_no_arm_left_there_is_no_report(card):
    with pytest.raises(bench.BenchmarkError, match=r"no arm could be measured; arm 'bad'.*no such kernel"):
        bench.compare({"bad": raises}, gpu=card)
    with pytest.raises(bench.BenchmarkError, match=r"no arm could be measured; arm 'bad'.*no such kernel"):
        bench.compare({"bad": raises}, gpu=card, check=bench.allclose())
    with pytest.raises(bench.BenchmarkError, match=r"arm 'bad'.*no such kernel.*arm 'idle'.*launches nothing"):
        bench.compare({"bad": raises, "idle": lambda: None}, gpu=card)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"flops": float("nan")}, "flops is nan"),
        ({"bytes": -1}, "bytes is -1"),
        ({"precision": 0}, "precision"),
        ({"min_rounds": 3}, "min_rounds"),
        ({"max_seconds": float("nan")}, "max_seconds"),
        ({"clock": "sundial"}, "clock"),
        ({"cache": "warm"}, "cache"),
        ({"graph_calls": 2, "clock": "wall"}, "graph"),
    ],
)
def test_options_that_cannot_be(card, options, message):
    with pytest.raises(ValueError, match=message):
        bench.compare({"a": card.kernel("a", 1_000)}, gpu=card, **options)


def test_without_arms():
    with pytest.raises(ValueError, match="no arm"):
        bench.compare({})
