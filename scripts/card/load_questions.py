"""Questions about many launches: the threads of completions, lost time stamps, the ring of a recorder, NVTX ranges."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from asked_card import compiled
from notes import Notes, counted
from raw_cupti import FORCE, NO_FORCE, PER_THREAD_BUFFERS, POOL_LIMIT, SUCCESS

if TYPE_CHECKING:
    from asked_card import Card

LAUNCHES = 2_000_000
RING_SECONDS = 12.0
SMALL_BUFFER = 32 << 10
NVTX_TURNS, NVTX_ROUNDS, NVTX_BATCH = 4_000, 8, 500


def completing_threads(notes: Notes, card: Card, part: str) -> None:
    """The threads that call the completion callback, by what the program did then."""
    cupti = card.cupti
    before = cupti.attribute(PER_THREAD_BUFFERS, is_flag=True)
    flag = {"off": 0, "on": 1}[part]
    result = cupti.set_flag(PER_THREAD_BUFFERS, flag)
    cupti.collect("CONCURRENT_KERNEL", "DRIVER", buffer_bytes=SMALL_BUFFER)
    cuda = card.cuda
    main = threading.get_native_id()
    names = {main: "the main thread"}
    notes.did(
        f"PER_THREAD_ACTIVITY_BUFFER was {before}, set to {flag}: {cupti.name_of(result)}. Buffers of {SMALL_BUFFER} "
        "bytes; 2000 launches from the main thread and from another one, cuCtxSynchronize, 0.3 s without calls, "
        "flushes from a third thread, cuptiActivityFlushPeriod(50) and 0.3 s without calls, flushes from the main "
        "thread"
    )

    def launch() -> None:
        cuda.use()
        cuda.launch_empty(2_000, cuda.stream())

    def in_thread(name: str, body: Any) -> None:
        def run() -> None:
            names[threading.get_native_id()] = name
            body()

        thread = threading.Thread(target=run, name=name)
        thread.start()
        thread.join()

    def flush_both() -> None:
        for phase, how in (("flush(0) from a third thread", NO_FORCE), ("flush(1) from a third thread", FORCE)):
            cupti.phase = phase
            cupti.flush(how)

    cupti.phase = "launches of the main thread"
    launch()
    cupti.phase = "launches of another thread"
    in_thread("another launching thread", launch)
    cupti.phase = "cuCtxSynchronize"
    cuda.synchronize()
    cupti.phase = "0.3 s without calls"
    time.sleep(0.3)
    in_thread("the third thread", flush_both)
    cupti.phase = "launches before the periodic flush"
    launch()
    cuda.synchronize()
    cupti.phase = "periodic flush"
    notes.saw(f"cuptiActivityFlushPeriod(50): {cupti.name_of(cupti.call('cuptiActivityFlushPeriod', 50))}")
    time.sleep(0.3)
    cupti.call("cuptiActivityFlushPeriod", 0)
    for phase, how in (("flush(0) from the main thread", NO_FORCE), ("flush(1) from the main thread", FORCE)):
        cupti.phase = phase
        cupti.flush(how)
    seen = Counter(
        (
            buffer.phase,
            names.get(buffer.thread_id) or f"a thread named {buffer.thread_name!r} ({buffer.thread_id - main:+})",
        )
        for buffer in cupti.completed
    )
    notes.table(("while", "completed by", "buffers"), ((*where, count) for where, count in seen.items()))
    by_thread = Counter(who for (_, who), count in seen.items() for _ in range(count))
    asking = Counter(
        {names.get(thread, f"thread {thread - main:+}"): count for thread, count in cupti.requested_by.items()}
    )
    notes.saw(
        f"{len(cupti.completed)} buffers: {counted(by_thread)}; requested: {counted(asking)}",
        completed_by=by_thread, requested_by=asking,
    )  # fmt: skip
    counts = cupti.counts()
    notes.saw(f"records: {counted(counts)}; dropped {cupti.dropped()}", records=counts)


def _launcher(card: Card) -> Any:
    """The benchmarks' program, which launches from C++."""
    import _program

    os.environ[_program._LIBRARY] = str(_program.build_launcher(card.folder))
    return _program.Program()


