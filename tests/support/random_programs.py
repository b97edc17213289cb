"""Recordings of random programs that are possible: annotations are nested, work follows the call that launched it.

`random_steps` has what damaged files hold; here every format has a place for what happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from captures import START_NS, CaptureBuilder

from collector.recording.cupti_enums import DEGREE_CAPTURED

if TYPE_CHECKING:
    from random import Random

NAMES = ("train", "layer", "loss", "a/b", "ProfilerStep#{}", "step {}", "aten::mul", "é", "\U0001f600", "x y")
KERNELS = (
    *("gemm<float>", "void gemm<int>(int*)", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "_Z3addIfEvPT_i"),
    *("sm90_xmma_gemm_f16", "a::b", "é_norm", "=SUM(A1)", 'na,me"q', "pi|pe", "new\nline"),
)
WAITS = ("cudaStreamSynchronize_v3020", "cudaDeviceSynchronize_v3020", "cudaEventSynchronize_v3020")
DEVICES = (0, 1, 3)
WHOLE_PATHS = ("native", "replay")
"""Sources whose annotations have whole paths."""


def random_program(chance: Random) -> CaptureBuilder:
    """A program of one or two processes with threads that launch work on streams of three devices.

    Streams have equal numbers on the devices and in their contexts. Kernels may overlap on a stream and take no time;
    calls may launch nothing.
    """
    program = _Program(chance)
    program.run()
    return program.build


class _Program:
    def __init__(self, chance: Random) -> None:
        self.build = CaptureBuilder()
        self.chance, self.pick = chance, chance.choice
        self.build.environment["source"] = self.pick([*WHOLE_PATHS, "chrome", "kineto"])
        contexts = (1, 2)[: self.pick([1, 2])]
        self.streams = [(device, context, stream) for device in DEVICES for context in contexts for stream in (7, 8)]
        self.free = dict.fromkeys(self.streams, 0)
        self.allocated: list[tuple[int, int]] = []
        self.correlation = self.external = self.end = 0

    def run(self) -> None:
        processes = self.pick([(0,), (41,), (41, 42)])
        for process in processes:
            for thread in self.pick([(11,), (11, 12)]):
                self.thread(process, process + thread)
        for _ in range(self.pick([0, 2])):
            start, length = self.chance.randrange(max(self.end, 1)), self.pick([0, 10, 5000])
            times = {"start_ns": START_NS + start, "end_ns": START_NS + start + length}
            kind = self.pick([1, 1 << 16, 2 << 16, 5 << 16])
            self.build.raw("overheads", **times, overhead_kind=kind, object_kind=1, process_id=self.pick(processes))
            self.build.raw("jit_operations", **times, jit_operation_type=self.pick([0, 1, 2]), jit_entry_type=1)
        if self.chance.random() < 0.3:
            self.build.counters["records_dropped"] = 3
        rows = (row for table in self.build.rows.values() for row in table)
        last = max((row.get("end_ns", row.get("start_ns", 0)) for row in rows), default=START_NS)
        stop = max(last, START_NS + self.end) + self.pick([0, 0, 1000])
        self.build.clock["cupti_stop_ns"] = self.build.clock["wall_stop_ns"] = stop

    def thread(self, process: int, thread: int) -> None:
        """What a thread does: it enters and leaves annotations, launches work, and waits."""
        now = self.pick([0, 500])
        entered: list[tuple[int, str, int]] = []
        for _ in range(self.pick([0, 3, 12, 30])):
            now += self.pick([1, 5, 40, 3000, 20_000])  # nothing happens at the moment in which an annotation begins
            does = self.chance.random()
            if does < 0.3 and len(entered) < 4:
                self.external += 1
                name = self.pick(NAMES).format(self.external)
                is_whole = entered and self.build.environment["source"] in WHOLE_PATHS
                entered.append((self.external, f"{entered[-1][1]}/{name}" if is_whole else name, now))
            elif does < 0.5 and entered:
                self.leave(entered, now, thread)
            else:
                now += self.call(now, process, thread, entered[-1][0] if entered else 0, is_wait=does < 0.6)
        while entered:
            now += 1
            self.leave(entered, now, thread)
        self.end = max(self.end, now)

    def leave(self, entered: list[tuple[int, str, int]], now: int, thread: int) -> None:
        external, path, start = entered.pop()
        self.build.annotation(path, start, now - start, external)
        self.build.rows["annotations"][-1] |= {"thread_id": thread, "depth": len(entered)}

    def call(self, now: int, process: int, thread: int, annotation: int, *, is_wait: bool) -> int:
        """A call at a time, with its work; returns its length."""
        self.correlation += 1
        if annotation:
            link = {"external_id": annotation, "external_kind": 5}
            self.build.raw("external_correlations", correlation_id=self.correlation, **link)
        own = {"correlation_id": self.correlation, "process_id": process, "thread_id": thread, "domain": 2}
        length = self.pick([0, 100, 3000] if is_wait else [0, 30, 900])
        name = self.pick(WAITS) if is_wait else self.work(now, length)
        self.build.call(name, now, length, **own, return_value=self.pick([0, 0, 0, 700]))
        if is_wait and self.chance.random() < 0.7:
            wait = {"sync_type": self.pick([1, 3, 4]), "stream_id": 7, "context_id": 1, "event_id": 2**32 - 1}
            times = {"start_ns": START_NS + now, "end_ns": START_NS + now + length}
            self.build.raw("synchronizations", **times, **wait, correlation_id=self.correlation)
        return length

    def work(self, now: int, length: int) -> str:
        """What a call at a time launches, as the name of the call."""
        build, pick = self.build, self.pick
        device, context, stream = where = pick(self.streams)
        place: dict[str, Any] = {"device_id": device, "context_id": context, "correlation_id": self.correlation}
        if (
            kind := pick(["kernel", "kernel", "copy", "memset", "graph", "whole graph", "memory", "nothing"])
        ) == "memory":
            self.memory(now + length // 2, place)
            return "cudaMalloc_v3020"
        if kind == "nothing":
            return "cudaLaunchKernel_v7000"
        place["stream_id"] = stream
        began = max(now + pick([0, 10, 2000, 5000]), self.free[where] - pick([0, 0, 0, 20]))
        lasted = pick([0, 1, 10, 700, 2000, 5000])
        self.free[where] = max(self.free[where], began + 2 * lasted)
        if kind == "copy":
            kinds = {"copy_kind": pick([1, 2, 8, 10]), "src_kind": pick([1, 2, 3]), "dst_kind": pick([1, 3, 5])}
            build.memcpy(began, lasted, num_bytes=pick([0, 4096, 1 << 33]), **kinds, **place, is_async=pick([0, 1]))
            return "cudaMemcpyAsync_v3020"
        if kind == "memset":
            build.memset(began, lasted, num_bytes=64, **place)
            return "cudaMemsetAsync_v3020"
        if kind == "whole graph":
            build.whole_graph(began, lasted, **place, graph_id=pick([8, 9]))
            return "cudaGraphLaunch_v10000"
        if kind == "graph":
            for number in (1, 2):
                build.kernel(pick(KERNELS), began, lasted, **place, graph_id=5, graph_node_id=(5 << 32) + number)
                began += lasted
            row = build.rows["kernels"][-1]
            times = {"start_ns": row["start_ns"] - lasted, "end_ns": row["end_ns"]}
            build.raw("graph_launches", **times, **place, graph_degree=DEGREE_CAPTURED, graph_id=5, num_nodes=2)
            return "cudaGraphLaunch_v10000"
        shape = {
            "grid_x": pick([1, 80, 2**31 - 1]),
            "block_x": pick([32, 1024]),
            "registers_per_thread": pick([0, 255]),
        }
        build.kernel(pick(KERNELS), began, lasted, **place, **shape)
        return "cudaLaunchKernel_v7000"

    def memory(self, now: int, place: dict[str, Any]) -> None:
        """An allocation, or the release of one."""
        pool = {"pool_type": 1, "pool_address": 0x7E00_0000_0000, "pool_bytes": 1 << 25, "pool_used_bytes": 1 << 20}
        of_pool = self.pick([{}, {}, pool])
        is_release = bool(self.allocated) and self.chance.random() < 0.5
        made = (0x7F00_0000_0000 + 512 * self.correlation, place["device_id"])
        address, device = self.allocated.pop() if is_release else made
        if not is_release:
            self.allocated.append(made)
        what = {"operation": 1 + is_release, "address": address, "num_bytes": 512, "memory_kind": self.pick([2, 3])}
        self.build.raw(
            "memory_operations", start_ns=START_NS + now, **what, **{**place, "device_id": device}, **of_pool
        )
