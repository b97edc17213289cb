"""The native converters compared with the readable ones, on generated steps and on damaged bytes."""

from __future__ import annotations

import contextlib
import json

import pytest

pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from properties import examples
from reference.in_python import use_python

from collector.errors import InvalidFileError
from collector.protos import DeviceStepStats, NodeExecStats, RunMetadata, StepStats
from collector.stepstats.varint import field_head
from collector.timeline import Timeline, chrome_trace
from collector.timeline.tensorflow_rules import CompatibleConverter

BASE_US = 1_600_000_000_000_000
NAMES = [
    "a",
    "b:0",
    "b:1",
    "b.0:k<float>",
    "x:MEMCPY<unknown>",
    "ns::f<int>(x)",
    "RecvTensor",
    "op/_3",
    'q"\\\x7f\n',
    "ü😀",
    "",
    "MEMCPYHtoD",
    "x:MEMSET",
    "cudaLaunchKernel",
]
LABELS = [
    "",
    "a = Op(b:0, op, ^c)",
    "[cpu 1.0MB] a = F(g(x), a)",
    "a = Op(a\n)",
    "a = ()",
    "k(int) regs:64 shm:007 grid:8,1,1 block:1,02,3 grid:9 x:y",
    "kernel@@b:Mul#id=1#",
    "MEMCPYHtoD 4096 bytes (Pageable to Device)",
    "MEMSET 12 bytes (Device)",
    "MEMCPYHtoD (Pageable to Device)",
    "MEMCPY<unknown> (<unknown> to <unknown>)",
    ")(",
    " = (",
]
DEVICES = [
    "/gpu:0/stream:7",
    "/gpu:0/stream:13",
    "/gpu:0/graphs",
    "/gpu:0/stream:all",
    "/gpu:0/memcpy",
    "/device:GPU:1/stream:all",
    "/job:w/replica:0/task:1/device:CPU:0",
    "/job:w/replica:0/task:1/device:GPU:0",
    "/cpu:0",
    "/host:CPU",
    "x/memcpyx",
    "",
]

texts = st.one_of(st.sampled_from(NAMES), st.text(max_size=12))
labels = st.one_of(st.sampled_from(LABELS), st.text(max_size=20))
small = st.integers(0, 60)
times = st.one_of(small, small.map(lambda offset: BASE_US + offset))
wild = st.one_of(small, st.integers(-(2**63), 2**63 - 1))
tensors = st.fixed_dictionaries(
    {},
    optional={
        "dtype": st.integers(0, 140),
        "shape": st.fixed_dictionaries(
            {},
            optional={
                "dim": st.lists(st.fixed_dictionaries({}, optional={"size": wild, "name": texts}), max_size=2),
                "unknown_rank": st.booleans(),
            },
        ),
        "allocation_description": st.fixed_dictionaries(
            {},
            optional={
                "requested_bytes": st.one_of(st.integers(-5, 50), wild),
                "allocated_bytes": wild,
                "allocator_name": st.sampled_from(["cpu", "GPU_0_bfc", ""]),
                "has_single_reference": st.booleans(),
                "ptr": st.integers(0, 2**64 - 1),
            },
        ),
    },
)
outputs = st.lists(st.builds(lambda tensor: {"tensor_description": tensor}, tensors), max_size=3)
records = st.lists(st.fixed_dictionaries({"alloc_micros": times, "alloc_bytes": st.integers(-50, 50)}), max_size=3)


def nodes(start, duration):
    return st.fixed_dictionaries(
        {"node_name": texts, "timeline_label": labels, "all_start_micros": start, "all_end_rel_micros": duration},
        optional={
            "output": outputs,
            "scheduled_micros": times,
            "thread_id": st.integers(0, 2),
            "all_start_nanos": start.map(lambda micros: max(min(micros * 1000 + 1, 2**63 - 1), -(2**63))),
            "all_end_rel_nanos": duration,
            "correlation_id": st.integers(0, 5),
            "memory": st.lists(
                st.fixed_dictionaries({"allocator_name": st.sampled_from(["cpu", "x"]), "allocation_records": records}),
                max_size=2,
            ),
        },
    )


def steps(start, duration):
    device = st.fixed_dictionaries(
        {
            "device": st.one_of(st.sampled_from(DEVICES), texts),
            "node_stats": st.lists(nodes(start, duration), max_size=12),
        },
        optional={"thread_names": st.dictionaries(st.integers(0, 2), texts, max_size=2)},
    )
    return st.lists(device, max_size=5).map(lambda devices: StepStats(dev_stats=devices))


