"""Our own trace in Perfetto's trace processor, in both formats: every event has its track and its time.

The traps T1 to T10 of traces and their readers are shown in test_viewer_harness.py; here they must not bite. (T8 and T9
are XSpace's: tests/formats.)
"""

from __future__ import annotations

from collections import Counter

import pytest

from collector.formats.loading import load
from collector.merging.merged_trace import merge
from collector.protos import DeviceStepStats, NodeExecStats, RunMetadata, StepStats

pytestmark = pytest.mark.viewer

FORMATS = ("json", "pftrace")
EPOCH_NS = 1_700_000_000_000_001_245

SLICES = """
with row as (
    select thread_track.id, process.name as process, thread.name
    from thread_track join thread using (utid) join process using (upid)
    union all
    select process_track.id, process.name, process_track.name from process_track join process using (upid))
select row.process, row.name, slice.name, slice.ts, slice.dur, slice.category
from slice join row on slice.track_id = row.id order by 1, 2, 4, 5, 3"""
COUNTERS = """
select process.name, counter_track.name, counter.ts, counter.value
from counter join process_counter_track counter_track on counter.track_id = counter_track.id
join process using (upid) order by 1, 2, 3"""
THREADS = "select tid, upid, name from thread where utid != 0"
PROCESSES = "select pid, name from process where name is not null order by pid"

GRAPHS = "gpu_traces/hta/v100_rank1of2_diff_test_graphs.json.gz"
RECORDED = [
    "gpu_traces/torch_tutorial/h100_transformer_after.json.gz",
    "gpu_traces/hta/a100_alexnet.json.gz",
    "gpu_traces/hta/mi250_minitoy.json.gz",  # stream 0
    pytest.param(GRAPHS, marks=pytest.mark.slow, id=GRAPHS),  # kernels of CUDA graphs overlap on one stream
    "tf/inputs/synth/gpu_mid.step_stats.pb",
    "tf/inputs/synth/gpu_two.step_stats.pb",
    "tf/inputs/synth/many_lanes.step_stats.pb",
    "tf/inputs/synth/equal_times.step_stats.pb",
    "tf/inputs/synth/memory.step_stats.pb",
    "tf/inputs/synth/names.step_stats.pb",
    "tf/inputs/synth/odd_times.step_stats.pb",
    "tf/inputs/synth/overflow.step_stats.pb",
    "tf/inputs/gpu_mlp_adam/run_meta_0.pb.gz",
]


def find(shared, name):
    path = shared / "data" / name
    return path if path.exists() else path.with_name(path.name + ".gz")


def counter_values(rows, suffix):
    """Chrome's format has no units: there Perfetto puts the value's name, which is the unit, behind the counter's."""
    cut = {"json": lambda name: name.rpartition(" ")[0], "pftrace": str}[suffix]
    return [[process, cut(name), ts, value] for process, name, ts, value in rows]


# Arrows that Perfetto draws to the wrong one of two slices that begin in one row at one moment, of which one has no
# length: Chrome's format names no slice. The microseconds of TensorFlow and Kineto make such; the native format has no
# such case.
ASTRAY = {
    "tf/inputs/synth/gpu_mid.step_stats.pb": 2,
    "tf/inputs/synth/gpu_two.step_stats.pb": 3,
    "tf/inputs/synth/equal_times.step_stats.pb": 6,
    "tf/inputs/synth/odd_times.step_stats.pb": 1,
}
# Times before 1970, reversed, or centuries away: what of them can be drawn is counted in tests/timeline.
HALF_DRAWN = {"tf/inputs/synth/odd_times.step_stats.pb", "tf/inputs/synth/overflow.step_stats.pb"}


