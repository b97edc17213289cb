"""Defects of other collectors, each provoked on the simulator; the docstring of a test names the public issue."""

from __future__ import annotations

import ctypes
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import collector
from collector.options import KINDS
from collector.testing import SimulatedGpu
from collector.testing.simulator.simulated_gpu import library_path

pytestmark = pytest.mark.simulator

VERSIONS = ["12.0", "12.4", "12.8", "13.0", "13.5"]
ACTIVITY_BUFFER_REQUEST = 458752


def launch_some(gpu: SimulatedGpu, count: int = 20, stream: int = 7) -> None:
    for _ in range(count):
        gpu.launch("_Z5sgemmPfi", stream=stream, duration_ns=1_000)


@pytest.fixture(params=VERSIONS)
def gpu(request: pytest.FixtureRequest) -> Any:
    """A simulated GPU of each generation of record layouts, which the test must not have misused."""
    with SimulatedGpu(cuda=request.param, devices=2) as simulated:
        yield simulated
        assert simulated.misuse() == {}


def test_timestamp_callback_is_not_registered_again(gpu: SimulatedGpu) -> None:
    """Re-registering per session brings the first kernels of each session in a wrong clock: pytorch#192021."""
    for _ in range(3):
        with collector.trace() as step:
            launch_some(gpu)
        assert len(step.kernels) == 20
        assert step.ledger.complete
    assert gpu.statistics().calls.get("cuptiActivityRegisterTimestampCallback", 0) <= 1


@pytest.mark.parametrize("deliver", ["caller", "worker"])
def test_buffers_are_exchanged_while_python_holds_its_lock(deliver: Any) -> None:
    """A callback that needs the interpreter's lock deadlocks with CUPTI's: pytorch#186295."""
    with SimulatedGpu(cuda="13.0", deliver=deliver) as gpu:
        # PyDLL, unlike CDLL, keeps the interpreter's lock during the call, as a CUDA extension may.
        holding = ctypes.PyDLL(str(library_path()))
        with collector.trace(buffer_bytes=64 * 1024, max_buffers=64) as step:
            launch_some(gpu, 1)
            for _ in range(20_000):
                assert holding.sim_api_call(b"cudaEventRecord_v3020", b"")
        assert gpu.statistics().buffers_completed > 10
        assert step.ledger.api_calls >= 20_000
        assert step.ledger.complete


def test_callbacks_call_neither_cupti_nor_cuda() -> None:
    """Even the dropped-record query can deadlock within a callback: kineto#1346; CUDA calls too: triton#11316."""
    with SimulatedGpu(cuda="13.0", deliver="caller") as gpu:
        with collector.trace(buffer_bytes=64 * 1024, max_buffers=2) as step:
            gpu.launch("k", stream=7, duration_ns=500, count=50_000)
        assert step.ledger.buffers_requested > 10
        assert "call_in_callback" not in gpu.misuse()
        assert "flush_in_callback" not in gpu.misuse()


@pytest.mark.medium
@pytest.mark.parametrize("cuda", ["12.0", "12.6", "12.8"])
def test_no_null_buffer_before_api_27(cuda: str) -> None:
    """Declining a buffer request can crash libcupti before 12.9: kineto#1534."""
    with SimulatedGpu(cuda=cuda, deliver="caller") as gpu:
        with collector.trace(buffer_bytes=64 * 1024, max_buffers=1) as step:
            gpu.inject("withheld_buffer")
            gpu.launch("k", stream=7, duration_ns=500, count=5_000)
        assert gpu.statistics().buffers_declined == 0
        assert gpu.misuse() == {}
        assert not step.ledger.complete
        assert any("discarded" in line for line in step.ledger.losses())


@pytest.mark.parametrize("cuda", ["12.9", "13.0"])
def test_scarce_buffers_are_declined_and_counted_from_api_27(cuda: str) -> None:
    with SimulatedGpu(cuda=cuda, deliver="caller") as gpu:
        with collector.trace(buffer_bytes=64 * 1024, max_buffers=1) as step:
            gpu.inject("withheld_buffer")
            gpu.launch("k", stream=7, duration_ns=500, count=5_000)
        assert step.ledger.buffers_declined == gpu.statistics().buffers_declined > 0
        assert step.ledger.records_dropped > 0
        assert not step.ledger.complete


