"""Sessions end to end on the simulated GPU: from launches through CUPTI's interface to StepStats and files."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

import collector
from collector.options import KINDS, KINDS_ON_REQUEST
from collector.protos import RunMetadata
from collector.recording import capture_tables
from collector.recording.schema import SCHEMA
from collector.sources.native import NativeSource
from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator

ADD = "_Z3addIfEvPT_i"
CUDA_VERSIONS = ["12.0", "12.4", "12.9", "13.0", "13.3", "13.5"]


@pytest.fixture
def gpu():
    """Two simulated GPUs which the test must not have misused."""
    with SimulatedGpu(devices=2) as simulated:
        yield simulated
        assert simulated.misuse() == {}


def nodes_of(step: collector.Session) -> dict[str, list[str]]:
    return {device.device: [node.node_name for node in device.node_stats] for device in step.step_stats.dev_stats}


@pytest.mark.parametrize("cuda", CUDA_VERSIONS)
def test_a_step_of_every_cuda_version(cuda, tmp_path):
    kinds = (*KINDS, "peer_copies")
    with SimulatedGpu(devices=2, cuda=cuda) as gpu, collector.trace(tmp_path / "step.json", kinds=kinds) as step:
        with collector.annotate("layer1"), collector.annotate("conv"):
            gpu.launch(ADD, stream=7, duration_ns=12_000, grid=(64, 2, 1), block=(256, 1, 1))
            gpu.memcpy("HtoD", 4096, stream=9, duration_ns=2_000, src="pinned")
        gpu.launch("sgemm", stream=7, duration_ns=3_000, device=1)
        gpu.memset(512, stream=9)
        gpu.memcpy_peer(0, 1, 8192, stream=13)
        gpu.synchronize()
    assert step.ledger.complete, step.ledger.losses()
    nodes = nodes_of(step)
    host = nodes.pop("/cpu:0")
    assert {"layer1", "layer1/conv", "cudaLaunchKernel", "cuLaunchKernel"} <= set(host)
    assert nodes == {
        "/cpu:0/waits": ["Context Synchronize"] * 2,  # of each GPU
        "/gpu:0/stream:all": [
            "layer1/conv:add<float>",
            "layer1/conv:MEMCPYHtoD",
            "MEMSET:MEMSET",
            "MEMCPYPtoP:MEMCPYPtoP",
        ],
        "/gpu:0/stream:7": ["layer1/conv:add<float>"],
        "/gpu:0/stream:9": ["layer1/conv:MEMCPYHtoD", "MEMSET:MEMSET"],
        "/gpu:0/stream:13": ["MEMCPYPtoP:MEMCPYPtoP"],
        "/gpu:0/memcpy": ["layer1/conv:MEMCPYHtoD", "MEMSET:MEMSET", "MEMCPYPtoP:MEMCPYPtoP"],
        "/gpu:1/stream:all": ["sgemm:sgemm"],
        "/gpu:1/stream:7": ["sgemm:sgemm"],
    }
    assert sorted(step.kernels.duration_ns.tolist()) == [3_000, 12_000]
    assert step.run_metadata.provenance.simulated
    trace = json.loads((tmp_path / "step.json").read_text())
    assert trace["otherData"]["simulated"]


def test_the_launch_says_when_it_was_scheduled_and_by_which_thread(gpu):
    with collector.trace() as step:
        gpu.launch(ADD, stream=7)
    node = next(d for d in step.step_stats.dev_stats if d.device == "/gpu:0/stream:7").node_stats[0]
    call = step.recording.api_calls.where(correlation_id=node.correlation_id)
    assert node.scheduled_nanos == min(call.start_ns.tolist()) + step.recording.clock.offset_ns
    assert node.scheduled_nanos < node.all_start_nanos
    assert node.thread_id == threading.get_native_id()


def test_the_host_device_names_the_threads_that_called(gpu):
    with collector.trace() as step:
        thread = threading.Thread(target=gpu.launch, args=(ADD,), name="loader")
        keep = threading.Event()
        other = threading.Thread(target=lambda: (gpu.launch(ADD), keep.wait(600)), name="keeper")
        thread.start()
        thread.join()
        other.start()
        while gpu.statistics().launches < 2:
            time.sleep(0.001)
    keep.set()
    other.join()
    names = step.step_stats.dev_stats[0].thread_names
    assert names[other.native_id] == "keeper"
    assert names[thread.native_id] == f"thread {thread.native_id}"  # it has ended before it could be asked


def test_wall_times_are_the_steps_own(gpu):
    before = time.time_ns()
    with collector.trace() as step:
        gpu.launch(ADD)
    after = time.time_ns()
    provenance = step.run_metadata.provenance
    assert before <= provenance.window_start_nanos <= after
    assert provenance.window_end_nanos - provenance.window_start_nanos == step.recording.clock.window_ns


@pytest.fixture
def slow_start(monkeypatch):
    """Lets the start of a session take its time once all kinds are enabled, and calls a function meanwhile."""
    start, ready = NativeSource.start, []

    def slow(meanwhile):
        def start_slowly(source, options):
            start(source, options)
            meanwhile()
            ready.append(source.instant())

        monkeypatch.setattr(NativeSource, "start", start_slowly)
        return ready

    return slow


def test_a_step_begins_when_all_kinds_are_enabled(gpu, slow_start):
    """In the first session of a process that took 20 to 30 ms on an H100, which counted as idle time of the step."""
    ready = slow_start(lambda: None)
    with collector.trace(strict=True) as step:
        gpu.launch(ADD)
    clock = step.recording.clock
    assert clock.cupti_start_ns >= ready[0].cupti_ns
    assert step.recording.api_calls.start_ns.min() >= clock.cupti_start_ns
    assert step.ledger.complete


def test_what_another_thread_launches_while_kinds_are_enabled_is_part_of_the_step(gpu, slow_start):
    ready = slow_start(lambda: gpu.launch("meanwhile"))
    with collector.trace(strict=True) as step:
        gpu.launch(ADD)
    assert len(step.kernels) == 2
    assert step.recording.clock.cupti_start_ns == step.recording.api_calls.start_ns.min() < ready[0].cupti_ns
    assert step.ledger.complete


def test_without_synchronizing_what_has_not_run_is_kept_apart(gpu):
    with collector.trace(synchronize=False) as step:
        gpu.launch(ADD, duration_ns=10**12)
    assert len(step.kernels) == 0
    assert step.ledger.invalid_timestamps + step.ledger.late + step.ledger.launches_without_kernel == 1
    assert not step.ledger.complete


@pytest.mark.parametrize("stream", [False, True])
def test_work_that_runs_when_the_step_ends_is_called_unfinished(stream, tmp_path):
    journal = {"journal": tmp_path / "step.journal", "stream": True} if stream else {}
    with SimulatedGpu(cuda="12.4", start_ns=10**18) as gpu, collector.trace(synchronize=False, **journal) as step:
        gpu.launch(ADD, duration_ns=1_000, stream=7)
        gpu.launch("running", duration_ns=10**12, stream=7)
        gpu.launch("waiting", duration_ns=1_000, stream=7)
        gpu.advance(1_000_000)
    assert sorted(step.recording.invalid.kernels.names()) == ["running", "waiting"]
    assert step.ledger.unfinished == 2
    assert step.ledger.losses() == [
        "2 activities were still running or waiting when the recording ended: no end is known"
    ]
    assert not step.ledger.complete


def test_a_step_waits_for_the_devices_unless_asked_not_to(gpu):
    with collector.trace() as step:
        gpu.launch(ADD, duration_ns=1_000_000, stream=7)
        gpu.launch(ADD, duration_ns=1_000_000, stream=8, device=1)
    assert len(step.kernels) == 2
    assert step.ledger.complete


@pytest.mark.parametrize("kind", ["kernels", "memcpys", "memsets"])
def test_only_the_kinds_asked_for_are_recorded(gpu, kind):
    with collector.trace(kinds=[kind]) as step:
        gpu.launch(ADD)
        gpu.memcpy("HtoD", 10)
        gpu.memset(10)
    counted = {name: len(getattr(step.recording, name)) for name in ("kernels", "memcpys", "memsets", "api_calls")}
    assert counted == {"kernels": 0, "memcpys": 0, "memsets": 0, "api_calls": 0} | {kind: 1}
    assert step.ledger.complete


def test_sessions_follow_one_another_and_forget(gpu):
    session = collector.trace()
    for count in (3, 0, 5):
        with session:
            for _ in range(count):
                gpu.launch(ADD)
        gpu.launch("between")
        assert session.kernels.names() == ["add<float>"] * count
        assert session.ledger.launches_seen == count


def test_a_decorated_function_is_traced(gpu):
    @collector.trace()
    def step(count: int) -> str:
        for _ in range(count):
            gpu.launch(ADD)
        return "done"

    assert step(4) == "done"
    assert len(step.session.kernels) == 4


def test_an_exception_in_the_body_leaves_the_trace_whole_and_passes_unchanged(gpu, tmp_path):
    mine = ZeroDivisionError("mine")
    step = collector.trace(tmp_path / "t.pb")

    @step
    def body() -> None:
        gpu.launch(ADD)
        raise mine

    with pytest.raises(ZeroDivisionError) as raised:
        body()
    assert raised.value is mine
    assert step.kernels.names() == ["add<float>"]
    assert RunMetadata.FromString((tmp_path / "t.pb").read_bytes()) == step.run_metadata


def test_a_session_within_a_session_traces_nothing_and_the_outer_is_whole(gpu):
    with collector.trace() as outer:
        gpu.launch(ADD)
        with pytest.raises(collector.SessionActiveError), collector.trace(strict=True):
            pytest.fail("the body ran")
        with pytest.warns(collector.CollectorWarning, match="another session"), collector.trace() as inner:
            gpu.launch(ADD)
        assert len(inner.kernels) == 0
    assert len(outer.kernels) == 2


def test_annotations_nest_per_thread_over_every_way_to_use_them(gpu):
    @collector.annotate("update")
    def update() -> None:
        gpu.launch("c")

    def work() -> None:
        with collector.annotate("worker"):
            gpu.launch("d", stream=8)

    with collector.trace() as step:
        with collector.annotate("a"):
            gpu.launch("a")
            with collector.annotate("b/c"):
                gpu.launch("b")
                update()
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        gpu.launch("e")
    found = dict(zip(step.kernels.names(), step.recording.annotations_of(step.kernels), strict=True))
    assert found == {"a": "a", "b": "a/b/c", "c": "a/b/c/update", "d": "worker", "e": ""}
    assert step.ledger.complete


def test_tasks_that_take_turns_name_their_own_launches(gpu):
    @collector.annotate("task")
    async def task(name: str) -> None:
        for _ in range(3):
            with collector.annotate(name):
                gpu.launch(name)
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(*(task(name) for name in "abc"))

    with collector.trace() as step:
        asyncio.run(main())
    paths = step.recording.annotations_of(step.kernels)
    assert sorted(zip(step.kernels.names(), paths, strict=True)) == sorted((n, f"task/{n}") for n in "abc" * 3)
    assert step.ledger.complete


def test_blocks_around_an_await_name_the_launches_of_their_own_task_and_its_threads(gpu):
    async def task(name: str) -> None:
        with collector.annotate(name, flops=3):
            gpu.launch(f"{name} before")
            await asyncio.sleep(0)
            gpu.launch(f"{name} after")
            await asyncio.to_thread(gpu.launch, f"{name} thread")
        gpu.launch(f"{name} last")

    async def main() -> None:
        await asyncio.gather(*(task(name) for name in "abc"))

    with collector.trace() as step, collector.annotate("serve"):
        asyncio.run(main())
        gpu.launch("end")
    found = dict(zip(step.kernels.names(), step.recording.annotations_of(step.kernels), strict=True))
    named = {f"{name} {when}": f"serve/{name}" for name in "abc" for when in ("before", "after", "thread")}
    assert found == {**named, **{f"{name} last": "serve" for name in "abc"}, "end": "serve"}
    assert step.ledger.complete, step.ledger.losses()
    details = step.recording.details
    table = step.recording.annotations
    flops = [details[number - 1].flops for number in table.details_id.tolist() if number]
    assert sum(flops) == 9  # of each task once, however often it was resumed


def test_an_annotation_that_outlives_its_session_costs_the_next_one_nothing(gpu):
    with collector.annotate("before"):
        with collector.trace():
            left = collector.annotate("left open")
            left.__enter__()
            gpu.launch("a")
        with collector.trace() as second:
            gpu.launch("b")
        left.__exit__(None, None, None)
    assert second.recording.annotations_of(second.kernels) == [""]
    assert second.ledger.complete, second.ledger.losses()


# --- trouble


CAUSES = {
    "driver": (collector.DriverNotFoundError, "driver"),
    "libcupti": (collector.CuptiNotFoundError, "libcupti"),
    "crashing": (collector.CuptiUnusableError, "13.2"),
    "permission": (collector.PermissionDeniedError, "PRIVILEGES"),
    "subscriber": (collector.SubscriberConflictError, "subscri"),
    "call": (collector.CuptiCallError, "cuptiActivityEnable"),
}


@pytest.fixture(params=CAUSES)
def trouble(request, tmp_path, monkeypatch):
    """A machine on which nothing can be traced, for one reason after another: (error class, word of the cause)."""
    if request.param == "driver":
        monkeypatch.setenv("COLLECTOR_LIBCUDA", str(tmp_path / "libcuda.so.1"))
        yield CAUSES[request.param]
        return
    crashing = request.param == "crashing"
    with SimulatedGpu(cuda="13.2" if crashing else "13.0", driver="12.4" if crashing else None) as gpu:
        if request.param == "libcupti":
            monkeypatch.setenv("COLLECTOR_LIBCUPTI", str(tmp_path / "libcupti.so"))
        elif request.param == "permission":
            gpu.inject("error", target="cuptiActivityEnable", value=35, count=-1)
        elif request.param == "subscriber":
            gpu.inject("second_subscriber", target="nsys", count=-1)
        elif request.param == "call":
            gpu.inject("error", target="cuptiActivityEnable", value=8, count=-1)
        yield CAUSES[request.param]
        assert gpu.misuse() == {}


def test_what_cannot_be_traced_runs_with_one_warning(trouble, tmp_path):
    _, word = trouble
    ran = []
    step = collector.trace(tmp_path / "t.json")

    def body() -> int:
        line = inspect.currentframe().f_lineno + 1
        with step, collector.annotate("op"):
            ran.append(True)
        return line

    with pytest.warns(collector.CollectorWarning) as caught:
        line = body()
    assert ran
    assert len(caught) == 1
    assert (caught[0].filename, caught[0].lineno) == (__file__, line)
    assert step.unavailable in str(caught[0].message)
    assert word in step.unavailable
    assert len(step.recording.kernels) == 0
    assert list(step.step_stats.dev_stats) == []
    assert not (tmp_path / "t.json").exists()


def test_strict_raises_the_error_that_fits_with_a_remedy(trouble):
    error, word = trouble
    with pytest.raises(error, match=word) as raised, collector.trace(strict=True):
        pytest.fail("the body ran")
    assert raised.value.remedy


def test_after_trouble_the_next_session_traces(gpu):
    gpu.inject("error", target="cuptiActivityEnable", value=8, count=-1)
    with pytest.warns(collector.CollectorWarning), collector.trace():
        gpu.launch(ADD)
    gpu.clear_faults()
    with collector.trace() as step:
        gpu.launch(ADD)
    assert step.kernels.names() == ["add<float>"]


def run_python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore:This process:DeprecationWarning", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
    )


WITH_ENCODING_WARNINGS = """
import sys
import collector
from collector.testing import SimulatedGpu

