"""The scripts of benchmarks/ with simulated faults of a collector."""

from __future__ import annotations

import itertools
import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from collector.bench.benchmark_report import Arm, Comparison, Report
from collector.testing import SimulatedGpu

pytest.importorskip("scipy")

pytestmark = pytest.mark.simulator


@pytest.fixture
def script(root, load_module, monkeypatch):
    """Imports `benchmarks/NAME.py`."""
    monkeypatch.syspath_prepend(root / "benchmarks")
    monkeypatch.syspath_prepend(root / "tests" / "gpu")
    return lambda name: load_module(root / "benchmarks" / f"{name}.py")


class Program:
    """`_program.Program` as far as it is used, on a simulated GPU; does what is asked before a number of sessions."""

    target = SimpleNamespace(simulated=1)

    def __init__(self, gpu, before=None):
        self.gpu, self.before, self.sessions = gpu, before or {}, 0
        self.free = iter([9_000_000, 5_000_000, 1_500_000])
        self.cuda = SimpleNamespace(synchronize=gpu.synchronize, free_memory=lambda: next(self.free))

    def launch(self, count):
        self.sessions += 1
        self.before.get(self.sessions, lambda gpu: None)(self.gpu)
        self.gpu.launch("empty_kernel", count=count, stream=7)
        self.gpu.synchronize()

    def launch_from_threads(self, threads, count):
        for _ in range(threads):
            self.launch(count)

    def capture_graph(self, nodes):
        self.launch(nodes)
        return nodes

    def replay(self, graph, count):
        for _ in range(count):
            self.launch(graph)
        return 1.0


def ours(**options):
    collectors = sys.modules["_collectors"]
    return collectors.Ours("everything", **options)


def test_a_session_that_misses_kernels_or_has_impossible_times_is_named(script):
    sessions = script("sessions")
    with SimulatedGpu() as gpu:
        faults = {
            2: lambda gpu: gpu.inject("lost_activity_record", count=3),
            4: lambda gpu: gpu.inject("shifted_timestamps", count=2, value=-50_000),
            5: lambda gpu: gpu.inject("zero_timestamps", count=1),
        }
        found = sessions.measure(ours(), Program(gpu, faults), 5 * sessions.IN_SESSION)
    share = "kernels of all sessions"
    assert found[f"{share}: sessions"] == 5
    assert found[f"{share}: without usable times"] == "session 5: 1"
    assert "session 4: 2" in found[f"{share}: before their launch"]
    assert found[f"{share}: missing"].startswith("session 2: 3")
    assert found[share] < 1
    assert found["start"] > 0
    assert found["start: longest, ms"] >= found["start: first, ms"]


def test_sessions_in_which_all_is_well_say_so(script):
    sessions = script("sessions")
    with SimulatedGpu() as gpu:
        found = sessions.measure(ours(), Program(gpu), 3 * sessions.IN_SESSION)
        kernels = sessions.measure(ours(kinds=("kernels",)), Program(gpu), 3 * sessions.IN_SESSION)
    share = "kernels of all sessions"
    trouble = ("missing", "without usable times", "before their launch")
    assert [found[f"{share}: {what}"] for what in trouble] == ["none"] * 3
    assert found[share] == kernels[share] == 1
    assert kernels[f"{share}: before their launch"] == "not known"


def test_many_sessions_with_trouble_are_counted(script):
    sessions = script("sessions")
    assert sessions.sessions_text([0, None, 2]) == "session 3: 2"
    text = sessions.sessions_text([1] * (sessions.SHOWN + 4))
    assert text.endswith(f"session {sessions.SHOWN}: 1 and 4 more sessions")


