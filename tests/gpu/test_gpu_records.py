"""The activities of a known program, compared with their records."""

import ctypes
import statistics

import pytest
from cuda_program import MANGLED

import collector

MEGABYTE = 1 << 20
HTOD, DTOH, DTOD = 1, 2, 8  # CUPTI's copy kinds
PINNED, DEVICE = 2, 3  # CUPTI's memory kinds


def rows(table, *columns):
    return list(zip(*(getattr(table, column).tolist() for column in columns), strict=True))


def test_kernels_have_their_names_shapes_and_order(cuda):
    stream = cuda.stream()
    x, n = cuda.allocate(4 * MEGABYTE), ctypes.c_int(MEGABYTE)
    with collector.trace(strict=True) as step:
        cuda.launch(
            "axpy_pair", ctypes.c_void_p(x), n, grid=(16, 2, 1), block=(128, 2, 1), shared_bytes=512, stream=stream
        )
        cuda.launch("scale", ctypes.c_void_p(x), ctypes.c_float(2), n, grid=(64, 1, 3), block=(32, 4, 2), stream=stream)
        cuda.launch("empty_kernel", stream=stream)
    cuda.free(x)
    kernels = step.kernels
    assert kernels.recorded_names() == [MANGLED[name] for name in ("axpy_pair", "scale", "empty_kernel")]
    assert kernels.names() == ["axpy_pair", "scale<float>", "empty_kernel"]
    assert rows(kernels, "grid_x", "grid_y", "grid_z") == [(16, 2, 1), (64, 1, 3), (1, 1, 1)]
    assert rows(kernels, "block_x", "block_y", "block_z") == [(128, 2, 1), (32, 4, 2), (1, 1, 1)]
    assert kernels.static_shared_bytes.tolist() == [1024, 0, 0]
    assert kernels.dynamic_shared_bytes.tolist() == [512, 0, 0]
    assert (kernels.registers_per_thread > 0).all()
    assert len(set(kernels.stream_id.tolist())) == 1
    assert (kernels.start_ns[1:] >= kernels.end_ns[:-1]).all()  # one stream: nothing overlaps
    assert step.ledger.complete, step.ledger.losses()


def test_every_stream_keeps_its_own_kernels(cuda):
    counts = (3, 5, 7, 11)
    streams = [cuda.stream() for _ in counts]
    with collector.trace(strict=True) as step:
        for count, stream in zip(counts, streams, strict=True):
            cuda.launch_empty(count, stream)
    ids = step.kernels.stream_id.tolist()
    assert sorted(ids.count(stream_id) for stream_id in set(ids)) == sorted(counts)
    devices = {stats.device: len(stats.node_stats) for stats in step.step_stats.dev_stats}
    assert devices["/gpu:0/stream:all"] == sum(counts)
    assert {devices[f"/gpu:0/stream:{stream_id}"] for stream_id in set(ids)} == set(counts)


def test_copies_and_sets_have_their_bytes_and_kinds(cuda):
    stream = cuda.stream()
    a, b = cuda.allocate(MEGABYTE), cuda.allocate(MEGABYTE)
    with cuda.pinned(MEGABYTE) as host:
        with collector.trace(strict=True) as step:
            cuda.copy_to_device(a, host, 4096, stream)
            cuda.copy_on_device(b, a, 12288, stream)
            cuda.copy_to_host(host, b, 65536, stream)
            cuda.fill(b, 0xAB, 1000, stream)
        assert rows(step.memcpys, "copy_kind", "num_bytes", "is_async") == [
            (HTOD, 4096, 1), (DTOD, 12288, 1), (DTOH, 65536, 1),
        ]  # fmt: skip
    assert rows(step.memcpys, "src_kind", "dst_kind") == [(PINNED, DEVICE), (DEVICE, DEVICE), (DEVICE, PINNED)]
    assert rows(step.memsets, "num_bytes", "value", "memory_kind") == [(1000, 0xAB, DEVICE)]
    assert step.ledger.complete, step.ledger.losses()
    for address in (a, b):
        cuda.free(address)


