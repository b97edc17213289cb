"""The timeline in Python: the content of StepStats, accepted inputs, and refused inputs."""

from __future__ import annotations

import copy
import gzip
import json
import random
from types import SimpleNamespace

import pytest
from reference.in_python import use_python
from reference.plain_activities import gpu_activity, host_activity, int64, parse_device_name

from collector.errors import InvalidFileError
from collector.protos import (
    Activity,
    AllocationDescription,
    NodeOutput,
    Provenance,
    RunMetadata,
    StepStats,
    TensorDescription,
    TensorShapeProto,
)
from collector.recording.ledger import Ledger
from collector.stepstats import wire
from collector.stepstats.labels import parse_kernel_name, parse_op_label
from collector.stepstats.wire import is_run_metadata, parse_step, provenance_of, serialized_step
from collector.timeline import Timeline, View, chrome_trace
from collector.timeline.lanes import Lanes
from collector.timeline.tensor_description import tensor_description_text
from collector.timeline.tensorflow_rules import assign_lanes

BASE_NS = 1_700_000_000_000_000_123


@pytest.fixture(autouse=True)
def in_python(monkeypatch):
    use_python(monkeypatch)


def node(name="", label="", **fields):
    defaults = {
        "node_name": name,
        "timeline_label": label,
        "all_start_micros": 0,
        "all_end_rel_micros": 0,
        "all_start_nanos": 0,
        "all_end_rel_nanos": 0,
        "scheduled_micros": 0,
        "scheduled_nanos": 0,
        "thread_id": 0,
        "correlation_id": 0,
        "activity": Activity(),
        "op_end": 0,
    }
    return SimpleNamespace(**defaults | fields)


def launched_step():
    """Two kernels that overlap on one stream, a copy, and the calls that caused them."""
    step = RunMetadata()
    host = step.step_stats.dev_stats.add(device="/cpu:0", thread_names={4711: "python3"})
    kernels = step.step_stats.dev_stats.add(device="/gpu:0/stream:0")
    everything = step.step_stats.dev_stats.add(device="/gpu:0/stream:all")
    copies = step.step_stats.dev_stats.add(device="/gpu:0/memcpy")
    host.node_stats.add(node_name="layer1/conv", timeline_label="layer1/conv = conv()", thread_id=4711)
    for index, name in enumerate(["cudaLaunchKernel", "cudaLaunchKernel", "cudaMemcpyAsync"]):
        host.node_stats.add(
            node_name=name, timeline_label=f"{name} = {name}()", thread_id=4711, correlation_id=index + 1
        )
    for index, call in enumerate(host.node_stats):
        call.all_start_nanos = BASE_NS + 1000 * index
        call.all_end_rel_nanos = 500 if index else 9000
    label = "void sgemm<float>(float const*) regs:64 shm:1024 grid:8,1,1 block:256,1,1"
    for index in range(2):
        made = {"node_name": "layer1/conv:sgemm", "timeline_label": label, "correlation_id": index + 1}
        made |= {"all_start_nanos": BASE_NS + 5000 + index * 400, "all_end_rel_nanos": 1001}
        made |= {"scheduled_nanos": BASE_NS + 1000 * (index + 1), "thread_id": 4711}
        kernels.node_stats.add(**made)
        everything.node_stats.add(**made)
    copy_node = copies.node_stats.add(
        node_name="layer1/conv:MEMCPYHtoD",
        timeline_label="MEMCPYHtoD 4096 bytes (Pageable to Device)",
        all_start_nanos=BASE_NS + 7000,
        all_end_rel_nanos=250,
        correlation_id=3,
    )
    kernels.node_stats.append(copy_node)
    return step


def events(text, phase):
    return [event for event in json.loads(text)["traceEvents"] if event["ph"] == phase]


# --- what labels and names say ---


@pytest.mark.parametrize(
    ("label", "op", "inputs"),
    [
        ("a = Const()", "Const", []),
        ("[cpu 1.0MB] a = Add(x, y:1)", "Add", ["x", "y:1"]),
        ("a = b = Add(x)", "Add", ["x"]),
        ("a = F(g(x), h(y))", "F(g(x), h", ["y)"]),
        ("a = Add(x) and more", "Add", ["x"]),
        ("a = Add(x\ny)", "unknown", []),
        ("a = (x)", "", ["x"]),
        (" = ()", "", []),
        ("no label", "unknown", []),
        (")(", "unknown", []),
        ("", "unknown", []),
    ],
)
def test_op_labels(label, op, inputs):
    assert parse_op_label(label) == (op, inputs)


