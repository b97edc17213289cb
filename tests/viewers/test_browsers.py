"""Our traces in the viewers that people use, in headless Chromium: catapult (chrome://tracing) and Perfetto's page.

Both faces, in every format that the viewer opens. What it holds must be exactly what was written: names, slices of each
row, both ends of each arrow, each value of each counter, and nothing reported as a problem.

| face | `.json` | `.json.gz` | `.pftrace` |
| --- | --- | --- | --- |
| our own | both viewers | both viewers | Perfetto; catapult cannot read it |
| compatible | both viewers | the same bytes, packed by whoever asked for them | TensorFlow has no such format |
"""

from __future__ import annotations

from collections import Counter

import pytest

from collector.loading import load
from collector.merging import merge
from collector.timeline import Timeline

pytestmark = pytest.mark.slow

RECORDED = "gpu_traces/hta/a100_alexnet.json.gz"
OF_TENSORFLOW = "tf/inputs/gpu_mlp_adam/run_meta_0.pb.gz"

# What our own face calls the processes of each step, and their rows: hosts first, then streams by number, then copies.
# The steps themselves follow the first host.
ROWS = {
    RECORDED: [
        ("/Spans", ["ops"]),
        ("Steps", ["ops"]),
        ("CPU 0 ops (/cpu:0)", ["thread 2869224 (python3.10)"]),
        ("GPU 0 stream 7 (/gpu:0/stream:7)", ["stream 7"]),
        ("GPU 0 stream 20 (/gpu:0/stream:20)", ["stream 20"]),
        ("GPU 0 copies (/gpu:0/memcpy)", ["copies"]),
        ("GPU 0 sync (/gpu:0/sync)", ["sync"]),
        ("GPU 0 counters (/gpu:0)", []),
    ],
    OF_TENSORFLOW: [
        (
            "CPU 0 ops (/job:localhost/replica:0/task:0/device:CPU:0)",
            ["ops", *(f"ops lane {lane}" for lane in range(2, 7))],
        ),
        ("Steps", ["ops"]),
        (
            "GPU 0 ops (/job:localhost/replica:0/task:0/device:GPU:0)",
            ["ops", *(f"ops lane {lane}" for lane in range(2, 20))],
        ),
        ("GPU 1 ops (/job:localhost/replica:0/task:0/device:GPU:1)", ["ops"]),
        ("memory", []),
        ("GPU 0 stream 7 (/gpu:0/stream:7)", ["stream 7", *(f"stream 7 lane {lane}" for lane in range(2, 19))]),
        ("GPU 0 copies (/gpu:0/memcpy)", ["copies"]),
    ],
}
COUNTERS = {
    RECORDED: {
        "GPU 0 counters (/gpu:0)": [("busy streams", "streams"), ("HtoD in flight", "bytes")],
    },
    OF_TENSORFLOW: {
        "memory": [("memory cpu", "bytes"), ("memory gpu_host_bfc", "bytes"), ("memory GPU_0_bfc", "bytes")],
    },
}
SLICES = {RECORDED: 888, OF_TENSORFLOW: 194}
ARROWS = {RECORDED: 139, OF_TENSORFLOW: 86}
# Where two calls touch, catapult takes the first. Only calls that wait are shown so (see chrome_writer.cpp), and only
# where times are whole microseconds, as in this recording: here two cudaStreamWaitEvent after a cudaEventRecord.
ASTRAY = {RECORDED: [("cudaEventRecord", 43_379_020_000), ("cudaEventRecord", 43_379_029_000)], OF_TENSORFLOW: []}


@pytest.fixture(scope="module")
def own(shared, tmp_path_factory):
    """`own(name, suffix)`: our own face's file of a step."""
    folder = tmp_path_factory.mktemp("own")

    def draw(name, suffix):
        path = folder / f"{name.replace('/', '_')}.{suffix}"
        return path if path.exists() else merge([shared / "data" / name], path).output

    return draw


@pytest.fixture(scope="module")
def compatible(shared, tmp_path_factory):
    """The compatible face's file of the step with the most in it: arrows, tensors, memory, lanes."""
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


@pytest.mark.parametrize(("name", "suffix"), [(RECORDED, "json"), (RECORDED, "json.gz"), (OF_TENSORFLOW, "json")])
def test_catapult_shows_our_own_trace(catapult, pictures, own, name, suffix):
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
    wanted = pictures.written(own(name, "json"))
    held = pictures.in_catapult(seen)
    assert (held.rows, held.counters, held.marks) == (wanted.rows, wanted.counters, wanted.marks)
    assert (wanted.num_slices, wanted.arrows.total()) == (SLICES[name], ARROWS[name])
    assert seen["flows"] == held.arrows.total() == ARROWS[name]  # none without its ends
    assert sorted(begin[1:] for begin, _ in (held.arrows - wanted.arrows)) == ASTRAY[name]