def test_annotations_name_the_work_launched_inside_them(cuda):
    stream, x = cuda.stream(), cuda.allocate(MEGABYTE)
    with collector.trace(strict=True) as step:
        with collector.annotate("layer1"):
            cuda.launch("empty_kernel", stream=stream)
            with collector.annotate("conv"):
                cuda.launch("spin", ctypes.c_longlong(1000), stream=stream)
                cuda.fill(x, 0, 256, stream)
        cuda.launch("empty_kernel", stream=stream)
    cuda.free(x)
    assert step.recording.annotations_of(step.kernels) == ["layer1", "layer1/conv", ""]
    assert step.recording.annotations_of(step.memsets) == ["layer1/conv"]
    nodes = [node.node_name for stats in step.step_stats.dev_stats if stats.device == "/gpu:0/stream:all"
             for node in stats.node_stats]  # fmt: skip
    assert {"layer1:empty_kernel", "layer1/conv:spin", "empty_kernel:empty_kernel"} <= set(nodes)


def test_durations_agree_with_cuda_events(cuda, is_simulated, show):
    stream = cuda.stream()
    cuda.launch("spin", ctypes.c_longlong(1000), stream=stream)
    cuda.synchronize()
    wanted_ns = [500_000 * (1 + index % 8) for index in range(48)]
    with collector.trace(strict=True) as step:
        events_ns = []
        for ns in wanted_ns:
            # Meanwhile the event, the kernel and the next event are queued: no time of the host lies between them.
            cuda.launch("spin", ctypes.c_longlong(300_000), stream=stream)
            events_ns.append(
                1e6 * cuda.timed_ms(lambda ns=ns: cuda.launch("spin", ctypes.c_longlong(ns), stream=stream), stream)
            )
    kernels_ns = step.kernels.duration_ns.tolist()[1::2]
    assert len(kernels_ns) == len(wanted_ns)
    # Events stand outside the kernel, so they measure its launch as well; the kernel's own loop stands inside.
    apart = [
        abs(event - kernel) / event
        for event, kernel, wanted in zip(events_ns, kernels_ns, wanted_ns, strict=True)
        if wanted >= 1_000_000
    ]
    show(
        f"durations and events of kernels of 1 to 4 ms: {statistics.median(apart):.2%} apart, at most {max(apart):.2%}"
    )
    assert statistics.median(apart) < (0.05 if is_simulated else 0.01), apart
    assert all(kernel >= 0.98 * wanted for kernel, wanted in zip(kernels_ns, wanted_ns, strict=True))


def test_kernels_start_after_their_launch_and_lie_in_the_step(cuda):
    with collector.trace(strict=True) as step:
        cuda.launch_empty(200, cuda.stream())
    recording = step.recording
    launches = recording.launch_rows(recording.kernels.correlation_id)
    assert (launches >= 0).all()
    assert (recording.kernels.start_ns >= recording.api_calls.start_ns[launches]).all()
    assert (recording.kernels.start_ns >= recording.clock.cupti_start_ns).all()
    assert (recording.kernels.end_ns <= recording.clock.cupti_stop_ns).all()


@pytest.mark.parametrize("name", ["step.json", "step.pb", "step.gpurec"])
def test_a_real_step_is_written_in_every_format(cuda, tmp_path, name):
    with collector.trace(tmp_path / name, strict=True) as step:
        cuda.launch_empty(10, cuda.stream())
    assert len(step.kernels) == 10
    assert (tmp_path / name).stat().st_size > 0


def test_the_recording_says_that_nothing_was_simulated(cuda, real_gpu):
    with collector.trace(strict=True) as step:
        cuda.launch_empty(1, cuda.stream())
    environment = step.recording.environment
    assert not environment["simulated"]
    assert environment["driver_version"] == cuda.driver_version()
    assert environment["cupti_api_version"] >= 18
    assert cuda.name() in str(environment["devices"])