@pytest.mark.parametrize(
    ("label", "name", "expected"),
    [
        ("", "a:Op", ("a", "Op")),
        ("", "a:Op:rest", ("a", "Op")),
        ("", "symbol", ("symbol", "unknown")),
        ("kernel@@b:Mul#id=1#", "a:Op", ("b", "Mul")),
        ("kernel@@#", "a:Op", ("a", "Op")),
        ("# kernel@@b:Mul", "a:Op", ("a", "Op")),
    ],
)
def test_kernel_names(label, name, expected):
    assert parse_kernel_name(label, name) == expected


def test_lanes_are_free_strictly_after_their_last_op():
    ops = [SimpleNamespace(start=start, end=end, lane=-1) for start, end in [(0, 5), (5, 9), (6, 7), (8, 9), (10, 11)]]
    assign_lanes(ops)
    assert [op.lane for op in ops] == [1, 0, 1, 1, 0]


@pytest.mark.parametrize("seed", range(5))
def test_lanes_are_the_first_that_are_free(seed):
    chance, lanes, ends = random.Random(seed), Lanes(), []
    for _ in range(300):
        before = chance.choice([chance.randrange(1000), 2**70])
        end = before + chance.randrange(200)
        first = next((lane for lane, last in enumerate(ends) if last < before), len(ends))
        ends[first : first + 1] = [end]
        assert lanes.place(before, end) == first


@pytest.mark.parametrize(
    ("device", "process", "track", "on_gpu"),
    [
        ("/gpu:0/stream:7", "GPU 0", "stream 7", True),
        ("/gpu:0/stream:all", "GPU 0", "all streams", True),
        ("/device:GPU:1/memcpy", "GPU 1", "copies", True),
        ("/job:localhost/replica:0/task:0/device:GPU:2", "GPU 2", "ops", False),
        ("/job:worker/replica:0/task:3/gpu:1/stream:7.2", "worker 3 GPU 1", "stream 7.2", True),
        ("/job:ps/replica:1/task:3/device:CPU:0", "ps 1/3 CPU 0", "ops", False),
        ("/gpu:0 (Tesla V100)/context#1/stream#3", "GPU 0", "stream 3", True),
        ("/device:GPU:0/sync", "GPU 0", "sync", True),
        ("/cpu:0", "CPU 0", "ops", False),
        ("/job:worker/replica:0/task:3/host:CPU", "worker 3 host", "host threads", False),
        ("somewhere", "somewhere", "ops", False),
        ("", "(no name)", "ops", False),
        ("/gpu:0/annotations", "GPU 0", "annotations", False),
        ("/gpu:0/stream:", "GPU 0", "stream (no number)", True),
        ("/stream:7", "GPU", "stream 7", True),
        ("/process:1670242", "process 1670242", "ops", False),
        ("/Spans", "Spans", "ops", False),
        ("Steps/rank 3", "Steps", "rank 3", False),
    ],
)
def test_device_names(device, process, track, on_gpu):
    name = parse_device_name(device)
    assert (name.process, name.track, name.on_gpu) == (process, track, on_gpu)


def test_kernel_details_are_taken_apart():
    label = "void f<std::pair<int, a::b>>(int) regs:64 grid:8,1,1 occ_pct:50.5"
    activity = gpu_activity(node("layer1/conv:f", label))
    assert (activity.name, activity.op, activity.category) == ("f", "layer1/conv", "kernel")
    assert activity.full_name == "void f<std::pair<int, a::b>>(int)"
    assert activity.details == [("regs", "64"), ("grid", "8,1,1"), ("occ_pct", "50.5")]


def test_an_unshortened_kernel_name_is_not_cut_at_its_colons():
    activity = gpu_activity(node("void ns::f<std::pair<int, int> >(a::b)"))
    assert (activity.name, activity.op) == ("void ns::f<std::pair<int, int> >(a::b)", "")