def test_correlation_record_in_a_later_buffer(gpu: SimulatedGpu) -> None:
    """Names must not depend on the correlation record coming first: kineto#1354."""
    gpu.inject("late_correlation", count=5)
    with collector.trace(buffer_bytes=4096) as step, collector.annotate("layer"):
        launch_some(gpu, 50)
    assert step.recording.annotations_of(step.kernels) == ["layer"] * 50
    assert step.ledger.complete


def test_13_0_48_kernel_tracing_is_never_disabled() -> None:
    """Disabling the concurrent-kernel kind can deadlock in 13.0.48; it stays on, and later sessions still work."""
    with SimulatedGpu(cuda="13.0", api_version=130000) as gpu:
        for _ in range(3):
            with collector.trace(synchronize=False) as step:
                gpu.launch("k", stream=7, duration_ns=50_000_000)
                launch_some(gpu, stream=8)
            gpu.launch("between", stream=7, duration_ns=1_000)
            assert set(step.kernels.names()) <= {"k", "sgemm"}
        assert gpu.misuse() == {}
        disabled = {call.argument for call in gpu.calls() if call.function == "cuptiActivityDisable"}
        assert disabled
        assert 10 not in disabled


def graph_after_a_copy(gpu: SimulatedGpu, **options: Any) -> None:
    """A session with a copy within the device, then one with the first launch of a graph."""
    with collector.trace(strict=True, **options):
        gpu.memcpy("DtoD", 13 << 20)
    with gpu.capture() as graph:
        gpu.launch("k")
    executable = graph.instantiate()
    with collector.trace(strict=True, **options):
        executable.launch()
        gpu.synchronize()


@pytest.mark.parametrize("cuda", VERSIONS)
def test_graphs_run_after_a_session_with_copies(cuda: str) -> None:
    """MEMCPY2 in an earlier session lets the first launch of a graph fail with 719: seen on an H100 with 13.0.85."""
    with SimulatedGpu(cuda=cuda) as gpu:
        graph_after_a_copy(gpu)
        assert (gpu.context_error, gpu.misuse()) == (0, {})


@pytest.mark.parametrize(("cuda", "error"), [("12.9", 719), ("13.0", 719), ("13.5", 0)])
def test_graphs_fail_after_peer_copies_were_asked_for(cuda: str, error: int) -> None:
    with SimulatedGpu(cuda=cuda) as gpu:
        graph_after_a_copy(gpu, kinds=(*KINDS, "peer_copies"))
        assert gpu.context_error == error
        assert gpu.misuse() == ({"peer_copies_before_graph": 1} if error else {})


@pytest.mark.medium
@pytest.mark.parametrize("api_version", [130000, 130001])
def test_13_0_48_is_not_flushed_while_the_program_runs(api_version, tmp_path) -> None:
    """A flush can crash in 13.0.48: the end of a step needs one, a journal does without."""

    def flushes(gpu: SimulatedGpu) -> int:
        return sum(call.function == "cuptiActivityFlushAll" for call in gpu.calls())

    with SimulatedGpu(cuda="13.0", api_version=api_version) as gpu:
        with collector.trace(journal=tmp_path / "step.journal") as step:
            launch_some(gpu)
            until = time.monotonic() + 1.2  # more than two of the periods after which a journal asks
            while time.monotonic() < until or (api_version != 130000 and not flushes(gpu)):
                time.sleep(0.05)
            assert bool(flushes(gpu)) == (api_version != 130000)
        assert step.ledger.complete
        assert gpu.misuse() == {}


def test_finalize_is_never_called(gpu: SimulatedGpu) -> None:
    """Finalizing crashes with graphs before 12.6 (pytorch#151124) and on many GPUs in 2026 (jax#40260)."""
    with collector.trace():
        launch_some(gpu)
    assert gpu.statistics().calls.get("cuptiFinalize", 0) == 0


