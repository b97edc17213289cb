"""Our traces in real viewers in headless Chromium: catapult (chrome://tracing) and Perfetto's page.

Both faces, in every format that the viewer opens. What it holds must be exactly what was written: names, slices of each
row, both ends of each arrow, each value of each counter, and nothing reported as a problem.

| timeline | `.json` | `.json.gz` | `.pftrace` |
| --- | --- | --- | --- |
| our own | both viewers | both viewers | Perfetto; catapult cannot read it |
| compatible | both viewers | the same bytes, packed by whoever asked for them | TensorFlow has no such format |
"""

from __future__ import annotations

import functools
import threading
from collections import Counter
from pathlib import Path

import pytest

from collector.formats.loading import load
from collector.merging.merged_trace import merge
from collector.timeline import Timeline

pytestmark = [pytest.mark.viewer, pytest.mark.slow]

RECORDED = "gpu_traces/hta/a100_alexnet.json.gz"
OF_TENSORFLOW = "tf/inputs/gpu_mlp_adam/run_meta_0.pb.gz"

MERGED = "eight simulated ranks"
RANKS = range(8)

# What the timeline calls the processes of each step, and their rows: GPUs first, each with its streams by number, what
# else belongs to it, and its copies; then what belongs to no processor; then hosts.
ROWS = {
    RECORDED: [
        ("GPU 0", ["stream 7", "stream 20", "copies"]),
        ("Steps", ["steps"]),
        ("profiler", ["ops"]),
        ("CPU 0", ["thread 2869224 (python3.10)", "waits"]),
    ],
    OF_TENSORFLOW: [
        (
            "GPU 0",
            [
                "stream 7",
                *(f"stream 7 lane {lane}" for lane in range(2, 19)),
                "ops",
                *(f"ops lane {lane}" for lane in range(2, 20)),
                "copies",
            ],
        ),
        ("GPU 1", ["ops"]),
        ("Steps", ["steps"]),
        ("memory", []),
        ("CPU 0", ["ops", *(f"ops lane {lane}" for lane in range(2, 7))]),
    ],
    MERGED: [
        *((f"worker {rank} GPU 0", ["stream 7", "stream 13", "stream 20", "copies"]) for rank in RANKS),
        ("Steps", [f"rank {rank}" for rank in RANKS]),
        *((f"worker {rank} CPU 0", [f"MainThread (thread {threading.get_native_id()})", "waits"]) for rank in RANKS),
    ],
}
COUNTERS = {
    RECORDED: {
        "GPU 0": [("busy streams", "streams"), ("HtoD in flight", "bytes")],
    },
    OF_TENSORFLOW: {
        "memory": [("memory GPU_0_bfc", "bytes"), ("memory gpu_host_bfc", "bytes"), ("memory cpu", "bytes")],
    },
    MERGED: {
        f"worker {rank} GPU 0": [
            ("busy streams", "streams"),
            ("HtoD in flight", "bytes"),
            ("DtoH in flight", "bytes"),
        ]
        for rank in RANKS
    },
}
SLICES = {RECORDED: 888, OF_TENSORFLOW: 194, MERGED: 8 * (64 + 5 + 1)}
ARROWS = {RECORDED: 135, OF_TENSORFLOW: 86, MERGED: 8 * (9 + 3)}


@pytest.fixture(scope="module")
def own(shared, load_module, tmp_path_factory):
    """`own(name, suffix)`: the timeline's file of a step."""
    folder = tmp_path_factory.mktemp("own")

    @functools.cache
    def inputs(name):
        if name != MERGED:
            return [shared / "data" / name]
        return load_module(Path(__file__).parents[1] / "support" / "simulated_ranks.py").trace_ranks(folder, len(RANKS))

    def draw(name, suffix):
        path = folder / f"{name.replace('/', '_')}.{suffix}"
        return path if path.exists() else merge(inputs(name), path, clock_offsets="estimate").output

    return draw


