"""Exports of Nsight Systems: the figures of recorded ones, their quirks, and files that are damaged or hostile."""

from __future__ import annotations

import contextlib
import gzip
import json
import sqlite3
from collections import Counter, defaultdict
from functools import cache, cached_property

import numpy as np
import pytest

import collector
from collector.cli import main
from collector.formats.file_content import FileContent
from collector.recording.cupti_enums import COPY_KINDS, DEGREE_WHOLE_GRAPH
from collector.recording.intervals import Union
from tests.support.recorded_traces import database_in, read_nsys

RECORDINGS = {
    "h100_2gpu_1s": (1632, 2092, 4368),
    "mfu_2gpu_before": (3986, 5268, 5299),
    "mfu_2gpu_after": (3577, 4717, 4733),
    "mock": (2, 0, 3),
    "healthy_judged_1pct": (20, 0, 20),
}
"""Recording -> kernels whose call was recorded, activities launched in an NVTX range, all activities."""
WORK = {"kernel": "kernels", "memcpy": "memcpys", "memset": "memsets"}

KERNELS = "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, demangledName INTEGER"
CALLS = "start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER"
RANGES = "start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, textId INTEGER"


class RecordedExport:
    """A recorded export, the part of counts.json about it, and its recording."""

    def __init__(self, path, truth):
        self.path = path
        self.truth = truth

    @cached_property
    def recording(self):
        """Read once for all tests, none of which changes it."""
        return collector.load(self.path).recording


@pytest.fixture(scope="module")
def recorded(shared):
    """A recorded export by its name."""
    folder = shared / "data" / "gpu_traces"
    counts = json.loads((folder / "counts.json").read_text())

    @cache
    def get(name):
        file = f"nsys_ai/{name}.sqlite.gz"
        return RecordedExport(folder / file, counts[file]["gpu"])

    return get


@pytest.fixture
def export(tmp_path):
    """Writes an export: table -> its columns and its rows."""

    def write(tables, name="step.sqlite"):
        path = tmp_path / name
        with sqlite3.connect(path) as database:
            for table, (columns, rows) in tables.items():
                database.execute(f"CREATE TABLE {table} ({columns})")
                places = ", ".join("?" * len(columns.split(",")))
                database.executemany(f"INSERT INTO {table} VALUES ({places})", rows)
        database.close()
        return path

    return write


def strings(*texts):
    return "id INTEGER, value TEXT", list(enumerate(texts, start=1))


def global_id(process, thread=0):
    return (1 << 48) | (process << 24) | thread


# --- recorded ones


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_figures_of_a_recorded_export(recorded, name):
    recording, truth = recorded(name).recording, recorded(name).truth
    found = defaultdict(Counter)
    for kind, table_name in WORK.items():
        table = getattr(recording, table_name)
        for device, stream, nanos in zip(
            table.device_id.tolist(), table.stream_id.tolist(), (table.end_ns - table.start_ns).tolist(), strict=True
        ):
            found[str(device), str(stream)].update({f"{kind}_count": 1, f"{kind}_ns": nanos})
    for row in truth["per_stream"]:
        expected = {key: value for key, value in row.items() if key not in ("device", "stream")}
        assert found.pop((row["device"], row["stream"])) == expected
    assert not found
    copies = recording.memcpys
    for number, kind in enumerate(COPY_KINDS):
        rows = copies.copy_kind == number
        if rows.any():
            expected = truth["memcpy_by_kind"][kind]
            assert int(rows.sum()) == expected["count"]
            assert int(copies.num_bytes[rows].sum()) == expected["bytes"]
    assert len(np.unique(recording.kernels.name_id)) == truth["distinct_kernel_names"]


@pytest.mark.parametrize("name", RECORDINGS)
def test_busy_time_of_each_device_of_a_recorded_export(recorded, name):
    recording, truth = recorded(name).recording, recorded(name).truth
    for device, expected in truth["per_device"].items():
        tables = [recording.kernels, recording.memcpys, recording.memsets]
        own = [table.device_id == int(device) for table in tables]
        starts = np.concatenate([table.start_ns[rows] for table, rows in zip(tables, own, strict=True)])
        ends = np.concatenate([table.end_ns[rows] for table, rows in zip(tables, own, strict=True)])
        assert Union.of(starts, ends).length == expected["all_gpu_work"]["busy_ns"]


@pytest.mark.parametrize("name", RECORDINGS)
def test_calls_and_ranges_of_a_recorded_export(recorded, name):
    recording = recorded(name).recording
    with_call, in_range, activities = RECORDINGS[name]
    assert int(np.isin(recording.kernels.correlation_id, recording.api_calls.correlation_id).sum()) == with_call
    work = np.concatenate([getattr(recording, table).correlation_id for table in WORK.values()])
    assert len(work) == activities
    assert int(np.isin(work, recording.external_correlations.correlation_id).sum()) == in_range


@pytest.mark.medium
@pytest.mark.parametrize("name", ["h100_2gpu_1s", pytest.param("mfu_2gpu_after", marks=pytest.mark.slow)])
def test_an_op_is_the_innermost_range_open_where_its_launch_was_called(recorded, tmp_path, name):
    path = recorded(name).path
    unpacked = tmp_path / "export.sqlite"
    unpacked.write_bytes(gzip.decompress(path.read_bytes()))
    with sqlite3.connect(unpacked) as database:
        texts = dict(database.execute("SELECT id, value FROM StringIds"))
        calls = database.execute(
            "SELECT start, globalTid, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME ORDER BY start DESC"
        ).fetchall()
        ranges = defaultdict(list)
        for start, end, thread, text, number in database.execute(
            "SELECT start, end, globalTid, text, textId FROM NVTX_EVENTS WHERE eventType = 59"
        ):
            ranges[thread].append((start, end, (text or texts[number]).split(", seq =")[0].split(", op_id =")[0]))
        kernels = database.execute(
            "SELECT k.start, k.globalPid >> 24, correlationId, s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k "
            "JOIN StringIds s ON s.id = k.demangledName"
        ).fetchall()
    database.close()
    called = {(thread >> 24, number): (start, thread) for start, thread, number in calls}
    expected = Counter()
    for _, process, number, kernel in kernels:
        start, thread = called.get((process, number), (0, 0))
        open_ranges = [each for each in ranges[thread] if each[0] <= start <= each[1]]
        expected[kernel, max(open_ranges)[2] if open_ranges else ""] += 1
    recording = recorded(name).recording
    assert (
        Counter(zip(recording.kernels.recorded_names(), recording.annotations_of(recording.kernels), strict=True))
        == expected
    )