def test_exhausted_device_pool_is_seen(gpu: SimulatedGpu) -> None:
    """Past the device pool, records come with start = end = 0: parcagpu#23. They are counted, kept and shown."""
    gpu.inject("pool_exhausted", value=0)
    with collector.trace() as step:
        launch_some(gpu)
    assert step.ledger.invalid_timestamps == 20
    assert len(step.recording.invalid.kernels) == 20
    assert len(step.kernels) == 0
    assert not step.ledger.complete
    assert step.ledger.launches_without_kernel == 0


def test_only_one_api_family_is_used(gpu: SimulatedGpu) -> None:
    """Once a V2 call was made the others fail, sometimes silently: pytorch#192094."""
    with collector.trace(), collector.annotate("a"):
        launch_some(gpu)
    assert [name for name in gpu.statistics().calls if name.endswith("_v2") and name.startswith("cupti")] == []


def test_peer_copies_are_recorded(gpu: SimulatedGpu) -> None:
    """Copies between devices need their own kind and the plain one: pytorch#188211."""
    with collector.trace(kinds=(*KINDS, "peer_copies")) as step:
        gpu.memcpy_peer(0, 1, 1 << 20, stream=7)
    assert step.ledger.complete
    assert step.recording.environment["peer_copies"] is True
    copy = step.memcpys
    assert (copy.src_device_id.tolist(), copy.dst_device_id.tolist()) == ([0], [1])
    assert copy.num_bytes.tolist() == [1 << 20]


@pytest.mark.parametrize("suffix", [".gpurec", ".pb", ".json"])
def test_peer_copies_that_are_not_recorded_are_counted(suffix: str, tmp_path: Path) -> None:
    with SimulatedGpu(devices=2) as gpu, collector.trace(tmp_path / f"step{suffix}") as step:
        gpu.memcpy_peer(0, 1, 1 << 20)
        gpu.memcpy_peer(1, 0, 1 << 20, launch="driver")
        gpu.memcpy_peer(0, 1, 1 << 20, access=False)  # through the host, with two records
    for each in (step, collector.load(tmp_path / f"step{suffix}")):
        assert len(each.recording.memcpys) == 2
        assert each.ledger.peer_copies_unrecorded == 2
        assert [loss[:47] for loss in each.ledger.losses()] == ["2 copies, perhaps between GPUs, have no record:"]


@pytest.mark.parametrize("kinds", [(*KINDS, "peer_copies"), ("kernels", "runtime_api"), ("kernels", "memcpys")])
def test_peer_copies_are_no_loss_if_they_are_recorded_or_if_copies_or_calls_are_not(kinds: tuple[str, ...]) -> None:
    with SimulatedGpu(devices=2) as gpu, collector.trace(kinds=kinds) as step:
        gpu.launch("k")
        gpu.memcpy_peer(0, 1, 1 << 20)
    assert step.ledger.complete


@pytest.mark.parametrize("stream", [False, True])
def test_a_journal_counts_peer_copies_that_are_not_recorded(stream: bool, tmp_path: Path) -> None:
    journal = tmp_path / "step.journal"
    with SimulatedGpu(devices=2) as gpu, collector.trace(journal=journal, stream=stream) as step:
        for _ in range(3):
            gpu.memcpy_peer(0, 1, 1 << 20)
        copy = journal.read_bytes() if not stream else b""
    if not stream:
        journal.write_bytes(copy)
        assert collector.load(journal).recording.environment["peer_copies"] is False
    assert step.ledger.peer_copies_unrecorded == 3
    if stream:
        assert collector.load(journal).ledger.peer_copies_unrecorded == 3


def test_one_launch_seen_by_two_apis_counts_once(gpu: SimulatedGpu) -> None:
    """A runtime call and the driver call inside it share a correlation id."""
    with collector.trace() as step:
        launch_some(gpu, 20)
    assert len(step.recording.api_calls) >= 40
    assert step.ledger.launches_seen == step.ledger.launches_matched == 20