@pytest.mark.medium
@pytest.mark.parametrize("name", RECORDED)
def test_both_formats_show_exactly_what_is_in_the_step(perfetto, trace_contents, shared, tmp_path, name):
    step = load(find(shared, name))
    report = merge([step], tmp_path / "trace.json")
    wanted = trace_contents.written(report.output)
    assert wanted.num_slices == sum(each.slices for each in report.inputs) + 1  # and the step itself
    if name not in HALF_DRAWN:
        drawn = wanted.by_device()
        del drawn["Steps/steps"]
        assert drawn == trace_contents.work(step.step_stats)

    wanted = wanted.with_arrows_as_perfetto_orders_them()
    view = perfetto(report.output, *trace_contents.PERFETTO_SQL, THREADS)
    assert (view.load_errors, view.problems) == ([], {})
    seen = trace_contents.in_perfetto(view.answers[:-1], units=True)
    assert (seen.rows, seen.counters, seen.marks) == (wanted.rows, wanted.counters, wanted.marks)
    assert ((seen.arrows - wanted.arrows).total(), seen.arrows.total()) == (ASTRAY.get(name, 0), wanted.arrows.total())
    assert Counter((begin, row, at) for begin, (row, _, at) in seen.arrows.elements()) == Counter(
        (begin, row, at) for begin, (row, _, at) in wanted.arrows.elements()
    )
    assert len(set(named := [tid for tid, _, name in view.answers[-1] if name])) == len(named) == len(wanted.rows)
    threads = [row for row, device in wanted.devices.items() if not device.endswith("/memcpy")]

    view = perfetto(merge([step], tmp_path / "trace.pftrace").output, *trace_contents.PERFETTO_SQL, THREADS)
    assert (view.load_errors, view.problems) == ([], {})
    assert trace_contents.in_perfetto(view.answers[:-1], units=False) == wanted.cut_at_zero_bytes()
    assert len(set(named := [tid for tid, _, name in view.answers[-1] if name])) == len(named) == len(threads)


@pytest.mark.parametrize("name", RECORDED[:3])
def test_arrows_lead_from_the_call_to_what_it_caused(trace_contents, shared, tmp_path, name):
    """By the correlation ids of the step itself: no more arrows, no fewer, and the right ends."""
    step = load(find(shared, name))
    wanted = trace_contents.written(merge([step], tmp_path / "trace.json").output)
    devices = step.step_stats.dev_stats
    first_ns = min(node.all_start_nanos for device in devices for node in device.node_stats)
    calls = {}
    for device in devices:
        for node in device.node_stats if device.device == "/cpu:0" else ():
            if node.correlation_id:
                assert calls.setdefault(node.correlation_id, node) is node
    caused = Counter(
        (call.node_name, call.all_start_nanos - first_ns, device.device, node.all_start_nanos - first_ns)
        for device in devices
        if "/gpu" in device.device and not device.device.endswith(("/stream:all", "/memcpy"))
        for node in device.node_stats
        if (call := calls.get(node.correlation_id))
    )
    assert caused == Counter(
        (call, at, wanted.devices[row], start)
        for (_, call, at), (row, _, start) in wanted.arrows.elements()
        if wanted.devices[row].startswith("/gpu")  # other arrows lead to waits
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kernels", "kept_of_the_recording"),
    [
        # Absolute microseconds with three decimals do not fit a double: rounded, 8 kernels overlap.
        ("gpu_traces/hta/v100_displaytimeunit_ns.json.gz", 4350, 4342),
        # Kernels of one CUDA graph overlap on their stream.
        (GRAPHS, 9876, 9852),
    ],
)
def test_t1_t5_kernels_that_perfetto_drops_of_the_recording_are_all_in_ours(
    perfetto, shared, tmp_path, name, kernels, kept_of_the_recording
):
    count = "select count(*) from slice where category = 'kernel'"
    recording = shared / "data" / name
    assert perfetto(recording, count).answers == [[[kept_of_the_recording]]]
    step = load(recording)
    for suffix in FORMATS:
        view = perfetto(merge([step], tmp_path / f"trace.{suffix}").output, count)
        assert (view.load_errors, view.problems, view.answers) == ([], {}, [[[kernels]]])


