"""The checkers of recorded steps. Add one by adding a function."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from collector.profiler.advice.activity import Activity, Device, Mask
from collector.profiler.advice.registry import Advice, Severity, checker

Limits = Mapping[str, float]

_EVIDENCE = 3
_MATMUL = re.compile(r"gemm|matmul|gemv", re.IGNORECASE)
_TENSOR_CORE = re.compile(r"tensorop|[hisb]mma|wgmma|xmma|_mma|16816|1688|884|_tc\b|tensor_?core", re.IGNORECASE)
_DEFAULT_STREAM = re.compile(r"/stream:(0|7)$")
"""CUPTI numbers a context's default stream 7, some writers 0."""
_PEERS = re.compile(r"gpu:\d+ to gpu:\d+")
_COMMUNICATION = re.compile(r"nccl|rccl", re.IGNORECASE)
"""Kernels that are small on purpose: they leave the multiprocessors to those that compute."""


def _time(nanoseconds: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"


def _bytes(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} bytes"


def _longest(device: Device, rows: Mask) -> tuple[str, ...]:
    """Which kernels or copies, how often, how long, where."""
    return tuple(
        f"{kind}: {times} times, {_time(spent)} on {device.name}{_mostly_in(device, rows, kind)}"
        for kind, times, spent in device.by_name(rows)[:_EVIDENCE]
    )


def _mostly_in(device: Device, rows: Mask, kind: str) -> str:
    """The op that launched most of it, where ops are known."""
    op, share = device.busiest_op(rows, kind)
    return "" if op == kind else f", {share:.0%} of it in {op}"


@checker("tracer_losses")
def tracer_losses(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """The tracer lost or set apart something, or the step's file could not be read whole."""
    ledger = activity.step.ledger
    losses = ledger.losses()
    if losses:
        figures = (f"{name} = {count}" for name, count in sorted(ledger.as_dict().items()) if count)
        line = f"what follows is not all that happened: {'; '.join(losses)}"
        yield Advice(Severity.WRONG, line, tuple(figures))


@checker("launch_bound", idle_share=0.2, latency_micros=20)
def launch_bound(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """The GPU idles because the host launches too late."""
    for device in activity.devices:
        rows, idle = device.gaps
        scheduled, start = device.scheduled[rows], device.start[rows]
        # Launched when the device was idle already, or so shortly before that it cannot have waited in a queue.
        late = (scheduled > start - idle) | (scheduled > start - 1000 * limits["latency_micros"])
        waited = int(idle[late].sum())
        if device.span_ns and waited >= limits["idle_share"] * device.span_ns:
            share = waited / device.span_ns
            worst = np.argsort(-idle[late], kind="stable")[:_EVIDENCE]
            evidence = (
                f"{_time(idle[late][each])} idle before {device.op_of(int(rows[late][each]))}"
                for each in worst.tolist()
            )
            line = (
                f"{device.name} idles {_time(waited)} ({share:.0%}) because the host launches too late; "
                "batch launches in a CUDA graph or launch ahead"
            )
            yield Advice(Severity.HIGH, line, tuple(evidence))


@checker("draining_synchronizations", count=3)
def draining_synchronizations(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """The host waits until a device has nothing left to do."""
    if not activity.synchronizations:
        return
    starts = np.array([start for start, _, _ in activity.synchronizations])
    ends = np.array([end for _, end, _ in activity.synchronizations])
    for device in activity.devices:
        rows, idle = device.gaps
        begins = device.start[rows] - idle
        nearest = np.searchsorted(starts, begins, side="right") - 1
        inside = (nearest >= 0) & (begins <= ends[nearest]) & (device.scheduled[rows] >= ends[nearest])
        drained = int(inside.sum())
        if drained >= max(limits["count"], 1):
            calls = [activity.synchronizations[each][2] for each in nearest[inside].tolist()]
            evidence = (f"{name}: {calls.count(name)} times" for name in sorted(set(calls)))
            line = (
                f"{drained} synchronisations let {device.name} run dry, {_time(int(idle[inside].sum()))} in all; "
                "wait for events, or later"
            )
            yield Advice(Severity.HIGH, line, tuple(evidence))


@checker("dominating_kernel", share=0.5)
def dominating_kernel(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """One kernel takes most of the kernel time."""
    for device in activity.devices:
        ranked = device.by_name(device.is_kernel)
        total = sum(spent for _, _, spent in ranked)
        if len(ranked) > 1 and total and ranked[0][2] >= limits["share"] * total:
            kernel, times, spent = ranked[0]
            line = f"{kernel} takes {spent / total:.0%} of the kernel time of {device.name}; look there first"
            yield Advice(Severity.MEDIUM, line, (f"{times} times, {_time(spent)} of {_time(total)}",))


@checker("pageable_copies", micros=100)
def pageable_copies(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Copies from or to pageable memory are staged and hold the host up."""
    for device in activity.devices:
        pageable = np.array(["Pageable" in label for label in device.labels], bool)[device.label_id] & device.is_copy
        spent = int(device.duration[pageable].sum())
        if pageable.any() and spent >= limits["micros"] * 1000:
            moved = _bytes(int(device.copied_bytes[pageable].sum()))
            line = f"{moved} copied in {_time(spent)} with pageable host memory on {device.name}; pin that memory"
            yield Advice(Severity.MEDIUM, line, _longest(device, pageable))


@checker("copies_could_overlap", share=0.1)
def copies_could_overlap(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Copies run while no kernel does."""
    for device in activity.devices:
        if not device.is_kernel.any() or not device.is_copy.any():
            continue
        copies = device.is_copy & ~device.is_peer_copy
        alone = int(device.duration[copies].sum()) - device.covered_ns(copies, device.is_kernel)
        if device.span_ns and alone >= limits["share"] * device.span_ns:
            line = (
                f"copies of {_time(alone)} on {device.name} run beside no kernel ({alone / device.span_ns:.0%} of the "
                "step); put them on a stream of their own"
            )
            yield Advice(Severity.MEDIUM, line, _longest(device, copies))


@checker("peer_copies", share=0.05)
def peer_copies(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Copies between devices run while no kernel does."""
    for device in activity.devices:
        peers = device.is_peer_copy
        if not peers.any():
            continue
        alone = int(device.duration[peers].sum()) - device.covered_ns(peers, device.is_kernel)
        if device.span_ns and alone >= limits["share"] * device.span_ns:
            moved = _bytes(int(device.copied_bytes[peers].sum()))
            line = (
                f"copies between devices keep {device.name} from computing for {_time(alone)} "
                f"({alone / device.span_ns:.0%} of the step, {moved}); send pieces while others are computed"
            )
            ways = sorted({found[0] for label in device.labels if (found := _PEERS.search(label))})
            yield Advice(Severity.MEDIUM, line, (*_longest(device, peers), *ways))


@checker("copies_through_host", count=3, from_bytes=4096)
def copies_through_host(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """What one device hands to the host, the host hands to another."""
    downs = [each for device in activity.devices for each in _copies(device, "MEMCPYDtoH", limits["from_bytes"])]
    ups = [each for device in activity.devices for each in _copies(device, "MEMCPYHtoD", limits["from_bytes"])]
    waiting: dict[int, list[tuple[str, str]]] = {}
    pairs: list[tuple[str, str, int, str]] = []
    timed = [(end, 0, num_bytes, device, op) for _, end, num_bytes, device, op in downs]
    timed += [(start, 1, num_bytes, device, op) for start, _, num_bytes, device, op in ups]
    for _, is_up, num_bytes, device, op in sorted(timed):
        if not is_up:
            waiting.setdefault(num_bytes, []).append((device, op))
            continue
        others = [each for each in waiting.get(num_bytes, ()) if each[0] != device]
        if others:
            waiting[num_bytes].remove(others[0])
            pairs.append((others[0][0], device, num_bytes, op))
    if len(pairs) >= max(limits["count"], 1):
        moved = sum(num_bytes for _, _, num_bytes, _ in pairs)
        line = f"{_bytes(moved)} go from device to device through the host; copy between them directly"
        ways = sorted({(source, target) for source, target, _, _ in pairs})
        evidence = (
            f"{source} to {target}: {sum(pair[:2] == (source, target) for pair in pairs)} times"
            for source, target in ways
        )
        yield Advice(Severity.MEDIUM, line, tuple(evidence))


def _copies(device: Device, kind: str, from_bytes: float) -> list[tuple[int, int, int, str, str]]:
    """(start, end, bytes, device, op) of the device's copies of a kind and size."""
    of_kind = np.array([(name.partition(":")[2] or name) == kind for name in device.names], bool)[device.name_id]
    rows = np.flatnonzero(of_kind & (device.copied_bytes >= from_bytes)).tolist()
    return [
        (int(device.start[row]), int(device.end[row]), int(device.copied_bytes[row]), device.name, device.op_of(row))
        for row in rows
    ]


@checker("small_copies", count=20, below_bytes=65536)
def small_copies(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Many copies that cost more to launch than to do."""
    for device in activity.devices:
        small = device.is_copy & (device.copied_bytes < limits["below_bytes"])
        if int(small.sum()) >= max(limits["count"], 1):
            line = (
                f"{int(small.sum())} copies below {_bytes(limits['below_bytes'])} on {device.name}; "
                "gather them into one"
            )
            yield Advice(Severity.MEDIUM, line, _longest(device, small))


@checker("repeated_copies", count=3, from_bytes=4096)
def repeated_copies(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """The same op uploads the same amount again and again."""
    for device in activity.devices:
        uploads = np.array(["MEMCPYHtoD" in name for name in device.names], bool)[device.name_id]
        uploads &= device.copied_bytes >= limits["from_bytes"]
        keys = np.stack([device.name_id[uploads], device.copied_bytes[uploads]], axis=1)
        kinds, counts = np.unique(keys, axis=0, return_counts=True)
        again = [
            (int(times), device.names[name_id].partition(":")[0], num_bytes)
            for (name_id, num_bytes), times in zip(kinds.tolist(), counts.tolist(), strict=True)
            if times >= max(limits["count"], 2)
        ]
        if again:
            again.sort(key=lambda row: (-row[0] * row[2], row[1]))
            moved = sum((times - 1) * num_bytes for times, _, num_bytes in again)
            line = f"{_bytes(moved)} to {device.name} are uploads of one op and size again; keep what does not change"
            evidence = (f"{op}: {times} times {_bytes(num_bytes)}" for times, op, num_bytes in again[:_EVIDENCE])
            yield Advice(Severity.MEDIUM, line, tuple(evidence))


@checker("small_grids", blocks=64, share=0.2)
def small_grids(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Kernels of too few blocks to give every multiprocessor work."""
    for device in activity.devices:
        communicates = np.array([bool(_COMMUNICATION.search(name)) for name in device.names], bool)
        known = device.is_kernel & (device.grid_blocks > 0) & ~communicates[device.name_id]
        small = known & (device.grid_blocks < limits["blocks"])
        spent, total = int(device.duration[small].sum()), int(device.duration[known].sum())
        if spent and spent >= limits["share"] * total:
            line = (
                f"kernels of fewer than {limits['blocks']:.0f} blocks take {spent / total:.0%} of the kernel time of "
                f"{device.name}; give them more work or run some at once"
            )
            yield Advice(Severity.MEDIUM, line, _longest(device, small))


@checker("tensor_core_free_matmuls", share=0.1)
def tensor_core_free_matmuls(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Matrix products whose kernels do not use tensor cores, by their names."""
    for device in activity.devices:
        kinds = [name.partition(":")[2] or name for name in device.names]
        plain = np.array([bool(_MATMUL.search(kind)) and not _TENSOR_CORE.search(kind) for kind in kinds], bool)
        rows = plain[device.name_id] & device.is_kernel
        spent, total = int(device.duration[rows].sum()), int(device.duration[device.is_kernel].sum())
        if spent and spent >= limits["share"] * total:
            line = (
                f"matrix products without tensor cores take {spent / total:.0%} of the kernel time of {device.name}; "
                "use TF32, half precision, or sizes that are multiples of 8"
            )
            yield Advice(Severity.MEDIUM, line, _longest(device, rows))


@checker("default_stream", activities=10)
def default_stream(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Kernels and copies all wait in the default stream."""
    for device in activity.devices:
        mine = {name: load for name, load in activity.stream_loads.items() if name.startswith(f"{device.name}/")}
        busy = [name for name, (count, _) in mine.items() if count]
        mixed = device.is_kernel.any() and device.is_copy.any()
        if len(busy) == 1 and _DEFAULT_STREAM.search(busy[0]) and mixed and len(device) >= limits["activities"]:
            line = f"all {len(device)} activities of {device.name} are in the default stream; copies could run beside"
            yield Advice(Severity.NOTE, line, (f"{busy[0]}: {_time(mine[busy[0]][1])}",))
