"""Questions about records: their sizes, the kinds that the card accepts, and the pointers in them."""

from __future__ import annotations

import ctypes
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from notes import Notes, counted
from raw_cupti import (
    CUSTOM2,
    FORCE,
    KINDS,
    SUCCESS,
    CallFailedError,
    NotOfferedError,
    kind_name,
)

if TYPE_CHECKING:
    from asked_card import Card

COMMON_KINDS = (
    "CONCURRENT_KERNEL", "MEMCPY", "MEMSET", "DRIVER", "RUNTIME", "EXTERNAL_CORRELATION", "SYNCHRONIZATION", "OVERHEAD",
)  # fmt: skip
FURTHER_KINDS = (
    "MEMORY2", "MEMORY_POOL", "DEVICE", "CONTEXT", "STREAM", "CUDA_EVENT", "JIT", "MODULE", "FUNCTION",
    "INTERNAL_LAUNCH_API", "GRAPH_HOST_NODE", "HOST_LAUNCH", "MEMCPY2", "ENVIRONMENT", "UNIFIED_MEMORY_COUNTER",
)  # fmt: skip
LAUNCH_KERNEL, DEVICE_SYNCHRONIZE = 307, 165
"""Callback ids of cuLaunchKernel (driver) and cudaDeviceSynchronize (runtime)."""
MANAGED_BYTES = 4 << 20


def machine(notes: Notes, card: Card, part: str) -> None:
    """The card, the driver and the libcupti that the collector finds."""
    found = card.probe
    notes.did("The search of sessions for libcupti")
    notes.saw(
        f"{(found.get('devices') or [{'name': 'no card'}])[0]['name']}, driver of CUDA {found.get('driver_version')}, "
        f"libcupti {found.get('cupti_path', 'none')}: cuptiGetVersion {found.get('cupti_api_version')}, CUDA "
        f"{found.get('cuda_version')} ({found.get('cupti_reason', found.get('cause'))})",
        **{key: value for key, value in found.items() if key != "strides"},
    )
    for path, cause in found.get("cupti_passed_over", []):
        notes.saw(f"passed over: {path}: {cause}")


def strides(notes: Notes, card: Card, part: str) -> None:
    """The learnt strides, cuptiActivityGetStructSize, and the distances between real records."""
    from collector.recording.schema import RECORDS

    cupti = card.cupti
    learnt = {record.kind: card.probe.get("strides", {}).get(record.name) for record in RECORDS}
    sizes: dict[int, int] = {}
    results: Counter[str] = Counter()
    for kind in range(1, len(KINDS)):
        size = ctypes.c_size_t()
        try:
            result = cupti.call("cuptiActivityGetStructSize", kind, 0, ctypes.byref(size))
        except NotOfferedError as error:
            notes.saw(str(error))
            break
        results[cupti.name_of(result)] += 1
        if result == SUCCESS:
            sizes[kind] = size.value
    if results:
        notes.saw(f"cuptiActivityGetStructSize: {counted(results)}")
    cupti.register()
    refused = {name: result for name, result in cupti.enable(*COMMON_KINDS, *FURTHER_KINDS).items() if result}
    card.work()
    cupti.flush()
    cupti.flush(FORCE)
    notes.did(
        "The strides that the decoder learns at start-up, cuptiActivityGetStructSize(kind, 0), and the distances that "
        "cuptiActivityGetNextRecord steps in buffers with records of a small program. Refused by cuptiActivityEnable: "
        + (", ".join(f"{name} {cupti.name_of(result)}" for name, result in refused.items()) or "none")
    )
    seen: dict[int, Counter[int]] = {}
    for record in cupti.records():
        seen.setdefault(record.kind, Counter())[record.num_bytes] += 1
    kinds = sorted(set(seen) | {kind for kind in learnt if kind} | set(sizes))
    header = ("kind", "decoder", "GetStructSize", "distances in buffers")
    notes.table(
        header,
        (
            (
                f"{kind_name(kind)} ({kind})", learnt.get(kind) or "", sizes.get(kind, ""),
                ", ".join(f"{distance} ({count}x)" for distance, count in sorted(seen.get(kind, {}).items())),
            )
            for kind in kinds
        ),
    )  # fmt: skip
    differing = [
        kind_name(kind)
        for kind, stride in learnt.items()
        if stride and ({stride} != set(seen.get(kind, [stride])) or stride != sizes.get(kind, stride))
    ]
    notes.saw(
        f"{len(seen)} kinds have records; the decoder's stride differs for: {', '.join(differing) or 'none'}",
        differing=differing, seen={kind_name(kind): dict(distances) for kind, distances in seen.items()},
        struct_sizes={kind_name(kind): size for kind, size in sizes.items()},
    )  # fmt: skip


