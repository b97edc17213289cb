"""Recorded steps without a graph: scopes, own times, advice."""

from __future__ import annotations

import gc
import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st

import collector
from collector import analysis, profiler
from collector.errors import CollectorError, InvalidFileError
from collector.profiler.advice import step_advice
from collector.profiler.advice.recording_columns import RecordingStep
from collector.profiler.advice.step_activity import Activity
from collector.profiler.device_columns import DeviceColumns, read_devices
from collector.profiler.model import Model
from collector.profiler.profile_options import Options
from collector.profiler.profiler_errors import MissingTracesError
from collector.profiler.recorded_steps import add_step
from collector.profiler.step_reader import read_step
from collector.protos import RunMetadata
from collector.recording import ledger
from collector.recording.intervals import Union
from collector.recording.ledger import Ledger
from collector.runtime.garbage import no_garbage_collection
from collector.stepstats.from_recording import serialized

SELECT = {"select": ["micros", "occurrence"], "account_type_regexes": [".*"], "start_name_regexes": [".*"]}
OPTIONS = {**SELECT, "show_name_regexes": [".*"], "output": "none", "max_depth": 100}


def _step(host=(), device=(), streams=()) -> RunMetadata:
    """(name, start, duration, label, scheduled) in microseconds."""
    metadata = RunMetadata()
    for name, records in (("/cpu:0", host), ("/gpu:0/stream:all", device), *streams):
        found = metadata.step_stats.dev_stats.add(device=name)
        for node, start, duration, label, scheduled in records:
            found.node_stats.add(
                node_name=node,
                all_start_micros=start,
                op_end_rel_micros=duration,
                all_end_rel_micros=duration,
                timeline_label=label,
                scheduled_micros=scheduled,
                thread_id=1,
            )
    return metadata


def _find(node, name):
    return next(child for child in node.children if child.name == name)


def test_kernels_hang_under_the_op_that_launched_them():
    device = [("layer/conv:sgemm", 100, 30, "", 0), ("layer/conv:sgemm", 140, 20, "", 0), ("relu:relu", 170, 5, "", 0)]
    p = profiler.Profiler()
    p.add_recorded_step(0, _step(device=device))
    root = p.profile_name_scope(OPTIONS)
    kernel = _find(_find(_find(root, "layer"), "layer/conv"), "layer/conv/sgemm")
    assert (kernel.accelerator_exec_micros, kernel.run_count, list(kernel.devices)) == (50, 2, ["/gpu:0"])
    assert _find(root, "relu").accelerator_exec_micros == 5
    assert root.total_exec_micros == 55
    rows = p.profile_operations(OPTIONS)
    assert rows.children[0].name == "relu"
    assert rows.children[0].children[0].name == "sgemm"


def test_host_time_counts_once():
    host = [
        ("layer", 100, 100, "layer = layer()", 0),
        ("layer/conv", 110, 50, "layer/conv = conv()", 0),
        ("cudaMemcpy", 120, 20, "", 0),
        ("cuMemcpyHtoD", 125, 10, "", 0),
        ("cuStreamQuery", 145, 5, "", 0),
        ("cudaDeviceSynchronize", 300, 7, "", 0),
    ]
    p = profiler.Profiler()
    p.add_recorded_step(0, _step(host=host))
    root = p.profile_name_scope(OPTIONS)
    layer = _find(root, "layer")
    conv = _find(layer, "layer/conv")
    assert (layer.cpu_exec_micros, conv.cpu_exec_micros) == (50, 25)
    assert [child.name for child in conv.children] == ["layer/conv/cuStreamQuery", "layer/conv/cudaMemcpy"]
    assert _find(conv, "layer/conv/cudaMemcpy").cpu_exec_micros == 20  # with the driver's call, which it makes
    assert _find(conv, "layer/conv/cuStreamQuery").cpu_exec_micros == 5
    assert _find(root, "cudaDeviceSynchronize").cpu_exec_micros == 7
    assert root.total_cpu_exec_micros == 107