def zero_stamps(notes: Notes, card: Card, part: str) -> None:
    """Launches at full speed, and the kernels without a time."""
    import collector

    launches = 20_000 if card.is_simulated else LAUNCHES
    notes.did(
        f"DEVICE_BUFFER_POOL_LIMIT {card.cupti.attribute(POOL_LIMIT)}; {launches} empty kernels from C++ inside "
        "collector.trace(kinds=('kernels',)), waiting after every 1000"
    )
    program = _launcher(card)
    free = program.cuda.free_memory()
    with collector.trace(strict=True, kinds=("kernels",)) as step:
        took = program.launch(launches)
        free_later = program.cuda.free_memory()
    recording = step.recording
    kernels, invalid = recording.kernels, recording.invalid.kernels
    durations = np.sort(kernels.end_ns - kernels.start_ns)
    zero = int(((invalid.start_ns == 0) | (invalid.end_ns == 0)).sum())
    reversed_ = len(invalid) - zero
    notes.saw(
        f"{len(kernels)} kernels with times, {zero} with start or end 0, {reversed_} with the end before the start; "
        f"launches took {took.mean():.0f} ns on average, 99 % less than {np.quantile(took, 0.99):.0f} ns",
        kernels=len(kernels), zero=zero, reversed=reversed_, launches=launches,
    )  # fmt: skip
    if len(durations):
        shares = (0, 0.01, 0.5, 0.99, 0.9999, 1)
        quantiles = ", ".join(f"{share:.2%} {np.quantile(durations, share):.0f}" for share in shares)
        notes.saw(f"durations in ns by share of the kernels: {quantiles}; 0 ns: {int((durations == 0).sum())}")
    notes.saw(f"free memory of the card fell by {(free - free_later) >> 20} MiB during the launches")
    notes.saw(f"losses: {'; '.join(step.ledger.losses()) or 'none'}", losses=step.ledger.losses())


def ring(notes: Notes, card: Card, part: str) -> None:
    """A recorder while kernels are launched at full speed."""
    import collector

    seconds, keep = (2.0, "4MB") if card.is_simulated else (RING_SECONDS, "64MB")
    program = _launcher(card)
    notes.did(
        f"collector.record(keep={keep!r}) with its default kinds, empty kernels from C++ at full speed for "
        f"{seconds:.0f} s, then a dump"
    )
    folder = card.folder / "dumps"
    recorder = collector.record(keep=keep, folder=folder, strict=True)
    free = program.cuda.free_memory()
    rows, launched, begin = [], 0, time.monotonic()
    report_after = 0.0
    while (passed := time.monotonic() - begin) < seconds:
        if passed >= report_after:
            rows.append((f"{passed:.1f}", launched, *_sizes(card, program, free)))
            report_after = passed + seconds / 8
        program.launch(20_000)
        launched += 20_000
    rows.append((f"{time.monotonic() - begin:.1f}", launched, *_sizes(card, program, free)))
    dump = recorder.dump(reason="end")
    recorder.stop()
    notes.table(("s", "launched", "RSS MiB", "memory of the card MiB", "ring MiB"), rows)
    if dump is None:
        notes.saw("nothing was dumped", launched=launched)
        return
    step = collector.load(dump.journal)
    ledger = step.ledger
    notes.saw(
        f"{launched} launches, {launched / seconds / 1000:.0f} k/s; in the dump {ledger.kernels} kernels of "
        f"{ledger.launches_seen} launches, {ledger.launches_cut} launches cut, {ledger.rows_forgotten} rows forgotten, "
        f"{ledger.invalid_timestamps} with impossible times; buffers requested {ledger.buffers_requested}, "
        f"declined {ledger.buffers_declined}, "
        f"outstanding {ledger.buffers_outstanding}",
        launched=launched, kernels=ledger.kernels, launches_seen=ledger.launches_seen,
        forgotten=ledger.rows_forgotten, invalid=ledger.invalid_timestamps, cut=ledger.launches_cut,
        rss_mib=[row[2] for row in rows],
    )  # fmt: skip
    notes.saw(f"losses: {'; '.join(ledger.losses()) or 'none'}", losses=ledger.losses())


def _sizes(card: Card, program: Any, free: int) -> tuple[int, int, int]:
    """The memory of this process and of the card, and the size of the ring's files, in MiB."""
    import _program

    files = [path for path in card.folder.rglob("*.journal") if path.is_file()]
    on_disk = sum(path.stat().st_size for path in files)
    return _program.resident("VmRSS") >> 20, (free - program.cuda.free_memory()) >> 20, on_disk >> 20


def _nvtx_library(card: Card, notes: Notes) -> ctypes.CDLL | None:
    """nvtx_program.c, compiled; notes why that is impossible."""
    from nvtx_headers import include_folder, write_cuda_types

    include = include_folder("nvToolsExtCuda.h")
    if include is None:
        notes.saw("there are no NVTX headers here")
        return None
    options = [f"-I{include}"]
    if not (include / "cuda.h").exists():
        write_cuda_types(card.folder)
        options.append(f"-I{card.folder}")
    library = card.folder / "nvtx_program.so"
    if trouble := compiled("nvtx_program.c", library, *options):
        notes.saw(trouble)
        return None
    loaded = ctypes.CDLL(str(library))
    loaded.launch_in_ranges.restype = ctypes.c_double
    return loaded


