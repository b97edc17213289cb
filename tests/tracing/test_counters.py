"""`trace(counters=True)`: figures of the GPUs through nvidia-ml-py, whose C library is a stand-in."""

from __future__ import annotations

import json
import os
import sys
import threading
import time

import pytest
from fake_nvml import FakeNvml

import collector
from collector.recording.counter_rows import counters_over_time
from collector.recording.counter_texts import counter_texts, series_in
from collector.testing import SimulatedGpu
from collector.tracing import counter_sampler

pytestmark = pytest.mark.simulator
pynvml = pytest.importorskip("pynvml")

FIRST, SECOND = (f"GPU-51515151-5151-5151-5151-5151515151{device:02}" for device in (0, 1))
"""The UUIDs of the simulated devices."""
FIGURES = {"SM clock": "MHz", "memory clock": "MHz", "power": "mW", "temperature": "°C", "memory used": "bytes"}


@pytest.fixture
def nvml(monkeypatch):
    return FakeNvml(cards={SECOND: 1_200, FIRST: 1_980}).install(monkeypatch, pynvml)


@pytest.fixture
def gpu():
    with SimulatedGpu(devices=2, real_time=True) as gpu:
        yield gpu


def sampling_threads():
    return [thread for thread in threading.enumerate() if thread.name == "collector counters"]


def wait_until(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)


def traced(gpu, nvml, **options):
    asked = len(nvml.asked)
    with collector.trace(counters=True, **options) as step:
        gpu.launch("first")
        wait_until(lambda: len(nvml.asked) > asked + 10)
        gpu.launch("second", device=1)
    return step


def values(step):
    return {key: held.tolist() for key, _, held in counters_over_time(step.recording)}


def test_every_figure_of_every_device_is_matched_by_uuid(gpu, nvml):
    step = traced(gpu, nvml, strict=True)
    found = values(step)
    assert set(found) == {(device, name, unit) for device in (0, 1) for name, unit in FIGURES.items()}
    assert found[0, "SM clock", "MHz"] == [1_980]
    assert found[1, "SM clock", "MHz"] == [1_200]
    assert found[0, "memory used", "bytes"] == [5 << 30]
    clock = step.recording.clock
    times = step.recording.counter_samples.start_ns
    assert ((times >= clock.cupti_start_ns) & (times <= clock.cupti_stop_ns)).all()
    assert step.ledger.complete


def test_a_streamed_trace_has_them_in_its_journal(gpu, nvml, tmp_path):
    step = traced(gpu, nvml, strict=True, journal=tmp_path / "step", stream=True)
    for each in (step, collector.load(tmp_path / "step")):
        found = values(each)
        assert set(found) == {(device, name, unit) for device in (0, 1) for name, unit in FIGURES.items()}
        assert (found[0, "SM clock", "MHz"], found[1, "SM clock", "MHz"]) == ([1_980], [1_200])
        assert each.ledger.complete


def test_a_streamed_trace_says_why_it_has_none(gpu, nvml, tmp_path):
    nvml.cards = {FIRST: 1_980}
    step = traced(gpu, nvml, journal=tmp_path / "step", stream=True)
    assert step.recording.environment["counter_trouble"] == f"NVML does not know device 1 ({SECOND})"
    assert any("memory of GPUs" in loss for loss in step.ledger.losses())
    assert values(step)[0, "SM clock", "MHz"] == [1_980]


@pytest.mark.parametrize(
    "text",
    [
        *("", "[", "5", "{}", "[" * 9999, '[0,"a","b",[1]]', '[0,"a","b",[1],[]]', '[0,"a","b",[1,-1],[1,1]]'),
        *('[0,1,"",[],[]]', '[-1,"a","",[],[]]', '[0,"a","",[1e9],[1]]', '[0,"a","",[true],[1]]'),
        f'[0,"a","",[{1 << 62}],[1]]',
    ],
)
def test_damaged_counters_of_a_journal_are_counted(text):
    good = counter_texts([counter_sampler.Series(1, "power", "mW", [5, 9], [7, 8])])
    series, unreadable = series_in(good | {"counters.9": text, "process.id": "1"})
    assert [tuple(each) for each in series] == [(1, "power", "mW", [5, 9], [7, 8])]
    assert unreadable == 1


@pytest.mark.medium
def test_a_figure_has_a_row_for_each_change(gpu, nvml):
    with collector.trace(counters=True, strict=True) as step:
        gpu.launch("first")
        for clock in (1_980, 1_500, 1_980):
            nvml.cards[FIRST] = clock
            asked = len(nvml.asked)
            wait_until(lambda asked=asked: len(nvml.asked) > asked + 24)  # a whole round of both cards
    assert values(step)[0, "SM clock", "MHz"] == [1_980, 1_500, 1_980]


@pytest.mark.medium
def test_a_reason_of_throttling_has_a_counter_once_it_held(gpu, nvml):
    with collector.trace(counters=True, strict=True) as step:
        gpu.launch("first")
        wait_until(lambda: len(nvml.asked) > 24)
        nvml.reasons = 0x4 | 0x1  # a power cap; and idle, which is no throttling
        asked = len(nvml.asked)
        wait_until(lambda: len(nvml.asked) > asked + 24)
    found = {name: held for (device, name, _), held in values(step).items() if device == 0}
    assert found["throttled: power cap"] == [0, 1]
    assert {name for name in found if name.startswith("throttled")} == {"throttled: power cap"}