@pytest.fixture(scope="module")
def compatible(shared, tmp_path_factory):
    """TensorFlow's timeline's file of the step with the most in it: arrows, tensors, memory, lanes."""
    path = tmp_path_factory.mktemp("compatible") / "tensorflow.json"
    step = load(shared / "data" / OF_TENSORFLOW).step_stats
    path.write_text(Timeline(step).generate_chrome_trace_format(show_memory=True), encoding="utf-8")
    return path


def rows_of(processes):
    """What catapult's model says of processes and their rows, in the order in which it draws them."""

    def ordered(things):
        return sorted(things, key=lambda thing: thing["sort_index"])

    return [
        (process["name"], [thread["name"] for thread in ordered(process["threads"])]) for process in ordered(processes)
    ]


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        (RECORDED, "json"),
        pytest.param(RECORDED, "json.gz", marks=pytest.mark.exhaustive),
        (OF_TENSORFLOW, "json"),
        (MERGED, "json"),
    ],
)
def test_catapult_shows_our_own_trace(catapult, trace_contents, own, name, suffix):
    seen = catapult(own(name, suffix))
    assert (seen["load_error"], seen["import_warnings"], seen["page_errors"]) == (None, [], [])
    assert rows_of(seen["processes"]) == ROWS[name]
    assert [title.rpartition(" (pid ")[0] for title in seen["titles"]] == [process for process, _ in ROWS[name]]
    assert all(thread["unfinished"] == 0 for process in seen["processes"] for thread in process["threads"])
    assert {
        process["name"]: [(counter["name"], *counter["series"]) for counter in process["counters"]]
        for process in seen["processes"]
        if process["counters"]
    } == COUNTERS[name]
    wanted = trace_contents.written(own(name, "json"))
    held = trace_contents.in_catapult(seen)
    assert (held.rows, held.counters, held.marks) == (wanted.rows, wanted.counters, wanted.marks)
    assert (wanted.num_slices, wanted.arrows.total()) == (SLICES[name], ARROWS[name])
    assert seen["flows"] == held.arrows.total() == ARROWS[name]  # none without its ends
    assert held.arrows == wanted.arrows


def test_t1_catapult_keeps_kernels_that_overlap_apart(catapult, trace_contents, own):
    name = "tf/inputs/synth/many_lanes.step_stats.pb.gz"
    seen = catapult(own(name, "json"))
    assert seen["import_warnings"] == []
    wanted = trace_contents.written(own(name, "json"))
    held = trace_contents.in_catapult(seen)
    assert (held.rows, held.counters, held.marks) == (wanted.rows, wanted.counters, wanted.marks)
    assert (held.num_slices, held.arrows.total()) == (501, 158)
    # Ops without length that begin in one row at one moment: the arrow says no more than the moment.
    assert (held.arrows - wanted.arrows).total() == 14
    # A slice inside another would be drawn below it: lanes hold their slices side by side.
    depths = Counter(
        depth
        for process in seen["processes"]
        for thread in process["threads"]
        if "stream" in thread["name"]
        for *_, depth in thread["slices"]
    )
    assert depths == {0: 300}


def test_catapult_shows_the_compatible_trace(catapult, trace_contents, compatible):
    seen = catapult(compatible)
    assert (seen["load_error"], seen["page_errors"]) == (None, [])
    events = trace_contents.events_of(compatible)
    wanted = trace_contents.tensorflow_in_catapult(events)
    held = trace_contents.in_catapult(seen, step_ns=1000)
    assert (held.rows, held.counters) == (wanted.rows, wanted.counters)
    assert held.num_slices == 281
    assert [process["name"] for process in seen["processes"]] == [
        event["args"]["name"] for event in events if event["ph"] == "M"
    ]
    # These are TensorFlow's bytes, and so are their faults. 68 arrows lead from an op to one that read its output. Of
    # 22 the reader began before the writer's slice was over; 3 end at a moment at which catapult finds their slice
    # only before their start. 6 begin at the end of a slice where catapult finds none. Of 98 tensors some share
    # a number with an older one that was not given back.
    assert Counter(warning.partition(":")[0] for warning in seen["import_warnings"]) == {
        "flow_slice_ordering_error": 25,
        "flow_slice_start_error": 6,
        "object_parse_error": 12,
    }
    assert seen["flows"] == held.arrows.total() == 43
    assert seen["objects"] == 97


