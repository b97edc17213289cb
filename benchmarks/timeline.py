"""The speed of converting a step into a trace, and its memory.

Goals: TensorFlow's timeline is 50 times, ours 100 times as fast as plain Python that does TensorFlow's work in
TensorFlow's way; both are faster than orjson alone writing the finished events; inputs for which TensorFlow's time is
quadratic cost at most 3 times as much as easy ones; the cost of an event does not grow with the step, and memory hardly
grows.

The figures are CPU seconds of one process, alternating, medians; other load on the machine thus affects all arms
equally. The plain arm gets the parsed message. TensorFlow's timeline is measured twice: with the parsed message, as
users of TensorFlow call it, which protobuf must first serialize, and with the wire bytes. All other arms get wire
bytes. TensorFlow's timeline returns the text, ours is passed on piece by piece. If TensorFlow is installed, its own
Timeline is the plain arm.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from _cpu_time import cpu_seconds
from _plain_timeline import PlainTimeline

from collector.protos import StepStats
from collector.timeline import Timeline, View, write_trace
from collector.timeline.drawn_files import drawn_file

BASE_US = 1_600_000_000_000_000
MIB = 1 << 20


# --- steps, as wire bytes ---


def varint(value: int) -> bytes:
    """A number in protobuf's encoding."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def field(number: int, payload: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def column(number: int, values: npt.NDArray[Any] | int, count: int) -> npt.NDArray[np.uint8]:
    """A numeric field for each node, all equally wide."""
    whole = np.broadcast_to(np.asarray(values, np.uint64), (count,))
    width = max(-(-int(whole.max()).bit_length() // 7), 1)
    tag = np.frombuffer(varint(number << 3), np.uint8)
    rows = np.empty((count, len(tag) + width), np.uint8)
    rows[:, : len(tag)] = tag
    for byte in range(width):
        rows[:, len(tag) + byte] = (whole >> np.uint64(7 * byte)).astype(np.uint8) & 0x7F | 0x80
    rows[:, -1] &= 0x7F
    return rows


def text(number: int, template: str, values: Sequence[npt.NDArray[Any]], count: int) -> npt.NDArray[np.uint8]:
    """A text field for each node: each ``#`` of ``template`` is one of ``values``, in eight digits."""
    pieces = template.split("#")
    row = field(number, "00000000".join(pieces).encode())
    rows = np.tile(np.frombuffer(row, np.uint8), (count, 1))
    at = len(row) - sum(map(len, pieces)) - 8 * (len(pieces) - 1)
    for piece, numbers in zip(pieces[:-1], values, strict=False):
        at += len(piece)
        for digit in range(8):
            rows[:, at + digit] = numbers // 10 ** (7 - digit) % 10 + ord("0")
        at += 8
    return rows


def nodes(*columns: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Nodes of a device, one row each."""
    body = np.concatenate(columns, axis=1)
    head = np.frombuffer(b"\x12" + varint(body.shape[1]), np.uint8)
    return np.concatenate([np.broadcast_to(head, (len(body), len(head))), body], axis=1)


def device(name: str, *kinds: npt.NDArray[np.uint8]) -> bytes:
    """A device with nodes of these kinds, alternating."""
    return field(1, field(1, name.encode()) + np.concatenate(kinds, axis=1).tobytes())


def output(allocator: str, num_bytes: int) -> npt.NDArray[np.uint8]:
    """A NodeOutput, to be repeated."""
    shape = field(2, field(2, b"\x08\x20") + field(2, b"\x08\x80\x01"))
    allocation = field(4, b"\x08" + varint(num_bytes) + b"\x10" + varint(num_bytes) + field(3, allocator.encode()))
    return np.frombuffer(field(7, field(3, b"\x08\x01" + shape + allocation)), np.uint8)


def tensorflow_step(num_nodes: int) -> bytes:
    """A step like TensorFlow's from a GPU machine: half ops with their outputs and inputs, half activities, all in µs.

    Four of ten nodes have an output; one arrow per node; two to four lanes per device.
    """
    count = max(num_nodes // 10, 2)
    turn = np.arange(count)
    before = np.maximum(turn - 1, 0)

    def op(
        name: str, kind: str, first: str, second: str, start: int, duration: int, made: npt.NDArray[np.uint8] | None
    ):
        columns = [
            text(1, f"model/layer/{name}_#", [turn], count),
            column(2, BASE_US + 20 * turn + start, count),
            column(5, duration, count),
            text(
                8,
                f"model/layer/{name}_# = {kind}(model/layer/{first}_#, model/layer/{second}_#)",
                [turn, turn, before],
                count,
            ),
            column(9, BASE_US + 20 * turn + start - 2, count),
        ]
        if made is not None:
            columns.insert(3, np.broadcast_to(made, (count, len(made))))
        return nodes(*columns)

    def activity(name: str, label: str, start: int, duration: int) -> npt.NDArray[np.uint8]:
        return nodes(
            text(1, f"model/layer/{name}", [turn], count),
            column(2, BASE_US + 20 * turn + start, count),
            column(5, duration, count),
            text(8, label, [], count),
        )

    host, gpu = output("cpu", 16384), output("GPU_0_bfc", 16384)
    task = "/job:localhost/replica:0/task:0"
    gemm = "void gemm_nn<128,64>(float const*, float*)"
    first, second = activity("MatMul_#:MatMul", gemm, 30, 12), activity("Relu_#:Relu", "EigenMetaKernel", 43, 9)
    copy = activity("Pack_#:MEMCPYHtoD", "MEMCPYHtoD 16384 bytes (Pageable to Device)", 25, 30)
    return b"".join(
        [
            device(
                f"{task}/device:CPU:0",
                op("Pack", "Pack", "Relu", "Pack", 0, 15, host),
                op("Shape", "Shape", "Pack", "Shape", 10, 25, host),
            ),
            device(
                f"{task}/device:GPU:0",
                op("MatMul", "MatMul", "Pack", "Relu", 8, 14, gpu),
                op("Relu", "Relu", "MatMul", "Shape", 14, 8, gpu),
                op("Assign", "Assign", "Shape", "MatMul", 18, 4, None),
            ),
            device("/gpu:0/stream:all", first, second),
            device("/gpu:0/stream:7", first),
            device("/gpu:0/stream:13", second),
            device("/gpu:0/memcpy", copy),
        ]
    )


def recorded_step(num_nodes: int) -> bytes:
    """A step like this project's: calls with correlation ids and their activities, in ns, on two streams."""
    count = max(num_nodes // 10, 2)
    turn = np.arange(count)
    base_ns = BASE_US * 1000

    def common(start_ns: int, duration_ns: int, correlation: int, thread: int) -> list[npt.NDArray[np.uint8]]:
        start = base_ns + 20_000 * turn + start_ns
        return [
            column(2, start // 1000, count),
            column(5, max(duration_ns // 1000, 1), count),
            column(10, thread, count),
            column(13, start, count),
            column(16, duration_ns, count),
            column(100001, 3 * turn + correlation, count),
        ]

    def call(name: str, start_ns: int, correlation: int) -> npt.NDArray[np.uint8]:
        return nodes(
            text(1, name, [], count),
            text(8, f"{name} = {name}()", [], count),
            *common(start_ns, 4321, correlation, 4711),
        )

    def activity(name: str, label: str, start_ns: int, duration_ns: int, correlation: int) -> npt.NDArray[np.uint8]:
        scheduled = base_ns + 20_000 * turn + 6_000 * (correlation - 1)
        return nodes(
            text(1, name, [], count),
            text(8, label, [], count),
            *common(start_ns, duration_ns, correlation, 4711),
            column(9, scheduled // 1000, count),
            column(17, scheduled, count),
        )

    gemm = activity(
        "layer1/conv:sgemm",
        "void sgemm<float, 128, 64>(float const*, float*) regs:64 shm:1024 grid:8,1,1 block:256,1,1",
        9_123,
        7_777,
        1,
    )
    relu = activity("layer1/relu:relu", "relu(float*, int) regs:16 shm:0 grid:64,1,1 block:128,1,1", 17_001, 5_005, 2)
    copy = activity("layer1/in:MEMCPYHtoD", "MEMCPYHtoD 16384 bytes (Pageable to Device)", 18_500, 3_003, 3)
    calls = [
        call(name, 6_000 * index, index + 1)
        for index, name in enumerate(["cudaLaunchKernel", "cudaLaunchKernel", "cudaMemcpyAsync"])
    ]
    return b"".join(
        [
            device("/cpu:0", *calls),
            device("/gpu:0/stream:all", gemm, relu, copy),
            device("/gpu:0/stream:7", gemm),
            device("/gpu:0/stream:13", relu, copy),
            device("/gpu:0/memcpy", copy),
        ]
    )


def overlapping_step(num_nodes: int) -> bytes:
    """Every node of a device overlaps with every other."""
    turn = np.arange(num_nodes)
    columns = [text(1, "kernel_#:MatMul", [turn], num_nodes), column(2, BASE_US + turn, num_nodes)]
    return device("/gpu:0/stream:7", nodes(*columns, column(5, 10 * num_nodes, num_nodes)))


def apart_step(num_nodes: int) -> bytes:
    """The same without any overlap."""
    turn = np.arange(num_nodes)
    columns = [text(1, "kernel_#:MatMul", [turn], num_nodes), column(2, BASE_US + 10 * turn, num_nodes)]
    return device("/gpu:0/stream:7", nodes(*columns, column(5, 5, num_nodes)))


def tensors_step(num_nodes: int, *, to_the_end: bool) -> bytes:
    """Ops with one output each; the last op consumes all of them, or each op that of the previous op."""
    turn = np.arange(num_nodes)
    made = output("cpu", 4096)
    label = "op_# = Op()" if to_the_end else "op_# = Op(op_#)"
    body = np.concatenate(
        [
            text(1, "op_#", [turn], num_nodes),
            column(2, BASE_US + 10 * turn, num_nodes),
            column(5, 5, num_nodes),
            np.broadcast_to(made, (num_nodes, len(made))),
            text(8, label, [turn, np.maximum(turn - 1, 0)], num_nodes),
        ],
        axis=1,
    )
    last = f"last = Last({', '.join(f'op_{number:08}' for number in range(num_nodes))})"
    start = b"\x10" + varint(BASE_US + 10 * num_nodes)
    collected = field(2, field(1, b"last") + start + b"\x28\x05" + field(8, last.encode())) if to_the_end else b""
    rows = nodes(body).tobytes()
    return field(1, field(1, b"/device:CPU:0") + rows + collected)


# --- arms ---


def plain_timeline() -> tuple[str, Callable[..., Any]]:
    """The name of the plain arm, and its Timeline class."""
    try:
        from tensorflow.python.client.timeline import Timeline as TensorFlowTimeline  # type: ignore[import-not-found]
    except ImportError:
        return "plain Python", PlainTimeline
    return "TensorFlow", TensorFlowTimeline


def compatible(step: bytes | StepStats, *, show_memory: bool = False) -> int:
    """Length of the text."""
    return len(Timeline(step).generate_chrome_trace_format(show_memory=show_memory))


def own(data: bytes, suffix: str = ".json") -> int:
    """Length of the file."""
    sizes: list[int] = []
    kind = drawn_file(suffix)
    assert kind is not None
    write_trace(data, lambda piece: sizes.append(len(piece)), View(), kind)
    return sum(sizes)


def seconds_from_message(data: bytes, repeats: int) -> float:
    """CPU seconds of TensorFlow's timeline for the parsed message, after an uncounted round."""
    message = StepStats.FromString(data)
    compatible(message)
    return cpu_seconds(lambda: compatible(message), repeats)


STEPS: dict[str, Callable[[int], bytes]] = {"TensorFlow's": tensorflow_step, "our own": recorded_step}
TIMELINES: dict[str, Callable[[bytes], int]] = {"compatible": compatible, "own": own}


# --- claims ---


def against_plain_python(sizes: Sequence[int]) -> None:
    """Both timelines compared with the plain arm, on both kinds of step."""
    name, timeline = plain_timeline()
    print(
        f"\n| step | nodes | {name} s | compatible, from a message s | ratio | compatible, from wire bytes s | ratio "
        f"| {name} with memory s | own s | ratio |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for kind, make in STEPS.items():
        for size in sizes:
            data = make(size)
            repeats = 5 if size <= 100_000 else 3
            # Ours first: the plain arm leaves memory behind that makes every later page more expensive. Before either,
            # an uncounted round: the first use of memory that the machine provides may cost more than the work.
            compatible(data)
            own(data)
            ours = cpu_seconds(lambda: compatible(data), repeats)  # noqa: B023
            drawn = cpu_seconds(lambda: own(data), repeats)  # noqa: B023
            asked = seconds_from_message(data, repeats)
            spent: dict[bool, float] = {}
            for show_memory in (False, True):
                step = StepStats.FromString(data)
                begin = time.process_time()
                plain = timeline(step).generate_chrome_trace_format(show_dataflow=True, show_memory=show_memory)
                spent[show_memory] = time.process_time() - begin
                if size <= 100_000:
                    same = Timeline(data).generate_chrome_trace_format(show_memory=show_memory)
                    assert same == plain, "the arms do not do the same work"
                del plain, step
            print(
                f"| {kind} | {size:,} | {spent[False]:.2f} | {asked:.3f} | {spent[False] / asked:.0f} "
                f"| {ours:.3f} | {spent[False] / ours:.0f} "
                f"| {spent[True]:.2f} | {drawn:.3f} | {spent[True] / drawn:.0f} |",
                flush=True,
            )


def against_orjson(size: int) -> None:
    """Reading, layout and writing compared with writing alone."""
    if importlib.util.find_spec("orjson") is None:
        print("\norjson is not installed: not compared with it")
        return
    print("\n| step | file | events | orjson.dumps of the ready events s | ours, from wire bytes s | ratio |")
    print("| --- | --- | --- | --- | --- | --- |")
    for kind in STEPS:
        for timeline in TIMELINES:
            row = in_own_process("beside_orjson", kind, timeline, size)
            theirs, ours = row["theirs"], row["ours"]
            print(
                f"| {kind} | {timeline} | {row['events']:,} | {theirs:.4f} | {ours:.4f} | {theirs / ours:.1f} |",
                flush=True,
            )


def beside_orjson(kind: str, timeline: str, size: str) -> dict[str, float]:
    """One row of `against_orjson`."""
    import orjson  # type: ignore[import-not-found,unused-ignore]

    data, work = STEPS[kind](int(size)), TIMELINES[timeline]
    pieces: list[str] = []
    if timeline == "own":
        write_trace(data, lambda piece: pieces.append(str(piece, "utf-8")), View())
    else:
        pieces.append(Timeline(data).generate_chrome_trace_format())
    events = orjson.loads("".join(pieces))["traceEvents"]
    turns = [(cpu_seconds(lambda: orjson.dumps(events), 1), cpu_seconds(lambda: work(data), 1)) for _ in range(9)]
    theirs, ours = (statistics.median(times) for times in zip(*turns, strict=True))
    return {"events": len(events), "theirs": theirs, "ours": ours}


def hard_shapes(size: int) -> None:
    """Inputs that are quadratic for TensorFlow, compared with similar easy ones, per event."""

    def analyze(data: bytes) -> None:
        Timeline(data).analyze_step_stats(show_memory=True).chrome_trace.format_to_string()

    print(f"\n| at {size:,} nodes | hard ns/event | easy ns/event | hard / easy |")
    print("| --- | --- | --- | --- |")
    living, passing = tensors_step(size, to_the_end=True), tensors_step(size, to_the_end=False)
    for name, work, hard, easy in (
        ("all overlap, compatible", compatible, overlapping_step(size), apart_step(size)),
        ("all overlap, own", own, overlapping_step(size), apart_step(size)),
        ("all tensors live to the end, compatible", analyze, living, passing),
        ("all tensors live to the end, own", own, living, passing),
    ):
        costs = [cpu_seconds(lambda: work(data), 5) / events_of(work, data) * 1e9 for data in (hard, easy)]  # noqa: B023
        print(f"| {name} | {costs[0]:.0f} | {costs[1]:.0f} | {costs[0] / costs[1]:.2f} |", flush=True)


def events_of(work: Callable[[bytes], object], data: bytes) -> int:
    """The number of events that an arm writes."""
    if work is own:
        drawn = write_trace(data, lambda _: None, View())
        return drawn.slices + 2 * drawn.arrows + drawn.counter_values
    show_memory = work is not compatible
    return Timeline(data).generate_chrome_trace_format(show_memory=show_memory).count('"ph"')


def flatness(sizes: Sequence[int]) -> None:
    """The cost of an event of our timeline, by the number of events."""
    print(
        "\n| step | events | own ns/event | peak memory over the input MiB | .pftrace / JSON time "
        "| .pftrace / compact JSON bytes |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for kind, events_a_node in (("TensorFlow's", 2.4), ("our own", 1.9)):
        for size in sizes:
            row = in_own_process("flat", kind, round(size / events_a_node))
            print(
                f"| {kind} | {row['events']:,} | {row['ns_per_event']:.0f} | {row['peak_bytes'] / MIB:.0f} "
                f"| {row['pftrace_time_ratio']:.2f} | {row['pftrace_ratio']:.2f} |",
                flush=True,
            )


def flat(kind: str, size: str) -> dict[str, float]:
    """One row of `flatness`. Memory is read before any other use of memory."""
    make = STEPS[kind]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "step.pb"
        if os.fork() == 0:  # making the step takes more memory than drawing it
            path.write_bytes(make(int(size)))
            os._exit(0)
        os.wait()
        data = path.read_bytes()
    own(make(100))
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = memory_kib("VmRSS")
    begin = time.process_time()
    json_bytes = own(data)
    first = time.process_time() - begin
    peak = memory_kib("VmHWM") - before
    drawn = write_trace(data, lambda _: None, View())
    events = drawn.slices + 2 * drawn.arrows + drawn.counter_values
    spent = first if int(size) > 1_000_000 else cpu_seconds(lambda: own(data), 5)
    turns = [(cpu_seconds(lambda: own(data, ".pftrace"), 1), cpu_seconds(lambda: own(data), 1)) for _ in range(5)]
    return {
        "events": events,
        "ns_per_event": spent / events * 1e9,
        "peak_bytes": peak * 1024,
        "pftrace_time_ratio": statistics.median(perfetto / chrome for perfetto, chrome in turns),
        "pftrace_ratio": own(data, ".pftrace") / json_bytes,
    }


ROWS: dict[str, Callable[..., dict[str, float]]] = {"beside_orjson": beside_orjson, "flat": flat}
"""Rows of tables that are measured in separate processes, so that none begins with another's remaining memory."""


def in_own_process(row: str, *arguments: object) -> dict[str, Any]:
    """The result of one of `ROWS` for these arguments."""
    asked = [sys.executable, __file__, "--row", row, *map(str, arguments)]
    done = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True)
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def memory_kib(what: str) -> int:
    """A figure of this process's memory; getrusage's peak would be that of its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(what)).split()[1])


def processor() -> str:
    """Return the processor's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to 100,000 nodes")
    parser.add_argument("--full", action="store_true", help="and 10 million events; takes minutes")
    parser.add_argument("--row", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        print(json.dumps(ROWS[options.row[0]](*options.row[1:])))
        return
    print(f"{processor()}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    large = [] if options.quick else [1_000_000]
    against_plain_python([100_000, *large])
    against_orjson(100_000)
    hard_shapes(100_000)
    flatness([10_000, 100_000, *large, *([10_000_000] if options.full else [])])


if __name__ == "__main__":
    main()