def test_times_are_summed_before_they_are_rounded():
    """Nanoseconds of 1,000 kernels of 600 ns and of calls of 1,900 ns; none of them is a whole microsecond."""
    metadata = _step(host=[("cudaLaunchKernel", 10 * n, 1, "", 0) for n in range(1000)])
    metadata.MergeFrom(_step(device=[("op:k", 10 * n, 1, "", 0) for n in range(1000)]))
    for call, kernel in zip(
        metadata.step_stats.dev_stats[0].node_stats, metadata.step_stats.dev_stats[3].node_stats, strict=True
    ):
        call.op_end_rel_nanos, kernel.op_end_rel_nanos = 1900, 600
    p = profiler.Profiler()
    p.add_recorded_step(0, metadata)
    root = p.profile_name_scope(OPTIONS)
    assert (root.total_accelerator_exec_micros, root.total_cpu_exec_micros) == (600, 1900)
    again = profiler.Profiler.from_profile(p.serialize_to_string())
    assert again.profile_name_scope(OPTIONS) == root


SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20), st.booleans()), max_size=12)


@settings(deadline=None)
@given(SPANS)
def test_own_times_add_up_to_the_time_in_which_anything_runs(spans):
    """However annotations overlap; the calls here are one after the other, as those of a thread are."""
    calls = [(10 * n, length % 10) for n, (_, length, is_call) in enumerate(spans) if is_call]
    host = [(f"op{n}", start, length) for n, (start, length, is_call) in enumerate(spans) if not is_call]
    host += [("cudaLaunchKernel", start, length) for start, length in calls]
    covered = {instant for _, start, length in host for instant in range(start, start + length)}
    p = profiler.Profiler()
    p.add_recorded_step(0, _step(host=[(name, start + 1, length, "", 0) for name, start, length in host]))
    assert p.profile_name_scope(OPTIONS).total_cpu_exec_micros == len(covered)


def test_host_time_of_a_recorded_trace_is_no_longer_than_its_threads(shared):
    step = read_step(collector.load(shared / "data/gpu_traces/torch_tutorial/h100_transformer_before.json.gz"))
    (host,) = step.host
    model = Model()
    add_step(model, 0, step)
    spent = sum(execution.cpu_micros for node in model.nodes.values() for execution in node.executions.values())
    covered = Union.of(host.start_ns, host.end_ns).length
    assert len(set(host.thread_id.tolist())) == 1
    assert abs(spent - covered / 1000) <= len(model.nodes)


def test_python_functions_of_a_trace_are_its_call_stacks():
    """One op called from two lines, and a kernel that outlives the function which launched it."""
    host = [
        ("train.py(30): <module>", 100, 900, "", 0),
        ("model.py(5): forward", 110, 200, "", 0),
        ("aten.mm", 120, 100, "", 0),
        ("cudaLaunchKernel", 130, 10, "", 0),
        ("model.py(9): backward", 400, 100, "", 0),
        ("aten.mm", 410, 50, "", 0),
        ("cudaLaunchKernel", 420, 10, "", 0),
        ("idle", 2000, 10, "", 0),
    ]
    device = [("aten.mm:gemm", 500, 70, "", 130), ("aten.mm:gemm", 600, 30, "", 420), ("x:y", 3000, 1, "", 2005)]
    p = profiler.Profiler()
    p.add_recorded_step(0, _step(host=host, device=device))
    root = p.profile_python(OPTIONS)
    assert (root.total_accelerator_exec_micros, root.total_cpu_exec_micros) == (100, 900)
    (module,) = root.children
    assert (module.name, module.total_accelerator_exec_micros, module.cpu_exec_micros) == (
        "train.py:30:<module>",
        100,
        600,
    )
    lines = {child.name: (child.accelerator_exec_micros, child.cpu_exec_micros) for child in module.children}
    assert lines == {"model.py:5:forward": (70, 200), "model.py:9:backward": (30, 100)}
    assert p.profile_name_scope(OPTIONS).total_accelerator_exec_micros == 101


def test_a_step_without_stacks_says_how_to_record_them():
    p = profiler.Profiler()
    p.add_recorded_step(0, _step(device=[("a:k", 1, 2, "", 0)]))
    with pytest.raises(MissingTracesError, match=r"with_stack=True"):
        p.reporter.ask("code", Options())


def test_stacks_of_a_recorded_trace_account_for_all_of_its_kernels(shared):
    p = profiler.Profiler()
    p.add_recorded_step(0, shared / "data/gpu_traces/torch_tutorial/h100_transformer_before.json.gz")
    code, scopes = p.profile_python(OPTIONS), p.profile_name_scope(OPTIONS)
    assert code.total_accelerator_exec_micros == scopes.total_accelerator_exec_micros == 390
    assert code.total_cpu_exec_micros <= scopes.total_cpu_exec_micros


