"""The budget of a recording: what is left out when it costs more, in which order, and that every output says so."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from injected_programs import simulator_environment
from listening_program import PROGRAM as LISTENING
from listening_program import listening_program
from report_pages import page_of

import collector
from collector import _native, analysis
from collector.cli import main
from collector.errors import CollectorWarning
from collector.options import KINDS, TraceOptions
from collector.recording.journal_segments import load_segments
from collector.recording.ledger import Ledger
from collector.recording.recording import Recording
from collector.recording.shed_kinds import SHED, in_part, shed_lines
from collector.testing import SimulatedGpu
from collector.tracing.recorder import Recorder
from collector.tracing.recorder_ring import Keep, RecorderSource
from collector.tracing.session import Session
from tests.support.nvtx_copy import NvtxCopy, attributes

pytestmark = pytest.mark.simulator

ALL_KINDS = (*KINDS, "memory_operations")
EXCEEDED = "0.0001%"
"""Less than it costs to look at the clock."""
NUMBERS = {"runtime_api": 5, "driver_api": 4, "external_correlations": 39, "synchronizations": 38, "memcpys": 1}
GRAPH_TRACE = 51
ORDER = list(SHED)


@pytest.fixture
def gpu():
    with SimulatedGpu(devices=2) as simulated:
        yield simulated
        assert simulated.misuse() == {}


def session(**options) -> Session:
    """Small buffers, so that budgets are often looked at, and enough of them for a decode thread that has to wait."""
    given = {"budget": EXCEEDED, "budget_period_ms": 5, "buffer_bytes": 4096, "max_buffers": 1 << 14, **options}
    return Session(TraceOptions(**given))


def disabled(gpu) -> list[int]:
    return [call.argument for call in gpu.calls() if call.function == "cuptiActivityDisable"]


def work(gpu, stream: int = 7) -> None:
    """A launch, a copy, a memset, an allocation and a wait, and so records of all kinds."""
    with collector.annotate("layer"):
        gpu.launch("kernel", stream=stream)
        gpu.memcpy("HtoD", 64, stream=stream)
        gpu.memset(64, stream=stream)
    gpu.free(gpu.malloc(64))
    gpu.synchronize(stream=stream)


def work_until(gpu, *names: str) -> int:
    """Work until kinds were disabled in the open session; the test's time limit ends the wait."""
    before = len(disabled(gpu))
    wanted = {NUMBERS[name] for name in names}
    for count in itertools.count(1):
        work(gpu)
        if count % 50 == 0 and wanted <= set(disabled(gpu)[before:]):
            return count
    raise AssertionError


def shed(ledger: Ledger) -> list[str]:
    """What was left out, in the order of preference; one that saved little when it was due comes later in time."""
    figures = ledger.as_dict()
    return [name for name in SHED if figures.get(name)]


@pytest.mark.parametrize("text", ["1%", "0.5 %", "100%", "0.0001%"])
def test_possible_budgets(text):
    assert TraceOptions(budget=text).budget_millionths == round(float(text.rstrip(" %")) * 10_000)


@pytest.mark.parametrize("bad", ["0%", "abc", "150%", "-1%", "1", "%", "0.00001%", 0.01, True])
def test_impossible_budgets_give_one_clear_error(bad):
    for make in (collector.trace, collector.record, collector.listen):
        with pytest.raises(ValueError, match=re.escape(f"budget={bad!r}: write a share of the time of one core")):
            make(budget=bad)


@pytest.mark.medium
def test_kinds_are_left_out_in_the_stated_order_and_no_kernel_is_missing(gpu):
    """The periods are so long that each has records of all kinds, also when the program hardly runs."""
    with session(kinds=ALL_KINDS, budget_period_ms=50) as step:
        count = work_until(gpu, "memcpys")
        for _ in range(100):
            work(gpu)
    assert shed(step.ledger) == [name for name in ORDER if name not in ("shed_nvtx_ranges_ns", "shed_graph_nodes_ns")]
    times = [step.ledger.as_dict()[name] for name in shed(step.ledger)]
    assert times == sorted(times)
    assert len(step.recording.kernels) == count + 100
    assert [name for name, _ in step.ledger.explained_losses()] == shed(step.ledger)
    assert not step.ledger.complete
    assert step.ledger.kernels_without_launch == step.ledger.launches_without_kernel == 0
    assert 0 < step.ledger.launches_seen < count