with SimulatedGpu(real_time=True) as gpu:
    with collector.trace("step.json", journal="step.journal", strict=True) as step:
        gpu.launch("add")
    with collector.record(keep="1s", folder="records", strict=True) as recorder:
        gpu.launch("add")
        dump = recorder.dump("dump.json")
    dump.wait()
print(step.kernels.names(), dump.path.name)
"""


@pytest.mark.medium
def test_a_program_that_takes_a_default_encoding_for_an_error_is_traced(tmp_path):
    done = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", "-W", "error", "-c", WITH_ENCODING_WARNINGS],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("['add']")


IMPORTS = """
import sys, tempfile
import collector
from collector.sources.native import NativeSource
from collector.testing import SimulatedGpu

loaded = []
native_start, native_stop = NativeSource.start, NativeSource.stop

def start(self, options):
    native_start(self, options)
    loaded.append(set(sys.modules))

def stop(self, **options):
    loaded.append(set(sys.modules))
    return native_stop(self, **options)

NativeSource.start, NativeSource.stop = start, stop
with SimulatedGpu() as gpu, tempfile.TemporaryDirectory() as folder:
    options = {"journal": folder + "/run.journal"} if "stream" in sys.argv[1:] else {}
    with collector.trace(strict=True, stream=bool(options), **options) as step, collector.annotate("layer1"):
        gpu.launch("k")
    assert len(step.kernels) == 1
    started, stopped = loaded
    print(sorted(stopped - started))