@pytest.mark.parametrize(
    ("name", "label", "kind", "num_bytes", "source", "target"),
    [
        ("x:MEMCPYHtoD", "MEMCPYHtoD 4096 bytes (Pageable to Device)", "HtoD", 4096, "Pageable", "Device"),
        ("MemcpyD2H", "MemcpyD2H 12 bytes", "DtoH", 12, "", ""),
        ("MEMCPY<unknown>", "no bytes", "<unknown>", -1, "", ""),
        ("MEMCPYDtoD", f"{2**70} bytes", "DtoD", -1, "", ""),
    ],
)
def test_copies(name, label, kind, num_bytes, source, target):
    activity = gpu_activity(node(name, label))
    assert activity.category == "memcpy"
    assert (activity.copy_kind, activity.num_bytes, activity.source, activity.target) == (
        kind,
        num_bytes,
        source,
        target,
    )


@pytest.mark.parametrize(
    ("name", "category"),
    [("cudaLaunchKernel", "api"), ("cuStreamSynchronize", "sync"), ("cumsum", "op"), ("cudnn_conv", "op")],
)
def test_host_categories(name, category):
    assert host_activity(node(name)).category == category


@pytest.mark.parametrize(
    ("text", "number"), [("007", 7), ("-5", -5), ("1_0", None), (str(2**63), None), ("٣", None), ("9" * 5000, None)]
)
def test_numbers_in_labels(text, number):
    assert int64(text) == number


def test_tensor_descriptions_do_not_depend_on_the_runtime():
    description = TensorDescription(
        dtype=1,
        shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=-1, name="b\u00e4\n\x01'\"\\"), TensorShapeProto.Dim()]),
        allocation_description=AllocationDescription(requested_bytes=8, has_single_reference=True),
    )
    assert tensor_description_text(description) == (
        "dtype: DT_FLOAT\n"
        'shape {\n  dim {\n    size: -1\n    name: "b\u00e4\\n\\001\\\'\\"\\\\"\n  }\n  dim {\n  }\n}\n'
        "allocation_description {\n  requested_bytes: 8\n  has_single_reference: true\n}\n"
    )
    assert tensor_description_text(TensorDescription(dtype=77, shape=TensorShapeProto())) == "dtype: 77\nshape {\n}\n"


# --- TensorFlow's timeline ---


def test_worked_example():
    """The example that TensorFlow itself was asked for."""
    step = StepStats()
    cpu = step.dev_stats.add(device="/cpu:0")
    held = TensorDescription(allocation_description=AllocationDescription(requested_bytes=8, allocator_name="cpu"))
    output = [NodeOutput(tensor_description=held)]
    cpu.node_stats.add(
        node_name="a", timeline_label="a = Const()", all_start_micros=100, all_end_rel_micros=10, output=output
    )
    cpu.node_stats.add(
        node_name="b", timeline_label="b = Neg(a)", all_start_micros=110, all_end_rel_micros=10, output=output
    )
    gpu = step.dev_stats.add(device="/gpu:0/stream:all")
    gpu.node_stats.add(node_name="b:Neg", all_start_micros=115, all_end_rel_micros=3)

    analysis = Timeline(step).analyze_step_stats()
    text = analysis.chrome_trace.format_to_string()
    assert [event["name"] for event in events(text, "X")] == ["Const", "Neg", "Neg"]
    assert [event["tid"] for event in events(text, "X")] == [0, 1, 0]
    assert [(event["ts"], event["tid"]) for event in events(text, "s") + events(text, "t")] == [(110, 0), (110, 1)]
    assert [(event["ts"], event["args"]["cpu"]) for event in events(text, "C")] == [
        (100, 8),
        (110, 16),
        (119, 8),
        (120, 0),
    ]
    assert analysis.allocator_maximums == {"cpu": (110, 16, {"a", "b"})}


def test_nothing_gives_the_allocators_alone():
    assert json.loads(Timeline(StepStats()).generate_chrome_trace_format()) == {
        "traceEvents": [{"name": "process_name", "ph": "M", "pid": 0, "args": {"name": "Allocators"}}]
    }


def test_every_form_of_a_step_gives_one_text():
    whole = launched_step()
    text = Timeline(whole.step_stats).generate_chrome_trace_format()
    for form in (whole, whole.SerializeToString(), bytearray(whole.step_stats.SerializeToString())):
        assert Timeline(form).generate_chrome_trace_format() == text


def test_plain_objects_with_the_fields_are_accepted():
    description = SimpleNamespace(
        dtype=1, shape=None, allocation_description=SimpleNamespace(allocator_name="cpu", requested_bytes=4)
    )
    made = node(
        "a",
        "a = Const()",
        all_start_micros=5,
        all_end_rel_micros=1,
        output=[SimpleNamespace(tensor_description=description)],
    )
    step = SimpleNamespace(dev_stats=[SimpleNamespace(device="/cpu:0", node_stats=[made])])
    text = Timeline(step).generate_chrome_trace_format(show_memory=False)
    assert [event["name"] for event in events(text, "X")] == ["Const"]