class _SubscriberParams(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("subscriber_name", ctypes.c_char_p),
        ("holder_name", ctypes.c_void_p),
        ("holder_name_bytes", ctypes.c_size_t),
        ("allow_multiple", ctypes.c_uint8),
        ("padding", ctypes.c_uint8 * 31),
    )


def subscriber_sizes(notes: Notes, card: Card, part: str) -> None:
    """The sizes of CUpti_SubscriberParams that cuptiSubscribe_v2 accepts, and the holder's name in a refusal."""
    cupti = card.cupti

    def subscribe(size: int) -> tuple[int, str, ctypes.c_void_p]:
        subscriber, holder = ctypes.c_void_p(), ctypes.create_string_buffer(256)
        parameters = _SubscriberParams(size, b"gpu_questions", ctypes.addressof(holder), len(holder))
        result = cupti.call(
            "cuptiSubscribe_v2", ctypes.byref(subscriber), cupti.callback(), None, ctypes.byref(parameters)
        )
        return result, holder.value.decode(errors="replace"), subscriber

    notes.did(f"cuptiGetVersion says {cupti.version()}. cuptiSubscribe_v2 with several structSize, each unsubscribed")
    accepted = []
    for size in (0, 24, 32, 40, 48, 64):
        result, _, subscriber = subscribe(size)
        ending = ""
        if result == SUCCESS:
            accepted.append(size)
            ending = f", then cuptiUnsubscribe: {cupti.name_of(cupti.call('cuptiUnsubscribe', subscriber))}"
        notes.saw(f"structSize {size}: {cupti.name_of(result)}{ending}")
    notes.saw(f"accepted: {accepted}", accepted=accepted)
    size = accepted[0] if accepted else 32
    cupti.subscribe()
    result, holder, _ = subscribe(size)
    notes.saw(f"while cuptiSubscribe holds it: {cupti.name_of(result)}, the holder's name is {holder!r}")
    cupti.unsubscribe()
    result, _, first = subscribe(size)
    if result == SUCCESS:
        result, holder, _ = subscribe(size)
        notes.saw(f"while cuptiSubscribe_v2 holds it: {cupti.name_of(result)}, the holder's name is {holder!r}")
        notes.saw(f"cuptiActivityEnable then: {cupti.name_of(cupti.enable('MEMSET')['MEMSET'])}")
        cupti.must("cuptiUnsubscribe", first)


def accepted_kinds(notes: Notes, card: Card, part: str) -> None:
    """The result of cuptiActivityEnable for every kind, with and without a context."""
    cupti = card.cupti
    cupti.register()
    if part == "with a context":
        card.cuda.synchronize()
    notes.did(f"cuptiActivityEnable of kinds 1 to {len(KINDS) + 3}, each disabled at once, {part}")
    results = {}
    for kind in range(1, len(KINDS) + 4):
        results[kind] = cupti.call("cuptiActivityEnable", kind)
        if results[kind] == SUCCESS:
            disabled = cupti.call("cuptiActivityDisable", kind)
            if disabled != SUCCESS:
                notes.saw(f"cuptiActivityDisable({kind_name(kind)}): {cupti.name_of(disabled)}")
    accepted = [kind for kind, result in results.items() if result == SUCCESS]
    notes.saw(f"accepted: {', '.join(f'{kind_name(kind)} ({kind})' for kind in accepted)}", accepted=accepted)
    for code in sorted({result for result in results.values() if result != SUCCESS}):
        refused = [f"{kind_name(kind)} ({kind})" for kind, result in results.items() if result == code]
        notes.saw(f"{cupti.name_of(code)}: {', '.join(refused)}")