def test_addresses_of_objects_are_no_part_of_names():
    host = [(f"<built-in method matmul of type object at 0x7f{n:010x}>", 100 * n, 50, "", 0) for n in range(1, 4)]
    p = profiler.Profiler()
    p.add_recorded_step(0, _step(host=host))
    (only,) = p.profile_name_scope(OPTIONS).children
    assert (only.name, only.run_count, only.cpu_exec_micros) == (
        "<built-in method matmul of type object>",
        3,
        150,
    )


def test_copied_bytes_are_output_bytes():
    copies = [("in:MEMCPYHtoD", 10, 4, "MEMCPYHtoD 4096 bytes (Pageable to Device)", 0)] * 2
    p = profiler.Profiler()
    p.add_recorded_step(0, _step(device=copies))
    assert _find(_find(p.profile_name_scope(OPTIONS), "in"), "in/MEMCPYHtoD").output_bytes == 8192


def test_impossible_sizes_are_unknown(build):
    """In columns and in labels, as `analysis.copies` has them."""
    build.memcpy(10, 1000, num_bytes=2**60).memcpy(3000, 1000, num_bytes=4096).memset(9000, 1000, num_bytes=2**63)
    assert analysis.copies(build.recording()).totals["num_bytes"] == 4096
    label = f"MEMCPYHtoD {2**60} bytes (Pageable to Device)"
    labelled = _step(
        device=[("MEMCPYHtoD", 10, 4, label, 0), ("MEMCPYHtoD", 10, 4, label.replace(f"{2**60}", "4096"), 0)]
    )
    for step in (serialized(build.recording()), labelled):
        p = profiler.Profiler()
        p.add_recorded_step(0, step)
        assert p.profile_name_scope({**OPTIONS, "select": ["output_bytes"]}).total_output_bytes == 4096


def test_round_trip_of_a_recorded_profile():
    p = profiler.Profiler()
    p.add_recorded_step(3, _step(host=[("a", 1, 9, "", 0)], device=[("a:k", 5, 2, "", 0), ("a:k", 8, 2, "", 0)]))
    again = profiler.Profiler.from_profile(p.serialize_to_string())
    assert again.profile_name_scope(OPTIONS) == p.profile_name_scope(OPTIONS)
    assert again.serialize_to_string() == p.serialize_to_string()


def test_columns_are_what_protobuf_reads():
    metadata = _step(device=[(f"op{n}:k", 10**15 + n, n * 1000, "x" * n, n) for n in range(300)])
    found = metadata.step_stats.dev_stats[1].node_stats
    found[7].all_start_micros = -5
    found[9].Clear()
    (columns,) = read_devices(
        memoryview(metadata.step_stats.SerializeToString()), lambda device: device.endswith("stream:all")
    )
    names, index = columns.names
    assert [names[each] for each in index.tolist()] == [node.node_name for node in found]
    labels, index = columns.labels_at(np.arange(len(columns)))
    assert [labels[each] for each in index.tolist()] == [node.timeline_label for node in found]
    found[7].all_start_micros = 0  # what cannot be
    assert columns.start_micros.tolist() == [node.all_start_micros for node in found]
    assert columns.scheduled_ns.tolist() == [node.scheduled_micros * 1000 for node in found]


@pytest.mark.parametrize("data", [b"\x0a\xff\x01abc", b"\xff" * 40, b"\x0a\x05\x12\x09\x0a\x01a"])
def test_damaged_steps_are_refused(data):
    with pytest.raises(InvalidFileError):
        read_step(data).accelerators[0].names  # noqa: B018


def test_a_device_cut_in_a_record_is_refused():
    with pytest.raises(InvalidFileError):
        DeviceColumns("/gpu:0/stream:all", memoryview(b"\x12\x7f\x0a\x01a"))


def _advice(metadata, **options) -> dict[str, str]:
    return {one.checker: one.line for one in step_advice.advise(read_step(metadata), options)}


def _kernels(count, gap=0, late=False, name="op:relu", grid=1000):
    records = []
    for number in range(count):
        start = 1000 + number * (100 + gap)
        label = f"relu regs:8 shm:0 grid:{grid},1,1 block:256,1,1"
        records.append((name, start, 100, label, start - 1 if late else 1))
    return records


COPY = "MEMCPYHtoD 4096 bytes (Pinned to Device)"
SYNCS = [("cudaStreamSynchronize", 1050 + 200 * n, 100, "", 0) for n in range(10)]
PLAIN = _step(device=[*_kernels(40), *_kernels(40, name="b:add"), *_kernels(40, name="c:mul")])