def test_the_callers_step_is_left_alone():
    step = launched_step()
    before = copy.deepcopy(step)
    Timeline(step).generate_chrome_trace_format(show_memory=True, op_time="gpu")
    assert step == before


@pytest.mark.parametrize("data", [b"\x0a\xff", b"hello world", b"\x0a\x03\x0a\x01\xff", b"\x00"])
def test_rubbish_is_refused(data):
    with pytest.raises(InvalidFileError, match="message"):
        Timeline(data).generate_chrome_trace_format()


# --- telling messages apart ---


@pytest.mark.parametrize(
    "step",
    [
        StepStats(),
        StepStats(dev_stats=[{"device": "/cpu:0"}]),
        StepStats(dev_stats=[{"device": "/cpu:0", "node_stats": [{"node_name": "a"}]}]),
        StepStats(dev_stats=[{"node_stats": [{"node_name": "a"}]}]),
        StepStats(dev_stats=[{}, {"device": "x"}]),
        StepStats(dev_stats=[{"thread_names": {1: "a"}}]),
    ],
)
def test_messages_are_distinguished(step):
    assert parse_step(step.SerializeToString()) == step
    whole = RunMetadata(step_stats=step)
    assert is_run_metadata(whole.SerializeToString())
    assert parse_step(whole.SerializeToString()) == whole


@pytest.mark.parametrize(
    "step",
    [
        b"\x0a\x0b\x3a\x01x\x0a\x06/cpu:0",  # field 7 of the device, then its name
        b"\x0a\x0a\x0a\x06/cpu:0\x12\x00\x3a\x00",  # field 7 of the step
    ],
)
def test_fields_of_later_versions_do_not_hide_a_step(step):
    assert is_run_metadata(b"\x0a" + bytes([len(step)]) + step)


def test_only_run_metadata_has_more_than_devices():
    assert not is_run_metadata(b"\x0a\x0b\x3a\x01x\x0a\x06/cpu:0")
    assert not is_run_metadata(b"\x0a\x0a\x0a\x06/cpu:0\x12\x00")
    assert is_run_metadata(b"\x0a\x0a\x0a\x08\x0a\x06/cpu:0\x12\x00")
    assert is_run_metadata(b"\x0a\x05\x0a\x03abc\x12\x00")


@pytest.mark.parametrize(
    "step",
    [
        StepStats(),
        StepStats(dev_stats=[{}]),
        StepStats(dev_stats=[{"device": "/cpu:0", "node_stats": [{"node_name": "a"}] * 99}, {}, {"device": "x"}]),
        launched_step().step_stats,
    ],
)
@pytest.mark.parametrize("large", [False, True])
def test_a_step_written_device_by_device_is_the_same(step, large, monkeypatch):
    if large:
        monkeypatch.setattr(wire, "_NODES_OF_A_LARGE_STEP", 0)
        monkeypatch.setattr(wire, "_FIRST_PAGES", 1)
    assert bytes(serialized_step(step)) == step.SerializeToString()


def test_provenance_is_found_without_parsing_the_rest():
    whole = launched_step()
    assert provenance_of(whole.SerializeToString()) is None
    whole.provenance.source = "native"
    assert provenance_of(whole.SerializeToString()) == Provenance(source="native")


# --- the timeline ---


def test_timeline_viewed_states_the_step():
    text = chrome_trace(launched_step())
    trace = json.loads(text)
    processes = {e["pid"]: e["args"]["name"] for e in events(text, "M") if e["name"] == "process_name"}
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events(text, "M") if e["name"] == "thread_name"}
    assert [processes[pid] for pid in sorted(processes)] == ["GPU 0", "CPU 0"]
    assert [(processes[pid], threads[pid, tid]) for pid, tid in sorted(threads, key=lambda row: row[1])] == [
        ("GPU 0", "stream 0"),
        ("GPU 0", "stream 0 lane 2"),
        ("GPU 0", "copies"),
        ("CPU 0", "python3 (thread 4711)"),
    ]
    assert {processes[event["pid"]] for event in events(text, "C")} == {"GPU 0"}
    kernel = next(e for e in events(text, "X") if e["cat"] == "kernel")
    assert (kernel["name"], kernel["ts"], kernel["dur"]) == ("sgemm", 5.0, 1.001)
    assert '"ts":5.400,"dur":1.001' in text
    assert kernel["args"] == {
        "kernel": "void sgemm<float>(float const*)",
        "op": "layer1/conv",
        "registers": 64,
        "shared_bytes": 1024,
        "grid": [8, 1, 1],
        "block": [256, 1, 1],
        "correlation": 1,
        "waited_ns": 4000,
    }
    assert trace["otherData"]["base_time_ns"] == str(BASE_NS)
    assert trace["otherData"]["base_time"] == "2023-11-14T22:13:20.000000123Z"
    assert trace["displayTimeUnit"] == "ns"