@pytest.mark.parametrize("suffix", [".gpurec", ".pb", ".json"])
def test_files_keep_the_samples(gpu, nvml, tmp_path, suffix):
    step = traced(gpu, nvml, path=tmp_path / f"step{suffix}")
    again = collector.load(tmp_path / f"step{suffix}").recording
    assert [key for key, _, _ in counters_over_time(again)] == [key for key, _, _ in counters_over_time(step.recording)]
    for ours, read in zip(counters_over_time(step.recording), counters_over_time(again), strict=True):
        shift = step.recording.clock.offset_ns - again.clock.offset_ns
        assert (ours[1] + shift).tolist() == read[1].tolist()
        assert ours[2].tolist() == read[2].tolist()


def test_the_timeline_draws_the_samples_beside_the_other_counters_of_the_gpu(gpu, nvml, tmp_path):
    step = traced(gpu, nvml)
    events = json.loads(collector.chrome_trace(step))["traceEvents"]
    processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    drawn = {}
    for event in events:
        if event["ph"] == "C" and event["name"] in FIGURES:
            drawn.setdefault((processes[event["pid"]], event["name"]), []).extend(event["args"].values())
    assert drawn["GPU 0", "SM clock"] == [1_980]
    assert drawn["GPU 1", "SM clock"] == [1_200]
    assert len(drawn) == 2 * len(FIGURES)
    merged = collector.merge([step, step], tmp_path / "merged.json")
    assert merged is not None
    events = json.loads((tmp_path / "merged.json").read_text())["traceEvents"]
    assert sum(event["ph"] == "C" and event["name"].startswith("SM clock") for event in events) == 4


def test_a_dataset_has_the_samples_among_its_counters(gpu, nvml, tmp_path):
    pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    traced(gpu, nvml, dataset=tmp_path / "data")
    found = duckdb.sql(
        f"select device_id, value, unit from read_parquet('{tmp_path}/data/counters/**/*.parquet') "
        "where name = 'SM clock' order by device_id"
    ).fetchall()
    assert found == [(0, 1_980, "MHz"), (1, 1_200, "MHz")]


def test_a_sensor_that_a_card_does_not_have_leaves_the_others(gpu, nvml):
    nvml.missing = {"nvmlDeviceGetPowerUsage", "nvmlDeviceGetCurrentClocksThrottleReasons"}
    step = traced(gpu, nvml, strict=True)
    assert {name for _, name, _ in values(step)} == set(FIGURES) - {"power"}
    assert step.ledger.complete


def test_a_device_that_nvml_does_not_know_is_a_line_of_the_ledger(gpu, nvml):
    del nvml.cards[SECOND]
    step = traced(gpu, nvml)
    assert {device for device, _, _ in values(step)} == {0}
    assert step.recording.environment["counter_trouble"] == f"NVML does not know device 1 ({SECOND})"
    assert [line for line in step.ledger.losses() if "not sampled" in line]
    assert len(step.recording.kernels) == 2


def test_without_nvml_the_step_goes_on_and_the_ledger_says_why(gpu, monkeypatch):
    def fail(flags):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInitWithFlags", fail)
    with collector.trace(counters=True, strict=True) as step:
        gpu.launch("first")
        wait_until(lambda: not sampling_threads())
    assert len(step.recording.kernels) == 1
    assert "NVML cannot be used" in step.recording.environment["counter_trouble"]
    assert [line for line in step.ledger.losses() if "not sampled" in line]


def test_without_threads_the_step_goes_on_and_the_ledger_says_why(gpu, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with collector.trace(counters=True, strict=True) as step:
        gpu.launch("first")
    assert len(step.recording.kernels) == 1
    assert "no thread can be started" in step.recording.environment["counter_trouble"]
    assert [line for line in step.ledger.losses() if "not sampled" in line]


def test_without_the_package_the_option_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(collector.MissingDependencyError, match=r"cupti-collector\[counters\]"):
        collector.trace(counters=True)


def test_a_program_that_does_not_use_cuda_has_no_samples_and_no_trouble(nvml):
    sampler = counter_sampler.CounterSampler(period_s=0.001)
    sampler.start()
    wait_until(sampling_threads)
    assert sampler.stop() == []
    assert sampler.trouble == ""


@pytest.mark.medium
def test_a_sensor_that_never_answers_delays_the_end_for_a_limited_time(gpu, nvml, monkeypatch):
    monkeypatch.setattr(counter_sampler, "_LONGEST_END_S", 0.1)
    answers, is_asked = threading.Event(), threading.Event()

    def ask(handle):
        is_asked.set()
        answers.wait(60)
        return 1

    monkeypatch.setattr(pynvml, "nvmlDeviceGetPowerUsage", ask)
    try:
        with collector.trace(counters=True) as step:
            gpu.launch("first")
            assert is_asked.wait(60)
        assert "did not answer" in step.recording.environment["counter_trouble"]
        assert len(step.recording.kernels) == 1
    finally:
        answers.set()
    wait_until(lambda: not sampling_threads())


def test_the_thread_ends_with_its_step(gpu, nvml):
    session = collector.trace(counters=True)
    for _ in range(3):
        with session:
            gpu.launch("first")
            wait_until(sampling_threads)
        assert not sampling_threads()
    with pytest.raises(KeyError), session:
        raise KeyError
    assert not sampling_threads()


def test_a_step_that_is_broken_off_ends_the_thread(gpu, nvml, monkeypatch):
    session = collector.trace(counters=True)
    monkeypatch.setattr(session, "_take_results", lambda *arguments: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt), session:
        wait_until(sampling_threads)
    assert not sampling_threads()


def test_a_forked_child_ends_its_copy_of_the_step_at_once(gpu, nvml):
    with collector.trace(counters=True) as step:
        gpu.launch("first")
        wait_until(sampling_threads)
        session = step
        child = os.fork()
        if child == 0:
            try:
                session.__exit__(None, None, None)
                os._exit(0 if "forked" in str(session.unavailable) else 3)
            except BaseException:
                os._exit(4)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert values(step)