def test_processes_are_kept_apart(recorded):
    """82 correlation ids of this recording occur in both of its processes."""
    trace = read_nsys(recorded("mfu_2gpu_after").path)
    by_process = Counter(activity.correlation[0] for activity in trace.of("kernel"))
    recording = recorded("mfu_2gpu_after").recording
    assert sorted(Counter(recording.kernels.context_id.tolist()).values()) == sorted(by_process.values())
    assert len(np.unique(recording.kernels.correlation_id)) == len(
        {activity.correlation for activity in trace.of("kernel")}
    )


@pytest.mark.medium
@pytest.mark.parametrize("name", ["mfu_2gpu_before", "mock"])
def test_no_facts_about_user_and_machine_are_taken_over(recorded, tmp_path, name):
    path = recorded(name).path
    for output in ("step.pb", "step.json", "step.gpurec"):
        assert main(["timeline", str(path), "-o", str(tmp_path / output)]) == 0
    said = json.dumps(dict(recorded(name).recording.environment)) + (tmp_path / "step.json").read_text()
    unpacked = tmp_path / "export.sqlite"
    unpacked.write_bytes(gzip.decompress(path.read_bytes()))
    with sqlite3.connect(unpacked) as database:
        (host,), (user,) = (
            database.execute("SELECT value FROM META_DATA_EXPORT WHERE name = ?", (key,)).fetchone()
            for key in ("EXPORT_HOST", "EXPORT_USER")
        )
        arguments = [value for (value,) in database.execute("SELECT value FROM META_DATA_CAPTURE") if "/" in str(value)]
    database.close()
    assert not [text for text in (host, user, *arguments) if len(text) > 4 and text in said]