@pytest.mark.medium
def test_t1_programmatic_dependent_launch_keeps_all_768_kernels(perfetto, write_trace, tmp_path):
    """In the numbers of a B200's recording: 768 kernels on one stream, 38 of them start before the last has ended."""
    early = range(20, 768, 20)
    durations = [1100 if i + 1 in early else 900 for i in range(768)]
    kernels = [node(f"k{i}:k{i}", 1000 * i, duration_ns) for i, duration_ns in enumerate(durations)]
    naive = [
        {"ph": "X", "name": f"k{i}", "cat": "kernel", "pid": 1, "tid": 7, "ts": i, "dur": duration_ns / 1000}
        for i, duration_ns in enumerate(durations)
    ]
    count = "select count(*) from slice where category = 'kernel'"
    view = perfetto(write_trace(naive), count)
    assert view.problems == {"slice_drop_overlapping_complete_event": 38}
    assert view.answers == [[[730]]]
    lanes = """select thread.name, count(*) from slice join thread_track on track_id = thread_track.id
               join thread using (utid) where slice.category = 'kernel' group by 1 order by 1"""
    for suffix in FORMATS:
        view = perfetto(draw(tmp_path, suffix, ("/gpu:0/stream:7", kernels, {})), SLICES, lanes)
        assert view.problems == {}
        assert sorted(row[2:5] for row in work_slices(view)) == sorted(
            [f"k{i}", 1000 * i, duration_ns] for i, duration_ns in enumerate(durations)
        )
        assert view.answers[1] == [["stream 7", 730], ["stream 7 lane 2", 38]]


def test_native_traces_ask_for_our_order_of_processes_and_threads(tmp_path):
    """The page that is tested is older than this: only that it is asked for can be seen, in the root's descriptor."""
    uuid, process_ordering, thread_ordering = 1, 19, 20
    explicit = 1
    root = bytes([uuid << 3, 0, *key(process_ordering), explicit, *key(thread_ordering), explicit])
    content = draw(tmp_path, "pftrace", ("/gpu:0/stream:7", [node("a:a", 0, 9)], {})).read_bytes()
    assert root in content


def key(number):
    """The key of a varint field above 15."""
    return (number << 3) & 0x7F | 0x80, number >> 4


STEPS = [f"gpu_traces/tf_ikhlestov/gpu_timeline_02_step_{step}.json.gz" for step in range(3)]
RANKS = [f"gpu_traces/hta/sampled_of128/rank{rank}.json.gz" for rank in range(2)]


@pytest.mark.medium
@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(
    ("names", "options"),
    [
        (STEPS, {}),
        (STEPS, {"layout": "overlay"}),
        pytest.param(RANKS, {"clock_offsets": "estimate"}, marks=pytest.mark.slow),
    ],
    ids=["steps", "overlaid steps", "ranks"],
)
def test_merged_traces_lose_nothing(perfetto, trace_contents, shared, tmp_path, names, options, suffix):
    inputs = [shared / "data" / name for name in names]
    report = merge(inputs, tmp_path / f"all.{suffix}", **options)
    view = perfetto(report.output, *trace_contents.PERFETTO_SQL, PROCESSES)
    assert (view.load_errors, view.problems) == ([], {})
    seen = trace_contents.in_perfetto(view.answers[:-1], units=suffix == "json")
    assert seen == trace_contents.written(merge(inputs, tmp_path / "plain.json", **options).output)
    assert seen.num_slices == sum(each.slices for each in report.inputs) + len(names)  # and the steps themselves
    assert seen.marks.total() == (0 if report.layout == "overlay" else len({each.step for each in report.inputs}))
    owners = {"overlay": "step {} ", "sequence": "rank {} " if names is RANKS else ""}[report.layout]
    for at in range(len(names)):
        assert any(name.startswith(owners.format(at)) and "GPU" in name for _, name in view.answers[-1])


