"""benchmarks/harness.py with a stand-in for Triton's do_bench that returns the same kinds of answers."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import json
import math
import os
import re
import subprocess
import sys
import time
from types import ModuleType

import pytest

from collector import bench
from collector.errors import UnavailableError

pytest.importorskip("scipy")

pytestmark = pytest.mark.simulator


@pytest.fixture
def timers(harness):
    return sys.modules["_timers"]


@pytest.fixture
def harness(root, monkeypatch):
    monkeypatch.syspath_prepend(root / "benchmarks")
    monkeypatch.syspath_prepend(root / "tests" / "gpu")
    spec = importlib.util.spec_from_file_location("benchmark_harness", root / "benchmarks" / "harness.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "benchmark_harness", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def setup(harness):
    with harness.prepared(simulated=True) as made:
        yield made


@pytest.mark.slow
def test_all_find_the_kernels_time(setup):
    call = setup.workloads["10 us"]
    assert set(setup.methods) == {"ours", "do_bench", "flashinfer"}
    for method in setup.methods.values():
        # By default a method stops after a time: a slow machine makes few calls, each with a deviation of 1 %.
        assert method.median_ns(call) == pytest.approx(10_000, rel=0.06)
        found = method.precise(call)
        assert found.ns == pytest.approx(10_000, rel=0.01)
        assert found.reached


def test_do_bench_gets_more_time_until_it_is_precise_enough(timers):
    budgets = []

    def do_bench(fn, rep, return_mode):
        assert return_mode == "all"
        budgets.append(rep)
        spread = 0.05 / math.sqrt(rep)
        return [1.0 + spread * (index % 5 - 2) for index in range(11)]

    found = timers.triton_do_bench(do_bench).precise(lambda: None)
    assert found.ns == pytest.approx(1e6, rel=0.01)
    assert found.reached
    assert budgets[:3] == [25, 50, 100]
    assert budgets == [25 * 2**index for index in range(len(budgets))]
    assert 0.05 / math.sqrt(budgets[-1]) <= timers.PRECISION


def test_do_bench_is_given_up_on_at_the_limit(timers):
    budgets = []

    def never(fn, rep, return_mode):
        budgets.append(rep)
        return [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]

    found = timers.triton_do_bench(never).precise(lambda: None)
    assert budgets[-1] > timers.LIMIT_MS >= budgets[-2]
    assert not found.reached
    assert found.half_width == pytest.approx(0.75)


def test_graphs_are_replayed_again_and_again_and_never_larger(timers):
    spread = iter([0.5, 0.4, 0.3, 0.002, 0.002, 0.002, 0.002])
    asked = []

    def do_bench_cudagraph(fn, return_mode):
        asked.append(return_mode)
        by = next(spread)
        return [1.0 + by * (index - 5) / 10 for index in range(10)]

    found = timers.triton_do_bench_cudagraph(do_bench_cudagraph).precise(lambda: None)
    assert asked == ["all"] * 7  # once, twice, four times
    assert found.reached


def test_flashinfer_is_asked_for_cupti_and_gets_more_time(timers):
    asked = []

    def bench_gpu_time(fn, repeat_time_ms, enable_cupti):
        assert enable_cupti is True
        asked.append(repeat_time_ms)
        return [0.002 + 0.000004 * (index - 45) * (repeat_time_ms < 100) for index in range(91)]

    method = timers.flashinfer_bench_gpu_time(bench_gpu_time)
    assert method.median_ns(lambda: None) == pytest.approx(2000)
    assert method.precise(lambda: None) == timers.Precise(pytest.approx(2000), 0.0)
    assert asked == [100, 25, 50, 100]


def test_too_few_samples_for_an_interval_are_not_precise(timers):
    assert timers.of_times([1.0] * 5) == timers.Precise(1.0, 1.0)


def test_the_stand_in_takes_and_returns_what_tritons_does(harness, root):
    with bench.SimulatedCard(seed=1) as card:
        from simulated_triton import bench_gpu_time_on, do_bench_on

        assert len(bench_gpu_time_on(card)(card.kernel("k", 1_000_000), repeat_time_ms=50)) == 50
        do_bench, call = do_bench_on(card), card.kernel("k", 1_000_000, noise=0.02)
        assert isinstance(do_bench(call, return_mode="all"), list)
        assert do_bench(call, return_mode="min") < do_bench(call, return_mode="max")
        with pytest.raises(AssertionError):
            do_bench(call, return_mode="nonsense")
    testing = pytest.importorskip("triton.testing")
    assert list(inspect.signature(do_bench).parameters) == list(inspect.signature(testing.do_bench).parameters)


def test_the_rows_have_the_ratios(harness):
    result = harness.Figures(
        {"ours": [10_000, 10_100], "do_bench": [10_000, 10_200], "cupy": [9_000, 9_000], "torch Timer": [11_000]},
        {"ours": [0.5], "do_bench": [1.0], "cupy": [12.34]},
        {"ours": [0.004], "do_bench": [0.005], "cupy": [0.031]},
        {"torch Timer": "RuntimeError: no"},
    )
    assert harness.lines("k", result) == [
        "| k | ours | 2 | 10.05 | 0.704% | 0.50 | 0.500 | 0.50 |",
        "| k | do_bench | 2 | 10.10 | 1.400% |  | 1.000 |  |",
        "| k | cupy | 2 | 9.00 | 0.000% | 0.00 | 3.10% after 12.3 |  |",
        "| k | torch Timer | failed: RuntimeError: no |",
    ]


@pytest.mark.slow
def test_out_of_time_there_are_two_runs_and_one_wall_time(harness, setup):
    found = harness.measured(setup, setup.workloads["10 us"], 20, deadline=time.monotonic() - 1)
    assert [len(values) for values in found.medians_ns.values()] == [2, 2, 2]
    assert [len(values) for values in found.wall_s.values()] == [1, 1, 1]


def test_what_does_not_get_there_is_not_asked_again(harness, timers):
    asked = []

    def precise(call):
        asked.append(call)
        return timers.Precise(1.0, 0.02)

    found = harness.measured(
        harness.Bench(None, {}, {"never": timers.Method(lambda call: 1.0, precise)}, {}),
        "call",
        2,
        time.monotonic() + 60,
    )
    assert asked == ["call"]
    assert found.half_widths == {"never": [0.02]}


def test_what_is_asked_of_the_card_is_added_up_once(timers):
    class Card:
        name = "a card"

        def synchronize(self):
            raise OSError("gone")

        def flush_l2(self):
            return "flushed"

        def event_ns(self, call, before):
            return before()

    card = timers.Watched(Card())
    assert card.name == "a card"
    assert card.event_ns(None, before=card.flush_l2) == card.flush_l2() == "flushed"
    with pytest.raises(OSError, match="gone"):
        card.synchronize()
    assert card.calls == {"event_ns": 1, "flush_l2": 1, "synchronize": 1}
    assert set(card.seconds) == set(card.calls)


@pytest.mark.medium
def test_it_says_what_our_own_time_goes_to(harness, setup):
    call = setup.workloads["10 us"]
    found = sys.modules["_timers"].where_ours_goes(setup.gpu, call)
    calls = found["of the card, calls"]
    assert found["rounds"] >= 30
    assert calls["flush_l2"] > found["rounds"]
    assert calls["synchronize"] > 0
    spent = sum(found["of the card, ms"].values()) + found["everything else, ms"]
    assert spent == pytest.approx(found["ms"])
    sentence = harness.where("10 us", found)
    assert f"{found['rounds']} rounds" in sentence
    assert f"({calls['synchronize']} times)" in sentence
    assert harness.where("k", {"failed": "OSError: gone"}).endswith("not known: OSError: gone")
    assert harness.where("k", {}) == ""


SERVES = {
    "breaks at once": ("import os; os._exit(3)", "status 3"),
    "never ready": ("import time; time.sleep(60)", "no answer for"),
    "cannot be made": ("_timers.serve(lambda: 1 / 0)", "ZeroDivisionError"),
}
SERVER = """
import sys; sys.path.insert(0, {folder!r})
import _timers, os
{code}
"""
CRASHES = """
def median_ns(call):
    print("what a package prints")
    if call == "fatal":
        os.abort()
    return {"good": 5.0}[call]