def shown_rows(events, wanted, name, suffix):
    """The rows of Perfetto's page, v52: processes with more slices come first, then by name; rows by number.

    A page that knows `process_sort_index` (since v53) and its like for native traces shows ROWS' order of processes.
    Within a process the counters follow the threads; what is not a thread follows them in the order of the names.
    """
    slices = Counter({process: 0 for process, _ in ROWS[name]})
    for (process, _), row in wanted.rows.items():
        slices[process] += row.total()
    pids = {event["args"]["name"]: event["pid"] for event in events if event["name"] == "process_name"}
    tids = {(event["pid"], event["args"]["name"]): event["tid"] for event in events if event["name"] == "thread_name"}
    threads = dict(ROWS[name])
    if suffix == "pftrace":
        yield from [(0, "System"), (1, "Clock Snapshots"), (0, "Global Track Events"), (1, "Marks")]
    else:
        yield 0, "Unnamed SliceTrack"  # marks of the whole trace, such as a step's begin
    for process in sorted(threads, key=lambda process: (-slices[process], process)):
        yield 0, f"{process} {pids[process]}"
        for row in threads[process]:
            if suffix != "pftrace" or row != "copies":
                yield 1, f"{row} {tids[pids[process], row]}"
        counters = COUNTERS[name].get(process, [])
        if suffix == "pftrace":
            yield from sorted((1, counter) for counter, _ in counters)
            if "copies" in threads[process]:
                yield from [(1, "copies"), (2, "copies")]
        else:
            yield from sorted(((1, f"{counter} {unit}") for counter, unit in counters), key=lambda row: row[1].lower())


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        (RECORDED, "json"),
        pytest.param(RECORDED, "json.gz", marks=pytest.mark.exhaustive),
        pytest.param(RECORDED, "pftrace", marks=pytest.mark.exhaustive),
        (OF_TENSORFLOW, "json"),
        pytest.param(MERGED, "json", marks=pytest.mark.exhaustive),
        (MERGED, "pftrace"),
    ],
)
def test_perfettos_page_shows_our_own_trace(perfetto_ui, trace_contents, own, name, suffix):
    seen = perfetto_ui(own(name, suffix), *trace_contents.PERFETTO_SQL)
    assert (seen["load_error"], seen["problems"], seen["page_errors"]) == (None, [], [])
    wanted = trace_contents.written(own(name, "json"))
    held = trace_contents.in_perfetto(seen["answers"], units=suffix != "pftrace")
    assert held == wanted.with_arrows_as_perfetto_orders_them()
    events = trace_contents.events_of(own(name, "json"))
    assert [tuple(row) for row in seen["rows"]] == list(shown_rows(events, wanted, name, suffix))
    with_copies = sum("copies" in rows for _, rows in ROWS[name])
    assert seen["closed"].count("copies") == (with_copies if suffix == "pftrace" else 0)


def test_t4_perfettos_page_shows_the_compatible_trace_and_cuts_its_names(perfetto_ui, trace_contents, compatible):
    seen = perfetto_ui(compatible, *trace_contents.PERFETTO_SQL)
    assert (seen["load_error"], seen["page_errors"]) == (None, [])
    wanted, dropped, backwards = trace_contents.tensorflow_in_perfetto(trace_contents.events_of(compatible))
    assert dict(seen["problems"]) == {
        "slice_drop_overlapping_complete_event": dropped,
        "flow_step_without_start": backwards,
    }
    assert (wanted.num_slices, dropped, wanted.arrows.total(), backwards) == (276, 5, 46, 22)
    assert trace_contents.in_perfetto(seen["answers"], units=True) == wanted
    assert [title for depth, title in seen["rows"] if depth == 0] == [  # "/gpu:0" and the rest are cut off
        "stream:7 Compute 9",
        "stream:all Compute 7",
        "device:GPU:0 Compute 5",
        "device:CPU:0 Compute 1",
        "memcpy Compute 11",
        "device:GPU:1 Compute 3",
        "Allocators 0",
    ]