def test_graph_made_before_the_session(gpu: SimulatedGpu) -> None:
    """Nodes of a graph that was instantiated before tracing must neither be lost nor leak: triton#9793."""
    nodes = [(f"node{index}", 1_000) for index in range(8)]
    gpu.launch_graph(nodes, graph_id=3)
    for _ in range(3):
        with collector.trace() as step:
            gpu.launch_graph(nodes, graph_id=3)
        assert len(step.kernels) == 8
        assert len(set(step.kernels.correlation_id.tolist())) == 1
        assert len(set(step.kernels.graph_node_id.tolist())) == 8
        assert step.ledger.launches_seen == step.ledger.launches_matched == 1
        assert step.ledger.graphs_before_trace == 1
        assert step.ledger.record_losses() == []


@pytest.mark.parametrize(
    "name", ['a"b', "back\\slash", "new\nline", "tab\tbell\x07", "emoji\N{SNOWMAN}", "percent%s{}", "</script>"]
)
def test_file_is_json_whatever_the_names_hold(tmp_path: Path, name: str) -> None:
    """Traces that cannot be read because a name was not escaped: kineto#1459, #1336."""
    with SimulatedGpu() as gpu, collector.trace(tmp_path / "step.json"), collector.annotate(name):
        gpu.launch(name, stream=7, duration_ns=1_000)
    trace = json.loads((tmp_path / "step.json").read_text(encoding="utf-8"))
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    texts = [text for event in slices for text in (event["name"], *event.get("args", {}).values())]
    assert name in texts


@pytest.mark.parametrize(("shift_ns", "part"), [(3_600_000_000_000, "late"), (-3_600_000_000_000, "early")])
def test_records_outside_the_step_are_kept_apart(gpu: SimulatedGpu, shift_ns: int, part: str) -> None:
    """Records of an earlier session and in a wrong clock come too: kineto#996, pytorch#192021."""
    gpu.inject("shifted_timestamps", value=shift_ns, count=3)
    with collector.trace() as step:
        launch_some(gpu, 10)
    assert len(step.kernels) == 7
    assert len(getattr(step.recording, part).kernels) == 3
    assert getattr(step.ledger, part) == 3
    assert step.ledger.launches_without_kernel == 0
    micros = [node.all_start_micros for device in step.step_stats.dev_stats for node in device.node_stats]
    assert max(micros) - min(micros) < 1_000_000  # no "583 years" traces: tensorflow#20750


def test_other_profiler_is_named() -> None:
    """nsys, compute-sanitizer or another profiler has subscribed: say who, and run the program untraced."""
    with SimulatedGpu(cuda="13.0") as gpu:
        gpu.inject("second_subscriber", target="nsys", count=-1)
        with pytest.warns(collector.CollectorWarning, match='"nsys"'), collector.trace() as step:
            launch_some(gpu)
        assert "nsys" in str(step.unavailable)
        assert len(step.kernels) == 0


def test_cupti_own_drops_are_counted(gpu: SimulatedGpu) -> None:
    """The counter is read by the thread that stops, never in a callback."""
    gpu.inject("dropped_record", count=4)
    with collector.trace() as step:
        launch_some(gpu, 10)
    assert step.ledger.records_dropped == 4
    assert step.ledger.launches_without_kernel == 4
    assert any("dropped 4 records" in line for line in step.ledger.losses())


@pytest.mark.parametrize("fault", ["zero_timestamps", "zero_end", "reversed_timestamps"])
def test_impossible_times_are_set_apart(gpu: SimulatedGpu, fault: str) -> None:
    """Zero and reversed stamps come under load: nvidia-resiliency-ext#115, kineto#109, tensorflow#20750."""
    gpu.inject(fault, count=3)
    with collector.trace() as step:
        launch_some(gpu, 10)
    assert (step.ledger.invalid_timestamps, len(step.kernels)) == (3, 7)
    assert len(step.recording.invalid.kernels) == 3


def test_lost_api_records_leave_kernels_without_launch(gpu: SimulatedGpu) -> None:
    gpu.inject("lost_api_record", count=3)
    with collector.trace() as step:
        launch_some(gpu, 10)
    assert step.ledger.kernels_without_launch == 3
    assert len(step.kernels) == 10


def test_lost_kernels_leave_launches_without_kernel(gpu: SimulatedGpu) -> None:
    gpu.inject("lost_activity_record", count=3)
    with collector.trace() as step:
        launch_some(gpu, 10)
    assert step.ledger.launches_without_kernel == 3
    assert not step.ledger.complete