_timers.serve(lambda: ({"a": "good", "b": "bad", "c": "fatal"}, _timers.Method(median_ns, lambda call: 1 / 0)))
"""


@pytest.mark.medium
@pytest.mark.parametrize("kind", SERVES)
def test_a_process_that_is_never_ready_is_named(root, timers, kind):
    code, message = SERVES[kind]
    command = [sys.executable, "-c", SERVER.format(folder=str(root / "benchmarks"), code=code)]
    with pytest.raises(RuntimeError, match=message):
        timers.Elsewhere(command, {}, seconds=2 if kind == "never ready" else 60)


FAKE_PACKAGES = {
    "torch.py": """
from types import SimpleNamespace
class Tensor: pass  # scipy asks for it where there is a torch
bfloat16 = "bfloat16"
randn = ones = empty_like = lambda *shape, **options: "a tensor"
add = matmul = lambda *given, **options: "launched"
nn = SimpleNamespace(functional=SimpleNamespace(rms_norm=lambda *given: "launched"))
""",
    "flashinfer/__init__.py": "print('flashinfer is loud')",
    "flashinfer/testing.py": """
def bench_gpu_time(fn, repeat_time_ms=100, enable_cupti=False):
    assert fn() == "launched"
    return [repeat_time_ms / 1000] * 30