class _MemoryLocation(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _CounterConfig(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint32) for name in ("scope", "kind", "device_id", "enable"))


def provoked_records(notes: Notes, card: Card, part: str) -> None:
    """A program that provokes records of the rarer kinds, and the number of records of each kind."""
    cupti = card.cupti
    cupti.register()
    results = cupti.enable(*COMMON_KINDS, *(kind for kind in FURTHER_KINDS if kind != "UNIFIED_MEMORY_COUNTER"))
    cuda = card.cuda
    notes.did(
        "Kernels, copies, sets, an event, a captured graph, allocations; managed memory of 4 MB that the host writes, "
        "that is prefetched, that a kernel writes and the host reads; a host function on a stream; a graph with a host "
        "node; a stream that waits for another's event; a memory pool that is made, used, trimmed and destroyed; PTX "
        "that is compiled while it is loaded. Refused by cuptiActivityEnable: "
        + (", ".join(f"{kind} {cupti.name_of(result)}" for kind, result in results.items() if result) or "none")
    )
    try:
        counters = (_CounterConfig * 7)(*(_CounterConfig(1, kind, 0, 1) for kind in (1, 2, 4, 5, 6, 7, 8)))
        for count in (2, 7):  # transfers alone, and every counter
            configured = cupti.call("cuptiActivityConfigureUnifiedMemoryCounter", counters, count)
            notes.saw(
                f"cuptiActivityConfigureUnifiedMemoryCounter with {count} counters: {cupti.name_of(configured)}, "
                f"cuptiActivityEnable(UNIFIED_MEMORY_COUNTER): "
                f"{cupti.name_of(cupti.enable('UNIFIED_MEMORY_COUNTER')['UNIFIED_MEMORY_COUNTER'])}"
            )
    except NotOfferedError as error:
        notes.saw(str(error))
    card.work()
    for action in (_managed_memory, _host_functions, _waiting_streams, _memory_pool, _compiled_while_loading):
        try:
            action(card)
        except (NotOfferedError, CallFailedError) as error:
            notes.saw(f"{action.__name__.strip('_').replace('_', ' ')}: {error}")
        except Exception as error:  # the bindings' own; what the others provoke is still of interest
            notes.saw(f"{action.__name__.strip('_').replace('_', ' ')}: {type(error).__name__}: {error}")
    cuda.synchronize()
    flushed = [cupti.name_of(cupti.flush(flag)) for flag in (0, FORCE)]
    counts = cupti.counts()
    notes.saw(f"cuptiActivityFlushAll(0), (1): {', '.join(flushed)}; dropped: {cupti.dropped()}")
    notes.saw(f"records: {counted(counts)}", records=counts)
    if managed := cupti.records("UNIFIED_MEMORY_COUNTER"):
        counters_seen = Counter((record.u32(4), record.u64(8)) for record in managed)
        notes.saw(f"(counter kind, value) of UNIFIED_MEMORY_COUNTER: {counted(counters_seen)}")
    if pools := cupti.records("MEMORY2"):
        operations = Counter((record.u32(4), record.u32(8)) for record in pools)
        notes.saw(f"(operation, memory kind) of MEMORY2: {counted(operations)}")
    if waits := cupti.records("SYNCHRONIZATION"):
        notes.saw(f"type of SYNCHRONIZATION: {counted(Counter(record.u32(4) for record in waits))}")