PROVOKED = {
    "launch_bound": _step(device=_kernels(20, gap=100, late=True)),
    "draining_synchronizations": _step(host=SYNCS, device=_kernels(10, gap=100, late=True)),
    "dominating_kernel": _step(device=[*_kernels(20), ("x:y", 9000, 1, "", 1)]),
    "pageable_copies": _step(device=[("i:MEMCPYHtoD", 10, 500, COPY.replace("Pinned", "Pageable"), 1)]),
    "copies_could_overlap": _step(device=[("i:MEMCPYHtoD", 10, 900, COPY, 1), *_kernels(2)]),
    "small_copies": _step(device=[(f"o{n}:MEMCPYDtoH", 10 + 9 * n, 5, COPY, 9 * n + 1) for n in range(30)]),
    "repeated_copies": _step(device=[("in:MEMCPYHtoD", 10 + 9 * n, 5, COPY, 1) for n in range(4)]),
    "small_grids": _step(device=_kernels(5, grid=8)),
    "exposed_communication": _step(device=[*_kernels(3), *_kernels(5, name="grad:ncclDevKernel_AllReduce")]),
    "tensor_core_free_matmuls": _step(device=_kernels(5, name="fc:ampere_sgemm_128x64")),
    "default_stream": _step(
        device=[*_kernels(10), ("i:MEMCPYHtoD", 9000, 5, COPY, 1)], streams=[("/gpu:0/stream:7", _kernels(11))]
    ),
}


@pytest.mark.parametrize("name", sorted(PROVOKED))
def test_each_checker_finds_what_it_is_for_and_nothing_elsewhere(name):
    assert name in _advice(PROVOKED[name])
    assert name not in _advice(PLAIN)


@pytest.mark.parametrize(("stream", "is_default"), [("7", True), ("7.2", True), ("0.3", True), ("8.2", False)])
def test_the_default_stream_of_each_context_is_one(stream, is_default):
    """A part of a recording may have work of a context that is not the first, whose streams are named with it."""
    device = [*_kernels(10), ("i:MEMCPYHtoD", 9000, 5, COPY, 1)]
    step = _step(device=device, streams=[(f"/gpu:0/stream:{stream}", _kernels(11))])
    assert ("default_stream" in _advice(step)) == is_default


def test_a_device_is_idle_for_reasons_that_add_up():
    """Two streams of kernels, a copy, a collective and a graph: the causes as worked out by hand, in nanoseconds."""
    activities = [
        ("a:A", 100, 200, 0),
        ("b:B", 200, 250, 30),
        ("c:MEMCPYHtoD", 120, 220, 60),
        ("e:ncclDevKernel_AllReduce", 240, 400, 90),
        ("d:D", 420, 690, 300),
        ("f:F", 800, 850, 750),
        ("g:G1", 860, 900, 775),
        ("g:G2", 890, 930, 775),
    ]
    base = 10**18
    metadata = RunMetadata()
    metadata.provenance.window_start_nanos, metadata.provenance.window_end_nanos = base, base + 1000
    host = metadata.step_stats.dev_stats.add(device="/cpu:0")
    host.node_stats.add(node_name="cudaStreamSynchronize", all_start_nanos=base + 330, op_end_rel_nanos=370)
    device = metadata.step_stats.dev_stats.add(device="/gpu:0/stream:all")
    for name, start, end, launched in activities:
        device.node_stats.add(
            node_name=name,
            all_start_nanos=base + start,
            op_end_rel_nanos=end - start,
            scheduled_nanos=base + launched,
        )
    (found,) = Activity(read_step(metadata)).devices
    assert (found.times.busy_ns, found.window_ns, int(found.idle.lengths.sum())) == (690, 1000, 310)
    causes = {cause: int(times.sum()) for cause, times in found.idle.causes._asdict().items()}
    assert causes == {
        "latency": 150,
        "queued": 30,
        "unlaunched": 50,
        "synchronizing": 10,
        "tail": 70,
        "unknown": 0,
    }
    communication, compute = found.union(found.is_communication), found.union(found.is_compute)
    assert (compute.length, communication.length, communication.overlap(compute)) == (540, 160, 10)