def nvtx_cost(notes: Notes, card: Card, part: str) -> None:
    """The time of launches with and without a range around each, with several tools."""
    import collector
    from collector import _native

    os.environ.pop("NVTX_INJECTION64_PATH", None)
    options: dict[str, Any] | None = None
    kinds: tuple[str, ...] = ()
    if part == "libcupti, MARKER":
        os.environ["NVTX_INJECTION64_PATH"] = card.cupti_path
        kinds = ("CONCURRENT_KERNEL", "DRIVER", "EXTERNAL_CORRELATION", "MARKER", "MARKER_DATA")
    elif part == "libcupti, no ranges":
        kinds = ("CONCURRENT_KERNEL", "DRIVER", "EXTERNAL_CORRELATION")
    elif part == "collector, handler":
        os.environ["NVTX_INJECTION64_PATH"] = _native.capture_library()
        options = {"nvtx": True}
    elif part == "collector, no ranges":
        options = {"nvtx": False}
    library = _nvtx_library(card, notes)
    if library is None:
        return
    if kinds:
        cupti = card.cupti
        cupti.register(4 << 20)
        refused = {kind: cupti.name_of(code) for kind, code in cupti.enable(*kinds).items() if code != SUCCESS}
        if refused:
            notes.saw(f"refused: {refused}")
    cuda = card.cuda
    function, stream = card.function("empty_kernel"), ctypes.c_void_p(card.stream())
    launch = ctypes.cast(card.driver.library.cuLaunchKernel, ctypes.c_void_p)
    synchronize = ctypes.cast(card.driver.library.cuCtxSynchronize, ctypes.c_void_p)
    turns = 500 if card.is_simulated else NVTX_TURNS

    def measured() -> dict[int, float]:
        best = {0: float("inf"), 1: float("inf")}
        for _ in range(NVTX_ROUNDS):
            for ranges in best:
                took = library.launch_in_ranges(launch, synchronize, function, stream, turns, NVTX_BATCH, ranges)
                if took < 0:
                    raise RuntimeError(f"a launch failed with {-took:.0f}")
                best[ranges] = min(best[ranges], took)
        return best

    notes.did(
        f"{turns} launches in C, with and without nvtxRangePushA and nvtxRangePop around each, {NVTX_ROUNDS} rounds "
        "by turns, the lowest; the waits after every 500 are not timed"
    )
    if options is None:
        best = measured()
    else:
        with collector.trace(strict=True, kinds=("kernels", "driver_api", "external_correlations"), **options) as step:
            best = measured()
        recording = step.recording
        named = sum(bool(name) for name in recording.annotations_of(recording.kernels))
        notes.saw(f"{len(recording.kernels)} kernels recorded, {named} with the name of a range", named=named)
    if kinds:
        card.cupti.flush(FORCE)
        notes.saw(f"records: {counted(card.cupti.counts())}")
    notes.saw(
        f"launch alone {best[0]:.0f} ns, push, launch and pop {best[1]:.0f} ns: {best[1] - best[0]:.0f} ns per range",
        alone=best[0], with_range=best[1], range=best[1] - best[0],
    )  # fmt: skip
    cuda.synchronize()


def stream_names(notes: Notes, card: Card, part: str) -> None:
    """The stream id and the name of streams that a program names by NVTX."""
    import collector
    from collector import _native
    from collector.recording.stream_names import stream_names as names_of

    is_ours = part == "collector"
    os.environ["NVTX_INJECTION64_PATH"] = _native.capture_library() if is_ours else card.cupti_path
    library = _nvtx_library(card, notes)
    if library is None:
        return
    tool = "the collector" if is_ours else "libcupti, with the kinds CONCURRENT_KERNEL, NAME and MARKER"
    notes.did(f"nvtxNameCuStreamA on two streams, and 3 and 5 kernels on them; the tool of NVTX is {tool}")
    if not is_ours:
        card.cupti.register()
        enabled = card.cupti.enable("CONCURRENT_KERNEL", "NAME", "MARKER")
        notes.saw(", ".join(f"{kind}: {card.cupti.name_of(code)}" for kind, code in enabled.items()))
    cuda = card.cuda
    streams = [cuda.stream() for _ in range(2)]

    def work() -> None:
        for stream, count, name in zip(streams, (3, 5), (b"compute", b"copies"), strict=True):
            library.name_stream(ctypes.c_void_p(int(stream)), name)
            cuda.launch_empty(count, stream)
        cuda.synchronize()

    if is_ours:
        with collector.trace(strict=True, nvtx=True) as step:
            work()
        recording = step.recording
        counts = Counter(recording.kernels.stream_id.tolist())
        named = {place[2]: name for place, name in names_of(recording).items()}
        facts = _native.nvtx_status()
        notes.saw(
            f"kernels by stream id: {counted(counts)}; names: {named}; ids of the handler (context, stream): "
            f"{facts['stream_names']}, unknown {facts['names_unknown']}",
            kernels=dict(counts), names=named,
        )  # fmt: skip
        return
    work()
    card.cupti.flush(FORCE)
    counts = Counter(record.u32(48) for record in card.cupti.records("CONCURRENT_KERNEL"))
    found = [
        (record.u32(4), record.u32(8), record.u32(12), record.u32(16), record.text(24))
        for record in card.cupti.records("NAME")
    ]
    notes.saw(f"kernels by stream id: {counted(counts)}; {len(found)} NAME records", kernels=dict(counts))
    notes.table(("object kind", "device or process", "context or thread", "stream", "name"), found)