""",
}


@pytest.mark.slow
def test_flashinfer_is_asked_in_a_process_of_the_script(root, harness, timers, tmp_path, monkeypatch):
    for name, text in FAKE_PACKAGES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    calls = {name: (lambda name=name: name) for name in ("vector add 64 KiB", "RMS norm 4096x4096", "another")}
    with contextlib.ExitStack() as until_the_end:
        method = harness.elsewhere("flashinfer", calls, until_the_end)()
        assert method.median_ns(calls["vector add 64 KiB"]) == pytest.approx(1e5)
        assert method.precise(calls["RMS norm 4096x4096"]) == timers.Precise(pytest.approx(2.5e4), 0.0)
        with pytest.raises(RuntimeError, match="KeyError: 'another'"):
            method.median_ns(calls["another"])


def test_a_process_answers_what_it_is_asked_and_how_it_ended(root, timers):
    calls = {name: (lambda: None).__class__(compile("0", name, "eval"), {}) for name in "abc"}
    command = [sys.executable, "-c", SERVER.format(folder=str(root / "benchmarks"), code=CRASHES)]
    process = timers.Elsewhere(command, calls)
    method = process.method()
    assert method.median_ns(calls["a"]) == 5.0
    with pytest.raises(RuntimeError, match="KeyError: 'bad'"):
        method.median_ns(calls["b"])
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        method.precise(calls["a"])
    assert method.median_ns(calls["a"]) == 5.0
    for _ in range(2):
        with pytest.raises(RuntimeError, match="signal 6"):
            method.median_ns(calls["c"])
    process.close()


class Odd(ModuleType):
    """What a package whose interface changed may do."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)

        def changed(*arguments, **options):
            raise TypeError(f"{name}() got an unexpected keyword argument")

        return changed


PEERS = {
    "do_bench": ("triton", "triton.testing"),
    "do_bench_cudagraph": ("triton", "triton.testing"),
    "flashinfer": ("flashinfer", "flashinfer.testing"),
    "torch Timer": ("torch", "torch.utils", "torch.utils.benchmark"),
    "cupyx benchmark": ("cupyx", "cupyx.profiler"),
}


