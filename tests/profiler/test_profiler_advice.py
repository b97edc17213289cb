"""Every checker on traced steps: simulated programs with the problem, and the same programs without it."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable

import pytest

import collector
from collector.analysis import devices
from collector.analysis.idle import CAUSES
from collector.analysis.questions import QUESTIONS
from collector.options import KINDS
from collector.profiler import Profiler
from collector.profiler.advice import step_advice
from collector.profiler.advice.checker_registry import CHECKERS, Advice, Severity
from collector.profiler.advice.recording_columns import RecordingStep
from collector.profiler.advice.step_activity import Activity
from collector.profiler.profile_options import Options
from collector.profiler.step_reader import read_step
from collector.protos import NodeExecStats, RunMetadata
from collector.testing import SimulatedGpu
from collector.text.quantities import time_text

pytestmark = pytest.mark.simulator

GRID = (256, 1, 1)
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"
TENSOR_GEMM = "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_tn"


def _kernels(gpu: SimulatedGpu, *names: str, times: int = 20, **how) -> None:
    """Kernels that fill the card and keep it busy: each takes longer than its launch."""
    for _ in range(times):
        for name in names:
            gpu.launch(name, **{"stream": 13, "duration_ns": 20_000, "grid": GRID, **how})


def _good(gpu: SimulatedGpu) -> None:
    """Nothing to advise: large kernels of three kinds, copies of pinned memory beside them."""
    _kernels(gpu, "relu", "add", TENSOR_GEMM)
    gpu.memcpy("HtoD", 1 << 20, stream=14, src="pinned", duration_ns=40_000)
    gpu.synchronize()


def _late_launches(gpu: SimulatedGpu) -> None:
    for _ in range(20):
        gpu.launch("relu", stream=13, duration_ns=1_000, grid=GRID)


def _late_launches_in_a_graph(gpu: SimulatedGpu) -> None:
    gpu.launch_graph([("relu", 1_000)] * 20, stream=13)


def _whole_graphs(gpu: SimulatedGpu) -> None:
    """Graphs that keep the card busy, for a trace that records no nodes of theirs, and a kernel after each."""
    with gpu.capture() as graph:
        gpu.launch("relu", duration_ns=500_000)
    executable = graph.instantiate()
    for _ in range(3):
        executable.launch(stream=13)
        gpu.launch("add", stream=13, duration_ns=20_000, grid=GRID)
        gpu.synchronize()


def _draining(gpu: SimulatedGpu) -> None:
    for _ in range(5):
        gpu.launch("relu", stream=13, duration_ns=20_000, grid=GRID)
        gpu.synchronize()


def _draining_once(gpu: SimulatedGpu) -> None:
    _kernels(gpu, "relu", times=5)
    gpu.synchronize()


def _dominated(gpu: SimulatedGpu) -> None:
    _kernels(gpu, "relu", times=18)
    _kernels(gpu, "add", times=2)


def _balanced(gpu: SimulatedGpu) -> None:
    _kernels(gpu, "relu", "add", "mul", times=7)


def _upload(memory: str, **how) -> Callable[[SimulatedGpu], None]:
    def run(gpu: SimulatedGpu) -> None:
        with collector.annotate("input"):
            gpu.memcpy("HtoD", 1 << 20, src=memory, **{"stream": 14, "duration_ns": 300_000, **how})
        _kernels(gpu, "relu", "add", "mul", times=10)

    return run


def _small_copies(count: int) -> Callable[[SimulatedGpu], None]:
    def run(gpu: SimulatedGpu) -> None:
        _kernels(gpu, "relu", "add", "mul", times=10)
        for number in range(count):
            gpu.memcpy("DtoH", 4 * number + 4, stream=14, dst="pinned", duration_ns=1_000)

    return run


def _uploads(sizes: list[int]) -> Callable[[SimulatedGpu], None]:
    def run(gpu: SimulatedGpu) -> None:
        _kernels(gpu, "relu", "add", "mul", times=10)
        gpu.synchronize()
        with collector.annotate("weights"):
            for size in sizes:
                gpu.memcpy("HtoD", size, stream=14, src="pinned", duration_ns=1_000)

    return run


def _grids(blocks: int) -> Callable[[SimulatedGpu], None]:
    return lambda gpu: _kernels(gpu, "relu", "add", "mul", grid=(blocks, 1, 1))


def _products(kernel: str) -> Callable[[SimulatedGpu], None]:
    return lambda gpu: _kernels(gpu, kernel, "add", "mul")


def _streams(copies: int, kernels: int) -> Callable[[SimulatedGpu], None]:
    def run(gpu: SimulatedGpu) -> None:
        _kernels(gpu, "relu", "add", "mul", stream=kernels)
        gpu.memcpy("HtoD", 1 << 20, stream=copies, src="pinned", duration_ns=30_000)

    return run


def _peer(beside_kernels: bool) -> Callable[[SimulatedGpu], None]:
    def run(gpu: SimulatedGpu) -> None:
        gpu.launch("relu", stream=13, duration_ns=200_000, grid=GRID)
        if not beside_kernels:
            gpu.synchronize()
        gpu.memcpy_peer(0, 1, 1 << 20, stream=14, duration_ns=100_000)

    return run


def _through_host(direct: bool) -> Callable[[SimulatedGpu], None]:
    def run(gpu: SimulatedGpu) -> None:
        for _ in range(4):
            if direct:
                gpu.memcpy_peer(0, 1, 1 << 16)
            else:
                gpu.memcpy("DtoH", 1 << 16, device=0, dst="pinned")
                gpu.synchronize()
                gpu.memcpy("HtoD", 1 << 16, device=1, src="pinned")

    return run


def _collective(beside_kernels: bool) -> Callable[[SimulatedGpu], None]:
    def run(gpu: SimulatedGpu) -> None:
        for _ in range(3):
            gpu.launch("relu", stream=13, duration_ns=500_000, grid=GRID)
            if not beside_kernels:
                gpu.synchronize()
            gpu.launch(ALL_REDUCE, stream=14, duration_ns=400_000, grid=(24, 1, 1))
            gpu.synchronize()

    return run


CASES: dict[str, tuple[Callable[[SimulatedGpu], None], Callable[[SimulatedGpu], None]]] = {
    "launch_bound": (_late_launches, _late_launches_in_a_graph),
    "draining_synchronizations": (_draining, _draining_once),
    "dominating_kernel": (_dominated, _balanced),
    "pageable_copies": (_upload("pageable"), _upload("pinned")),
    "copies_could_overlap": (_upload("pinned", stream=13), _upload("pinned")),
    "small_copies": (_small_copies(25), _small_copies(5)),
    "repeated_copies": (_uploads([8192] * 4), _uploads([4096, 8192, 12288, 16384])),
    "small_grids": (_grids(8), _grids(256)),
    "tensor_core_free_matmuls": (_products("ampere_sgemm_128x64_nn"), _products(TENSOR_GEMM)),
    "default_stream": (_streams(7, 7), _streams(14, 13)),
    "peer_copies": (_peer(beside_kernels=False), _peer(beside_kernels=True)),
    "exposed_communication": (_collective(beside_kernels=False), _collective(beside_kernels=True)),
    "copies_through_host": (_through_host(direct=False), _through_host(direct=True)),
}
"""Checker -> a program that has its trouble, and one that has it not."""


def _data_parallel(gpu: SimulatedGpu) -> None:
    """Two devices that get data of a size from the host at once, and return as much to it."""
    for _ in range(4):
        for device in (0, 1):
            gpu.memcpy("HtoD", 1 << 16, device=device, src="pinned")
        for device in (0, 1):
            gpu.launch("relu", device=device, duration_ns=30_000, grid=GRID)
        for device in (0, 1):
            gpu.memcpy("DtoH", 1 << 16, device=device, dst="pinned")
        gpu.synchronize()


def _small_copies_in_a_graph(gpu: SimulatedGpu) -> None:
    with gpu.capture(stream=14) as graph:
        for _ in range(30):
            gpu.memcpy("DtoH", 64, stream=14, dst="pinned", duration_ns=1_000)
    graph.instantiate().launch(stream=14)


def _small_copies_in_both_directions(gpu: SimulatedGpu) -> None:
    for _ in range(15):
        gpu.memcpy("DtoH", 64, stream=14, dst="pinned", duration_ns=1_000)
        gpu.memcpy("HtoD", 128, stream=14, src="pinned", duration_ns=1_000)


def _small_grids_at_once(gpu: SimulatedGpu) -> None:
    for number in range(32):
        gpu.launch("relu", stream=13 + number % 8, duration_ns=200_000, grid=(8, 1, 1))


def _only_peer_copies(gpu: SimulatedGpu) -> None:
    gpu.memcpy_peer(0, 1, 1 << 20, stream=14, duration_ns=100_000)


def _dominating_communication(gpu: SimulatedGpu) -> None:
    _kernels(gpu, ALL_REDUCE, times=18)
    _kernels(gpu, "relu", times=2)


def _hidden_pageable(gpu: SimulatedGpu) -> None:
    gpu.launch("relu", stream=13, duration_ns=900_000, grid=GRID)
    gpu.memcpy("HtoD", 1 << 20, src="pageable", stream=14, duration_ns=200_000)


def _hidden_uploads(gpu: SimulatedGpu) -> None:
    gpu.launch("relu", stream=13, duration_ns=900_000, grid=GRID)
    for _ in range(4):
        gpu.memcpy("HtoD", 8192, src="pinned", stream=14, duration_ns=1_000)


def _pageable_in_the_default_stream(gpu: SimulatedGpu) -> None:
    _kernels(gpu, "relu", "add", "mul", stream=7)
    gpu.memcpy("HtoD", 1 << 20, stream=7, src="pageable", duration_ns=90_000)


def _copies_and_hardly_a_kernel(gpu: SimulatedGpu) -> None:
    gpu.memcpy("HtoD", 1 << 20, stream=13, src="pinned", duration_ns=900_000)
    gpu.launch("relu", stream=13, duration_ns=1_000, grid=GRID)


COUNTER_EXAMPLES = {
    "kernels of NCCL, which wait for others": ("dominating_kernel", _dominating_communication),
    "pageable copies that cost the device no time": ("pageable_copies", _hidden_pageable),
    "copies for which the host waits on any stream": ("copies_could_overlap", _upload("pageable", stream=13)),
    "copies beside which there is nothing to run": ("copies_could_overlap", _copies_and_hardly_a_kernel),
    "copies between devices without any kernel": ("peer_copies", _only_peer_copies),
    "data of one size to and from each device": ("copies_through_host", _data_parallel),
    "small copies that one call launches": ("small_copies", _small_copies_in_a_graph),
    "small copies in both directions": ("small_copies", _small_copies_in_both_directions),
    "small grids that run at once": ("small_grids", _small_grids_at_once),
    "kernels of a card without tensor cores": ("tensor_core_free_matmuls", _products("maxwell_sgemm_128x64_nn")),
    "copies for which the host waits, all in one stream": ("default_stream", _pageable_in_the_default_stream),
    "repeated copies that cost the device no time": ("repeated_copies", _hidden_uploads),
}
"""Why an advice does not apply, or is followed already: the checker and a program."""


def _own_stream_too_late(gpu: SimulatedGpu) -> None:
    gpu.memcpy("HtoD", 1 << 20, src="pinned", stream=14, duration_ns=300_000)
    gpu.synchronize()
    _kernels(gpu, "relu", "add", "mul", times=10)


def _late_graphs(gpu: SimulatedGpu) -> None:
    with gpu.capture(stream=13) as graph:
        _kernels(gpu, "relu", times=3, duration_ns=1_000)
    executable = graph.instantiate()
    for _ in range(10):
        executable.launch(stream=13)
        gpu.advance(60_000)


def _busy_host(gpu: SimulatedGpu) -> None:
    for _ in range(3):
        _kernels(gpu, "relu", times=2)
        gpu.advance(5_000_000)
    _kernels(gpu, "relu", times=1)


def _draining_events(gpu: SimulatedGpu) -> None:
    for _ in range(5):
        gpu.launch("relu", stream=13, duration_ns=20_000, grid=GRID)
        gpu.synchronize_event(gpu.record_event(stream=13))


REMEDIES = {
    "copies on a stream of their own": (
        "copies_could_overlap",
        _own_stream_too_late,
        "they have a stream of their own: start them before they are needed",
        "put them on a stream of their own",
    ),
    "copies on the stream of kernels": (
        "copies_could_overlap",
        _upload("pinned", stream=13),
        "put them on a stream of their own",
        "they have a stream of their own",
    ),
    "launches of graphs": (
        "launch_bound",
        _late_graphs,
        "launch the CUDA graphs ahead, or join them to larger ones",
        "batch launches",
    ),
    "a host that does other work": (
        "launch_bound",
        _busy_host,
        "most of this time the host does other work",
        "batch launches",
    ),
    "launches of single kernels": ("launch_bound", _late_launches, "batch launches in a CUDA graph", "host does other"),
    "waits for events": ("draining_synchronizations", _draining_events, "wait later, when", "wait for events"),
    "waits for the device": ("draining_synchronizations", _draining, "wait for events, or later", "wait later"),
    "nothing but communication": (
        "exposed_communication",
        lambda gpu: _kernels(gpu, ALL_REDUCE),
        "; send less",
        "beside kernels",
    ),
    "communication before kernels": (
        "exposed_communication",
        _collective(beside_kernels=False),
        "beside kernels that do not need it, or send less",
        "; send less",
    ),
}
"""A state of the program: the checker, a program, the remedy, and one that is followed already or cannot apply."""

ANY_PROGRAM = {
    **{name: program for name, (program, _) in CASES.items()},
    **{f"{name}, mended": program for name, (_, program) in CASES.items()},
    **{why: program for why, (_, program) in COUNTER_EXAMPLES.items()},
    **{why: program for why, (_, program, *_) in REMEDIES.items()},
}


def _traced(program: Callable[[SimulatedGpu], None], **options):
    options = {"kinds": (*KINDS, "peer_copies"), **options}
    with SimulatedGpu(cuda="12.4", devices=2, start_ns=10**18) as gpu, collector.trace(**options) as step:
        program(gpu)
    return step


def _advice(program: Callable[[SimulatedGpu], None], **options: str) -> dict[str, Advice]:
    return {one.checker: one for one in step_advice.advise(read_step(_traced(program).recording), options)}


@pytest.mark.parametrize("name", CASES)
def test_each_checker_finds_its_trouble_with_evidence(name):
    found = _advice(CASES[name][0])[name]
    assert "\n" not in found.line
    assert found.evidence
    assert all("\n" not in line for line in found.evidence)


@pytest.mark.parametrize("name", CASES)
def test_each_checker_is_silent_where_its_trouble_is_mended(name):
    assert name not in _advice(CASES[name][1])


@pytest.mark.parametrize(("name", "program"), COUNTER_EXAMPLES.values(), ids=COUNTER_EXAMPLES)
def test_no_checker_gives_advice_that_does_not_apply(name, program):
    assert name not in _advice(program)


@pytest.mark.parametrize(("name", "program", "remedy", "other"), REMEDIES.values(), ids=REMEDIES)
def test_the_remedy_is_one_that_is_not_followed_yet(name, program, remedy, other):
    line = _advice(program)[name].line
    assert remedy in line
    assert other not in line


@pytest.mark.parametrize("name", CASES)
def test_each_finding_states_what_it_costs_and_its_severity_follows(name):
    (found,) = [one for one in step_advice.advise(read_step(_traced(CASES[name][0]).recording)) if one.checker == name]
    assert found.gain is not None
    assert 0 < found.gain.share <= 1
    assert found.line.endswith(f"({found.gain})")
    assert f"saves at most {time_text(found.gain.time_ns)}, " in found.line
    assert found.severity == (
        Severity.HIGH if found.gain.share >= 0.1 else Severity.MEDIUM if found.gain.share >= 0.02 else Severity.NOTE
    )


def test_a_small_part_of_the_step_is_a_note_behind_a_large_one():
    """Five waits drain the device for some microseconds of ten milliseconds, in which one kernel takes the most."""

    def program(gpu: SimulatedGpu) -> None:
        _draining(gpu)
        _kernels(gpu, "softmax", times=1, duration_ns=10_000_000)

    found = step_advice.advise(read_step(_traced(program).recording))
    assert [(one.checker, one.severity) for one in found] == [
        ("dominating_kernel", Severity.HIGH),
        ("draining_synchronizations", Severity.NOTE),
    ]
    assert "0." in str(found[1].gain)


def test_every_checker_has_a_case():
    missing = set(CHECKERS) - {*CASES, "tracer_losses"}
    assert not missing, "add a step that it reports, and one in which the trouble is mended, to CASES"


@pytest.mark.parametrize("name", CHECKERS)
def test_every_checker_names_an_answer_and_a_cause_that_exist(name):
    rows, cause = CHECKERS[name].rows, CHECKERS[name].cause
    question, _, by = rows.partition("/")
    assert by in QUESTIONS[question].questions
    assert not cause or (question == "idle_gaps" and cause in CAUSES)


@pytest.mark.parametrize("name", CHECKERS)
def test_every_checker_is_in_the_table_of_the_documentation(root, name):
    page = (root / "docs" / "profiler.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert any(f"`{name}`" in row for row in rows), "add its line to the table of checkers in docs/profiler.md"


def test_a_good_step_gets_no_advice():
    assert _advice(_good) == {}


def test_losses_come_first():
    def program(gpu: SimulatedGpu) -> None:
        gpu.inject("dropped_record", count=3)
        _kernels(gpu, "relu")

    found = step_advice.advise(read_step(_traced(program).recording))
    assert (found[0].checker, found[0].severity) == ("tracer_losses", Severity.WRONG)
    assert "CUPTI dropped 3 records" in found[0].line
    assert [one.severity for one in found] == sorted(one.severity for one in found)


def _texts(step: RunMetadata) -> dict[str, str]:
    """The advice with its evidence, and the answer of each view."""
    profiler = Profiler()
    profiler.add_recorded_step(0, step)
    shown = Options(select=frozenset(("micros", "output_bytes", "occurrence", "op_types", "device")))
    views = {view: profiler.reporter.ask(view, shown).text for view in ("scope", "graph", "op")}
    return {**views, "advice": profiler.advice_text({"explain": "true"})}


def _with_nodes(step: RunMetadata, change: Callable[[NodeExecStats], object]) -> RunMetadata:
    changed = RunMetadata.FromString(step.SerializeToString())
    for device in changed.step_stats.dev_stats:
        for node in device.node_stats:
            change(node)
    return changed


@pytest.mark.parametrize("name", CASES)
def test_labels_are_not_read_where_there_are_columns(name):
    step = _traced(CASES[name][0]).run_metadata
    expected = _texts(step)
    assert _texts(_with_nodes(step, lambda node: node.ClearField("timeline_label"))) == expected
    wrong = "x = Other(y) 1 bytes (Pageable to Pageable) gpu:7 to gpu:8 regs:1 shm:1 grid:1,1,1 block:1,1,1"
    assert _texts(_with_nodes(step, lambda node: setattr(node, "timeline_label", wrong))) == expected


@pytest.mark.parametrize("program", ANY_PROGRAM.values(), ids=ANY_PROGRAM)
def test_files_without_columns_get_the_same_advice_from_their_labels(program):
    step = _traced(program).run_metadata
    assert _texts(_with_nodes(step, lambda node: node.ClearField("activity"))) == _texts(step)


def test_nothing_of_a_step_stays_in_memory_behind_its_advice(monkeypatch):
    """Without the garbage collector, which few but large objects do not start."""
    made = []

    class WatchedActivity(Activity):
        def __init__(self, step):
            super().__init__(step)
            made.append((weakref.ref(self), [weakref.ref(device) for device in self.devices]))

    monkeypatch.setattr(step_advice, "Activity", WatchedActivity)
    recording = _traced(CASES["pageable_copies"][0]).recording
    gc.disable()
    try:
        assert step_advice.advise(RecordingStep.of(recording))
        ((activity, devices),) = made
        assert devices
        assert activity() is None
        assert [device() for device in devices] == [None]
    finally:
        gc.enable()


def test_only_what_was_called_is_a_call():
    """An annotation may be named like a function, and a kernel like a copy."""

    def program(gpu: SimulatedGpu) -> None:
        with collector.annotate("cudaStreamSynchronize"):
            gpu.launch("MEMCPY4096", stream=13, duration_ns=20_000, grid=GRID)

    (device,) = Activity(read_step(_traced(program).recording)).devices
    assert device.is_kernel.tolist() == [True]
    assert len(device.waits.name_ids) == 0
    text = _texts(_traced(program).run_metadata)["scope"]
    assert "cudaStreamSynchronize/cudaLaunchKernel" in text


def test_evidence_names_kernels_times_and_ops():
    (evidence,) = _advice(CASES["pageable_copies"][0])["pageable_copies"].evidence
    assert evidence == "MEMCPYHtoD: 1 time, 300 µs on /gpu:0, 100% of it in input"
    assert "gpu:0 to gpu:1" in _advice(CASES["peer_copies"][0])["peer_copies"].evidence


@pytest.mark.parametrize(
    ("name", "threshold", "value"),
    [
        ("launch_bound", "idle_share", "1.1"),
        ("draining_synchronizations", "count", "99"),
        ("dominating_kernel", "share", "0.95"),
        ("pageable_copies", "micros", "1e6"),
        ("copies_could_overlap", "share", "1"),
        ("small_copies", "count", "26"),
        ("repeated_copies", "count", "5"),
        ("small_grids", "blocks", "4"),
        ("tensor_core_free_matmuls", "share", "0.9"),
        ("default_stream", "activities", "1000"),
        ("peer_copies", "share", "1"),
        ("copies_through_host", "count", "9"),
        ("exposed_communication", "share", "1"),
    ],
)
def test_every_threshold_counts(name, threshold, value):
    assert name not in _advice(CASES[name][0], **{f"{name}.{threshold}": value})


@pytest.mark.slow
def test_many_copies_are_paired_in_time_that_grows_with_their_number(build):
    def seconds(count):
        step = type(build)()
        step.clock["cupti_stop_ns"] = step.clock["cupti_start_ns"] + 1000 * count
        for number in range(count):
            ends = {"copy_kind": 2, "src_kind": 3, "dst_kind": 2} if number % 4 else {"copy_kind": 1, "src_kind": 2}
            step.memcpy(1000 * number, 500, num_bytes=8192, device_id=int(number % 4 == 0 and number % 8 != 0), **ends)
        recorded = read_step(step.recording())
        begin = time.process_time()
        step_advice.advise(recorded, {})
        return time.process_time() - begin

    few = min(seconds(2_000) for _ in range(2))
    assert min(seconds(16_000) for _ in range(2)) < 8 * few * 3


def test_one_line_each_and_more_on_demand():
    profiler = Profiler()
    profiler.add_recorded_step(0, _traced(_draining).recording)
    brief, explained = profiler.advice_text(), profiler.advice_text({"explain": "true"})
    assert all(not line.startswith(" ") for line in brief.splitlines())
    assert [line for line in explained.splitlines() if not line.startswith(" ")] == brief.splitlines()
    assert any("Synchronize: " in line for line in explained.splitlines() if line.startswith(" "))


def test_communication_kernels_may_be_small():
    assert "small_grids" not in _advice(lambda gpu: _kernels(gpu, ALL_REDUCE, grid=(24, 1, 1)))


def test_a_step_of_nothing_but_communication_is_no_good_step():
    found = _advice(lambda gpu: _kernels(gpu, ALL_REDUCE, grid=(24, 1, 1)))["exposed_communication"]
    assert found.line.startswith(
        "/gpu:0 computes nothing during 400 µs of the 400 µs in which it communicates (100% of"
    )
    assert found.evidence == ("ncclDevKernel_AllReduce_Sum_f32_RING_LL: 20 times, 400 µs on /gpu:0",)


def test_idle_and_busy_time_are_those_of_the_summary():
    step = _traced(_late_launches)
    (device,) = Activity(read_step(step.recording)).devices
    (row,) = devices(step.recording)
    window, busy = row["window_ns"], row["busy_ns"]
    assert (device.window_ns, device.times.busy_ns, device.window_name) == (window, busy, "the step")
    assert int(device.idle.lengths.sum()) == window - busy


def _host_work_between_kernels(gpu: SimulatedGpu) -> None:
    """The same kernels at the same times as in `_whole_graphs`, and nothing on the card where that runs its graphs."""
    for _ in range(3):
        gpu.advance(500_000)
        gpu.launch("add", stream=13, duration_ns=20_000, grid=GRID)
        gpu.synchronize()


@pytest.mark.parametrize(
    ("program", "checkers"), [(_whole_graphs, set()), (_host_work_between_kernels, {"launch_bound"})]
)
def test_a_device_that_runs_whole_graphs_does_not_wait_for_the_host(program, checkers):
    with SimulatedGpu() as gpu, collector.trace(graphs="whole", strict=True) as step:
        program(gpu)
    recording = step.recording
    found = step_advice.advise(RecordingStep.of(recording))
    assert {each.checker for each in found} == checkers
    assert found == step_advice.advise(read_step(recording))


def test_a_device_that_waits_for_whole_graphs_gets_the_advice_of_their_nodes():
    recordings = [_traced(_late_graphs, graphs=graphs).recording for graphs in ("whole", "nodes")]
    whole, nodes = (
        {each.checker: each for each in step_advice.advise(RecordingStep.of(recording))}["launch_bound"]
        for recording in recordings
    )
    assert "launch the CUDA graphs ahead, or join them to larger ones" in whole.line
    assert whole.evidence[1].endswith("before graph 2")
    assert nodes.evidence[1].endswith("before relu:relu")
    assert step_advice.advise(RecordingStep.of(recordings[0])) == step_advice.advise(read_step(recordings[0]))


def test_whole_graphs_hide_copies_and_communication_beside_them(build):
    build.whole_graph(0, 500_000, stream_id=8)
    build.kernel("ncclDevKernel_AllReduce", 100_000, 200_000, stream_id=9)
    build.memcpy(350_000, 100_000, src_kind=1).kernel("gemm", 600_000, 100_000)
    for form in (RecordingStep.of, read_step):
        found = {each.checker for each in step_advice.advise(form(build.recording()))}
        assert found.isdisjoint({"exposed_communication", "pageable_copies", "copies_could_overlap"})
    build.rows["graph_launches"].clear()
    for form in (RecordingStep.of, read_step):
        found = {each.checker for each in step_advice.advise(form(build.recording()))}
        assert {"exposed_communication", "pageable_copies"} <= found


@pytest.mark.parametrize("program", ANY_PROGRAM.values(), ids=ANY_PROGRAM)
def test_columns_of_a_recording_get_the_advice_of_its_step_stats(program):
    recording = _traced(program).recording
    assert step_advice.advise(RecordingStep.of(recording)) == step_advice.advise(read_step(recording))


@pytest.mark.parametrize(
    "name",
    [
        "hta/a100_alexnet.json.gz",
        "nsys_ai/mfu_2gpu_before.sqlite.gz",
        pytest.param("hta/v100_rank1of2_diff_test_graphs.json.gz", marks=pytest.mark.slow),
        pytest.param("xprof/gpu_multi_worker.xplane.pb.gz", marks=pytest.mark.slow),
        "torch_tutorial/h100_transformer_before.json.gz",
    ],
)
def test_columns_of_recorded_traces_get_the_advice_of_their_step_stats(shared, name):
    recording = collector.load(shared / "data" / "gpu_traces" / name).recording
    found = step_advice.advise(RecordingStep.of(recording))
    assert found == step_advice.advise(read_step(recording))
    assert found