@pytest.mark.parametrize(
    ("node_name", "name", "op"),
    [
        ("layer1/conv:Kernel<tensorop_gemm, Array<char*, 2>>", "Kernel<tensorop_gemm, Array<char*, 2>>", "layer1/conv"),
        ("Kernel<gemm>:Kernel<gemm>", "Kernel<gemm>", None),
        ("model(1)/conv:gemm<float>", "gemm<float>", "model(1)/conv"),
        ("ns::f<int>(x)", "ns::f<int>(x)", None),
    ],
)
def test_a_kernel_with_template_arguments_is_distinguished_from_its_op(node_name, name, op):
    steps = StepStats()
    stream = steps.dev_stats.add(device="/gpu:0/stream:0")
    stream.node_stats.add(node_name=node_name, timeline_label="void f(int)", all_start_micros=10)
    (kernel,) = events(chrome_trace(steps), "X")
    assert (kernel["name"], kernel["args"].get("op")) == (name, op)


def test_an_op_is_spelled_as_its_slice_on_the_host():
    steps = StepStats()
    steps.dev_stats.add(device="/cpu:0").node_stats.add(node_name="aten::copy_", all_start_micros=1)
    stream = steps.dev_stats.add(device="/gpu:0/stream:0")
    for op in ("aten.copy_", "layer.0"):
        stream.node_stats.add(node_name=f"{op}:k", timeline_label="k(int)", all_start_micros=10)
    slices = {event["name"]: event for event in events(chrome_trace(steps), "X")}
    assert "aten::copy_" in slices
    kernels = [event for event in events(chrome_trace(steps), "X") if event["name"] == "k"]
    assert [kernel["args"]["op"] for kernel in kernels] == ["aten::copy_", "layer.0"]


@pytest.mark.parametrize(
    ("node_name", "label", "arguments"),
    [
        ("op:MEMCPYHtoD", "MEMCPYHtoD (Pinned to Device)", {"op": "op", "from": "Pinned", "to": "Device"}),
        ("op:MEMCPYHtoD", "MEMCPYHtoD 8 bytes (Pinned to Device)", {"op": "op", "bytes": 8, "from": "Pinned"}),
        ("op:MEMCPY<unknown>", "MEMCPY<unknown> (Device to Device)", {"op": "op", "from": "Device", "to": "Device"}),
        ("op:MEMSET", "MEMSET (Device)", {"op": "op", "to": "Device"}),
    ],
)
def test_copies_of_unknown_size_or_kind_are_copies_without_a_size(node_name, label, arguments):
    steps = StepStats()
    stream = steps.dev_stats.add(device="/gpu:0/stream:0")
    stream.node_stats.add(node_name=node_name, timeline_label=label, all_start_micros=10)
    (copy,) = events(chrome_trace(steps), "X")
    assert copy["cat"] == ("memset" if "MEMSET" in label else "memcpy")
    assert copy["args"] == arguments | ({"to": "Device"} if "bytes" in arguments else {})


def test_arrows_join_calls_and_what_they_caused():
    text = chrome_trace(launched_step())
    slices = {(e["pid"], e["tid"], e["ts"]): e["name"] for e in events(text, "X")}
    starts = {e["id"]: slices[e["pid"], e["tid"], round(e["ts"], 3)] for e in events(text, "s")}
    ends = {e["id"]: slices[e["pid"], e["tid"], round(e["ts"], 3)] for e in events(text, "f")}
    assert len(ends) == len(events(text, "f")) == 3
    assert sorted((starts[i], ends[i]) for i in ends) == [
        ("cudaLaunchKernel", "sgemm"),
        ("cudaLaunchKernel", "sgemm"),
        ("cudaMemcpyAsync", "MEMCPYHtoD"),
    ]
    assert not events(chrome_trace(launched_step(), arrows=False), "s")