def test_completeness_holds_the_file_against_the_launches(script, monkeypatch):
    completeness = script("completeness")
    monkeypatch.setattr(completeness, "SESSIONS", 2)
    with SimulatedGpu() as gpu:
        faults = {2: lambda gpu: gpu.inject("lost_activity_record", count=4)}
        found = completeness.measure(ours(), Program(gpu, faults), 400)
    assert set(completeness.FIGURES) <= set(found)
    assert found["one stream"] == found["one stream, in the file"] == 1
    assert found["one stream, in the file: JSON"] == "yes"
    assert found["8 threads"] == found["8 threads, in the file"] == 396 / 400
    assert found["8 threads, in the file: overlap without nesting"] == "none"
    assert "4" in found["8 threads: says it lost"]
    assert found["20 sessions, in the file: kernels"] == 2 * completeness.IN_SESSION


def test_completeness_names_what_is_wrong_with_any_file(script):
    completeness = script("completeness")
    good = {"kernels": 5, "says it lost": "nothing", "in the file": 5, "file": {"JSON": "yes", "out of order": "none"}}
    bad = {**good, "in the file": 0, "file": {"JSON": "no: cut"}}
    found = completeness.figures_of("k", 10, [good, bad, good])
    assert (found["k"], found["k, in the file"]) == (1.5, 1.0)
    assert found["k, in the file: JSON"] == "no: cut"
    assert found["k, in the file: out of order"] == "not known"
    assert completeness.figures_of("k", 5, [bad])["k, in the file"] == "its file has none of 5 kernels"
    without = {"kernels": 0, "says it lost": "nothing"}
    assert completeness.figures_of("k", 5, [without]) == {
        "k": "its result has none of 5 kernels", "k: launched": 5, "k: recorded": 0, "k: says it lost": "nothing",
        "k, in the file": "it writes no file",
    }  # fmt: skip


def test_replays_are_reported_with_the_cards_memory_and_unusable_times(script):
    overhead = script("overhead")
    with SimulatedGpu() as gpu:
        faults = {2: lambda gpu: gpu.inject("zero_timestamps", count=3)}
        found = overhead.replays(ours(), Program(gpu, faults), 4)
    figure = "a replay of 100 kernels"
    assert found[figure] == 1.0
    assert found[f"{figure}: GPU memory taken at first, MB"] == 4.0
    assert found[f"{figure}: and more at the end, MB"] == 3.5
    assert found[f"{figure}: without usable times"] == "3 of 500 kernels"
    assert found[f"{figure}: launched"] == 500


def launches(script, **costs):
    """A report of `overhead.py`: arm -> figures of a launch, in two rounds; the second takes 10 or 30 ns longer."""
    comparisons = []
    for index, figure in enumerate((*script("overhead").LAUNCH, script("overhead").ADDED)):
        arms = {arm: Arm([ns[index], ns[index] + (10 if arm == "none" else 30)]) for arm, ns in costs.items()}
        comparisons.append(Comparison(arms, next(iter(arms)), name=f"overhead: {figure}"))
    return Report(comparisons, {})


def test_what_a_launch_costs_more_is_held_against_the_floor_of_the_same_kinds(script):
    plain = [100, 90, 200, 300, 1000, 5]
    report = launches(
        script,
        **{
            "none": plain,
            "floor, kernels": [ns + 100 for ns in plain],
            "floor, all": [ns + 400 for ns in plain],
            "kineto, CUDA": [ns + 800 for ns in plain],
            "proton, tree": [ns + 800 for ns in plain],
        },
    )
    lines = script("overhead").above_the_floor(report).splitlines()
    columns = "800 | 810 | 810 | 810 | 810 | 810 | 820"
    assert f"| kineto, CUDA | {columns} | 2.00 (floor, all) | 1.95 (floor, all) |" in lines
    assert f"| proton, tree | {columns} | 8.00 (floor, kernels) | 6.83 (floor, kernels) |" in lines
    assert len({line.count("|") for line in lines if line}) == 1


def test_without_plain_launches_or_a_floor_it_says_so(script):
    overhead = script("overhead")
    assert "nothing to hold" in overhead.above_the_floor(launches(script, **{"floor, all": [1] * 6}))
    text = overhead.above_the_floor(launches(script, **{"none": [1] * 6, "collector, all": [9] * 6}))
    none = "no floor that adds anything"
    assert text.endswith(f"| 8 | 18 | 18 | 18 | 18 | 18 | 24 | {none} | {none} |")