@pytest.mark.parametrize("fault", ["half_full_buffer", "out_of_order_buffer"])
def test_buffers_in_any_order_and_fill(gpu: SimulatedGpu, fault: str) -> None:
    gpu.inject(fault, count=10)
    with collector.trace(buffer_bytes=4096) as step:
        launch_some(gpu, 200)
    assert len(step.kernels) == 200
    starts = step.kernels.start_ns.tolist()
    assert starts == sorted(starts)
    assert step.ledger.complete


def test_buffers_that_come_after_the_flush_returned(gpu: SimulatedGpu) -> None:
    """Delivery may finish after FlushAll has returned."""
    gpu.inject("slow_completion", value=150, count=-1)
    with collector.trace() as step:
        launch_some(gpu, 10)
    assert len(step.kernels) == 10
    assert step.ledger.complete


@pytest.mark.parametrize("streams", [False, True], ids=["in memory", "streamed"])
def test_overheads_of_the_end_are_not_of_the_step(gpu: SimulatedGpu, tmp_path: Path, streams: bool) -> None:
    """On an H100 the flushes at the end of a session were overheads after it, which the ledger took for losses."""
    with collector.trace(journal=tmp_path / "run.journal" if streams else None, stream=streams) as step:
        launch_some(gpu, 10)
        gpu.overhead(ACTIVITY_BUFFER_REQUEST, 1000)
    assert step.ledger.losses() == []
    assert len(step.kernels) == 10
    assert step.recording.overheads.duration_ns.tolist() == [1000]


@pytest.mark.parametrize("cuda", ["12.8", "13.0", "13.5"])
def test_calls_that_carry_no_information_are_left_out(cuda: str) -> None:
    """The runtime calls cuKernelGetName before each launch if calls are traced: 75 of 246 calls on an H100."""
    with SimulatedGpu(cuda=cuda) as gpu:
        with collector.trace() as step:
            for driver in ("cuKernelGetName", "cuCtxGetCurrent", "cuKernelGetAttribute", "cuStreamGetId", "cuCtxGetId"):
                gpu.api_call(driver=driver)
            gpu.api_call("cudaGetDevice_v3020")
            gpu.launch("k")
        assert {name.partition("_")[0] for name in step.recording.api_calls.recorded_names()} == {
            "cudaLaunchKernel", "cuLaunchKernel",
        }  # fmt: skip
        assert step.ledger.complete


def test_buffer_that_never_comes_back_is_counted(gpu: SimulatedGpu) -> None:
    gpu.inject("withheld_buffer")
    with collector.trace(timeout_ms=300) as step:
        launch_some(gpu, 10)
    assert step.ledger.buffers_outstanding == 1
    assert not step.ledger.complete


def test_cut_buffer_loses_its_last_record_only(gpu: SimulatedGpu) -> None:
    gpu.inject("cut_buffer", value=4)
    with collector.trace(kinds=["kernels"]) as step:
        launch_some(gpu, 10)
    assert len(step.kernels) == 9
    assert step.ledger.bytes_unparsed > 0


def test_record_of_a_future_kind_is_stepped_over(gpu: SimulatedGpu) -> None:
    gpu.inject("unknown_kind", count=3)
    with collector.trace() as step:
        launch_some(gpu, 10)
    assert len(step.kernels) == 10
    assert step.ledger.records_unknown_kind == 3


def test_record_that_the_library_refuses_ends_its_buffer(gpu: SimulatedGpu) -> None:
    gpu.inject("invalid_kind", after=5)
    with collector.trace(kinds=["kernels"]) as step:
        launch_some(gpu, 10)
    assert len(step.kernels) == 5
    assert step.ledger.bytes_unparsed > 0
    assert not step.ledger.complete


def test_null_kernel_name(gpu: SimulatedGpu) -> None:
    gpu.inject("null_name")
    with collector.trace() as step:
        launch_some(gpu, 2)
    assert len(step.kernels) == 2
    assert len(step.step_stats.dev_stats) > 0