def test_a_device_with_its_attributes(recorded):
    recording = recorded("mock").recording
    (device,) = recording.devices
    assert recording.devices.recorded_names() == ["NVIDIA GeForce RTX 3080"]
    assert (device.num_multiprocessors, device.compute_major, device.compute_minor) == (68, 8, 6)
    assert (device.memory_kilobytes_per_s, device.core_clock_khz) == (760_080_000, 1_710_000)
    (context,) = recording.contexts
    assert (context.process_id, context.null_stream_id) == (91186, 7)
    assert sorted(recording.streams.priority.tolist()) == [-5, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_an_export_is_never_in_memory_as_a_whole(export, monkeypatch, pack):
    path = export({
        "StringIds": ("id INTEGER, value TEXT", [(1, "k")]),
        "CUPTI_ACTIVITY_KIND_KERNEL": (
            "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, "
            "demangledName INTEGER",
            [(10, 15, 0, 7, 3, 1)] * 20_000,
        ),
    })  # fmt: skip
    path.write_bytes(pack(path.read_bytes()))
    assert path.stat().st_size > 1 << 16 or pack is gzip.compress

    def refuse(_):
        raise AssertionError("all of the file was read into memory")

    monkeypatch.setattr(FileContent, "data", property(refuse))
    assert len(collector.load(path).recording.kernels) == 20_000


def test_what_has_no_columns_is_counted(recorded):
    recording = recorded("mock").recording
    assert recording.ledger.source_counters["nodes_without_columns"] == 25
    assert recording.environment["rows_without_columns"] == {"PROFILER_OVERHEAD": 25}


@pytest.mark.parametrize("suffix", [".gpurec", ".pb"])
def test_an_export_survives_our_own_formats(recorded, tmp_path, suffix):
    given = recorded("mfu_2gpu_before").recording
    given.save(tmp_path / f"step{suffix}")
    again = collector.load(tmp_path / f"step{suffix}").recording
    for table in (*WORK.values(), "api_calls", "annotations", "synchronizations"):
        for column in ("start_ns", "end_ns"):
            assert np.array_equal(getattr(getattr(again, table), column), getattr(getattr(given, table), column))
    assert again.annotations_of(again.kernels) == given.annotations_of(given.kernels)


# --- made ones


GPUS = "id INTEGER, name TEXT, cuDevice INTEGER, smCount INTEGER"


def devices_of(path):
    devices = collector.load(path).recording.devices
    return dict(zip(devices.device_id.tolist(), devices.recorded_names(), strict=True))


def test_a_device_has_the_number_that_cuda_gives_it(export):
    path = export({
        "StringIds": strings("k"),
        "CUPTI_ACTIVITY_KIND_KERNEL": (KERNELS, [(10, 15, 0, 7, 1, 1)]),
        "TARGET_INFO_GPU": (GPUS, [(2, "fast", 0, 108), (1, "slow", 1, 24), (0, "screen", 2, 8)]),
    })  # fmt: skip
    assert devices_of(path) == {0: "fast", 1: "slow", 2: "screen"}


def test_a_process_may_see_devices_under_other_numbers(export):
    """As with ``CUDA_VISIBLE_DEVICES=2,0``."""
    gpus = [(0, "first", 0, 108), (1, "second", 1, 24), (2, "third", 2, 8)]
    path = export({
        "StringIds": strings("k"),
        "CUPTI_ACTIVITY_KIND_KERNEL": (KERNELS, [(10, 15, 0, 7, 1, 1)]),
        "TARGET_INFO_GPU": (GPUS, gpus),
        "TARGET_INFO_CUDA_DEVICE": ("gpuId INTEGER, cudaId INTEGER, pid INTEGER", [(2, 0, 41), (0, 1, 41), (2, 0, 42)]),
    })  # fmt: skip
    assert devices_of(path) == {0: "third", 1: "first"}  # no process saw the second one
    (third, first) = collector.load(path).recording.devices
    assert (third.num_multiprocessors, first.num_multiprocessors) == (8, 108)


def test_a_device_without_a_gpu_in_the_export_has_no_attributes(export):
    path = export({
        "StringIds": strings("k"),
        "CUPTI_ACTIVITY_KIND_KERNEL": (KERNELS, [(10, 15, 0, 7, 1, 1)]),
        "TARGET_INFO_GPU": (GPUS, [(0, "first", 0, 108)]),
        "TARGET_INFO_CUDA_DEVICE": ("gpuId INTEGER, cudaId INTEGER, pid INTEGER", [(None, 1, 41), (7, 0, 41)]),
    })  # fmt: skip
    assert devices_of(path) == {0: "first"}
    assert not collector.load(path).skipped


def test_an_early_export(export):
    """Devices, default streams and the version are in tables that later versions no longer write."""
    gpus = "name TEXT, deviceId INTEGER, pid INTEGER, globalMemoryBandwidth INTEGER, globalMemorySize INTEGER, "
    gpus += "coreClockRate INTEGER, numMultiprocessors INTEGER, computeCapabilityMajor INTEGER, "
    gpus += "computeCapabilityMinor INTEGER, numThreadsPerWarp INTEGER, maxWarpsPerMultiprocessor INTEGER, "
    gpus += "maxSharedMemoryPerMultiprocessor INTEGER, maxRegistersPerMultiprocessor INTEGER"
    contexts = "streamId INTEGER, hwId INTEGER, vmId INTEGER, processId INTEGER, deviceId INTEGER, contextId INTEGER"
    path = export({
        "StringIds": strings("k"),
        "EXPORT_META_DATA": ("name TEXT, value TEXT", [("EXPORT_PRODUCT_VERSION", "2020.4.1.117")]),
        "CUPTI_ACTIVITY_KIND_KERNEL": (
            f"{KERNELS}, contextId INTEGER, globalPid INTEGER", [(10, 15, 1, 7, 1, 1, 1, global_id(41))]
        ),
        "TARGET_INFO_GPU": ("vmId INTEGER, deviceId INTEGER, name TEXT", [(1, 0, "V100"), (1, 0, "A100")]),
        "TARGET_INFO_CUDA_GPU": (gpus, [
            ("V100", 0, 41, 0, 32_510, 1_380_000, 80, 7, 0, 32, 64, 98_304, 65_536),
            ("A100", 1, 41, 1_555_200_000, 42_505_273_344, 1_410_000, 108, 8, 0, 32, 64, 167_936, 65_536),
            ("A100", 1, 42, 1_555_200_000, 42_505_273_344, 1_410_000, 108, 8, 0, 32, 64, 167_936, 65_536),
        ]),
        "TARGET_INFO_CUDA_NULL_STREAM": (contexts, [(7, 0, 1, 41, 1, 1)]),
    })  # fmt: skip
    recording = collector.load(path).recording
    assert recording.environment["source"] == "Nsight Systems 2020.4.1.117"
    assert devices_of(path) == {0: "V100", 1: "A100"}
    first, second = recording.devices
    assert (first.memory_bytes, second.memory_bytes) == (32_510 << 20, 42_505_273_344)  # early versions count MiB
    assert (second.memory_kilobytes_per_s, second.core_clock_khz) == (1_555_200_000, 1_410_000)
    assert (second.num_multiprocessors, second.compute_major, second.threads_per_warp) == (108, 8, 32)
    assert (second.max_warps_per_multiprocessor, second.max_registers_per_multiprocessor) == (64, 65_536)
    (context,) = recording.contexts
    (kernel,) = recording.kernels
    assert (context.context_id, context.device_id, context.null_stream_id) == (kernel.context_id, 1, 7)
    assert context.process_id == 41


ATTRIBUTES = {
    "memory_bytes": ("totalMemory", "globalMemorySize"),
    "constant_bytes": ("constantMemory", "constantMemorySize"),
    "l2_bytes": ("l2CacheSize", "l2CacheSize"),
    "threads_per_warp": ("threadsPerWarp", "numThreadsPerWarp"),
    "num_copy_engines": ("asyncEngines", "numMemcpyEngines"),
    "num_multiprocessors": ("smCount", "numMultiprocessors"),
    "max_ipc": ("maxIPC", "maxIPC"),
    "max_warps_per_multiprocessor": ("maxWarpsPerSm", "maxWarpsPerMultiprocessor"),
    "max_blocks_per_multiprocessor": ("maxBlocksPerSm", "maxBlocksPerMultiprocessor"),
    "max_shared_bytes_per_multiprocessor": ("maxShmemPerSm", "maxSharedMemoryPerMultiprocessor"),
    "max_registers_per_multiprocessor": ("maxRegistersPerSm", "maxRegistersPerMultiprocessor"),
    "max_registers_per_block": ("maxRegistersPerBlock", "maxRegistersPerBlock"),
    "max_shared_bytes_per_block": ("maxShmemPerBlock", "maxSharedMemoryPerBlock"),
    "max_threads_per_block": ("maxThreadsPerBlock", "maxThreadsPerBlock"),
    "max_block_x": ("maxBlockDimX", "maxBlockDimX"),
    "max_block_y": ("maxBlockDimY", "maxBlockDimY"),
    "max_block_z": ("maxBlockDimZ", "maxBlockDimZ"),
    "max_grid_x": ("maxGridDimX", "maxGridDimX"),
    "max_grid_y": ("maxGridDimY", "maxGridDimY"),
    "max_grid_z": ("maxGridDimZ", "maxGridDimZ"),
    "compute_major": ("computeMajor", "computeCapabilityMajor"),
    "compute_minor": ("computeMinor", "computeCapabilityMinor"),
}
"""Column of a device -> its name in an export, and in an early one."""


@pytest.mark.parametrize("is_early", [False, True], ids=["later", "up to 2021"])
def test_every_attribute_of_a_device_is_in_its_column(export, is_early):
    names = [of_export[is_early] for of_export in ATTRIBUTES.values()]
    values = [*range(1 << 25, (1 << 25) + len(names) - 2), 9, 3]  # so many bytes are no MiB
    columns = ", ".join(["name TEXT", "deviceId INTEGER", "pid INTEGER", *(f"{name} INTEGER" for name in names)])
    gpus = {"TARGET_INFO_CUDA_GPU": (columns, [("A", 0, 41, *values)])}
    gpus["TARGET_INFO_GPU"] = "vmId INTEGER, deviceId INTEGER, name TEXT", [(1, 0, "A")]
    if not is_early:
        gpus = {"TARGET_INFO_GPU": (columns.replace("deviceId", "id"), [("A", 0, 41, *values)])}
    work = {"StringIds": strings("k"), "CUPTI_ACTIVITY_KIND_KERNEL": (KERNELS, [(10, 15, 0, 7, 1, 1)])}
    (device,) = collector.load(export(work | gpus)).recording.devices
    assert {name: getattr(device, name) for name in ATTRIBUTES} == dict(zip(ATTRIBUTES, values, strict=True))


def test_the_smallest_export(export):
    path = export({"StringIds": strings("k"), "CUPTI_ACTIVITY_KIND_KERNEL": (KERNELS, [(10, 15, 0, 7, 1, 1)])})
    step = collector.load(path)
    (kernel,) = step.recording.kernels
    assert (kernel.end_ns - kernel.start_ns, kernel.stream_id) == (5, 7)
    assert step.kernels.recorded_names() == ["k"]
    assert repr(step) == f"<Step '{path}': Nsight Systems export, kernels: 1>"


@pytest.mark.parametrize("name", ["a?mode=rwc#b%20.sqlite", "é ö.sqlite"])
def test_a_name_that_would_mean_something_in_a_uri(export, name):
    path = export({"StringIds": strings("k"), "CUPTI_ACTIVITY_KIND_KERNEL": (KERNELS, [(10, 15, 0, 7, 1, 1)])}, name)
    assert len(collector.load(path).kernels) == 1


def test_an_export_without_kernels_is_a_step_without_kernels(export):
    path = export({"StringIds": strings("cudaFree_v3020"), "CUPTI_ACTIVITY_KIND_RUNTIME": (CALLS, [(1, 2, 3, 4, 1)])})
    recording = collector.load(path).recording
    assert len(recording.kernels) == 0
    assert recording.api_calls.recorded_names() == ["cudaFree"]


def test_an_export_without_rows_of_cuda_is_not_taken_for_a_trace_of_this_process(export, capsys):
    path = export({"StringIds": strings("k"), "CUPTI_ACTIVITY_KIND_KERNEL": (KERNELS, [])})
    assert collector.load(path).ledger.losses() == [
        "nothing was recorded: the traced process had no activity of the recorded kinds"
    ]
    assert main(["summary", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "the file has no GPU work" in " ".join(printed.split())
    assert "this process" not in printed


def test_launches_of_graphs_that_were_traced_as_a_whole(export, tmp_path):
    columns = "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, greenContextId INTEGER, "
    columns += "streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphId INTEGER, graphExecId INTEGER"
    process = global_id(77)
    launches = [(10_000 * n, 10_000 * n + 9_000, 0, 1, None, 7, 11 + n, process, 5, 6) for n in range(1, 11)]
    launches.append((120_000, 121_000, 1, 1, None, 7, 22, process, 8, None))
    calls = [(10_000 * n - 1_000, 10_000 * n - 500, global_id(77, 77), 11 + n, 2) for n in range(1, 11)]
    tables = {
        "StringIds": strings("k", "cudaGraphLaunch_v10000", "cudaLaunchKernel_v7000"),
        "CUPTI_ACTIVITY_KIND_KERNEL": (f"{KERNELS}, globalPid INTEGER", [(2_000, 3_000, 0, 7, 11, 1, process)]),
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (columns, launches),
        "CUPTI_ACTIVITY_KIND_RUNTIME": (CALLS, [(1_000, 1_500, global_id(77, 77), 11, 3), *calls]),
        "NVTX_EVENTS": (RANGES, [(9_200, 9_800, 59, "unrelated", global_id(77, 77), None),
                                 (8_900, 18_500, 59, "replay", global_id(77, 77), None)]),
    }  # fmt: skip
    given = collector.load(export(tables))
    given.save(tmp_path / "step.gpurec")
    for step in (given, collector.load(tmp_path / "step.gpurec")):
        found = step.recording.graph_launches
        assert (found.end_ns - found.start_ns).tolist() == [9_000] * 10 + [1_000]
        assert found.graph_id.tolist() == [6] * 10 + [8]  # the executable graph, where it is stated
        assert found.device_id.tolist() == found.end_device_id.tolist() == [0] * 10 + [1]
        assert set(found.stream_id.tolist()) == {7}
        assert found.annotations() == ["replay", *[""] * 10]
        assert (found.graph_degree == DEGREE_WHOLE_GRAPH).all()
        assert not found.num_nodes.any()
        assert step.recording.arguments.of_row("graph_launches", 0) == {"graphId": "5"}
        assert step.recording.arguments.of_row("graph_launches", 10) == {}
        assert step.ledger.launches_without_kernel == 0
        assert step.ledger.complete
    assert "rows_without_columns" not in given.recording.environment


def test_records_of_cuda_events_and_the_waits_for_them(export, tmp_path):
    events = "timestamp INTEGER, deviceId INTEGER, contextId INTEGER, greenContextId INTEGER, streamId INTEGER, "
    events += "correlationId INTEGER, globalPid INTEGER, eventId INTEGER, eventSyncId INTEGER"
    waits = "start INTEGER, end INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, "
    waits += "globalPid INTEGER, syncType INTEGER, eventId INTEGER, eventSyncId INTEGER"
    path = export({
        "StringIds": strings("k"),
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT": (events, [
            (0, 0, 1, None, 7, 12, global_id(41), 4, 1), (0, 1, 1, None, 7, 12, global_id(42), 4, 1),
        ]),
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (waits, [
            (3_000, 9_500, 1, 4294967295, 13, global_id(41), 1, 4, 1),
            (3_000, 9_600, 1, 4294967295, 13, global_id(42), 1, 4, 1),
            (3_000, 9_700, 1, 7, 14, global_id(42), 3, 4294967295, 0),
        ]),
    })  # fmt: skip
    given = collector.load(path)
    given.save(tmp_path / "step.gpurec")
    for step in (given, collector.load(tmp_path / "step.gpurec")):
        events_of = {row.device_id: row for row in step.recording.cuda_events}
        waits_of = {row.end_ns - row.start_ns: row for row in step.recording.synchronizations}
        for device, length in ((0, 6_500), (1, 6_600)):
            event, wait = events_of[device], waits_of[length]
            assert (event.event_id, event.event_sync_id) == (wait.event_id, wait.event_sync_id)
            assert (event.context_id, event.stream_id) == (wait.context_id, 7)
        for column in ("event_id", "event_sync_id", "context_id", "correlation_id"):
            assert len({getattr(event, column) for event in events_of.values()}) == 2, column
        assert (waits_of[6_700].event_id, waits_of[6_700].event_sync_id) == (4294967295, 0)  # no event
    assert "rows_without_columns" not in given.recording.environment


def test_waits_have_no_event_where_the_export_does_not_state_it(export):
    waits = "start INTEGER, end INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, syncType INTEGER"
    path = export({
        "StringIds": strings("k"),
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (waits, [(3_000, 9_500, 1, 7, 13, 3)]),
    })  # fmt: skip
    (wait,) = collector.load(path).recording.synchronizations
    assert (wait.event_id, wait.event_sync_id) == (2**32 - 1, 0)


@pytest.mark.parametrize(
    ("device", "event", "stream", "wait_event"),
    [(4, 1, 3, 2), (1, 2, 3, 3), (0, 1, 2, 2)],
    ids=["CUPTI's numbers", "to 2024.1", "2024.5, 2024.6, and later in WSL"],
)
def test_a_wait_is_of_the_type_that_its_call_names(export, tmp_path, device, event, stream, wait_event):
    waits = "start INTEGER, end INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, syncType INTEGER"
    calls = ("cudaDeviceSynchronize_v3020", "cudaEventQuery_v3020", "cuStreamSynchronize", "cudaStreamWaitEvent_v3020",
             "cudaProfilerStop_v4000")  # fmt: skip
    types = (device, event, stream, wait_event, device)
    path = export({
        "StringIds": strings(*calls),
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (waits, [
            *((10 * row, 10 * row + 5, 1, 7, row, number) for row, number in enumerate(types, start=1)),
            (60, 65, 1, 7, 0, event), (70, 75, 1, 7, 99, 8),
        ]),
        "CUPTI_ACTIVITY_KIND_RUNTIME": (CALLS, [(10 * row, 10 * row + 6, 77, row, row) for row in range(1, 6)]),
    })  # fmt: skip
    given = collector.load(path)
    given.save(tmp_path / "step.gpurec")
    for step in (given, collector.load(tmp_path / "step.gpurec")):
        found = {row.start_ns - step.recording.synchronizations.start_ns.min(): row.sync_type
                 for row in step.recording.synchronizations}  # fmt: skip
        # A wait without such a call has the type of other waits with its number, if there are any.
        assert [found[at] for at in range(0, 70, 10)] == [4, 1, 3, 2, 4, 1, 8]


def test_an_arrow_leads_from_the_work_before_a_record_of_an_event_to_the_wait_for_it(export):
    events = "timestamp INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, "
    events += "eventId INTEGER, eventSyncId INTEGER"
    waits = "start INTEGER, end INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, syncType INTEGER, "
    waits += "eventId INTEGER, eventSyncId INTEGER"
    path = export({
        "StringIds": strings("k", "cudaEventRecord_v3020", "cudaLaunchKernel_v7000", "cudaEventSynchronize_v3020"),
        "CUPTI_ACTIVITY_KIND_KERNEL": (f"{KERNELS}, contextId INTEGER", [(2_000, 9_000, 0, 7, 11, 1, 1)]),
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT": (events, [(0, 0, 1, 7, 12, 4, 1)]),
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (waits, [(3_000, 9_500, 1, 4294967295, 13, 1, 4, 1)]),
        "CUPTI_ACTIVITY_KIND_RUNTIME": (CALLS, [
            (1_000, 1_500, 77, 11, 3), (1_600, 1_700, 77, 12, 2), (3_000, 9_500, 77, 13, 4),
        ]),
    })  # fmt: skip
    drawn = json.loads(collector.chrome_trace(collector.load(path)))["traceEvents"]
    assert sorted(event["ph"] for event in drawn if event.get("cat") == "wait") == ["f", "s"]


def test_copies_between_gpus_have_the_contexts_of_their_own_process(export):
    columns = "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, "
    columns += "correlationId INTEGER, globalPid INTEGER, copyKind INTEGER, srcDeviceId INTEGER, srcContextId INTEGER, "
    columns += "dstDeviceId INTEGER, dstContextId INTEGER"
    recording = collector.load(
        export(
            {
                "StringIds": strings("k"),
                "CUPTI_ACTIVITY_KIND_MEMCPY": (
                    columns,
                    [
                        (10, 20, 0, 1, 7, 1, global_id(41), 10, 0, 1, 1, 2),
                        (30, 40, 1, 2, 7, 1, global_id(42), 10, 1, 2, 0, 1),
                        (50, 60, 0, 1, 7, 2, global_id(41), 1, None, None, None, None),
                    ],
                ),
            }
        )
    ).recording
    copies = recording.memcpys[np.argsort(recording.memcpys.start_ns)]
    first, second, other = copies
    assert (first.src_context_id, first.dst_context_id) == (1, 2)
    assert first.context_id == first.src_context_id
    assert second.context_id == second.src_context_id
    assert len({first.src_context_id, first.dst_context_id, second.src_context_id, second.dst_context_id}) == 4
    assert (other.context_id, other.src_context_id, other.dst_context_id) == (1, 0, 0)
    assert recording.arguments.tables == {}


def test_rows_of_every_kind_of_activity_are_counted_whatever_their_columns(export):
    recording = collector.load(
        export(
            {
                "StringIds": strings("k"),
                "CUPTI_ACTIVITY_KIND_KERNEL": (KERNELS, [(10, 20, 0, 7, 1, 1)]),
                "CUPTI_ACTIVITY_KIND_UNHEARD_OF": ("rawTimestamp INTEGER", [(1,), (2,)]),
                "OTHER": ("rawTimestamp INTEGER", [(1,)]),
            }
        )
    ).recording
    assert recording.environment["rows_without_columns"] == {"CUPTI_ACTIVITY_KIND_UNHEARD_OF": 2}


@pytest.mark.parametrize("thread", [401, 402])
def test_two_processes_with_the_same_ids(export, thread):
    columns = f"{KERNELS}, contextId INTEGER, globalPid INTEGER, graphId INTEGER"
    kernels = [(100, 110, 0, 7, 5, 1, 1, global_id(41)), (105, 120, 0, 7, 5, 2, 1, global_id(42))]
    kernels = [(*kernel, 9) for kernel in kernels]
    calls = [(10, 20, global_id(41, 401), 5, 3), (50, 60, global_id(42, thread), 5, 3)]
    ranges = [(5, 30, 59, "first", global_id(41, 401), None), (45, 70, 59, "second", global_id(42, thread), None)]
    recording = collector.load(
        export(
            {
                "StringIds": strings("a", "b", "cudaLaunchKernel_v7000"),
                "CUPTI_ACTIVITY_KIND_KERNEL": (columns, kernels),
                "CUPTI_ACTIVITY_KIND_RUNTIME": (CALLS, calls),
                "NVTX_EVENTS": (RANGES, ranges),
            }
        )
    ).recording
    assert dict(zip(recording.kernels.recorded_names(), recording.annotations_of(recording.kernels), strict=True)) == {
        "a": "first",
        "b": "second",
    }
    assert len(set(recording.kernels.context_id.tolist())) == 2
    assert recording.api_calls.process_id.tolist() == [41, 42]
    assert recording.api_calls.thread_id.tolist() == [401, 402 if thread == 402 else 1]
    assert sorted(recording.kernels.graph_id.tolist()) == [1, 9]


def test_ranges_of_emit_nvtx_have_the_name_of_their_op(export):
    texts = ["aten::mm, op_id = 31", "aten::mm, seq = 4, op_id = 32", "load, decode", "aten::mm, sizes = [[2, 3]]"]
    ranges = [(place, place + 1, 59, text, 7, None) for place, text in enumerate(texts, start=1)]
    path = export({"StringIds": strings(), "NVTX_EVENTS": (RANGES, ranges)})
    names = collector.load(path).recording.annotations.recorded_names()
    assert names == ["aten::mm", "aten::mm", "load, decode", "aten::mm"]


def test_columns_that_a_recording_lacks_are_kept_as_text(export, tmp_path):
    ranges = f"{RANGES}, domainId INTEGER, doubleValue REAL, jsonTextId INTEGER, binaryData BLOB"
    kernels = f"{KERNELS}, gridId INTEGER, tensorSizes TEXT, unused INTEGER"
    path = export({
        "StringIds": strings("k", '{"lr": 0.1}', "cudaLaunchKernel"),
        "CUPTI_ACTIVITY_KIND_KERNEL": (kernels, [
            (30, 40, 0, 7, 2, 1, 12, "[2, 3]", None),
            (10, 20, 0, 7, 1, 1, 11, None, None),
            (None, 20, 0, 7, 1, 1, 99, "no time", None),
        ]),
        "CUPTI_ACTIVITY_KIND_RUNTIME": (f"{CALLS}, callchainId INTEGER", [(5, 6, 7, 1, 3, 4)]),
        "NVTX_EVENTS": (ranges, [
            (1, 9, 59, "aten::mm, seq = 4, sizes = [[2]]", 7, None, 3, 0.5, 2, b"\0\1"),
            (2, 8, 59, "inner", 7, None, 3, None, None, None),
        ]),
    })  # fmt: skip
    given = collector.load(path)
    given.save(tmp_path / "step.gpurec")
    for step in (given, collector.load(tmp_path / "step.gpurec")):
        recording = step.recording
        assert [recording.arguments.of_row("kernels", row) for row in (0, 1)] == [
            {"gridId": "11"},
            {"gridId": "12", "tensorSizes": "[2, 3]"},
        ]
        assert recording.arguments.of_row("api_calls", 0) == {"callchainId": "4"}
        assert [recording.arguments.of_row("annotations", row) for row in (0, 1)] == [
            {
                "domainId": "3",
                "doubleValue": "0.5",
                "jsonTextId": '{"lr": 0.1}',
                "text": "aten::mm, seq = 4, sizes = [[2]]",
            },
            {"domainId": "3"},
        ]
        assert recording.environment["arguments_without_columns"] == {
            "binaryData": 1, "callchainId": 1, "domainId": 2, "doubleValue": 1, "gridId": 2, "jsonTextId": 1,
            "tensorSizes": 1, "text": 1,
        }  # fmt: skip
        assert recording.environment["arguments_not_kept"] == {"binaryData": 1}


def test_kept_columns_know_no_home_folder(export):
    ranges = f"{RANGES}, jsonText TEXT"
    path = export({"NVTX_EVENTS": (ranges, [(1, 9, 59, "in", 7, None, "/home/jane/run.py")]), "StringIds": strings()})
    assert collector.load(path).recording.arguments.of_row("annotations", 0) == {"jsonText": "~/run.py"}


def test_kept_columns_need_bounded_memory(export, monkeypatch):
    monkeypatch.setattr("collector.formats.kept_texts._MOST_OF_COLUMN", 1_000)
    rows = [(place + 1, place + 2, 0, 7, place, 1, place, "x" * (1 << 13), "same") for place in range(100)]
    columns = f"{KERNELS}, gridId INTEGER, long TEXT, same TEXT"
    recording = collector.load(
        export({"StringIds": strings("k"), "CUPTI_ACTIVITY_KIND_KERNEL": (columns, rows)})
    ).recording
    kept = recording.arguments.tables["kernels"]
    assert set(kept) == {"gridId", "same"}
    assert kept["same"].values(100) == ["same"] * 100
    assert len(kept["gridId"].rows) < 20
    assert recording.environment["arguments_not_kept"] == {"gridId": 100 - len(kept["gridId"].rows), "long": 100}
    assert set(recording.environment["arguments_without_columns"].values()) == {100}


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recorded_export_keeps_all_its_columns(recorded, name):
    recording = recorded(name).recording
    kept = recording.arguments.tables.get("kernels", {})
    with contextlib.closing(database_in(recorded(name).path)) as database:
        rows = database.execute("SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start")
        names = [column[0] for column in rows.description]
        for column in ("gridId", "sharedMemoryExecuted", "localMemoryTotal", "tensorSizeMinusOneElements"):
            if column in names:
                of_column = [
                    str(value) for (value,) in database.execute(f"SELECT {column} FROM CUPTI_ACTIVITY_KIND_KERNEL")
                ]
                assert sorted(kept[column].values(len(recording.kernels))) == sorted(of_column)
    assert not {"start", "end", "deviceId", "gridX", "correlationId"} & set(kept)


def test_marks_and_ranges_across_threads_are_counted_and_not_drawn(export):
    ranges = [(1, 9, 59, "in", 7, None), (2, None, 34, "mark", 7, None), (3, 5, 60, "across", 7, None)]
    recording = collector.load(export({"StringIds": strings(), "NVTX_EVENTS": (RANGES, ranges)})).recording
    assert recording.annotations.recorded_names() == ["in"]
    assert recording.environment["rows_without_columns"] == {"NVTX_EVENTS": 2}


def test_a_range_that_was_open_at_the_end_lasts_until_the_end(export):
    ranges = [(1, None, 59, "open", 7, None), (2, 50, 59, "inner", 7, None)]
    recording = collector.load(export({"StringIds": strings(), "NVTX_EVENTS": (RANGES, ranges)})).recording
    annotations = recording.annotations
    assert (annotations.end_ns - annotations.start_ns).tolist() == [49, 48]
    assert annotations.depth.tolist() == [0, 1]


def test_times_are_those_of_the_wall_clock_where_the_export_states_it(export):
    epoch_ns = 1_776_781_226_557_295_056
    path = export(
        {
            "StringIds": strings("k"),
            "CUPTI_ACTIVITY_KIND_KERNEL": (KERNELS, [(10, 15, 0, 7, 1, 1)]),
            "TARGET_INFO_SESSION_START_TIME": ("utcEpochNs INTEGER", [(epoch_ns,)]),
        }
    )
    (node,) = next(
        device.node_stats for device in collector.load(path).step_stats.dev_stats if device.device.endswith("/stream:7")
    )
    assert node.all_start_nanos == epoch_ns + 10


def test_the_name_of_a_thread_is_that_of_the_highest_priority(export):
    names = [(1, 7, 10), (2, 7, 20), (3, 8, 90)]
    path = export(
        {
            "StringIds": strings("python", "loader", "idle", "cudaFree"),
            "CUPTI_ACTIVITY_KIND_RUNTIME": (CALLS, [(1, 2, 7, 4, 4)]),
            "ThreadNames": ("nameId INTEGER, globalTid INTEGER, priority INTEGER", names),
        }
    )
    assert collector.load(path).recording.environment["thread_names"] == {7: "loader"}


COPIES = (
    "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, bytes INTEGER, "
    "copyKind INTEGER, srcKind INTEGER, dstKind INTEGER"
)


def test_copies_between_kinds_of_memory(export):
    copies = [(3, 4, 0, 7, 2, 64, 12, 4, 1), (5, 6, 0, 7, 3, 64, 99, 7, 42)]
    path = export({"StringIds": strings(), "CUPTI_ACTIVITY_KIND_MEMCPY": (COPIES, copies)})
    table = collector.load(path).recording.memcpys
    assert table.copy_kind.tolist() == [2, 0]
    assert table.src_kind.tolist() == [5, 0]
    assert table.dst_kind.tolist() == [2, 0]


def test_every_kind_of_copy_memory_and_overhead_has_cuptis_number(export):
    """The export numbers them in the order of CUPTI; it adds three copies of managed memory and ends with unknown."""
    copies = [(10 * kind + 1, 10 * kind + 2, 0, 7, kind, 64, kind, kind % 8, 7 - kind % 8) for kind in range(14)]
    overheads = [(10 * kind + 1, 10 * kind + 2, 7, 0, kind) for kind in range(11)]
    columns = "start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, overheadType INTEGER"
    recording = collector.load(export({
        "StringIds": strings(),
        "CUPTI_ACTIVITY_KIND_MEMCPY": (COPIES, copies),
        "CUPTI_ACTIVITY_KIND_OVERHEAD": (columns, overheads),
    })).recording  # fmt: skip
    names = ["<unknown>", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"]
    names += ["HtoD", "DtoH", "DtoD"]
    assert [COPY_KINDS[kind] for kind in recording.memcpys.copy_kind.tolist()] == names
    assert recording.memcpys.src_kind.tolist() == [1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6]
    assert recording.memcpys.dst_kind.tolist() == [0, 7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 4, 3]
    of_cupti = [1, *(65_536 * kind for kind in range(1, 9))]
    assert recording.overheads.overhead_kind.tolist() == [0, 0, *of_cupti]


def test_numbers_of_kinds_without_a_known_meaning_are_kept_as_text(export):
    """Numbers of Nsight Systems that CUPTI's numbers have no equivalent for: a newer version added them."""
    times = "start INTEGER, end INTEGER, correlationId INTEGER, globalPid INTEGER"
    recording = collector.load(export({
        "StringIds": strings(),
        "CUPTI_ACTIVITY_KIND_MEMCPY": (
            f"{times}, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER",
            [(1, 2, 1, 0, 13, 7, 0), (3, 4, 2, 0, 99, 8, 42)],
        ),
        "CUPTI_ACTIVITY_KIND_MEMSET": (f"{times}, memKind INTEGER", [(5, 6, 3, 0, 9), (7, 8, 4, 0, 2)]),
        "CUPTI_ACTIVITY_KIND_OVERHEAD": (
            "start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, overheadType INTEGER",
            [(9, 10, 7, 0, 77), (11, 12, 7, 0, 2)],
        ),
    })).recording  # fmt: skip
    kept = {table: [recording.arguments.of_row(table, row) for row in (0, 1)] for table in ("memcpys", "memsets")}
    assert kept["memcpys"] == [{}, {"copyKind": "99", "srcKind": "8", "dstKind": "42"}]
    assert kept["memsets"] == [{"memKind": "9"}, {}]
    assert [recording.arguments.of_row("overheads", row) for row in (0, 1)] == [{"overheadType": "77"}, {}]
    assert recording.overheads.overhead_kind.tolist() == [0, 1]


# --- damaged and hostile ones


def test_another_sqlite_database_is_refused_by_name(export):
    path = export({"tracks": ("title TEXT", [("Blue",)])})
    with pytest.raises(collector.InvalidFileError, match="an SQLite database, but no export of Nsight Systems"):
        collector.load(path)


def test_a_large_sqlite_database_is_looked_into_as_well(export):
    path = export({"tracks": ("title TEXT", [("Blue" * 50_000,)])})
    with pytest.raises(collector.InvalidFileError, match="no export of Nsight Systems"):
        collector.load(path)


def test_rows_without_a_time_are_counted(export):
    kernels = [(10, 15, 0, 7, 1, 1), (None, 15, 0, 7, 2, 1), ("soon", 15, 0, 7, 3, 1), (20, 25, "x", b"\xff", 4, 1)]
    step = collector.load(export({"StringIds": strings("k"), "CUPTI_ACTIVITY_KIND_KERNEL": (KERNELS, kernels)}))
    assert len(step.recording.kernels) == 2
    assert step.skipped == {"rows of CUPTI_ACTIVITY_KIND_KERNEL that cannot be read or have no possible time": 2}
    assert "not all of it could be read" in step.warning


@pytest.mark.parametrize("time", [-9 * 10**18, -(1 << 63), -(1 << 62), 1 << 62, (1 << 63) - 1, 1e300])
@pytest.mark.parametrize("column", ["start", "end"])
def test_times_whose_sum_or_difference_has_no_64_bits_are_counted(export, column, time):
    """One damaged time made windows and durations of the whole step overflow."""
    path = export(
        {
            "StringIds": strings("k"),
            "TARGET_INFO_SESSION_START_TIME": ("utcEpochNs INTEGER", [(1_700_000_000_000_000_000,)]),
            "CUPTI_ACTIVITY_KIND_KERNEL": (KERNELS, [(10, 15, 0, 7, 1, 1), (20, 25, 0, 7, 2, 1)]),
            "NVTX_EVENTS": (RANGES, [(5, 30, 59, "outer", 1, None), (6, 29, 59, "inner", 1, None)]),
        }
    )
    with contextlib.closing(sqlite3.connect(path)) as database:
        for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS"):
            database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = 2", (time,))
        database.commit()
    step = collector.load(path)
    assert (len(step.kernels), step.recording.annotations.names()) == (1, ["outer"])
    assert step.recording.clock.window_ns == 25
    assert sum(step.skipped.values()) == 2
    assert step.summary().startswith("Step of 25 ns")


def test_ids_beyond_what_columns_hold_and_negative_times(export):
    kernels = [(-50, -40, 0, 7, (1 << 63) - 1, 1), (20, 10, 1 << 40, -1, 4, 9)]
    step = collector.load(export({"StringIds": strings("k"), "CUPTI_ACTIVITY_KIND_KERNEL": (KERNELS, kernels)}))
    (kernel,) = step.recording.kernels
    assert (kernel.correlation_id, kernel.end_ns - kernel.start_ns) == (0, 10)
    assert step.ledger.invalid_timestamps == 1


def test_names_that_are_not_utf8_or_hold_anything(export):
    texts = ('a"b\n\0c', "<script>")
    path = export(
        {
            "StringIds": strings(*texts, "x"),
            "CUPTI_ACTIVITY_KIND_KERNEL": (KERNELS, [(10, 15, 0, 7, 1, 1), (20, 25, 0, 7, 2, 2), (30, 35, 0, 7, 3, 3)]),
        }
    )
    with sqlite3.connect(path) as database:
        database.execute("UPDATE StringIds SET value = CAST(x'66ff6f' AS TEXT) WHERE id = 3")
    database.close()
    assert collector.load(path).recording.kernels.recorded_names() == [*texts, "f\ufffdo"]


def test_a_view_that_would_never_end_is_not_read(export):
    path = export({"StringIds": strings("k")})
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 "
            "FROM n) SELECT start, start AS end, 0 AS deviceId, 0 AS streamId FROM n"
        )
    database.close()
    assert len(collector.load(path).recording.kernels) == 0


def test_a_damaged_page_costs_the_rows_behind_it(export):
    kernels = [(10 * n, 10 * n + 5, 0, 7, n, 1) for n in range(20_000)]
    path = export({"StringIds": strings("k"), "CUPTI_ACTIVITY_KIND_KERNEL": (KERNELS, kernels)})
    data = bytearray(path.read_bytes())
    for page in range(len(data) // 2, len(data) // 2 + 16 * 4096, 4096):
        data[page : page + 4096] = b"\xa5" * 4096
    path.write_bytes(data)
    step = collector.load(path)
    assert 0 <= len(step.recording.kernels) < 20_000
    assert any("damaged" in reason for reason in step.skipped)
    assert "not all of it could be read" in step.warning


def test_an_export_with_the_name_of_a_table_that_is_no_text_is_damaged(export):
    path = export({"StringIds": strings("k"), "CUPTI_ACTIVITY_KIND_KERNEL": (KERNELS, [(10, 15, 0, 7, 1, 1)])})
    path.write_bytes(path.read_bytes().replace(b"CUPTI_ACTIVITY", b"CUPTI_ACT\xffVITY", 1))
    with pytest.raises(collector.InvalidFileError, match=r"step\.sqlite: this is an SQLite database that is damaged"):
        collector.load(path)


def test_an_export_that_is_cut_off_says_how_much_is_missing(recorded, tmp_path):
    path, truth = recorded("mock").path, recorded("mock").truth
    data = gzip.decompress(path.read_bytes())
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(data[:-2991])
    step = collector.load(cut)
    assert len(step.recording.kernels) <= truth["kernel_count"]
    assert step.skipped["bytes cut off at the end of the file"] == 2991
    assert "not all of it could be read" in step.warning


@pytest.mark.parametrize("length", [16, 99, 100, 4000, 150_000])
def test_of_an_export_without_its_list_of_tables_nothing_is_read(recorded, tmp_path, length):
    path = recorded("mock").path
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(gzip.decompress(path.read_bytes())[:length])
    with pytest.raises(collector.InvalidFileError) as caught:
        collector.load(cut)
    assert str(caught.value).startswith(f"{cut}: this is an SQLite database")
    assert "\n" not in str(caught.value)


def test_a_report_that_was_not_exported_is_refused_with_the_command_to_export_it(tmp_path):
    path = tmp_path / "report1.nsys-rep"
    path.write_bytes(b"\xf3\x01\x07 something binary")
    with pytest.raises(collector.InvalidFileError, match="nsys export --type sqlite"):
        collector.load(path)