def test_a_file_is_reported_with_its_compressed_bytes_and_the_memory_it_took(script):
    stop_to_file = script("stop_to_file")
    with SimulatedGpu() as gpu:
        found = stop_to_file.measure(ours(file=".json"), Program(gpu), 4000)
        nothing = stop_to_file.measure(sys.modules["_collectors"].Collector(), Program(gpu), 10)
    assert set(found) == set(stop_to_file.FIGURES)
    assert found["until the file is there"] > found["until the caller goes on"] > 0
    assert 0 < found["file, compressed, per launch"] < found["file, per launch"] / 3
    assert found["memory until then, per launch"] > 0
    assert {nothing[figure] for figure in list(stop_to_file.FIGURES)[1:]} == {"it writes no file"}


def test_a_files_first_part_is_compressed(script, tmp_path, monkeypatch):
    stop_to_file = script("stop_to_file")
    monkeypatch.setattr(stop_to_file, "COMPRESSED", 1000)
    file = tmp_path / "file"
    file.write_bytes(bytes(1000) + os.urandom(100_000))
    assert stop_to_file.compressed_share(file) < 0.05
    monkeypatch.setattr(stop_to_file, "COMPRESSED", 1 << 20)
    assert stop_to_file.compressed_share(file) > 0.9


@pytest.mark.parametrize("cuda", ["12.4", "13.5"])
def test_the_python_loop_reads_what_is_decoded(script, cuda):
    decode = script("decode")
    data = decode.records(decode.MIXES["annotated step"], decode.VERSIONS[cuda], 20_000)
    objects = decode.objects_of(data, decode.structures("annotated step", cuda))
    found = decode._native.decode_buffer(data, decode.VERSIONS[cuda])
    assert len(objects) == found["counters"]["records_decoded"] > 50
    for record, table, fields in (
        ("kernel", "kernels", {"start": "start_ns", "end": "end_ns", "correlation": "correlation_id"}),
        ("memcpy", "memcpys", {"bytes": "num_bytes", "stream": "stream_id"}),
        ("driver_api", "api_calls", {"start": "start_ns", "correlation": "correlation_id", "thread": "thread_id"}),
    ):
        records = ("driver_api", "runtime_api") if record == "driver_api" else (record,)
        of_kind = [each for each in objects if type(each).__name__ in records]
        for field, column in fields.items():
            assert sorted(getattr(each, field) for each in of_kind) == sorted(found["tables"][table][column].tolist())


def test_the_python_loop_is_timed_by_as_many_records(script, monkeypatch):
    decode = script("decode")
    clock = SimpleNamespace(process_time_ns=itertools.count(0, 1000).__next__)
    monkeypatch.setattr(decode, "time", clock)
    comparison = decode.columns_or_objects("13.0", "kernels", 1, 0.1).comparison
    assert list(comparison.arms) == ["decode", "columns", "python loop"]
    assert set(comparison.arms["columns"].times_ns) == {1000}
    assert comparison.arms["python loop"].median_ns.estimate == pytest.approx(4000, rel=0.01)


def test_where_the_gpu_is_decides_the_cores_only_where_it_is_known(script, monkeypatch, capsys):
    script("overhead")
    program = sys.modules["_program"]
    driver = SimpleNamespace(
        cuInit=lambda flags: (0,), cuDeviceGet=lambda ordinal: (0, 0),
        cuDeviceGetPCIBusId=lambda length, device: (0, b"0000:1B:00.0".ljust(length, b"\0")),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=driver))
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", driver)
    assert program.gpu_bus_id() == "0000:1B:00.0"
    driver.cuInit = lambda flags: (100,)
    assert program.gpu_bus_id() == ""
    assert "is not known: 100" in capsys.readouterr().err


def test_facts_are_reported_below_the_tables(script):
    script("overhead")
    program = sys.modules["_program"]
    arms = {"a": Arm([1.0], facts={"lost": "nothing"}), "b": Arm([2.0])}
    report = Report(
        [Comparison(arms, "a", name="overhead: a launch"), Comparison({"a": Arm([1.0])}, "a", name="x: y")], {}
    )
    assert all(arm.facts == {} for each in program.without_facts(report).comparisons for arm in each.arms.values())
    assert program.facts(report).splitlines()[2:] == ["", "  a launch", "    a - lost: nothing"]
    assert program.facts(program.without_facts(report)) == ""


