"""Steps of random rows, with what readers of damaged and foreign files meet as well: for comparing two answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from captures import START_NS, CaptureBuilder

from collector.recording.cupti_enums import DEGREE_CAPTURED

if TYPE_CHECKING:
    from random import Random

KERNELS = ("gemm<float>", "gemm<int>", "ncclDevKernel_AllReduce", "rcclGenericKernel", "sm90_xmma_gemm_f16", "a::b", "")
CALLS = ("cudaLaunchKernel_v7000", "cuLaunchKernel", "cudaGraphLaunch_v10000", "cudaMemcpy_v3020")
WAITS = ("cudaStreamSynchronize_v3020", "cudaEventSynchronize_v3020", "cudaDeviceSynchronize_v3020")
PATHS = ("train", "train/layer", "loss", "step 3", "ProfilerStep#1", "step 3/x", "", "(no annotation)")


def random_step(chance: Random) -> CaptureBuilder:
    """A step of calls and GPU work on three devices.

    Some of the work has no call, no duration, or a time before that of its call or after the end of the step. Ids
    repeat or are unknown, and some kinds are those that a later CUPTI may add.
    """
    build = CaptureBuilder()
    pick = chance.choice
    build.environment["source"] = pick(["native", "chrome", "kineto"])
    now = 0
    for number in range(1, pick([3, 12, 50])):
        now += pick([0, 0, 5, 40, 3000, 20_000])
        correlation = pick([number, number, number, 0, max(number - 1, 1)])
        device, thread = chance.randrange(3), pick([11, 11, 12])
        if chance.random() < 0.8:
            call = {"correlation_id": correlation, "thread_id": thread, "process_id": 41 + device % 2}
            build.call(
                pick(CALLS), now, pick([0, 30, 900]), domain=pick([1, 2]), return_value=pick([0, 0, 700]), **call
            )
        if chance.random() < 0.2:
            call = {"correlation_id": 1000 + number, "thread_id": thread, "process_id": 41 + device % 2}
            build.call(pick(WAITS), now + 30, chance.randrange(5000), **call)
        _add_work(build, chance, max(now + pick([-10, 0, 20, 500]), 0), device, correlation)
        if chance.random() < 0.3:
            build.raw(
                "memory_operations",
                start_ns=START_NS + now,
                memory_kind=pick([1, 3, 99]),
                operation=pick([1, 2, 5]),
                address=pick([0, 1, 1 << 63]),
                num_bytes=64 * number,
                pool_address=pick([0, 1 << 63]),
                device_id=device,
                correlation_id=correlation,
            )
        if chance.random() < 0.5:
            build.annotation(
                pick(PATHS), max(now - chance.randrange(2000), 0), pick([0, 100, 2100]), number, correlation
            )
            build.rows["annotations"][-1]["thread_id"] = thread
    build.clock["cupti_stop_ns"] = build.clock["wall_stop_ns"] = START_NS + max(now + pick([-1000, 0, 100_000]), 1)
    return build


def _add_work(build: CaptureBuilder, chance: Random, start: int, device: int, correlation: int) -> None:
    """A kernel, copy, memset or graph that was recorded as a whole, or the row of a graph's launch beside a node."""
    pick = chance.choice
    duration = pick([0, 10, 700, 40_000])
    row: dict[str, Any] = {"device_id": device, "stream_id": pick([7, 8]), "context_id": pick([1, 1, 2])}
    row["correlation_id"] = correlation
    if chance.random() < 0.25:
        row |= {"graph_id": pick([3, 4]), "graph_node_id": chance.randrange(1, 1 << 63)}
    if chance.random() < 0.1:
        launched = {name: row[name] for name in ("device_id", "stream_id", "context_id", "correlation_id")}
        times = {"start_ns": START_NS + start, "end_ns": START_NS + start + duration}
        build.raw("graph_launches", graph_degree=DEGREE_CAPTURED, graph_id=5, num_nodes=2, **times, **launched)
    table = pick(["kernel", "kernel", "copy", "memset", "graph"])
    if table == "kernel":
        shape = {"grid_x": pick([1, 80]), "block_x": pick([0, 32, 1024]), "registers_per_thread": pick([0, 255])}
        build.kernel(pick(KERNELS), start, duration, **shape, **row)
    elif table == "copy":
        kinds = {"copy_kind": pick([0, 1, 8, 77]), "src_kind": pick([0, 1, 9]), "dst_kind": pick([0, 3, 9])}
        build.memcpy(start, duration, num_bytes=pick([0, 4096, 1 << 40]), **kinds, **row)
    elif table == "graph":
        of_graph = {"graph_id": pick([5, 6]), "name": pick(["", "decode"])}
        build.whole_graph(start, duration, **{**row, **of_graph})
    else:
        build.memset(start, duration, num_bytes=pick([0, 64]), memory_kind=pick([0, 3, 44]), **row)