def test_what_was_left_out_ends_at_the_time_that_the_ledger_states(gpu):
    with session() as step:
        work_until(gpu, "driver_api", "runtime_api")
        for _ in range(100):
            work(gpu)
    recording, figures = step.recording, step.ledger.as_dict()
    start_ns = recording.clock.cupti_start_ns
    calls = recording.api_calls
    for domain, figure in ((1, "shed_driver_api_ns"), (2, "shed_api_calls_ns")):
        last_ns = int(calls.start_ns[calls.domain == domain].max())
        assert last_ns - start_ns <= figures[figure] + 1_000_000_000
        assert int(recording.kernels.start_ns.max()) - start_ns > figures[figure]
    names = recording.annotations_of(recording.kernels)
    assert {names[0], names[-1]} == {"layer", ""}


def test_a_session_after_it_begins_with_everything(gpu):
    with session() as step:
        work_until(gpu, "runtime_api")
    with collector.trace() as later:
        for _ in range(20):
            work(gpu)
    assert shed(step.ledger)
    assert later.ledger.complete
    assert "budget_millionths" not in later.ledger.as_dict()
    assert set(later.recording.annotations_of(later.recording.kernels)) == {"layer"}


@pytest.mark.medium
def test_a_budget_that_is_kept_changes_nothing(gpu):
    with session(budget="100%", budget_period_ms=50) as step:
        end = time.monotonic() + 0.4
        while time.monotonic() < end:
            work(gpu)
    assert step.ledger.complete
    assert step.ledger.as_dict()["budget_millionths"] == 1_000_000
    assert step.ledger.as_dict()["budget_highest_millionths"] > 0


@pytest.mark.medium
@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize(("kind", "counts"), [(2 << 16, True), (5 << 16, False)])
def test_the_overheads_that_cupti_records_of_itself_are_part_of_the_cost(gpu, tmp_path, kind, counts, is_streamed):
    """Of lazy loading of functions, which happens without tracing too, they are not. A streamed step keeps no rows."""
    streamed = {"journal": tmp_path / "run.journal", "stream": True} if is_streamed else {}
    with session(budget="100%", budget_period_ms=20, **streamed) as step:
        for _ in range(300):  # whole buffers of them: all later ones have fewer
            gpu.overhead(5 << 16, 1)
        end = time.monotonic() + 0.5
        while time.monotonic() < end and not disabled(gpu):
            work(gpu)
            gpu.overhead(kind, 50_000_000)
    assert (shed(step.ledger)[:1] == ["shed_driver_api_ns"]) == counts


@pytest.mark.medium
def test_streams_and_threads(gpu):
    counts = [0] * 6
    ends = threading.Event()

    def worker(number: int) -> None:
        while not ends.is_set():
            work(gpu, stream=7 + number)
            counts[number] += 1

    threads = [threading.Thread(target=worker, args=(number,)) for number in range(len(counts))]
    with session(budget_period_ms=20) as step:
        for thread in threads:
            thread.start()
        work_until(gpu, "memcpys")
        ends.set()
        for thread in threads:
            thread.join()
    kernels = step.recording.kernels
    assert [int((kernels.stream_id == 8 + number).sum()) for number in range(5)] == counts[1:]
    assert shed(step.ledger)[0] == "shed_driver_api_ns"
    others = [name for name, _ in step.ledger.explained_losses() if name not in SHED]
    assert set(others) <= {"kernels_without_launch"}  # calls that other threads were in at that moment
    assert step.ledger.kernels_without_launch <= len(threads) * 2


@pytest.mark.slow
def test_short_sessions_end_while_kinds_are_left_out(gpu):
    for _ in range(60):
        with session(budget_period_ms=1) as step:
            for _ in range(60):
                work(gpu)
        assert len(step.recording.kernels) == 60
        assert [name for name, _ in step.ledger.explained_losses() if name not in SHED] == []
    with collector.trace() as step:
        work(gpu)
    assert step.ledger.complete