@pytest.mark.medium
def test_name_at_an_old_address_after_a_module_reload(gpu: SimulatedGpu) -> None:
    """Before 13.4 U1 a reloaded module's kernels may sit at the old names' addresses: compare the text."""
    with collector.trace(buffer_bytes=4096) as step:
        for _ in range(50):
            gpu.launch("old_kernel", stream=7, duration_ns=1_000)
        gpu.synchronize()
        gpu.wait_until_idle()
        for _ in range(100):  # the records so far leave their buffers before the text changes
            gpu.launch("filler", stream=7, duration_ns=1_000)
        gpu.synchronize()
        gpu.wait_until_idle()
        while step_is_behind(gpu):
            pass
        gpu.reload_module("old_kernel", "new_kernel")
        for _ in range(50):
            gpu.launch("new_kernel", stream=7, duration_ns=1_000)
    names = step.kernels.names()
    assert names.count("old_kernel") == 50
    assert names.count("new_kernel") == 50


def step_is_behind(gpu: SimulatedGpu) -> bool:
    """Whether a completed buffer may still be waiting for the decode thread."""
    before = gpu.statistics().buffers_completed
    threading.Event().wait(0.5)
    return gpu.statistics().buffers_completed != before


def test_sessions_do_not_see_each_other(gpu: SimulatedGpu) -> None:
    """Records of an earlier session must not turn up in the next: tensorflow#22103."""
    for count in (5, 11, 3):
        with collector.trace() as step:
            launch_some(gpu, count)
        launch_some(gpu, 2)  # between sessions: nobody's
        assert len(step.kernels) == count
        assert step.ledger.complete


def test_annotation_left_open_names_nothing_in_the_next_session(gpu: SimulatedGpu) -> None:
    outer = collector.annotate("left_open")
    with collector.trace() as first:
        outer.__enter__()
        launch_some(gpu, 1)
    with collector.trace() as second:
        launch_some(gpu, 1)
        with collector.annotate("inner"):
            launch_some(gpu, 1)
    outer.__exit__(None, None, None)
    assert first.recording.annotations_of(first.kernels) == ["left_open"]
    assert second.recording.annotations_of(second.kernels) == ["", "inner"]


def test_many_threads_launch_at_once(gpu: SimulatedGpu) -> None:
    """With per-thread buffers (the default from 13.0) every thread fills and returns its own: NVIDIA/Fuser#5402."""

    def work(index: int) -> None:
        with collector.annotate(f"thread{index}"):
            launch_some(gpu, 300, stream=10 + index)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(6)]
    with collector.trace(buffer_bytes=8192) as step:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(step.kernels) == 1800
    paths = step.recording.annotations_of(step.kernels)
    assert all(
        path == f"thread{stream - 10}" for path, stream in zip(paths, step.kernels.stream_id.tolist(), strict=True)
    )
    assert step.ledger.complete


def test_an_error_of_a_kernel_takes_the_times_of_those_before_it(gpu: SimulatedGpu) -> None:
    """Seen on an H100 with 13.0.85: the ledger said that CUPTI had given impossible times, and nothing of the error."""
    with collector.trace() as step:
        launch_some(gpu)
        gpu.synchronize()
        gpu.inject("failed_kernel", value=700)
        launch_some(gpu, 1)
        gpu.synchronize()
    assert step.ledger.lost_with_context == len(step.recording.invalid.kernels) == 21
    (loss,) = step.ledger.losses()
    assert "a CUDA error made their context unusable" in loss
    assert "returned CUDA error 700 (CUDA_ERROR_ILLEGAL_ADDRESS)" in step.summary()


def test_running_work_has_no_start(gpu: SimulatedGpu) -> None:
    """Seen on an H100 with 13.0.85: the ledger took it for work without a usable time."""
    with collector.trace(synchronize=False) as step:
        launch_some(gpu)
        gpu.synchronize()
        gpu.launch("endless", stream=7, duration_ns=10**15)
        gpu.advance(1_000_000)
    (kernel,) = step.recording.invalid.kernels
    assert (kernel.name, kernel.start_ns, step.ledger.unfinished) == ("endless", 0, 1)
    assert step.ledger.losses() == ["1 activity was still running or waiting when the recording ended: no end is known"]