def test_t1_catapult_keeps_kernels_that_overlap_apart(catapult, pictures, own):
    name = "tf/inputs/synth/many_lanes.step_stats.pb.gz"
    seen = catapult(own(name, "json"))
    assert seen["import_warnings"] == []
    wanted = pictures.written(own(name, "json"))
    held = pictures.in_catapult(seen)
    assert (held.rows, held.counters, held.marks) == (wanted.rows, wanted.counters, wanted.marks)
    assert (held.num_slices, held.arrows.total()) == (501, 158)
    # Ops without length that begin in one row at one moment: the arrow says no more than the moment.
    assert (held.arrows - wanted.arrows).total() == 14
    # A slice inside another would be drawn below it: lanes hold their slices side by side.
    depths = Counter(
        depth
        for process in seen["processes"]
        for thread in process["threads"]
        if "stream" in process["name"]
        for *_, depth in thread["slices"]
    )
    assert depths == {0: 300}


def test_catapult_shows_the_compatible_trace(catapult, pictures, compatible):
    seen = catapult(compatible)
    assert (seen["load_error"], seen["page_errors"]) == (None, [])
    events = pictures.events_of(compatible)
    wanted = pictures.compatible_in_catapult(events)
    held = pictures.in_catapult(seen, step_ns=1000)
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


def shown_rows(wanted, name, suffix):
    """The rows of Perfetto's page, v52: processes with more slices come first, then by name; rows by number.

    A page that knows `process_sort_index` (since v53) and its like for native traces shows ROWS' own order.
    """
    slices = Counter({process: sum(row.values()) for process, row in wanted.by_process().items()})
    in_file = sorted((process for process, _ in ROWS[name]), key=lambda process: process == "Steps")
    pids = {process: number for number, process in enumerate(in_file, 1)}
    threads = dict(ROWS[name])
    tids = iter(range(1_000_000, 2_000_000))
    numbers = {(process, row): next(tids) for process, row in wanted.rows}
    if suffix == "pftrace":
        yield from [(0, "System"), (1, "Clock Snapshots"), (0, "Global Track Events"), (1, "Marks")]
    else:
        yield 0, "Unnamed SliceTrack"  # marks of the whole trace, such as a step's begin
    for process in sorted(threads, key=lambda process: (-slices[process], process)):
        yield 0, f"{process.removeprefix('/')} {pids[process]}"
        for row in sorted(threads[process], key=lambda row: numbers[process, row]):
            yield 1, f"{row} {numbers[process, row]}"
        counters = COUNTERS[name].get(process, [])
        if suffix == "pftrace":
            yield from sorted((1, counter) for counter, _ in counters)
        else:
            yield from sorted(((1, f"{counter} {unit}") for counter, unit in counters), key=lambda row: row[1].lower())


@pytest.mark.parametrize(
    ("name", "suffix"),
    [(RECORDED, "json"), (RECORDED, "json.gz"), (RECORDED, "pftrace"), (OF_TENSORFLOW, "json")],
)
def test_perfettos_page_shows_our_own_trace(perfetto_ui, pictures, own, name, suffix):
    seen = perfetto_ui(own(name, suffix), *pictures.PERFETTO_SQL)
    assert (seen["load_error"], seen["problems"], seen["page_errors"]) == (None, [], [])
    wanted = pictures.written(own(name, "json"))
    assert pictures.in_perfetto(seen["answers"], units=suffix != "pftrace") == wanted
    assert [tuple(row) for row in seen["rows"]] == list(shown_rows(wanted, name, suffix))


def test_t4_perfettos_page_shows_the_compatible_trace_and_cuts_its_names(perfetto_ui, pictures, compatible):
    seen = perfetto_ui(compatible, *pictures.PERFETTO_SQL)
    assert (seen["load_error"], seen["page_errors"]) == (None, [])
    wanted, dropped, backwards = pictures.compatible_in_perfetto(pictures.events_of(compatible))
    assert dict(seen["problems"]) == {
        "slice_drop_overlapping_complete_event": dropped,
        "flow_step_without_start": backwards,
    }
    assert (wanted.num_slices, dropped, wanted.arrows.total(), backwards) == (276, 5, 46, 22)
    assert pictures.in_perfetto(seen["answers"], units=True) == wanted
    assert [title for depth, title in seen["rows"] if depth == 0] == [  # "/gpu:0" and the rest are cut off
        "stream:7 Compute 9",
        "stream:all Compute 7",
        "device:GPU:0 Compute 5",
        "device:CPU:0 Compute 1",
        "memcpy Compute 11",
        "device:GPU:1 Compute 3",
        "Allocators 0",
    ]