"""


@pytest.mark.medium
@pytest.mark.parametrize("words", [[], ["stream"]], ids=["in memory", "streamed"])
def test_nothing_is_imported_while_a_step_is_recorded(words):
    """The first step of a process took 0.3 s longer on a GPU's machine: asyncio and numpy were imported in it."""
    done = subprocess.run([sys.executable, "-c", IMPORTS, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, ["[]"], "")


@pytest.mark.medium
def test_a_forked_child_calls_nothing_and_the_parents_trace_is_whole():
    # A forked child that flushed CUPTI at its exit hung: hpctoolkit#195.
    done = run_python(f"""
        import os, sys
        import collector
        from collector.testing import SimulatedGpu
        with SimulatedGpu() as gpu:
            with collector.trace() as step:
                gpu.launch("{ADD}")
                calls = len(gpu.calls())
                child = os.fork()
                if child == 0:
                    with collector.annotate("child"):
                        pass
                    step.__exit__(None, None, None)
                    assert "forked" in step.unavailable
                    assert len(gpu.calls()) == calls, gpu.calls()[calls:]
                    sys.exit(0)  # runs the exit handlers
                assert os.waitpid(child, 0)[1] == 0
                gpu.launch("{ADD}")
            assert len(step.kernels) == 2, step.ledger
            assert gpu.misuse() == {{}}
    """)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.medium
@pytest.mark.parametrize("threads", ["", "import threading; threading.Thread(target=work, daemon=True).start()"])
def test_the_interpreter_ends_cleanly_in_the_middle_of_a_session(threads):
    done = run_python(f"""
        import collector
        from collector.testing import SimulatedGpu
        gpu = SimulatedGpu(abort_on_fatal=True)
        gpu.__enter__()
        def work():
            while True:
                with collector.annotate("op"):
                    gpu.launch("{ADD}")
        session = collector.trace()
        session.__enter__()
        {threads or "work_is_not_run = True"}
        for _ in range(100):
            gpu.launch("{ADD}")
        print("end")
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


@pytest.mark.medium
@pytest.mark.parametrize(
    "opens",
    [
        "session = collector.trace({path!r})\nsession.__enter__()",
        "collector.trace({path!r}).__enter__()",
        "steps = collector.trace({path!r})(lambda: (yield))()\nnext(steps)",
    ],
)
def test_a_session_that_is_open_when_the_interpreter_ends_is_saved(tmp_path, opens):
    path = str(tmp_path / "step.gpurec")
    done = run_python(
        "import collector\nfrom collector.testing import SimulatedGpu\ngpu = SimulatedGpu().__enter__()\n"
        + opens.format(path=path)
        + f"\ngpu.launch('{ADD}')"
    )
    assert (done.returncode, done.stderr) == (0, "")
    recording = collector.load(path).recording
    assert recording.kernels.names() == ["add<float>"]
    assert recording.ledger.losses() == ["the step was still open when the interpreter ended, and ends there"]


@pytest.mark.medium
def test_a_missing_driver_is_reported_in_a_fresh_process(tmp_path):
    program = textwrap.dedent("""
        import collector
        with collector.trace() as step:
            print("ran")
        print(step.unavailable)
    """)
    environment = {**os.environ, "COLLECTOR_LIBCUDA": str(tmp_path / "libcuda.so.1")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    ran, reason = done.stdout.splitlines()
    assert ran == "ran"
    assert "libcuda.so.1" in reason
    assert done.stderr.count("CollectorWarning") == 1
    assert reason in done.stderr
    assert Path(done.stderr.split(":")[0]).name == "<string>"


@pytest.mark.slow
def test_a_million_launches_are_all_there(gpu):
    with collector.trace() as step:
        gpu.launch(ADD, count=1_000_000, duration_ns=1_000)
    assert len(step.kernels) == 1_000_000
    assert step.ledger.launches_seen == step.ledger.launches_matched == 1_000_000
    assert step.ledger.complete
    assert int(step.kernels.duration_ns.sum()) == 10**9


def test_a_recording_need_not_sort_the_rows_of_concurrent_streams(gpu, monkeypatch):
    orders = {}

    def noted(name, columns, order=capture_tables.row_order):
        orders[name] = order(name, columns)
        return orders[name]

    monkeypatch.setattr(capture_tables, "row_order", noted)
    with collector.trace(strict=True, kinds=(*KINDS, *KINDS_ON_REQUEST)) as step:
        for launch in range(20):
            with collector.annotate(f"layer{launch % 3}"):
                gpu.launch("sgemm", stream=7 + 2 * (launch % 2))
            gpu.record_event(stream=9)
        gpu.synchronize()
    assert len(step.kernels) == 20
    assert set(orders) == set(SCHEMA)
    assert not any(order is not None for order in orders.values())