def node(name, start_ns, duration_ns, label="", **more):
    return NodeExecStats(
        node_name=name,
        timeline_label=label,
        all_start_micros=(EPOCH_NS + start_ns) // 1000,
        all_start_nanos=EPOCH_NS + start_ns,
        all_end_rel_micros=max(duration_ns // 1000, 1),
        all_end_rel_nanos=duration_ns,
        **more,
    )


def draw(tmp_path, suffix, *devices):
    step = StepStats(
        dev_stats=[DeviceStepStats(device=name, node_stats=nodes, **more) for name, nodes, more in devices]
    )
    return merge([step], tmp_path / f"hand.{suffix}").output


def work_slices(view):
    return [row for row in view.answers[0] if "GPU" in row[0]]


@pytest.mark.parametrize("suffix", FORMATS)
def test_t1_and_t3_kernels_that_overlap_on_a_stream_keep_their_lengths(perfetto, tmp_path, suffix):
    kernels = [node("a:a", 0, 10_000), node("b:b", 5_000, 10_000), node("c:c", 9_999, 2), node("d:d", 15_000, 1)]
    view = perfetto(draw(tmp_path, suffix, ("/gpu:0/stream:7", kernels, {})), SLICES)
    assert view.problems == {}
    assert sorted(row[2:5] for row in work_slices(view)) == [
        ["a", 0, 10_000],
        ["b", 5_000, 10_000],
        ["c", 9_999, 2],
        ["d", 15_000, 1],
    ]


@pytest.mark.parametrize("suffix", FORMATS)
def test_t2_stream_zero_and_thread_zero_are_rows_of_their_own(perfetto, tmp_path, suffix):
    trace = draw(
        tmp_path,
        suffix,
        ("/cpu:0", [node("op", 0, 100, thread_id=0), node("op", 0, 100, thread_id=1)], {}),
        ("/gpu:0/stream:0", [node("a:a", 0, 10)], {}),
        ("/gpu:1/stream:0", [node("b:b", 0, 10)], {}),
    )
    view = perfetto(trace, SLICES, THREADS)
    slices, threads = view.answers
    assert view.problems == {}
    assert len(slices) == 5  # and the step
    assert 0 not in {tid for tid, _, _ in threads}
    assert Counter(row[2] for row in slices) == Counter({"op": 2, "a": 1, "b": 1, "step 0": 1})


@pytest.mark.parametrize("suffix", FORMATS)
def test_t4_process_names_are_readable_where_the_page_cuts_at_slashes(perfetto, tmp_path, suffix):
    kernels = [node("a:a", 0, 10)]
    trace = draw(
        tmp_path,
        suffix,
        ("/job:worker/replica:0/task:3/device:GPU:1/stream:7", kernels, {}),
        ("/gpu:0/stream:7", kernels, {}),
    )
    [names] = perfetto(trace, "select name from process where name like '%GPU%' order by name").answers
    assert names == [["GPU 0"], ["worker 3 GPU 1"]]


@pytest.mark.parametrize("suffix", FORMATS)
def test_t5_nanoseconds_survive(perfetto, tmp_path, suffix):
    kernels = [node(f"k{i}:k{i}", 1_001 * i + 7, 333 + i) for i in range(50)]
    view = perfetto(draw(tmp_path, suffix, ("/gpu:0/stream:7", kernels, {})), SLICES)
    assert [row[3:5] for row in work_slices(view)] == [[1_001 * i, 333 + i] for i in range(50)]


def test_t5_the_wall_clock_is_in_the_file(perfetto, tmp_path):
    trace = draw(tmp_path, "pftrace", ("/gpu:0/stream:7", [node("k:k", 0, 10)], {}))
    clocks = "select clock_value from clock_snapshot where clock_name = 'REALTIME'"
    [[[wall_ns]]] = perfetto(trace, clocks).answers
    assert int(wall_ns) == EPOCH_NS


@pytest.mark.parametrize("suffix", [*FORMATS, "json.gz", "pftrace.gz"])
def test_t6_a_file_is_whole_or_not_there(tmp_path, suffix):
    """Viewers load nothing of a file that is cut off, so none may ever lie under its final name."""

    class Broken:
        def __init__(self):
            self.reads = 0

        def serialized(self):
            self.reads += 1
            if self.reads > 1:
                raise KeyboardInterrupt
            device = DeviceStepStats(device="/gpu:0/stream:7", node_stats=[node("a:a", 0, 9)])
            return RunMetadata(step_stats=StepStats(dev_stats=[device])).SerializeToString()

    target = tmp_path / f"trace.{suffix}"
    target.write_bytes(b"what was there before")
    with pytest.raises(KeyboardInterrupt):
        merge([Broken()], target)
    assert target.read_bytes() == b"what was there before"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("suffix", FORMATS)
def test_t7_a_kernel_without_length_is_still_there(perfetto, tmp_path, suffix):
    kernels = [node("a:a", 0, 0), node("b:b", 0, 0), node("c:c", 5, 0)]
    view = perfetto(draw(tmp_path, suffix, ("/gpu:0/stream:7", kernels, {})), SLICES)
    assert view.problems == {}
    assert [row[2:5] for row in work_slices(view)] == [["a", 0, 0], ["b", 0, 0], ["c", 5, 0]]


@pytest.mark.parametrize("suffix", FORMATS)
def test_t10_counters_are_one_track_each(perfetto, tmp_path, suffix):
    copies = [
        node("x:MEMCPYHtoD", 0, 100, "MEMCPYHtoD 4096 bytes (Pageable to Device)"),
        node("x:MEMCPYHtoD", 50, 100, "MEMCPYHtoD 1024 bytes (Pageable to Device)"),
        node("x:MEMCPYDtoH", 60, 10, "MEMCPYDtoH 8 bytes (Device to Pageable)"),
    ]
    view = perfetto(draw(tmp_path, suffix, ("/gpu:0/stream:7", copies, {})), COUNTERS)
    values = {}
    for _, name, ts, value in counter_values(view.answers[0], suffix):
        values.setdefault(name, []).append((ts, value))
    assert values["HtoD in flight"] == [(0, 4096), (50, 5120), (100, 1024), (150, 0)]
    assert values["DtoH in flight"] == [(60, 8), (70, 0)]


@pytest.mark.parametrize("suffix", FORMATS)
def test_kernel_arguments_arrive(perfetto, tmp_path, suffix):
    label = "void ns::sgemm<float>(int) regs:64 shm:1024 grid:8,1,1 block:256,1,1"
    trace = draw(
        tmp_path, suffix, ("/gpu:0/stream:7", [node("layer1/conv:sgemm", 0, 10, label, correlation_id=17)], {})
    )
    sql = "select key, coalesce(string_value, int_value) from args join slice using (arg_set_id) where name = 'sgemm'"
    arguments = {key.partition(".")[2]: value for key, value in perfetto(trace, sql).answers[0]}
    assert arguments == {
        "kernel": "void ns::sgemm<float>(int)",
        "op": "layer1/conv",
        "registers": 64,
        "shared_bytes": 1024,
        **{f"grid[{i}]": size for i, size in enumerate((8, 1, 1))},
        **{f"block[{i}]": size for i, size in enumerate((256, 1, 1))},
        "correlation": 17,
    }


@pytest.mark.medium
def test_a_packed_trace_is_read_as_it_is(perfetto, shared, tmp_path):
    trace = load(find(shared, "tf/inputs/synth/gpu_mid.step_stats.pb"))
    plain = perfetto(merge([trace], tmp_path / "trace.json").output, SLICES)
    for suffix in ("json.gz", "pftrace.gz"):
        assert perfetto(merge([trace], tmp_path / f"trace.{suffix}").output, SLICES) == plain


@pytest.mark.slow
def test_the_native_format_is_less_than_half_of_the_text_and_packed_a_seventh(shared, tmp_path):
    for name in ("gpu_traces/hta/a100_rank0of2_nccl_metadata.json.gz", "tf/inputs/synth/gpu_large.step_stats.pb"):
        trace = load(find(shared, name))
        size = {
            suffix: merge([trace], tmp_path / f"trace.{suffix}").output.stat().st_size
            for suffix in ("json", "pftrace", "pftrace.gz")
        }
        assert size["pftrace"] <= 0.5 * size["json"], name
        assert size["pftrace.gz"] <= 0.15 * size["json"], name


@pytest.mark.medium
def test_text_that_the_native_format_cannot_intern_forever(perfetto, tmp_path):
    """More distinct long names than the writer keeps: it begins its tables anew, and nothing is mixed up."""
    long = "x" * 4000
    kernels = [node(f"k{i}:k{i}", 10 * i, 5, f"void {long}{i}(int)") for i in range(5000)]
    trace = draw(tmp_path, "pftrace", ("/gpu:0/stream:7", kernels, {}))
    sql = f"""select count(*) from slice join args using (arg_set_id)
              where string_value = 'void {long}' || substr(name, 2) || '(int)'"""
    view = perfetto(trace, sql, "select count(*) from slice where name = 'k' || (ts / 10)")
    assert view.problems == {}
    assert view.answers == [[[5000]], [[5000]]]