def traced_step(notes: Notes, card: Card, part: str) -> None:
    """A small step with the libcupti that the environment names: through the collector, or directly."""
    if part == "raw":
        cupti = card.cupti
        notes.saw(f"cuptiGetVersion {cupti.version()}", version=cupti.version())
        subscriber = ctypes.c_void_p()
        subscribed = cupti.call("cuptiSubscribe", ctypes.byref(subscriber), cupti.callback(), None)
        cupti.register()
        enabled = cupti.enable("CONCURRENT_KERNEL", "DRIVER", "MEMCPY")
        results = {"cuptiSubscribe": subscribed, **enabled}
        notes.saw(", ".join(f"{name} {cupti.name_of(result)}" for name, result in results.items()))
        card.work()
        notes.saw(f"cuptiActivityFlushAll(1) {cupti.name_of(cupti.flush(FORCE))}; records {counted(cupti.counts())}")
        return
    import collector

    cuda = card.cuda
    streams = [cuda.stream() for _ in range(2)]
    memory = cuda.allocate(1 << 20)
    version = card.probe
    notes.saw(
        f"{version.get('cupti_path')}: cuptiGetVersion {version.get('cupti_api_version')}, CUDA "
        f"{version.get('cuda_version')}; available {version.get('available')} {version.get('cause', '')}",
        version=version.get("cupti_api_version"),
    )
    with cuda.pinned(1 << 20) as host, collector.trace(strict=True) as step:
        for index in range(200):
            with collector.annotate(f"layer{index % 4}"):
                cuda.copy_to_device(memory, host, 4096, streams[index % 2])
                cuda.launch_empty(2, streams[index % 2])
        with cuda.captured(streams[0]) as graphs:
            cuda.launch_empty(20, streams[0])
        for _ in range(5):
            cuda.launch_graph(graphs[0], streams[0])
    ledger = step.ledger
    named = sum(bool(name) for name in step.recording.annotations_of(step.recording.kernels))
    notes.saw(
        f"kernels {ledger.kernels} of 500, copies {len(step.memcpys)} of 200, {named} kernels with an annotation, "
        f"losses: {'; '.join(ledger.losses()) or 'none'}",
        kernels=ledger.kernels, copies=len(step.memcpys), losses=ledger.losses(),
    )  # fmt: skip


def torch_memory(notes: Notes, card: Card, part: str) -> None:
    """The memory operations of PyTorch's allocator, with and without expandable segments."""
    if card.is_simulated:
        notes.saw("not asked: PyTorch needs a card")
        return
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = f"expandable_segments:{part == 'expandable segments'}"
    try:
        import torch
    except ImportError as error:
        notes.saw(f"not asked: {error}")
        return
    import collector
    from collector.options import KINDS

    notes.did(
        f"PYTORCH_CUDA_ALLOC_CONF={os.environ['PYTORCH_CUDA_ALLOC_CONF']}, torch {torch.__version__}: tensors of 40, "
        "80 and 4 MiB, one deleted, torch.cuda.empty_cache()"
    )
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    reserved = [torch.cuda.memory_reserved()]
    with collector.trace(strict=True, kinds=(*KINDS, "memory_operations")) as step:
        tensors = [torch.empty(size << 20, dtype=torch.uint8, device="cuda") for size in (40, 80, 4)]
        reserved.append(torch.cuda.memory_reserved())
        del tensors[1]
        torch.cuda.empty_cache()
        reserved.append(torch.cuda.memory_reserved())
    operations = step.recording.memory_operations
    seen = Counter(
        zip(operations.operation.tolist(), operations.memory_kind.tolist(), operations.num_bytes.tolist(), strict=True)
    )
    notes.saw(
        f"torch.cuda.memory_reserved {[size >> 20 for size in reserved]} MiB; (operation, memory kind, bytes) of "
        f"memory operations: {counted(seen)}",
        operations=len(operations),
    )
    calls = Counter(name for name in step.recording.api_calls.names() if "Mem" in name or "Alloc" in name)
    notes.saw(f"API calls: {counted(calls)}; losses: {'; '.join(step.ledger.losses()) or 'none'}")