def slow_program(build, waiting):
    """A thread launches a kernel each 10 µs too late, while another call waits in all of that time on a thread."""
    build.call("cudaEventSynchronize_v3020", 10, 990_000, thread_id=waiting, correlation_id=900)
    for number in range(1, 100):
        at = 10_000 * number
        build.call("cudaLaunchKernel_v7000", at, 500, correlation_id=number, thread_id=11)
        build.kernel("k", at + 1500, 3000, correlation_id=number, grid_x=5000)
    return build.recording()


@pytest.mark.parametrize(("waiting", "is_bound"), [(12, True), (11, False), (0, False)])
def test_a_program_that_launches_too_slowly_is_launch_bound_whatever_another_thread_waits_for(build, waiting, is_bound):
    recording = slow_program(build, waiting)
    found = [step_advice.advise(form(recording)) for form in (RecordingStep.of, read_step)]
    assert found[0] == found[1]
    assert ("launch_bound" in {advice.checker for advice in found[0]}) == is_bound


def test_threads_of_nodes_without_columns_are_not_those_of_launches(build):
    """TensorFlow's StepStats do not state the thread of a launch: any wait counts."""
    stats = RunMetadata.FromString(serialized(slow_program(build, 12)))
    for device in stats.step_stats.dev_stats:
        for node in device.node_stats:
            node.ClearField("activity")
    assert "launch_bound" not in _advice(stats)


IDLE_OF_RECORDINGS = {
    "hta/v100_rank1of2_profile_memory": (732_352_000, 599_837_000, 110_046_000, 22_469_000, 0, 0),
    "torch_tutorial/h100_transformer_before": (2_181_000, 1_741_000, 425_000, 15_000, 0, 0),
    "hta/a100_rank0of16_orphan_kernels": (793_037_000, 10_261_000, 3_321_000, 687_370_000, 293_000, 91_792_000),
    "hta/v100_rank1of2_diff_test_graphs": (27_296_000, 387_000, 21_000, 26_349_000, 0, 539_000),
    "hta/a100_rank0of2_nccl_metadata": (503_050_991, 471_861_630, 29_137_837, 2_000_134, 51_390, 0),
}
"""Recording -> idle, unlaunched, latency, queued, synchronizing, unknown, in ns; by a program of its own, between the
first and the last activity."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name.startswith("torch") else pytest.mark.slow) for name in IDLE_OF_RECORDINGS],
)
def test_why_recorded_gpus_were_idle(name, shared):
    step = read_step(collector.load(shared / "data" / "gpu_traces" / f"{name}.json.gz"))
    (device,) = Activity(replace(step, window=None)).devices
    idle, causes = device.idle, device.idle.causes
    found = [idle.lengths, causes.unlaunched, causes.latency, causes.queued, causes.synchronizing, causes.unknown]
    assert tuple(int(times.sum()) for times in found) == IDLE_OF_RECORDINGS[name]
    assert sum(idle.causes).tolist() == idle.lengths.tolist()


@pytest.mark.parametrize("rank", [0, 1])
def test_exposed_communication_is_what_nothing_overlaps(rank, shared):
    """Held against the recording's own figures."""
    folder, name = shared / "data" / "gpu_traces", f"hta/sampled_of128/rank{rank}.json.gz"
    figures = json.loads((folder / "counts.json").read_text())[name]["gpu"]["per_device"][str(rank)]
    step = read_step(collector.load(folder / name))
    (device,) = Activity(replace(step, window=None)).devices
    communication, compute = device.union(device.is_communication), device.union(device.is_compute)
    assert communication.length == figures["comm_busy_ns"]
    assert compute.length == figures["comp_busy_ns"]
    assert communication.overlap(compute) == figures["comm_comp_overlap_ns"]
    assert (device.times.busy_ns, int(device.idle.lengths.sum())) == (
        figures["all_gpu_work"]["busy_ns"],
        figures["all_gpu_work"]["idle_ns"],
    )
    assert "exposed_communication" in {advice.checker for advice in step_advice.advise(step)}


def _kernel_advice(*kernels: str, **options: str) -> dict[str, str]:
    return _advice(_step(device=[(f"op:{name}", 1000 * n, 900, "", 1) for n, name in enumerate(kernels, 1)]), **options)


