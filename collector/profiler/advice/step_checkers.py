"""The checkers of recorded steps. Add one by adding a function."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping

import numpy as np

from collector.analysis.activities import WorkClass
from collector.profiler.advice.checker_registry import Advice, Severity, checker
from collector.profiler.advice.step_activity import Activity, Device, Mask
from collector.profiler.node_fields import Ints
from collector.recording.cupti_enums import COPY_KINDS, MEMORY_KINDS
from collector.recording.idle_causes import IdleCauses
from collector.stepstats.labels import op_and_kernel, stream_of
from collector.text.quantities import size_text, time_text
from collector.text.wording import counted

Limits = Mapping[str, float]

_EVIDENCE = 3
_PLAIN_MATMUL = re.compile(
    r"(?:^|[_<])(?:volta|turing|ampere|ada|hopper|blackwell|sm\d+)_(?:b?fp16_)?(?:s|c|gc)gemm"  # cuBLAS
    r"|(?:volta|turing|ampere)_scudnn|(?:im|ex)plicit_convolve_sgemm"  # cuDNN
    r"|cutlass_\w*simt_[sc]gemm|(?:^|_)magma_[sc]gemm|^gemmSN_|^[sc]gemm(?:_\d|_largek|$)"
)
"""Names of kernels that multiply in single precision without tensor cores. Those of cuBLAS and CUTLASS that use tensor
cores have digits before ``gemm``, as in ``s1688gemm``. Most names do not show it: ``matmul_kernel`` of Triton may use
either, and a file without kernel names contains the op's name, ``MatMul``. Kernels for devices older than Volta, the
first with tensor cores, are left out: ``maxwell_sgemm``."""
_DEFAULT_STREAMS = (0, 7)
"""CUPTI numbers a context's default stream 7, some writers use 0."""
_TO_DEVICE, _TO_HOST = COPY_KINDS.index("HtoD"), COPY_KINDS.index("DtoH")
_PAGEABLE = MEMORY_KINDS.index("Pageable")


def _moved(device: Device, rows: Mask) -> str:
    """The amount of data that ``rows`` copy, for copies of known size."""
    known = rows & (device.copied_bytes >= 0)
    total = size_text(int(device.copied_bytes[known].sum())) if known.any() else "data of unknown size"
    return f"{total} and more" if known.any() and (rows & ~known).any() else total


def _longest(device: Device, rows: Mask) -> tuple[str, ...]:
    """Evidence: kernels or copies with their number, time and op."""
    return tuple(
        f"{kind}: {counted('{} time[|s]', times)}, {time_text(spent)} on {device.name}{_mostly_in(device, rows, kind)}"
        for kind, times, spent in device.by_name(rows)[:_EVIDENCE]
    )


def _mostly_in(device: Device, rows: Mask, kind: str) -> str:
    """The op that launched most of ``kind``, if ops are known."""
    op, share = device.busiest_op(rows, kind)
    return "" if op == kind else f", {share:.0%} of it in {op}"