def test_every_collector_names_a_floor_that_there_is(script):
    script("overhead")
    made = {name: make() for name, make in sys.modules["_collectors"].COLLECTORS.items()}
    assert {each.floor for name, each in made.items() if name != "none"} == {"floor, kernels", "floor, all"}
    assert made["none"].floor == ""
    assert [name for name, each in made.items() if each.only_afterwards] == ["kineto, CUDA, torn down"]
    rest = sys.modules["_program"].collectors_but("none", "floor")
    assert set(made) - set(rest) == {"none", "floor, kernels", "floor, all", "kineto, CUDA, torn down"}


class TimedProgram(Program):
    """One whose launches take 10 ns each."""

    def launch(self, count):
        super().launch(count)
        return np.full(count, 10.0)


def test_streamed_launches_are_on_disk_and_not_in_memory(script, monkeypatch):
    streaming = script("streaming")
    monkeypatch.setattr(streaming, "PIECE", 500)
    monkeypatch.setattr(streaming, "PIECE_S", 0)
    monkeypatch.setattr(streaming, "begin_peak", lambda: 1_000_000)
    sizes = itertools.count(2_000_000, 150_000)
    monkeypatch.setattr(streaming, "resident", lambda _: next(sizes))
    with SimulatedGpu() as gpu:
        streamed = streaming.measure(streaming.COMPARED[streaming.STREAMED](), TimedProgram(gpu), 2_000)
        kept = streaming.measure(streaming.COMPARED[streaming.IN_MEMORY](), TimedProgram(gpu), 2_000)
    assert streamed["a launch"] == kept["a launch"] == 10
    assert 1 < streamed["disk of a launch"] < 60
    assert kept["disk of a launch"] == "it writes none"
    assert kept["memory of a launch"] == 150_000 / 1_500
    assert streamed["memory of a launch"] == "it keeps none"


@pytest.mark.medium
def test_a_recorder_is_dumped_after_the_launches(script, monkeypatch):
    recorder = script("recorder")
    monkeypatch.setattr(recorder, "PIECE", 500)
    with SimulatedGpu() as gpu:
        found = recorder.measure(recorder.COMPARED[recorder.RECORDER](), TimedProgram(gpu), 1_000)
        assert recorder.measure(recorder.Collector(), TimedProgram(gpu), 1_000)["a dump"] == "it has no dump"
    assert 0 < found["a dump"] < found["a dump as .pftrace"]
    assert found["a launch"] == 10


def compared(figures):
    comparisons = [
        Comparison(
            {name: Arm([value]) for name, value in arms.items()}, reference=next(iter(arms)), name=f"script: {figure}"
        )
        for figure, arms in figures.items()
    ]
    return SimpleNamespace(comparisons=comparisons)


def test_a_claim_that_is_missed_says_so(script):
    streaming, recorder = script("streaming"), script("recorder")
    launch = {"none": 100, "floor, all": 150, streaming.IN_MEMORY: 200, streaming.STREAMED: 230}
    text = streaming.claims(
        compared(
            {
                "a launch": launch,
                "memory growth": {streaming.STREAMED: 1e6},
                "disk of a launch": {streaming.STREAMED: 61},
                "memory of a launch": {streaming.IN_MEMORY: 130},
            }
        )
    )
    assert [line.endswith(": MISSED") for line in text.splitlines()[2:]] == [False, True, True, False, False]
    assert text.endswith("a launch streamed adds 2.60 times what the floor adds")
    launch |= {recorder.RECORDER: 240, recorder.LISTENER: 110}
    text = recorder.claims(compared({"a launch": launch, "a dump": {recorder.RECORDER: 7}}))
    assert [line.endswith(": MISSED") for line in text.splitlines()[2:]] == [False, True, False, False]