@pytest.mark.parametrize(
    "kernel",
    [
        "ampere_sgemm_128x64_tn",
        "volta_sgemm_32x128_nt",
        "volta_scudnn_128x128_relu_interior_nn_v1",
        "Kernel<cutlass_80_simt_sgemm_128x32_8x5_tn_align1>",
        "implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1>",
        "magma_sgemmEx_kernel<float, float, float, true, false, 6, 4, 6, 3, 4>",
        "sgemm_32x32x32_NN_vec",
    ],
)
def test_kernels_whose_names_say_that_they_use_no_tensor_cores(kernel):
    assert "100% of the kernel time" in _kernel_advice(kernel)["tensor_core_free_matmuls"]


@pytest.mark.parametrize(
    "kernel",
    [
        "Kernel<cutlass_80_tensorop_s1688gemm_128x64_16x6_tn_align4>",
        "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_tn",
        "volta_h884gemm_64x64_ldg8_nn",
        "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x64x64",
        "nvjet_hsh_128x128_64x6_2x1_v_bz_coopA_TNN",
        "triton_gemm_bf16_kernel",
        "matmul_kernel",
        "_bf16_gemm_persistent",
        "gemm",
        "MatMul",
        "gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 2, 2>",
        "maxwell_sgemm_128x64_nn",
        "ncclKernel_AllReduce",
    ],
)
def test_a_name_that_does_not_say_it_is_no_reason_for_advice_on_tensor_cores(kernel):
    assert "tensor_core_free_matmuls" not in _kernel_advice(kernel)


def test_shares_are_of_what_the_text_says():
    """30 us of small kernels beside 270 us of others whose grids are not known, or that communicate."""
    small = ("a:relu", 100, 30, "relu grid:8,1,1 block:256,1,1", 1)
    others = [("b:gelu", 200, 200, "gelu", 1), ("c:ncclKernel", 500, 70, "ncclKernel grid:2,1,1 block:512,1,1", 1)]
    assert "small_grids" not in _advice(_step(device=[small, *others]))
    line = _advice(_step(device=[small, *others]), **{"small_grids.share": "0.1"})["small_grids"]
    assert line.startswith("kernels of fewer than 64 blocks, one at a time, take 10% of the kernel time of /gpu:0")


def test_copies_of_unknown_size_are_not_small():
    copies = [(f"o{n}:MEMCPYDtoH", 10 + 9 * n, 5, "MEMCPYDtoH (Device to Pageable)", 1) for n in range(30)]
    found = _advice(_step(device=copies))
    assert "small_copies" not in found
    assert found["pageable_copies"].startswith("data of unknown size copied in 150 µs")
    mixed = [*copies, ("in:MEMCPYHtoD", 900, 5, COPY.replace("Pinned", "Pageable"), 1)]
    assert _advice(_step(device=mixed))["pageable_copies"].startswith("4.096 kB and more copied in 155 µs")


def test_a_gpu_that_waits_for_what_was_launched_ahead_is_not_launch_bound():
    ahead = [(f"op{n}:k", 1000 * n, 100, "", 1) for n in range(1, 11)]
    assert "launch_bound" not in _advice(_step(device=ahead))
    late = [(f"op{n}:k", 1000 * n, 100, "", 1000 * n - 200) for n in range(1, 11)]
    line = _advice(_step(device=late))["launch_bound"]
    assert line.startswith("/gpu:0 idles 8.1 ms and for 8.1 ms of that the host launches too late; ")
    assert line.endswith("(saves at most 8.1 ms, 89% of the time from its first to its last activity)")
    unknown = [(f"op{n}:k", 1000 * n, 100, "", 0) for n in range(1, 11)]
    assert "launch_bound" not in _advice(_step(device=unknown))


def test_a_gpu_that_does_one_thing_and_then_nothing_gets_advice():
    metadata = _step(device=[("op:k", 100, 10, "", 50)])
    metadata.provenance.window_start_nanos, metadata.provenance.window_end_nanos = 1, 200_000
    (found,) = step_advice.advise(read_step(metadata))
    assert found.checker == "launch_bound"
    assert found.evidence[0] == (
        "idle: the host has not launched 50 µs, the launch takes effect 50 µs, nothing follows 90 µs"
    )


def test_losses_come_first_and_thresholds_count():
    metadata = RunMetadata.FromString(PROVOKED["small_grids"].SerializeToString())
    metadata.provenance.ledger["records_dropped"] = 3
    found = step_advice.advise(read_step(metadata))
    assert found[0].checker == "tracer_losses"
    assert "CUPTI dropped 3 records" in found[0].line
    assert "small_grids" not in _advice(metadata, **{"small_grids.blocks": "4"})