@pytest.mark.medium
@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize(
    "kind", ["missing", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("without-it", "changed"))]
)
def test_a_peer_that_is_missing_or_different_is_named_and_the_others_are_measured(
    harness, timers, monkeypatch, peer, kind
):
    assert set(PEERS) == set(harness.PEERS)
    for name in PEERS[peer]:
        made = {"missing": None, "without-it": ModuleType(name), "changed": Odd(name)}[kind]
        monkeypatch.setitem(sys.modules, name, made)
    working = {name: lambda: timers.Method(lambda call: 1e3, lambda call: timers.Precise(1e3, 0.001)) for name in PEERS}
    with bench.SimulatedCard(seed=1) as card:
        found, unavailable = harness.methods(card, {**working, peer: harness.PEERS[peer]})
        setup = harness.Bench(card, {}, found, unavailable)
        result = harness.measured(setup, card.kernel("k", 10_000, noise=0.01), 2, time.monotonic() + 5)
    assert set(result.medians_ns) | {peer} == set(result.wall_s) | {peer} == {"ours", *PEERS}
    reasons = {**unavailable, **result.failed}
    assert set(reasons) == {peer}
    assert re.search(
        {"missing": "halted|None", "without-it": "cannot import", "changed": "TypeError"}[kind], reasons[peer]
    )


def test_peers_own_interfaces_are_those_that_are_used():
    inspect.signature(pytest.importorskip("triton.testing").do_bench).bind(1, rep=25, return_mode="all")
    inspect.signature(pytest.importorskip("triton.testing").do_bench_cudagraph).bind(1, return_mode="median")


def test_flashinfers_own_interface_is_the_one_that_is_used():
    timing = pytest.importorskip("flashinfer.testing", exc_type=ImportError)
    inspect.signature(timing.bench_gpu_time).bind(1, repeat_time_ms=25, enable_cupti=True)


def test_pytorchs_timer_times_a_call(harness):
    pytest.importorskip("torch")
    method = harness.PEERS["torch Timer"]()
    assert 1e5 < method.median_ns(lambda: time.sleep(0.0005)) < 1e9
    assert method.precise(lambda: time.sleep(0.0005)).ns > 5e5


@pytest.mark.slow
def test_it_prints_and_stores_every_workload(harness, monkeypatch, capsys, tmp_path):
    path = tmp_path / "h.json"
    monkeypatch.setattr(
        sys, "argv", ["harness.py", "--simulated", "--runs", "2", "--seconds", "0.1", "--json", str(path)]
    )
    assert harness.main() == 0
    printed = capsys.readouterr().out
    assert printed.count("| 2 |") == 6
    assert printed.count("ours took") == 2
    assert set(json.loads(path.read_text())) == {"10 us", "1 ms", "not available"}


def test_without_a_gpu_it_says_so(harness, monkeypatch, capsys):
    def none():
        raise UnavailableError("no GPU can be used")

    monkeypatch.setattr(bench, "find_gpu", none)
    monkeypatch.setattr(sys, "argv", ["harness.py"])
    assert harness.main() == 0
    assert capsys.readouterr().out == "not run: no GPU can be used\n"


WITHOUT_TORCH = """
import sys
import simulated_cuda
simulated_cuda.install()
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "triton", "cupyx", "flashinfer"):
            raise ModuleNotFoundError(f"no {name} here")
sys.meta_path.insert(0, Missing())
sys.argv = ["harness.py", "--runs", "2", "--seconds", "4"]
import runpy
runpy.run_path(FILE, run_name="__main__")
"""


@pytest.mark.slow
def test_without_pytorch_and_triton_the_examples_kernels_are_timed_by_this_harness(root, tmp_path):
    folders = [root / "benchmarks", root / "tests" / "gpu", *filter(None, [os.environ.get("PYTHONPATH")])]
    code = WITHOUT_TORCH.replace("FILE", repr(str(root / "benchmarks" / "harness.py")))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders)), "COLLECTOR_GPU_TESTS_SIMULATED": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "not available: torch's kernels (ModuleNotFoundError" in done.stdout, done.stdout + done.stderr
    assert "not available: torch Timer" in done.stdout
    assert re.search(r"\| saxpy 64 KiB \| ours \| 2 \| 1\.00 \|", done.stdout), done.stdout
    assert "| saxpy 64 MiB | ours |" in done.stdout