def test_ids_keep_perfetto_from_mixing_tracks():
    ids = {(e["pid"], e["tid"]) for e in events(chrome_trace(launched_step()), "X")}
    assert 0 not in {tid for _, tid in ids}
    assert not {pid for pid, _ in ids} & {tid for _, tid in ids}


def test_bytes_in_flight_are_counted():
    text = chrome_trace(launched_step())
    assert [(e["name"], e["ts"], e["args"]) for e in events(text, "C")] == [
        ("HtoD in flight", 7.0, {"bytes": 4096}),
        ("HtoD in flight", 7.25, {"bytes": 0}),
    ]


def test_filters():
    step = launched_step()
    assert {e["cat"] for e in events(chrome_trace(step, devices="gpu"), "X")} == {"kernel", "memcpy"}
    assert {e["name"] for e in events(chrome_trace(step, names="void sgemm"), "X")} == {"sgemm"}
    assert {e["name"] for e in events(chrome_trace(step, min_duration_ns=1001), "X")} == {"sgemm", "layer1/conv"}
    assert {e["name"] for e in events(chrome_trace(step, window_ns=(7100, None)), "X")} == {"MEMCPYHtoD", "layer1/conv"}


def test_the_longest_are_kept_and_the_rest_is_reported():
    text = chrome_trace(launched_step(), max_events=3)
    assert sorted(e["name"] for e in events(text, "X")) == ["layer1/conv", "sgemm", "sgemm"]
    other = json.loads(text)["otherData"]
    assert other["drawn"]["left_out"] == 5
    assert other["drawn"]["longest_left_out_ns"] == 500
    assert "left out the 5 shortest slices" in other["not_drawn"][0]


def test_nodes_without_a_possible_time_are_counted():
    step = launched_step()
    odd = step.step_stats.dev_stats[1].node_stats
    odd.add(node_name="never")
    odd.add(node_name="backwards", all_start_nanos=BASE_NS, all_end_rel_nanos=-1)
    odd.add(node_name="wrapped", all_start_nanos=2**63 - 1, all_end_rel_nanos=5)
    odd.add(node_name="huge", all_start_micros=2**62, all_end_rel_micros=1)
    trace = json.loads(chrome_trace(step))
    assert trace["otherData"]["drawn"]["untimed"] == 4
    assert trace["otherData"]["drawn"]["slices"] == 8


def test_losses_are_to_be_seen():
    step = launched_step()
    ledger = Ledger(records_dropped=12, early=3, launches_without_kernel=2)
    step.provenance.ledger.update(ledger.as_dict())
    step.provenance.window_start_nanos = BASE_NS - 50
    step.provenance.window_end_nanos = BASE_NS + 20_000
    step.provenance.losses.add(figure="launches_without_kernel", at_nanos=[BASE_NS + 3_000, BASE_NS + 7_000])
    text = chrome_trace(step)
    assert sorted((e["ts"], e["name"], e["s"]) for e in events(text, "i")) == [
        (0.0, "lost: 3 activities start before the step and are kept apart", "g"),
        (3.0, "lost: 2 launches succeeded but no activity of theirs was recorded", "g"),
        (7.0, "lost: 2 launches succeeded but no activity of theirs was recorded", "g"),
        (20.0, "lost: CUPTI dropped 12 records", "g"),
    ]
    assert "when is not known" in next(e for e in events(text, "i") if e["ts"] == 20.0)["args"]["details"]
    other = json.loads(text)["otherData"]
    assert other["losses"] == ledger.losses()
    assert other["ledger"]["records_dropped"] == 12
    assert "decode_cpu_ns" in other["tracer_cost"]


def test_files_are_whole_and_repeatable(tmp_path):
    step = launched_step()
    drawn = chrome_trace(step, tmp_path / "a.json.gz")
    chrome_trace(step, tmp_path / "b.json.gz")
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.json.gz").read_bytes()).decode() == chrome_trace(step)
    assert drawn.slices == 8
    with pytest.raises(InvalidFileError):
        chrome_trace(b"\x0a\xff", tmp_path / "c.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json.gz", "b.json.gz"]


def test_other_things_are_no_steps():
    with pytest.raises(TypeError, match=r"not of int$"):
        chrome_trace(5)


def test_a_view_is_plain():
    assert View() == View(devices=None, max_events=None)
