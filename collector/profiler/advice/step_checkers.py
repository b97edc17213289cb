"""The checkers of recorded steps. Add one by adding a function."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping

import numpy as np

from collector.analysis.activities import WorkClass
from collector.analysis.device_times import ratio
from collector.profiler.advice.checker_registry import Advice, Gain, checker
from collector.profiler.advice.step_activity import Activity, Device, Mask
from collector.profiler.node_fields import Ints
from collector.recording.cupti_enums import COPY_KINDS, MEMORY_KINDS
from collector.recording.distinct import distinct_values
from collector.recording.idle_causes import IdleCauses
from collector.recording.intervals import Union
from collector.recording.kind_names import copy_kind_name
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
_LONG_NS = 1_000_000
"""The host launches several hundred kernels in this time: a longer gap is not the cost of launches."""


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


def _finding(device: Device, cause: str, remedy: str, time_ns: int, evidence: tuple[str, ...]) -> Advice:
    """The advice for a finding on one device; its remedy saves at most ``time_ns`` of the device's time."""
    gain = Gain(time_ns, ratio(time_ns, device.window_ns), device.window_name)
    return Advice(f"{cause}; {remedy} ({gain})", gain, evidence)


@checker("tracer_losses", rows="ledger/figure")
def tracer_losses(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """The trace lacks records, or the file of the step could not be read completely."""
    ledger = activity.step.ledger
    losses = ledger.losses()
    if losses:
        figures = (f"{name} = {count}" for name, count in sorted(ledger.as_dict().items()) if count)
        line = f"these findings are incomplete: {'; '.join(losses)}"
        yield Advice(line, None, tuple(figures))


@checker("launch_bound", rows="idle_gaps", cause="host", idle_share=0.2, latency_micros=20)
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
            cause = (
                f"{device.name} idles {time_text(int(idle.lengths.sum()))} and for {time_text(waited)} of that the "
                "host launches too late"
            )
            evidence = (_causes(idle.causes, prompt), *_longest_waits(device, late))
            yield _finding(device, cause, _earlier_launches(device, late), waited, evidence)


def _earlier_launches(device: Device, late: Ints) -> str:
    """The remedy for launches that are late by these times: most of the time decides."""
    half = int(late.sum()) / 2
    if int(late[late >= _LONG_NS].sum()) > half:
        return "most of this time the host does other work, such as loading data: do it beside the device's work"
    if int(late[device.is_in_graph[device.idle.ended_by]].sum()) > half:
        return "launch the CUDA graphs ahead, or join them to larger ones"
    return "batch launches in a CUDA graph or launch ahead"


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


@checker("draining_synchronizations", rows="idle_gaps", cause="synchronize", count=3)
def draining_synchronizations(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """The thread that launches waits until a device has nothing left to do."""
    for device in activity.devices:
        idle, waits = device.idle, device.waits
        last = waits.times.last_to_end(idle.threads, idle.begins)
        until = np.append(waits.times.ends, 0)[last]
        follows = (idle.ended_by >= 0) & (device.scheduled[idle.ended_by] >= until)
        inside = (last >= 0) & (idle.begins > device.window[0]) & (idle.begins <= until) & follows
        drained = int(inside.sum())
        if drained >= max(limits["count"], 1):
            calls = [waits.names[each] for each in waits.name_ids[last[inside]].tolist()]
            evidence = (f"{name}: {counted('{} time[|s]', calls.count(name))}" for name in sorted(set(calls)))
            lost = int((idle.causes.synchronizing + idle.causes.latency)[inside].sum())
            cause = (
                f"{counted('{} synchronisation[|s] let[s|]', drained)} {device.name} run dry until the host goes on "
                "and a launch takes effect"
            )
            are_of_events = all("EventSynchronize" in name for name in calls)
            remedy = "wait later, when more work is launched" if are_of_events else "wait for events, or later"
            yield _finding(device, cause, remedy, lost, tuple(evidence))


@checker("exposed_communication", rows="overlap/device", share=0.2)
def exposed_communication(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Devices exchange data while they compute nothing."""
    for device in activity.devices:
        communication, busy = device.times.ran(WorkClass.COMMUNICATION), device.times.busy_ns
        exposed = device.times.exposed(WorkClass.COMMUNICATION)
        if exposed and exposed >= limits["share"] * busy:
            cause = (
                f"{device.name} computes nothing during {time_text(exposed)} of the {time_text(communication)} "
                f"in which it communicates ({exposed / busy:.0%} of the time that it is busy)"
            )
            remedy = "send less"
            if device.is_compute.any():
                remedy = "launch communication earlier, beside kernels that do not need it, or send less"
            yield _finding(device, cause, remedy, exposed, _longest(device, device.is_communication))


@checker("dominating_kernel", rows="kernels/name", share=0.5)
def dominating_kernel(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """One kernel that computes takes most of the kernel time."""
    for device in activity.devices:
        total = _kernel_time(device)
        ranked = device.by_name(device.is_compute)
        is_one_of_many = len(np.unique(device.name_id[device.is_kernel])) > 1
        if is_one_of_many and ranked and total and ranked[0][2] >= limits["share"] * total:
            kernel, times, spent = ranked[0]
            is_it = np.array([each == kernel for each in device.kernel_names], bool)[device.name_id] & device.is_kernel
            yield _finding(
                device,
                f"{kernel} takes {spent / total:.0%} of the kernel time of {device.name}",
                "make it faster or launch it less",
                device.time_without(is_it, device.runs_kernels & ~is_it),
                (f"{counted('{} time[|s]', times)}, {time_text(spent)} of {time_text(total)}",),
            )


@checker("pageable_copies", rows="copies", micros=100)
def pageable_copies(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Copies from or to pageable memory are staged and hold the host up, while no kernel runs."""
    for device in activity.devices:
        pageable = _is_pageable(device)
        spent, alone = int(device.duration[pageable].sum()), device.time_without(pageable, device.runs_kernels)
        if alone and spent >= limits["micros"] * 1000:
            cause = (
                f"{_moved(device, pageable)} copied in {time_text(spent)} with pageable host memory on {device.name}"
            )
            yield _finding(device, cause, "pin that memory", alone, _longest(device, pageable))


def _is_pageable(device: Device) -> Mask:
    """The copies from or to host memory that is not pinned, for which the host waits."""
    mask: Mask = device.is_copy & ((device.work.src_kind == _PAGEABLE) | (device.work.dst_kind == _PAGEABLE))
    return mask


@checker("copies_could_overlap", rows="copies", share=0.1)
def copies_could_overlap(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Copies that could run beside kernels run while no kernel does."""
    for device in activity.devices:
        copies = device.is_copy & ~device.is_peer_copy & ~_is_pageable(device)
        if not device.is_kernel.any() or not copies.any():
            continue
        is_known = device.stream >= 0
        has_kernels = is_known & np.isin(device.stream, device.stream[device.is_kernel & is_known])
        for rows, remedy in (
            (copies & ~is_known, "let them run beside kernels, on a stream of their own"),
            (copies & has_kernels, "put them on a stream of their own"),
            (copies & is_known & ~has_kernels, "they have a stream of their own: start them before they are needed"),
        ):
            hideable = _hideable(device, rows)
            if hideable and hideable >= limits["share"] * device.window_ns:
                alone = device.time_without(rows, device.runs_kernels)
                cause = f"copies of {time_text(alone)} on {device.name} run beside no kernel"
                yield _finding(device, cause, remedy, hideable, _longest(device, rows))


def _hideable(device: Device, copies: Mask) -> int:
    """The most ns that are saved if copies run beside kernels: the shorter of the times in which only one runs."""
    return min(device.time_without(copies, device.runs_kernels), device.time_without(device.runs_kernels, copies))


@checker("peer_copies", rows="copies", share=0.05)
def peer_copies(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Copies between devices run while no kernel does."""
    for device in activity.devices:
        peers = device.is_peer_copy
        if not peers.any():
            continue
        hideable = _hideable(device, peers)
        if hideable and hideable >= limits["share"] * device.window_ns:
            alone = device.time_without(peers, device.runs_kernels)
            cause = (
                f"copies between devices ({_moved(device, peers)}) keep {device.name} from computing for "
                f"{time_text(alone)}"
            )
            evidence = (*_longest(device, peers), *_ways(device, peers))
            yield _finding(device, cause, "send pieces while others are computed", hideable, evidence)


def _ways(device: Device, peers: Mask) -> list[str]:
    """The source and target devices of ``peers``, if they are known."""
    ends = zip(device.work.src_device_id[peers].tolist(), device.work.dst_device_id[peers].tolist(), strict=True)
    return sorted(f"gpu:{source} to gpu:{target}" for source, target in set(ends) if source >= 0 and target >= 0)


@checker("copies_through_host", rows="copies", count=3, from_bytes=4096)
def copies_through_host(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Data is copied from one device to the host and from there to another device."""
    if len(activity.devices) < 2:
        return
    downs = [each for device in activity.devices for each in _copies(device, _TO_HOST, limits["from_bytes"])]
    ups = [each for device in activity.devices for each in _copies(device, _TO_DEVICE, limits["from_bytes"])]
    waiting: dict[int, dict[str, deque[int]]] = {}  # size -> device -> places of its copies in order of time
    pairs: list[tuple[str, str, int]] = []
    times: list[tuple[int, int]] = []
    timed = [(end, 0, num_bytes, device, (start, end)) for start, end, num_bytes, device, _ in downs]
    timed += [(start, 1, num_bytes, device, (start, end)) for start, end, num_bytes, device, _ in ups]
    timed.sort()
    for place, (_, is_up, num_bytes, device, span) in enumerate(timed):
        held = waiting.setdefault(num_bytes, {})
        if not is_up:
            held.setdefault(device, deque()).append(place)
        elif held.get(device):  # the device may get its own data back: the records do not show it
            held[device].popleft()
        elif others := [(own[0], each) for each, own in held.items() if own]:
            _, source = min(others)
            down = timed[held[source].popleft()]
            pairs.append((source, device, num_bytes))
            times += [down[4], span]
    if len(pairs) >= max(limits["count"], 1):
        moved = sum(num_bytes for _, _, num_bytes in pairs)
        ways = Counter((source, target) for source, target, _ in pairs)
        evidence = (
            f"{source} to {target}: {counted('{} time[|s]', number)}"
            for (source, target), number in sorted(ways.items())
        )
        copied = Union.of(*np.array(times, np.int64).T)
        longest = max(activity.devices, key=lambda device: device.window_ns)
        cause = f"{size_text(moved)} go from device to device through the host"
        yield _finding(longest, cause, "copy between them directly", copied.length, tuple(evidence))


def _copies(device: Device, kind: int, from_bytes: float) -> list[tuple[int, int, int, str, str]]:
    """(start, end, bytes, device, op) of the device's copies of a kind and size."""
    of_kind = device.is_copy & (device.work.copy_kind == kind)
    rows = np.flatnonzero(of_kind & (device.copied_bytes >= from_bytes)).tolist()
    return [
        (int(device.start[row]), int(device.end[row]), int(device.copied_bytes[row]), device.name, device.op_of(row))
        for row in rows
    ]


@checker("small_copies", rows="copies", count=20, below_bytes=65536)
def small_copies(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Many copies in one direction that cost more to launch than to do, and are not launched together."""
    for device in activity.devices:
        is_known = device.copied_bytes >= 0
        small = device.is_copy & is_known & (device.copied_bytes < limits["below_bytes"]) & ~device.is_in_graph
        for kind in distinct_values(device.work.copy_kind[small]).tolist():
            own = small & (device.work.copy_kind == kind)
            number = int(own.sum())
            if number >= max(limits["count"], 1):
                alone = device.time_without(own, device.runs_kernels)
                cause = (
                    f"{counted('{} cop[y|ies]', number)} {copy_kind_name(kind)} below "
                    f"{size_text(limits['below_bytes'])} on {device.name}"
                )
                evidence = _longest(device, own)
                yield _finding(device, cause, "gather them into one", alone + _time_to_launch(device, own), evidence)


def _time_to_launch(device: Device, rows: Mask) -> int:
    """The time in which the device waited for the launch of ``rows``, and did nothing."""
    ended_by, causes = device.idle.ended_by, device.idle.causes
    return int((causes.unlaunched + causes.latency)[(ended_by >= 0) & rows[ended_by]].sum())


@checker("repeated_copies", rows="copies", count=3, from_bytes=4096)
def repeated_copies(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """The same op uploads the same amount again and again."""
    for device in activity.devices:
        uploads = device.is_copy & (device.work.copy_kind == _TO_DEVICE)
        uploads &= device.copied_bytes >= limits["from_bytes"]
        keys = np.stack([device.name_id[uploads], device.copied_bytes[uploads]], axis=1)
        kinds, firsts, counts = np.unique(keys, axis=0, return_index=True, return_counts=True)
        again = [
            (int(times), op_and_kernel(device.names[name_id])[0], num_bytes)
            for (name_id, num_bytes), times in zip(kinds.tolist(), counts.tolist(), strict=True)
            if times >= max(limits["count"], 2)
        ]
        if again:
            again.sort(key=lambda row: (-row[0] * row[2], row[1]))
            moved = sum((times - 1) * num_bytes for times, _, num_bytes in again)
            cause = f"{size_text(moved)} of the uploads to {device.name} have the op and the size of an earlier upload"
            evidence = (
                f"{op}: {counted('{} time[|s]', times)} {size_text(num_bytes)}"
                for times, op, num_bytes in again[:_EVIDENCE]
            )
            is_again = uploads.copy()
            is_again[np.flatnonzero(uploads)[firsts]] = False
            alone = device.time_without(is_again, device.runs_kernels)
            yield _finding(device, cause, "keep data that does not change on the device", alone, tuple(evidence))


@checker("small_grids", rows="kernels/shape", blocks=64, share=0.2)
def small_grids(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Kernels of too few blocks to give every multiprocessor work."""
    for device in activity.devices:
        small = device.is_compute & (device.grid_blocks > 0) & (device.grid_blocks < limits["blocks"])
        spent, singly = _kernel_time(device), device.time_singly(small, device.runs_kernels)
        if singly and singly >= limits["share"] * spent:
            cause = (
                f"kernels of fewer than {limits['blocks']:.0f} blocks, one at a time, take {singly / spent:.0%} of the "
                f"kernel time of {device.name}"
            )
            yield _finding(device, cause, "give them more work or run some at once", singly, _longest(device, small))


@checker("tensor_core_free_matmuls", rows="tensor_cores/name", share=0.1)
def tensor_core_free_matmuls(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Matrix products whose kernels do not use tensor cores, by their names."""
    for device in activity.devices:
        plain = np.array([bool(_PLAIN_MATMUL.search(kernel)) for kernel in device.kernel_names], bool)[device.name_id]
        plain &= device.is_kernel
        spent, total = int(device.duration[plain].sum()), _kernel_time(device)
        if spent and spent >= limits["share"] * total:
            cause = (
                "matrix products without tensor cores (by their kernels' names) take "
                f"{spent / total:.0%} of the kernel time of {device.name}"
            )
            remedy = "use TF32, half precision, or sizes that are multiples of 8"
            alone = device.time_without(plain, device.runs_kernels & ~plain)
            yield _finding(device, cause, remedy, alone, _longest(device, plain))


def _kernel_time(device: Device) -> int:
    """The sum of the durations of all kernels."""
    return int(device.duration[device.is_kernel].sum())


@checker("default_stream", rows="streams", activities=10)
def default_stream(activity: Activity, limits: Limits) -> Iterator[Advice]:
    """Kernels and copies all wait in the default stream."""
    for device in activity.devices:
        mine = {name: load for name, load in activity.stream_loads.items() if name.startswith(f"{device.name}/")}
        busy = [name for name, (count, _) in mine.items() if count]
        is_default = len(busy) == 1 and stream_of(busy[0]) in _DEFAULT_STREAMS and not device.is_graph.any()
        hideable = _hideable(device, device.is_copy & ~_is_pageable(device))
        if is_default and hideable and len(device) >= limits["activities"]:
            cause = f"all {len(device)} activities of {device.name} are in the default stream"
            evidence = (f"{busy[0]}: {time_text(mine[busy[0]][1])}",)
            yield _finding(device, cause, "let copies run beside kernels, in other streams", hideable, evidence)