LOSSES = [*ledger.LOSSES, "unread"]


@pytest.mark.parametrize("figure", LOSSES)
def test_every_loss_of_the_ledger_is_advice(figure):
    metadata = RunMetadata.FromString(PROVOKED["small_grids"].SerializeToString())
    if figure == "unread":
        metadata.provenance.unread["nodes cut off"] = 3
    else:
        metadata.provenance.ledger[figure] = 3
    [found] = [each for each in step_advice.advise(read_step(metadata)) if each.checker == "tracer_losses"]
    [line] = Ledger.of(metadata.provenance).losses()
    assert line in found.line


def test_evidence_is_shown_when_asked_for():
    found = step_advice.advise(read_step(PROVOKED["small_grids"]))
    assert step_advice.text(found, {"explain": "true"}).count("\n") > step_advice.text(found).count("\n")
    assert step_advice.text([]) == "nothing to advise\n"


def test_times_and_bytes_that_cannot_be(caplog):
    """Sums of what a damaged step says must not leave the 64 bits of a message."""
    most, least = 2**63 - 1, -(2**63)
    label = f"MEMCPYHtoD {10**30} bytes (Pageable to Device)"
    device = [("a:k", 2**62, most, "", 0), ("a:k", least, most, "", most), ("a:MEMCPYHtoD", 5, most, label, least)]
    host = [("a", least, most, "", 0), ("a/b", most, most, "", least), ("cudaFree", most, least, "", 0)]
    p = profiler.Profiler()
    p.add_recorded_step(0, _step(host=host, device=device * 3))
    root = p.profile_name_scope({**OPTIONS, "select": ["micros", "output_bytes"]})
    assert root.total_accelerator_exec_micros == 9
    assert p.profile_graph(OPTIONS).total_accelerator_exec_micros == 9
    assert p.profile_operations(OPTIONS).total_accelerator_exec_micros == 9
    assert "impossible times are read as 0" in caplog.text
    assert profiler.Profiler.from_profile(p.serialize_to_string()).profile_name_scope(OPTIONS).total_exec_micros > 0
    assert p.advice_text({"explain": "true"})


def test_figures_beyond_64_bits_wrap_around():
    """As in tfprof; only TensorFlow's steps get there."""
    metadata = RunMetadata()
    device = metadata.step_stats.dev_stats.add(device="/device:GPU:0/stream:all")
    for node in "ab":
        device.node_stats.add(node_name=node, all_start_micros=1, op_end_rel_micros=2**63 - 1)
    p = profiler.Profiler()
    p.add_step(0, metadata)
    for ask in (p.profile_name_scope, p.profile_graph, p.profile_operations):
        assert ask(OPTIONS).total_exec_micros == -2
    again = profiler.Profiler.from_profile(p.serialize_to_string())
    assert again.profile_name_scope({**OPTIONS, "step": 0}).total_exec_micros == -2


def test_the_garbage_collector_is_left_as_it_was():
    for was_on in (True, False):
        (gc.enable if was_on else gc.disable)()
        try:
            with no_garbage_collection():
                assert not gc.isenabled()
                with pytest.raises(KeyError), no_garbage_collection():
                    raise KeyError
                assert not gc.isenabled()
            assert gc.isenabled() == was_on
        finally:
            gc.enable()


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=3), st.integers(0, 400))
def test_a_damaged_step_is_profiled_or_refused(changes, end):
    device = [("a:k", 100, 5, "kernel grid:1,1,1", 90), ("a:MEMCPYHtoD", 110, 5, "MEMCPYHtoD 64 bytes (x)", 95)]
    host = [("a", 80, 60, "a = A(b)", 0), ("cudaLaunchKernel", 90, 2, "", 0)]
    metadata = _step(host=host, device=device)
    metadata.provenance.frames.add(file="train.py", line=3, function="step")
    metadata.provenance.annotations.add(path="a", op="A", inputs=["b"], flops=10, runs=1, stack=[0])
    data = bytearray(metadata.SerializeToString())
    for at, byte in changes:
        data[at % len(data)] = byte
    p = profiler.Profiler()
    try:
        p.add_recorded_step(0, bytes(data[: end or None]))
    except CollectorError:
        return
    for ask in (p.profile_name_scope, p.profile_graph, p.profile_operations, p.profile_python):
        assert ask(OPTIONS).name in ("_TFProfRoot", "")
    assert p.advice_text({"explain": "true"})