def _managed_memory(card: Card) -> None:
    driver, stream, address = card.driver, card.stream(), ctypes.c_uint64()
    driver.must("cuMemAllocManaged", ctypes.byref(address), ctypes.c_size_t(MANAGED_BYTES), 1)
    ctypes.memset(address.value, 1, MANAGED_BYTES)
    if driver.offers("cuMemPrefetchAsync_v2"):
        location = _MemoryLocation(1, 0)
        driver.must(
            "cuMemPrefetchAsync_v2", address, ctypes.c_size_t(MANAGED_BYTES), location, 0, ctypes.c_void_p(stream)
        )
    card.cuda.launch("write_to", ctypes.c_void_p(address.value + MANAGED_BYTES // 2), stream=stream)
    card.cuda.synchronize()
    ctypes.string_at(address.value, MANAGED_BYTES)
    driver.must("cuMemFree_v2", address)


class HostNodeParams(ctypes.Structure):
    """CUDA_HOST_NODE_PARAMS."""

    _fields_ = (("function", ctypes.c_void_p), ("user_data", ctypes.c_void_p))


def host_function() -> ctypes.c_void_p:
    """A C function with one pointer as its parameter, which does nothing if that is null: free."""
    return ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p)


def _host_functions(card: Card) -> None:
    driver, stream = card.driver, ctypes.c_void_p(card.stream())
    driver.must("cuLaunchHostFunc", stream, host_function(), None)
    graph, node, executable = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    driver.must("cuGraphCreate", ctypes.byref(graph), 0)
    parameters = HostNodeParams(host_function(), None)
    driver.must("cuGraphAddHostNode", ctypes.byref(node), graph, None, ctypes.c_size_t(0), ctypes.byref(parameters))
    driver.must("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
    driver.must("cuGraphLaunch", executable, stream)
    card.cuda.synchronize()


def _waiting_streams(card: Card) -> None:
    driver, event = card.driver, ctypes.c_void_p()
    first, second = (ctypes.c_void_p(card.stream()) for _ in range(2))
    driver.must("cuEventCreate", ctypes.byref(event), 0)
    card.cuda.launch_empty(1, first.value)
    driver.must("cuEventRecord", event, first)
    driver.must("cuStreamWaitEvent", second, event, 0)
    card.cuda.launch_empty(1, second.value)
    driver.must("cuEventSynchronize", event)
    driver.must("cuStreamSynchronize", second)
    driver.must("cuEventQuery", event)
    driver.must("cuStreamQuery", second)


class _PoolProps(ctypes.Structure):
    """CUmemPoolProps: pinned device memory of device 0."""

    _fields_ = (
        ("alloc_type", ctypes.c_int), ("handle_types", ctypes.c_int), ("location", _MemoryLocation),
        ("rest", ctypes.c_uint8 * 72),
    )  # fmt: skip


def _memory_pool(card: Card) -> None:
    driver, stream = card.driver, ctypes.c_void_p(card.stream())
    pool, address = ctypes.c_void_p(), ctypes.c_uint64()
    props = _PoolProps(1, 0, _MemoryLocation(1, 0))
    driver.must("cuMemPoolCreate", ctypes.byref(pool), ctypes.byref(props))
    driver.must("cuMemAllocFromPoolAsync", ctypes.byref(address), ctypes.c_size_t(MANAGED_BYTES), pool, stream)
    driver.must("cuMemFreeAsync", address, stream)
    driver.must("cuStreamSynchronize", stream)
    driver.must("cuMemPoolTrimTo", pool, ctypes.c_size_t(0))
    driver.must("cuMemPoolDestroy", pool)


PTX = b""".version 7.0
.target sm_75
.address_size 64
.visible .entry compiled_while_loading() { ret; }
"""


def _compiled_while_loading(card: Card) -> None:
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    card.driver.must("cuModuleLoadData", ctypes.byref(module), PTX)
    card.driver.must("cuModuleGetFunction", ctypes.byref(function), module, b"compiled_while_loading")


def driver_records(notes: Notes, card: Card, part: str) -> None:
    """Records of single driver functions without the kind, and their external correlation."""
    cupti = card.cupti
    cupti.collect("CONCURRENT_KERNEL", "EXTERNAL_CORRELATION")
    if part == "the function alone":
        alone = cupti.enable_function("Driver", LAUNCH_KERNEL)
        twin = cupti.enable_function("Runtime", DEVICE_SYNCHRONIZE)
        notes.did(
            f"cuptiActivityEnableDriverApi(cuLaunchKernel, 1): {cupti.name_of(alone)}, "
            f"cuptiActivityEnableRuntimeApi(cudaDeviceSynchronize, 1): {cupti.name_of(twin)}; the kinds DRIVER and "
            "RUNTIME are not enabled, CONCURRENT_KERNEL and EXTERNAL_CORRELATION are"
        )
    else:
        notes.did(f"cuptiActivityEnable(DRIVER): {cupti.name_of(cupti.enable('DRIVER')['DRIVER'])}, for comparison")
    cuda = card.cuda
    stream = cuda.stream()
    cupti.must("cuptiActivityPushExternalCorrelationId", CUSTOM2, ctypes.c_uint64(77))
    cuda.launch_empty(10, stream)
    cuda.synchronize()
    cupti.must("cuptiActivityPopExternalCorrelationId", CUSTOM2, None)
    if not card.is_simulated:
        try:
            from cuda.bindings import runtime

            runtime.cudaDeviceSynchronize()
        except ImportError as error:
            notes.saw(f"no call of the runtime was made: {error}")
    cupti.flush()
    cupti.flush(FORCE)
    counts = cupti.counts()
    calls = Counter(cupti.callback_name(record) for record in cupti.records("DRIVER", "RUNTIME"))
    launched = {record.u32(92) for record in cupti.records("CONCURRENT_KERNEL")}
    linked = {record.u32(16) for record in cupti.records("EXTERNAL_CORRELATION") if record.u64(8) == 77}
    notes.saw(f"after 10 launches with external id 77: {counted(counts)}; calls: {counted(calls)}", records=counts)
    notes.saw(
        f"{len(launched & linked)} of {len(launched)} kernels have an EXTERNAL_CORRELATION record with 77",
        linked=len(launched & linked), kernels=len(launched),
    )  # fmt: skip


def device_name(notes: Notes, card: Card, part: str) -> None:
    """The memory that the name pointer of a DEVICE record points into."""
    cupti = card.cupti
    cupti.collect("DEVICE")
    card.cuda.synchronize()
    cupti.flush(FORCE)
    dumped = cupti.call("cuptiActivityEnableAndDump", KINDS.index("DEVICE"))
    cupti.flush(FORCE)
    notes.did(
        "DEVICE enabled before the context was made, then cuptiActivityEnableAndDump(DEVICE): "
        f"{cupti.name_of(dumped)}. cuptiGetVersion says {cupti.version()}"
    )
    records = cupti.records("DEVICE")
    addresses = [record.u64(136) for record in records]
    notes.saw(f"{len(records)} records, {len(set(addresses))} different name pointers", records=len(records))
    usable = ctypes.CDLL(None).malloc_usable_size
    usable.restype, usable.argtypes = ctypes.c_size_t, [ctypes.c_void_p]
    for record, address in zip(records, addresses, strict=True):
        place = mapping_of(address)
        notes.saw(f"{record.text(136)!r} at {address:#x}, in {place}", mapping=place)
        if place == "[heap]" or place.startswith("anonymous"):
            notes.saw(f"malloc_usable_size of it: {usable(address)}, with {len(record.text(136)) + 1} bytes of text")


def mapping_of(address: int) -> str:
    """The mapping that contains an address: ``[heap]``, ``anonymous rw-p``, or a file."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, flags, _, _, _, *name = line.split(maxsplit=5)
        begin, end = (int(each, 16) for each in span.split("-"))
        if begin <= address < end:
            return name[0] if name else f"anonymous {flags}"
    return "no mapping"


def hardware_trace(notes: Notes, card: Card, part: str) -> None:
    """The result of switching the hardware's own tracing on."""
    notes.did("cuptiActivityEnableHWTrace(1) before the context is made, then kernels as usual")
    result = card.cupti.call("cuptiActivityEnableHWTrace", ctypes.c_uint8(1))
    notes.saw(f"cuptiActivityEnableHWTrace(1): {card.cupti.name_of(result)}", result=result)
    card.cupti.collect("CONCURRENT_KERNEL")
    card.cuda.launch_empty(10, card.cuda.stream())
    card.cuda.synchronize()
    card.cupti.flush(FORCE)
    notes.saw(f"records of 10 launches after it: {counted(card.cupti.counts())}")