@pytest.mark.medium
def test_a_streamed_step(gpu, tmp_path):
    with session(journal=tmp_path / "run.journal", stream=True, segment_bytes=100_000, budget_period_ms=20) as step:
        count = work_until(gpu, "memcpys")
        for _ in range(200):
            work(gpu)
    assert len(list((tmp_path / "run.journal").iterdir())) > 1
    assert shed(step.ledger)[0] == "shed_driver_api_ns"
    assert [name for name, _ in step.ledger.explained_losses()] == shed(step.ledger)
    assert len(step.recording.kernels) == count + 200
    (tmp_path / "run.journal" / "000001.journal").unlink()
    rest = load_segments(tmp_path / "run.journal")
    assert set(shed(rest.ledger)) == set(shed(step.ledger))
    begin_ns = rest.clock.cupti_start_ns - step.recording.clock.cupti_start_ns
    for name in shed(rest.ledger):
        since_ns = step.ledger.as_dict()[name]
        assert rest.ledger.as_dict()[name] == max(since_ns - begin_ns, 1)


def recorder_with_short_periods(folder: Path) -> Recorder:
    class Source(RecorderSource):
        def _subscribe(self, options, others):
            super()._subscribe(options, {**others, "budget_period_ms": 5})

    recorder = Recorder(Keep(seconds=30), folder, KINDS, None, "", EXCEEDED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("collector.tracing.recorder.RecorderSource", Source)
        recorder._begin(strict=True)
    return recorder


@pytest.mark.medium
def test_a_recorder_and_steps_within_it(gpu, tmp_path):
    with recorder_with_short_periods(tmp_path) as recorder:
        with collector.trace() as across:
            work_until(gpu, "driver_api", "runtime_api")
        with collector.trace() as after:
            for _ in range(10):
                work(gpu)
        dump = recorder.dump()
    assert {"shed_driver_api_ns", "shed_api_calls_ns"} <= set(shed(across.ledger))
    assert min(across.ledger.as_dict()[name] for name in shed(across.ledger)) > 1
    assert after.ledger.as_dict()["shed_api_calls_ns"] == 1
    assert "without API calls and the names of launches (budget 0.0001%)" in after.ledger.losses()
    assert len(after.recording.kernels) == 10
    assert after.ledger.kernels_without_launch == 0
    whole = Recording.load(dump.journal)
    assert set(shed(across.ledger)) <= set(shed(whole.ledger))


def test_graphs_become_one_record_last(gpu):
    with session(kinds=("kernels", "graph_launches")) as whole, gpu.capture() as graph:
        gpu.launch("a")
        gpu.launch("b")
    assert "shed_graph_nodes_ns" not in whole.ledger.as_dict()
    executable = graph.instantiate()
    with session(kinds=("kernels",)) as step:
        before = len(gpu.calls())
        while GRAPH_TRACE not in [
            call.argument for call in gpu.calls()[before:] if call.function == "cuptiActivityEnable"
        ]:
            for _ in range(50):
                executable.launch()
            gpu.synchronize()
        for _ in range(50):
            executable.launch()
        gpu.synchronize()
    assert shed(step.ledger) == ["shed_graph_nodes_ns"]
    assert len(step.recording.graph_launches) >= 50
    assert len(step.recording.kernels) > 0
    assert step.ledger.losses()[-1].endswith("without the nodes of CUDA graphs (budget 0.0001%)")


@pytest.mark.medium
def test_ranges_of_nvtx(gpu):
    nvtx = NvtxCopy(_native.capture_library())
    with session() as step:
        nvtx.RangePushA(b"outer")
        with collector.annotate("named"):
            count = 0
            while len(disabled(gpu)) < 3:  # driver calls first; ranges then cost most of what is measured
                count += 1
                for _ in range(200):
                    nvtx.RangePushEx(attributes(b"inner"))
                    nvtx.RangePop()
                gpu.launch("early")
            nvtx.RangePushA(b"unrecorded")
            with collector.annotate("deeper"):
                gpu.launch("late")
            assert nvtx.RangePop() == 1
        assert nvtx.RangePop() == 0
        gpu.synchronize()
    assert "shed_nvtx_ranges_ns" in shed(step.ledger)
    names = {each.name for each in step.recording.annotations}
    assert {"outer", "outer/inner", "outer/named"} >= names - {"outer/named/inner", "outer/named/deeper"}
    assert "outer/named/deeper" in names
    assert not any("unrecorded" in name for name in names)


@pytest.mark.medium
@pytest.mark.parametrize("suffix", [".json", ".pftrace", ".pb", ".gpurec", ".html"])
def test_every_output_says_so(gpu, tmp_path, suffix):
    path = tmp_path / f"step{suffix}"
    with session(path=path) as step:
        work_until(gpu, "memcpys")
    lines = step.ledger.losses()
    assert len(lines) == len(shed(step.ledger)) > 1
    assert all(re.fullmatch(r"from \S+ \S+ on without [\w ]+ \(budget 0.0001%\)", line) for line in lines)
    assert all(line in step.summary() for line in lines)
    assert lines[0] in analysis.kernels(step).losses
    data = path.read_bytes()
    if suffix == ".html":
        (shown,) = page_of(path)["steps"]
        assert shown["losses"] == lines
        assert list(shown["loss_times"]) == shed(step.ledger)
    elif suffix == ".pftrace":
        assert all(line.encode() in data for line in lines)
    else:
        assert collector.load(path).ledger.losses() == lines
    if suffix == ".json":
        events = [each for each in json.loads(data)["traceEvents"] if each["name"] == f"lost: {lines[0]}"]
        assert len(events) == 1  # at its time
    if suffix == ".gpurec":
        figures = analysis.ledger(collector.load(path), by="figure")
        stated = dict(zip(figures["figure"], figures["loss"], strict=True))
        assert [stated[name] for name in shed(step.ledger)] == lines


def test_a_step_of_a_recorded_process_has_the_budget_of_the_recording(gpu, tmp_path):
    with (
        collector.record(folder=tmp_path, strict=True),
        pytest.warns(CollectorWarning, match="no budget of its own: this process is recorded already"),
        collector.trace(budget="1%") as step,
    ):
        work(gpu)
    assert len(step.recording.kernels) == 1


def test_figures_of_a_part():
    figures = {"shed_memsets_ns": 500, "shed_memcpys_ns": 900, "kernels": 3}
    assert in_part(figures, 0) == {"shed_memsets_ns": 500, "shed_memcpys_ns": 900}
    assert in_part(figures, 600) == {"shed_memsets_ns": 1, "shed_memcpys_ns": 300}
    assert in_part(figures, 600, 200) == {"shed_memsets_ns": 1}
    assert shed_lines({"budget_millionths": 2_500, "shed_memsets_ns": 1, "shed_memcpys_ns": 1_500_000}) == [
        ("shed_memsets_ns", "without memsets (budget 0.25%)"),
        ("shed_memcpys_ns", "from 1.5 ms on without copies (budget 0.25%)"),
    ]


@pytest.mark.slow
def test_each_recording_of_a_process_that_listens(tmp_path):
    program = LISTENING.replace("listen(", f"listen(budget={EXCEEDED!r}, ")
    with listening_program(program=program) as child:
        for name in ("first.gpurec", "second.gpurec"):
            assert main(["attach", str(child.pid), "record", "4s", "-q", "-o", str(tmp_path / name)]) == 0
            ledger = collector.load(tmp_path / name).ledger
            assert any(line.endswith("on without driver API calls (budget 0.0001%)") for line in ledger.losses())
            assert ledger.as_dict()["shed_driver_api_ns"] > 1  # the second one began with everything


PROGRAM = """
import ctypes, os, time
cuda = ctypes.CDLL(os.environ["COLLECTOR_LIBCUDA"])
context, kernel = ctypes.c_void_p(), ctypes.c_void_p()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
cuda.cuModuleGetFunction(ctypes.byref(kernel), None, b"sgemm")
end = time.monotonic() + 8
while time.monotonic() < end:
    for _ in range(200):
        cuda.cuLaunchKernel(kernel, 32, 32, 1, 256, 1, 1, 0, None, None, None)
    cuda.cuCtxSynchronize()
"""


@pytest.mark.slow
def test_a_program_as_it_is(tmp_path):
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "collector", "run", *words]
        environment = simulator_environment()
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    (tmp_path / "program.py").write_text(PROGRAM)
    done = run("--budget", EXCEEDED, "-o", "step.gpurec", "program.py")
    assert done.returncode == 0
    assert re.search(r"from \S+ m?s on without API calls and the names of launches \(budget 0.0001%\)", done.stderr)
    assert "shed_api_calls_ns" in shed(collector.load(tmp_path / "step.gpurec").ledger)
    for bad in ("0%", "abc", "150%"):
        done = run("--budget", bad, "program.py")
        assert done.returncode != 0
        assert f"budget={bad!r}: write a share of the time of one core" in done.stderr