# Launches of graphs and works of streams with few correlation ids, so that launches overlap and enclose works.
_close = st.integers(0, 12).map(lambda offset: BASE_US + offset)
_related = st.lists(
    st.builds(
        lambda node, correlation: {**node, "correlation_id": correlation}, nodes(_close, small), st.integers(0, 2)
    ),
    max_size=6,
)
graph_steps = st.fixed_dictionaries(
    dict.fromkeys(("/gpu:0/graphs", "/gpu:0/stream:7", "/gpu:0/stream:13.2", "/gpu:1/stream:7"), _related)
).map(lambda found: StepStats(dev_stats=[{"device": name, "node_stats": each} for name, each in found.items()]))
all_steps = st.one_of(steps(times, small), steps(wild, wild), graph_steps)
quick = settings(
    deadline=None, max_examples=examples(250), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def without_native(call):
    """What the readable implementation gives: a value, or the error."""
    with pytest.MonkeyPatch.context() as patch:
        use_python(patch)
        return call()


@pytest.mark.slow
@quick
@given(all_steps, st.booleans(), st.booleans(), st.sampled_from(["schedule", "gpu", "all"]))
def test_tensorflow_timeline_is_the_same(step, show_dataflow, show_memory, op_time):
    def text():
        try:
            return Timeline(step).generate_chrome_trace_format(show_dataflow, show_memory, op_time)
        except ValueError as error:
            return str(error)

    assert text() == without_native(text)


@pytest.mark.slow
@quick
@given(all_steps, st.sampled_from(["schedule", "all"]))
def test_maximums_are_the_same(step, op_time):
    def maximums():
        try:
            return Timeline(step).analyze_step_stats(True, True, op_time).allocator_maximums
        except ValueError as error:
            return str(error)

    assert maximums() == without_native(maximums)


views = st.fixed_dictionaries(
    {},
    optional={
        "devices": st.sampled_from(["gpu", "stream:7", "^$"]),
        "names": st.sampled_from(["a|b", "MEM", "int"]),
        "min_duration_ns": st.integers(0, 30_000),
        "window_ns": st.tuples(st.none() | st.integers(0, 40_000), st.none() | st.integers(40_000, 60_000))
        | st.tuples(st.integers(0, 10_000), st.integers(10_000, 40_000)),
        "max_events": st.integers(0, 10),
        "arrows": st.booleans(),
        "counters": st.booleans(),
        "label": texts,
    },
)


@pytest.mark.slow
@quick
@given(all_steps, views)
@example(StepStats(), {})
@example(StepStats(dev_stats=[{"device": "/gpu:0/stream:1", "node_stats": [{}]}]), {})
@example(StepStats(dev_stats=[{"device": "\x120"}]), {})  # its bytes look like the beginning of a RunMetadata
def test_timeline_viewed_is_the_same(step, view):
    text = chrome_trace(step, **view)
    assert text == without_native(lambda: chrome_trace(step, **view))


@pytest.mark.slow
@quick
@given(all_steps, views)
def test_timeline_viewed_keeps_its_promises(step, view):
    trace = json.loads(chrome_trace(step, **view), parse_constant=lambda word: pytest.fail(word))
    drawn = trace["otherData"]["drawn"]
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(slices) == drawn["slices"]
    tracks = {}
    for event in slices:
        assert event["ts"] >= 0
        assert event["ts"] + event["dur"] <= 2**53 / 1000
        assert event["tid"] not in {0, event["pid"]}
        tracks.setdefault((event["pid"], event["tid"]), []).append(
            (ns(event["ts"]), ns(event["ts"]) + ns(event["dur"]))
        )
    for track in tracks.values():
        assert_nested(track)
    starts = [event["id"] for event in trace["traceEvents"] if event["ph"] == "s"]
    ends = [event["id"] for event in trace["traceEvents"] if event["ph"] == "f"]
    assert sorted(starts) == sorted(ends)
    assert len(set(starts)) == len(starts) == drawn["arrows"]


def ns(micros):
    return round(micros * 1000)


def assert_nested(track):
    """In order of start; each slice begins after the last ended, or lies inside one that is open."""
    open_ends = []
    last_start = 0
    for start, end in track:
        assert start >= last_start
        last_start = start
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1]
        open_ends.append(end)


@pytest.mark.slow
@quick
@given(all_steps, st.data())
def test_cut_and_flipped_bytes_are_refused_or_drawn(step, data):
    wire = bytearray(RunMetadata(step_stats=step).SerializeToString())
    if wire:
        for _ in range(data.draw(st.integers(0, 3))):
            wire[data.draw(st.integers(0, len(wire) - 1))] = data.draw(st.integers(0, 255))
        wire = wire[: data.draw(st.integers(0, len(wire)))]
    for call in (
        lambda: chrome_trace(bytes(wire)),
        lambda: Timeline(bytes(wire)).generate_chrome_trace_format(True, True),
    ):
        with contextlib.suppress(InvalidFileError):
            json.loads(call())


def test_errors_name_the_place():
    wire = StepStats(dev_stats=[{"device": "/cpu:0", "node_stats": [{"node_name": "abc"}]}]).SerializeToString()
    with pytest.raises(InvalidFileError, match=r"beyond the end of its message \(at byte 1\)"):
        Timeline(wire[:-2]).generate_chrome_trace_format()
    with pytest.raises(InvalidFileError, match=rf"not UTF-8 \(at byte {wire.index(b'abc')}\)"):
        Timeline(wire.replace(b"abc", b"\xffbc")).generate_chrome_trace_format()