@checker("tracer_losses")
def tracer_losses(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """The tracer lost or set apart something, or the step's file could not be read whole."""
    ledger = activity.step.ledger
    losses = ledger.losses()
    if losses:
        figures = (f"{name} = {count}" for name, count in sorted(ledger.as_dict().items()) if count)
        line = f"these findings are incomplete: {'; '.join(losses)}"
        yield Advice(Severity.WRONG, line, tuple(figures))


@checker("launch_bound", idle_share=0.2, latency_micros=20)
def launch_bound(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """The GPU idles because the host launches too late."""
    for device in activity.devices:
        idle = device.idle
        # A launch takes effect after some microseconds. An activity that starts this soon has not waited in a queue,
        # unless it belongs to the same graph launch as the activity before it.
        row = idle.ended_by
        is_soon = device.start[row] - device.scheduled[row] <= 1000 * limits["latency_micros"]
        before = np.maximum(row - 1, 0)
        is_launched_alone = (row <= 0) | (device.scheduled[row] != device.scheduled[before])
        prompt = np.where(is_soon & is_launched_alone, idle.causes.queued, 0)
        late = idle.causes.unlaunched + idle.causes.latency + prompt
        waited = int(late.sum())
        if waited and waited >= limits["idle_share"] * device.window_ns:
            line = (
                f"{device.name} idles {time_text(int(idle.lengths.sum()))} and for {time_text(waited)} of that the "
                f"host launches too late ({waited / device.window_ns:.0%} of {device.window_name}); "
                "batch launches in a CUDA graph or launch ahead"
            )
            yield Advice(Severity.HIGH, line, (_causes(idle.causes, prompt), *_longest_waits(device, late)))


def _causes(idle: IdleCauses, prompt: Ints) -> str:
    """The parts of the idle time, which add up to it. ``prompt`` is the part of ``queued`` without a queue."""
    parts = {
        "the host has not launched": idle.unlaunched,
        "the launch takes effect": idle.latency + prompt,
        "the host waits in a synchronizing call": idle.synchronizing,
        "launched ahead and waiting for something else": idle.queued - prompt,
        "the launch is not in the trace": idle.unknown,
        "nothing follows": idle.tail,
    }
    return "idle: " + ", ".join(f"{cause} {time_text(int(part.sum()))}" for cause, part in parts.items() if part.any())


def _longest_waits(device: Device, waited: Ints) -> tuple[str, ...]:
    worst = np.argsort(-waited, kind="stable")[:_EVIDENCE]
    return tuple(
        f"{time_text(int(waited[each]))} before {device.op_of(int(device.idle.ended_by[each]))}"
        for each in worst.tolist()
        if waited[each]
    )


@checker("draining_synchronizations", count=3)
def draining_synchronizations(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """The host waits until a device has nothing left to do."""
    if not activity.synchronizations:
        return
    starts = np.array([start for start, _, _ in activity.synchronizations])
    ends = np.array([end for _, end, _ in activity.synchronizations])
    for device in activity.devices:
        idle = device.idle
        nearest = np.searchsorted(starts, idle.begins, side="right") - 1
        follows = (idle.ended_by >= 0) & (device.scheduled[idle.ended_by] >= ends[nearest])
        inside = (nearest >= 0) & (idle.begins > device.window[0]) & (idle.begins <= ends[nearest]) & follows
        drained = int(inside.sum())
        if drained >= max(limits["count"], 1):
            calls = [activity.synchronizations[each][2] for each in nearest[inside].tolist()]
            evidence = (f"{name}: {counted('{} time[|s]', calls.count(name))}" for name in sorted(set(calls)))
            lost = int((idle.causes.synchronizing + idle.causes.latency)[inside].sum())
            line = (
                f"{counted('{} synchronisation[|s] let[s|]', drained)} {device.name} run dry, which costs "
                f"{time_text(lost)} in all until the host goes on and a launch takes effect; wait for events, or later"
            )
            yield Advice(Severity.HIGH, line, tuple(evidence))


@checker("exposed_communication", share=0.2)
def exposed_communication(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Devices exchange data while they compute nothing."""
    for device in activity.devices:
        communication, busy = device.times.ran(WorkClass.COMMUNICATION), device.times.busy_ns
        exposed = device.times.ran(WorkClass.COMMUNICATION, without=[WorkClass.COMPUTE])
        if exposed and exposed >= limits["share"] * busy:
            line = (
                f"{device.name} computes nothing during {time_text(exposed)} of the {time_text(communication)} "
                f"in which it communicates ({exposed / busy:.0%} of the time that it is busy); launch communication "
                "earlier, beside kernels that do not need it, or send less"
            )
            yield Advice(Severity.HIGH, line, _longest(device, device.is_communication))


@checker("dominating_kernel", share=0.5)
def dominating_kernel(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """One kernel takes most of the kernel time."""
    for device in activity.devices:
        ranked = device.by_name(device.is_kernel)
        total = sum(spent for _, _, spent in ranked)
        if len(ranked) > 1 and total and ranked[0][2] >= limits["share"] * total:
            kernel, times, spent = ranked[0]
            line = f"{kernel} takes {spent / total:.0%} of the kernel time of {device.name}; look there first"
            yield Advice(
                Severity.MEDIUM, line, (f"{counted('{} time[|s]', times)}, {time_text(spent)} of {time_text(total)}",)
            )


@checker("pageable_copies", micros=100)
def pageable_copies(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Copies from or to pageable memory are staged and hold the host up."""
    for device in activity.devices:
        pageable = device.is_copy & ((device.work.src_kind == _PAGEABLE) | (device.work.dst_kind == _PAGEABLE))
        spent = int(device.duration[pageable].sum())
        if pageable.any() and spent >= limits["micros"] * 1000:
            line = (
                f"{_moved(device, pageable)} copied in {time_text(spent)} with pageable host memory on {device.name}; "
                "pin that memory"
            )
            yield Advice(Severity.MEDIUM, line, _longest(device, pageable))


@checker("copies_could_overlap", share=0.1)
def copies_could_overlap(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Copies run while no kernel does."""
    for device in activity.devices:
        if not device.is_kernel.any() or not device.is_copy.any():
            continue
        copies = device.is_copy & ~device.is_peer_copy
        alone = _time_alone(device, copies)
        if alone and alone >= limits["share"] * device.window_ns:
            line = (
                f"copies of {time_text(alone)} on {device.name} run beside no kernel ({alone / device.window_ns:.0%} "
                f"of {device.window_name}); put them on a stream of their own"
            )
            yield Advice(Severity.MEDIUM, line, _longest(device, copies))


def _time_alone(device: Device, rows: Mask) -> int:
    """The time in which at least one of ``rows`` runs and no kernel does."""
    union = device.union(rows)
    return union.length - union.overlap(device.union(device.is_kernel))


@checker("peer_copies", share=0.05)
def peer_copies(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Copies between devices run while no kernel does."""
    for device in activity.devices:
        peers = device.is_peer_copy
        if not peers.any():
            continue
        alone = _time_alone(device, peers)
        if alone and alone >= limits["share"] * device.window_ns:
            moved = _moved(device, peers)
            line = (
                f"copies between devices keep {device.name} from computing for {time_text(alone)} "
                f"({alone / device.window_ns:.0%} of {device.window_name}, {moved}); send pieces while others are "
                "computed"
            )
            yield Advice(Severity.MEDIUM, line, (*_longest(device, peers), *_ways(device, peers)))


def _ways(device: Device, peers: Mask) -> list[str]:
    """The source and target devices of ``peers``, if they are known."""
    ends = zip(device.work.src_device_id[peers].tolist(), device.work.dst_device_id[peers].tolist(), strict=True)
    return sorted(f"gpu:{source} to gpu:{target}" for source, target in set(ends) if source >= 0 and target >= 0)


@checker("copies_through_host", count=3, from_bytes=4096)
def copies_through_host(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Data is copied from one device to the host and from there to another device."""
    if len(activity.devices) < 2:
        return
    downs = [each for device in activity.devices for each in _copies(device, _TO_HOST, limits["from_bytes"])]
    ups = [each for device in activity.devices for each in _copies(device, _TO_DEVICE, limits["from_bytes"])]
    waiting: dict[int, dict[str, deque[int]]] = {}  # size -> device -> places of its copies in order of time
    pairs: list[tuple[str, str, int, str]] = []
    timed = [(end, 0, num_bytes, device, op) for _, end, num_bytes, device, op in downs]
    timed += [(start, 1, num_bytes, device, op) for start, _, num_bytes, device, op in ups]
    for place, (_, is_up, num_bytes, device, op) in enumerate(sorted(timed)):
        if not is_up:
            waiting.setdefault(num_bytes, {}).setdefault(device, deque()).append(place)
            continue
        others = [(own[0], each) for each, own in waiting.get(num_bytes, {}).items() if own and each != device]
        if others:
            _, source = min(others)
            waiting[num_bytes][source].popleft()
            pairs.append((source, device, num_bytes, op))
    if len(pairs) >= max(limits["count"], 1):
        moved = sum(num_bytes for _, _, num_bytes, _ in pairs)
        line = f"{size_text(moved)} go from device to device through the host; copy between them directly"
        ways = Counter((source, target) for source, target, _, _ in pairs)
        evidence = (
            f"{source} to {target}: {counted('{} time[|s]', number)}"
            for (source, target), number in sorted(ways.items())
        )
        yield Advice(Severity.MEDIUM, line, tuple(evidence))


def _copies(device: Device, kind: int, from_bytes: float) -> list[tuple[int, int, int, str, str]]:
    """(start, end, bytes, device, op) of the device's copies of a kind and size."""
    of_kind = device.is_copy & (device.work.copy_kind == kind)
    rows = np.flatnonzero(of_kind & (device.copied_bytes >= from_bytes)).tolist()
    return [
        (int(device.start[row]), int(device.end[row]), int(device.copied_bytes[row]), device.name, device.op_of(row))
        for row in rows
    ]


@checker("small_copies", count=20, below_bytes=65536)
def small_copies(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Many copies that cost more to launch than to do."""
    for device in activity.devices:
        is_known = device.copied_bytes >= 0
        small = device.is_copy & is_known & (device.copied_bytes < limits["below_bytes"])
        if int(small.sum()) >= max(limits["count"], 1):
            line = (
                f"{counted('{} cop[y|ies]', int(small.sum()))} below {size_text(limits['below_bytes'])} on "
                f"{device.name}; gather them into one"
            )
            yield Advice(Severity.MEDIUM, line, _longest(device, small))


@checker("repeated_copies", count=3, from_bytes=4096)
def repeated_copies(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """The same op uploads the same amount again and again."""
    for device in activity.devices:
        uploads = device.is_copy & (device.work.copy_kind == _TO_DEVICE)
        uploads &= device.copied_bytes >= limits["from_bytes"]
        keys = np.stack([device.name_id[uploads], device.copied_bytes[uploads]], axis=1)
        kinds, counts = np.unique(keys, axis=0, return_counts=True)
        again = [
            (int(times), op_and_kernel(device.names[name_id])[0], num_bytes)
            for (name_id, num_bytes), times in zip(kinds.tolist(), counts.tolist(), strict=True)
            if times >= max(limits["count"], 2)
        ]
        if again:
            again.sort(key=lambda row: (-row[0] * row[2], row[1]))
            moved = sum((times - 1) * num_bytes for times, _, num_bytes in again)
            line = (
                f"{size_text(moved)} to {device.name} are uploads of one op and size again; keep what does not change"
            )
            evidence = (
                f"{op}: {counted('{} time[|s]', times)} {size_text(num_bytes)}"
                for times, op, num_bytes in again[:_EVIDENCE]
            )
            yield Advice(Severity.MEDIUM, line, tuple(evidence))


@checker("small_grids", blocks=64, share=0.2)
def small_grids(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Kernels of too few blocks to give every multiprocessor work."""
    for device in activity.devices:
        small = device.is_compute & (device.grid_blocks > 0) & (device.grid_blocks < limits["blocks"])
        yield from _share_of_kernel_time(
            device,
            small,
            limits["share"],
            f"kernels of fewer than {limits['blocks']:.0f} blocks take",
            "give them more work or run some at once",
        )


@checker("tensor_core_free_matmuls", share=0.1)
def tensor_core_free_matmuls(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Matrix products whose kernels do not use tensor cores, by their names."""
    for device in activity.devices:
        plain = np.array([bool(_PLAIN_MATMUL.search(kernel)) for kernel in device.kernel_names], bool)[device.name_id]
        yield from _share_of_kernel_time(
            device,
            plain & device.is_kernel,
            limits["share"],
            "matrix products without tensor cores (by their kernels' names) take",
            "use TF32, half precision, or sizes that are multiples of 8",
        )


def _share_of_kernel_time(device: Device, rows: Mask, share: float, take: str, remedy: str) -> Iterator[Advice]:
    """Advice if ``rows`` take at least a share of the time of all kernels."""
    spent, total = int(device.duration[rows].sum()), int(device.duration[device.is_kernel].sum())
    if spent and spent >= share * total:
        line = f"{take} {spent / total:.0%} of the kernel time of {device.name}; {remedy}"
        yield Advice(Severity.MEDIUM, line, _longest(device, rows))


@checker("default_stream", activities=10)
def default_stream(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Kernels and copies all wait in the default stream."""
    for device in activity.devices:
        mine = {name: load for name, load in activity.stream_loads.items() if name.startswith(f"{device.name}/")}
        busy = [name for name, (count, _) in mine.items() if count]
        mixed = device.is_kernel.any() and device.is_copy.any()
        if len(busy) == 1 and stream_of(busy[0]) in _DEFAULT_STREAMS and mixed and len(device) >= limits["activities"]:
            line = f"all {len(device)} activities of {device.name} are in the default stream; copies could run beside"
            yield Advice(Severity.NOTE, line, (f"{busy[0]}: {time_text(mine[busy[0]][1])}",))