@pytest.mark.parametrize("letter", ["\x1f", '"', "\\", "\x7f", "\x80", "ü", "😀"])
def test_a_letter_is_escaped_wherever_it_stands(letter):
    """The extension looks at up to sixteen bytes together."""
    texts = ["a" * place + letter + "b" * rest for place in range(20) for rest in range(20)]
    names = [{"node_name": text, "timeline_label": f"x = {text}({text}, b)"} for text in texts]
    step = StepStats(dev_stats=[{"device": "/cpu:0", "node_stats": names}])
    text = Timeline(step).generate_chrome_trace_format()
    assert text == without_native(lambda: Timeline(step).generate_chrome_trace_format())


def test_names_that_are_not_utf8_are_mended_in_the_timeline():
    wire = StepStats(dev_stats=[{"device": "/cpu:0", "node_stats": [{"node_name": "abc"}]}]).SerializeToString()
    (event,) = [
        e for e in json.loads(chrome_trace(wire.replace(b"abc", b"\xffb\xed")))["traceEvents"] if e["ph"] == "X"
    ]
    assert event["name"] == "\ufffdb\ufffd"


NOT_UTF8 = st.binary(min_size=1, max_size=12).filter(lambda data: data.decode(errors="replace").encode() != data)


@quick
@given(NOT_UTF8, NOT_UTF8, st.booleans())
def test_texts_that_are_not_utf8_are_drawn_alike_by_both(name, label, whole):
    times = NodeExecStats(all_start_micros=BASE_US, all_end_rel_micros=5).SerializeToString()
    node = field_head(1, len(name)) + name + times + field_head(8, len(label)) + label
    device = DeviceStepStats(device="/cpu:0").SerializeToString() + field_head(2, len(node)) + node
    data = field_head(1, len(device)) + device
    if whole:
        data = field_head(1, len(data)) + data
    drawn = chrome_trace(data)
    with pytest.MonkeyPatch.context() as patch:
        use_python(patch)
        assert json.loads(chrome_trace(data)) == json.loads(drawn)


@pytest.mark.parametrize(
    "field",
    [
        b"\x0b\x0c",
        b"\x0b" * 200,
        b"\x0b\x08\x01\x0c",
        b"\x08" + b"\xff" * 10 + b"\x01",
        b"\x06",
        b"\x07",
        b"\x0c",
        b"\x00\x00",
        b"\x09abc",
    ],
)
def test_odd_wire_bytes_behave_as_in_protobuf(field):
    """Groups are passed over, rubbish is refused: by both readers alike."""
    wire = StepStats(dev_stats=[{"device": "/cpu:0"}]).SerializeToString() + field

    def drawn():
        try:
            return chrome_trace(wire)
        except InvalidFileError:
            return "refused"

    assert drawn() == without_native(drawn)


def test_fields_that_come_twice_are_merged():
    once = NodeExecStats(node_name="first", all_start_micros=1).SerializeToString()
    again = NodeExecStats(node_name="last", timeline_label="last = Op()").SerializeToString()
    device = b"\x0a\x06/cpu:0\x12" + bytes([len(once + again)]) + once + again
    wire = b"\x0a" + bytes([len(device)]) + device
    assert (
        Timeline(wire).generate_chrome_trace_format()
        == Timeline(StepStats.FromString(wire)).generate_chrome_trace_format()
    )
    assert '"name": "last"' in Timeline(wire).generate_chrome_trace_format()


def test_sums_beyond_64_bits_are_left_to_python(monkeypatch):
    used = []
    monkeypatch.setattr(
        CompatibleConverter,
        "text",
        lambda self, pretty, plain=CompatibleConverter.text: used.append(1) or plain(self, pretty),
    )
    step = StepStats(dev_stats=[{"node_stats": [{"all_start_micros": 2**63 - 1, "all_end_rel_micros": 1}]}])
    assert '"dur": 1,' in Timeline(step).generate_chrome_trace_format()
    assert used == [1]


def test_many_overlapping_activities_get_a_lane_each():
    count = 5000
    step = StepStats()
    device = step.dev_stats.add(device="/gpu:0/stream:7")
    for index in range(count):
        device.node_stats.add(all_start_micros=BASE_US + index, all_end_rel_micros=count)
    trace = json.loads(chrome_trace(step))
    assert len({event["tid"] for event in trace["traceEvents"] if event["ph"] == "X"}) == count
    text = Timeline(step).generate_chrome_trace_format()
    assert [e["tid"] for e in json.loads(text)["traceEvents"] if e["ph"] == "X"] == list(range(count))


def test_a_writer_that_fails_ends_the_drawing():
    step = StepStats(dev_stats=[{"device": "/cpu:0", "node_stats": [{"node_name": "a"}]}])

    def full(_piece):
        raise OSError("no space")

    from collector.timeline import View, write_trace

    with pytest.raises(OSError, match="no space"):
        write_trace(step, full, View())
