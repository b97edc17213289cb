"""Columns from the arguments of PyTorch's profiler; its user's private data is left out."""

from __future__ import annotations

import json
import pickle
from collections import Counter

import numpy as np
import pytest

import collector
from collector import analysis
from collector.cli import main
from collector.formats.profiler_dialect import (
    CALL,
    GPU_ANNOTATION,
    KERNEL,
    MEMCPY,
    MEMSET,
    OP,
    OTHER,
    SYNC,
    ProfilerDialect,
    row_numbers,
)
from collector.recording.annotation_details import Argument, Details, Frame
from collector.recording.collective_rows import collective_rows
from collector.recording.cupti_enums import SYNC_TYPES
from collector.recording.recording import Recording
from collector.recording.schema import SCHEMA

GPU = {"device": 0, "context": 1, "stream": 7}
NO_STREAM = 2**32 - 1
SECRETS = ("secret-host", "secret-user", "secret-token", "--secret-flag")


def event(category, name, start, duration, **about):
    return {"ph": "X", "cat": category, "name": name, "pid": 9, "tid": 31, "ts": start, "dur": duration, **about}


@pytest.fixture(scope="module")
def step(tmp_path_factory):
    events = [
        event("user_annotation", "step", 0, 90, args={"External id": 1}),
        event("cpu_op", "aten::linear", 1, 50, args={"External id": 2, "Input Dims": [[2, 3]]}),
        event("cpu_op", "aten::mm", 2, 20, args={"External id": 3}),
        event("python_function", "model.py(3): forward", 2, 30, args={"Python id": 1}),
        event("cuda_runtime", "cudaGraphLaunch", 3, 4, args={"correlation": 5, "cbid": 311}),
        event("kernel", "gemm", 20, 8, args={**GPU, "correlation": 5, "graph id": 3, "graph node id": 2**33 + 1}),
        event("kernel", "relu", 30, 8, args={**GPU, "correlation": 5, "graph id": 3, "graph node id": 2**33 + 2}),
        event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 40, 2, args={**GPU, "correlation": 8, "bytes": 5 << 30}),
        event("cuda_sync", "Stream Wait Event", 45, 1, args={
            **GPU, "correlation": 9, "cuda_sync_kind": "Stream Wait Event", "wait_on_stream": 20,
            "wait_on_cuda_event_record_corr_id": 4, "wait_on_cuda_event_id": 6,
        }),
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 9, "tid": 31, "ts": 4.5, "s": "t",
         "args": {"Device Type": 1, "Device Id": 0, "Addr": 139624661909504, "Bytes": 4096, "Total Allocated": 4096}},
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 9, "tid": 31, "ts": 6, "s": "t",
         "args": {"Device Type": 1, "Device Id": 0, "Addr": 139624661909504, "Bytes": -4096, "Total Allocated": 0}},
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 9, "tid": 31, "ts": 7, "s": "t",
         "args": {"Device Type": 0, "Device Id": -1, "Addr": 1, "Bytes": 64}},
    ]  # fmt: skip
    trace = {
        "schemaVersion": 1,
        "hostName": SECRETS[0],
        "user": SECRETS[1],
        "environment": {"API_TOKEN": SECRETS[2]},
        "commandLine": ["python", SECRETS[3]],
        "traceEvents": events,
    }
    path = tmp_path_factory.mktemp("torch") / "trace.json"
    path.write_text(json.dumps(trace))
    return collector.load(path)


def test_kernels_know_their_graph_nodes(step):
    kernels = step.recording.kernels
    assert kernels.graph_id.tolist() == [3, 3]
    assert kernels.graph_node_id.tolist() == [2**33 + 1, 2**33 + 2]
    assert step.recording.annotations_of(kernels) == ["aten::mm", "aten::mm"]


def test_copies_may_be_larger_than_four_gib(step):
    assert step.recording.memcpys.num_bytes.tolist() == [5 << 30]


PEER = {"fromDevice": 2, "inDevice": 3, "toDevice": 4, "fromContext": 5, "inContext": 6, "toContext": 7}


def test_copies_between_gpus_know_where_they_ran_and_between_which(tmp_path):
    """Kineto states no ``device`` and no ``context`` for them."""
    on_gpu = {"device": 3, "context": 6, "stream": 7}
    copy = "Memcpy PtoP (Device -> Device)"
    events = [
        event("kernel", "before", 10, 20, args={**on_gpu, "correlation": 1}),
        event("gpu_memcpy", copy, 40, 50, args={**PEER, "stream": 7, "correlation": 2, "bytes": 4096}),
        event("kernel", "after", 100, 20, args={**on_gpu, "correlation": 3}),
    ]
    step = load_events(tmp_path, events)
    (row,) = step.recording.memcpys
    assert (row.device_id, row.context_id, row.stream_id) == (3, 6, 7)
    assert (row.src_device_id, row.src_context_id, row.dst_device_id, row.dst_context_id) == (2, 5, 4, 7)
    assert "arguments_without_columns" not in step.recording.environment
    assert analysis.streams(step)["stream_id"].tolist() == [7]
    assert {device.device for device in step.step_stats.dev_stats} >= {"/gpu:3/stream:7", "/gpu:3/memcpy"}


def test_annotations_lie_within_each_other_and_hold_no_functions_of_python(step):
    annotations = step.recording.annotations
    assert dict(zip(annotations.recorded_names(), annotations.depth.tolist(), strict=True)) == {
        "step": 0,
        "aten::linear": 1,
        "aten::mm": 2,
    }
    assert "nodes_without_columns" not in step.recording.ledger.source_counters


def other_ranges(recording):
    """Device, thread, its name, category, name, start and duration in ns of each row."""
    table, strings = recording.other_ranges, recording.strings
    texts = {
        name: [strings[place] for place in table[f"{name}_name_id"].tolist()]
        for name in ("device", "thread", "category")
    }
    starts_ns = table.start_ns + recording.clock.offset_ns
    columns = (table.recorded_names(), starts_ns.tolist(), table.duration_ns.tolist())
    return [*zip(texts["device"], table.thread_id.tolist(), texts["thread"], texts["category"], *columns, strict=True)]


def test_functions_of_python_are_ranges_of_their_thread(step):
    assert other_ranges(step.recording) == [("/cpu:0", 31, "", "python_function", "model.py(3): forward", 2000, 30_000)]


def test_ranges_of_gpus_and_processes_keep_their_rows(tmp_path):
    annotation = {"ph": "X", "cat": "gpu_user_annotation", "pid": 2, "tid": 7, "args": {"device": 2, "stream": 7}}
    named = {"ph": "M", "name": "thread_name", "pid": 11, "tid": 5, "args": {"name": "loader"}}
    events = [
        event("cpu_op", "aten::mm", 0, 50),
        {**event("cpu_op", "aten::add", 3, 5), "pid": 10, "tid": 4},
        {**event("python_function", "load", 1, 2), "pid": 11, "tid": 5},
        {**event("Trace", "PyTorch Profiler", 0, 60), "pid": "Spans", "tid": "x"},
        {**annotation, "name": "step", "ts": 4, "dur": 9},
        named,
    ]
    step = load_events(tmp_path, events)
    assert sorted(other_ranges(step.recording)) == [
        ("/gpu:2/annotations", 7, "annotations of stream 7", "gpu_user_annotation", "step", 4000, 9000),
        ("/process:11", 5, "loader", "python_function", "load", 1000, 2000),
        ("/profiler", 0, "", "Trace", "PyTorch Profiler", 0, 60_000),
    ]
    assert step.recording.environment["thread_devices"] == {4: "/process:10"}
    drawn = {device.device: device for device in step.step_stats.dev_stats}
    assert {name: [node.node_name for node in device.node_stats] for name, device in drawn.items()} == {
        "/cpu:0": ["aten::mm"],
        "/process:10": ["aten::add"],
        "/process:11": ["load"],
        "/profiler": ["PyTorch Profiler"],
        "/gpu:2/annotations": ["step"],
    }
    assert dict(drawn["/process:11"].thread_names) == {5: "loader"}


@pytest.mark.parametrize("suffix", [".gpurec", ".pb", ".json"])
def test_ranges_come_back_from_the_files_of_a_step(step, tmp_path, suffix):
    path = tmp_path / f"made{suffix}"
    step.save(path)
    again = collector.load(path)
    kept = slice(None) if suffix != ".json" else slice(4, None)  # a timeline has no categories
    drawn = [(row[:3], row[kept]) for row in other_ranges(again.recording)]
    assert [rest for _, rest in drawn] == [row[kept] for row in other_ranges(step.recording)]
    assert suffix == ".json" or again.step_stats == step.step_stats


def test_calls_know_their_process(step):
    calls = step.recording.api_calls
    assert (calls.process_id.tolist(), calls.thread_id.tolist()) == ([9], [31])


def test_waits_say_what_was_waited_for(step):
    (wait,) = step.recording.synchronizations
    assert SYNC_TYPES[wait.sync_type] == "Stream Wait Event"
    assert (wait.context_id, wait.stream_id, wait.correlation_id, wait.event_id) == (1, 7, 9, 6)
    (record,) = step.recording.cuda_events
    assert (record.stream_id, record.correlation_id, record.event_id) == (20, 4, 6)
    assert record.event_sync_id == wait.event_sync_id


def test_waits_without_a_stream_have_none(tmp_path):
    """Kineto writes -1 as their stream and as the thread of their row."""
    of_none = {"context": 1, "device": 0, "stream": -1}
    events = [
        event("cuda_sync", "Event Sync", 10, 5, tid=-1, args={
            **of_none, "correlation": 2, "cuda_sync_kind": "Event Sync", "wait_on_stream": -1,
            "wait_on_cuda_event_record_corr_id": 4, "wait_on_cuda_event_id": 6,
        }),
        event("cuda_sync", "Context Sync", 20, 5, tid=-1, args={
            **of_none, "correlation": 3, "cuda_sync_kind": "Context Sync",
        }),
        event("cuda_sync", "Stream Sync", 30, 5, tid=1, args={
            **of_none, "stream": 1, "correlation": 5, "cuda_sync_kind": "Stream Sync",
        }),
    ]  # fmt: skip
    step = load_events(tmp_path, events)
    waits = step.recording.synchronizations
    assert dict(zip(waits.correlation_id.tolist(), waits.stream_id.tolist(), strict=True)) == {
        2: NO_STREAM,
        3: NO_STREAM,
        5: 1,
    }
    assert waits.where(correlation_id=2).event_id.tolist() == [6]
    assert waits.where(sync_type=4).event_id.tolist() == waits.where(sync_type=3).event_id.tolist() == [2**32 - 1]
    assert step.recording.cuda_events.stream_id.tolist() == [NO_STREAM]
    drawn = json.loads(collector.chrome_trace(step))["traceEvents"]
    assert [each["args"].get("stream") for each in drawn if each.get("ph") == "X"] == [None, None, 1]


def test_waits_of_a_recorded_trace_without_a_stream_have_none(shared):
    path = shared / "data" / "gpu_traces" / "hta" / "a100_event_sync.json.gz"
    waits = collector.load(path).recording.synchronizations
    kinds = [SYNC_TYPES[kind] for kind in waits.sync_type.tolist()]
    assert sorted(zip(kinds, waits.stream_id.tolist(), strict=True)) == [
        ("Context Synchronize", NO_STREAM),
        ("Event Synchronize", NO_STREAM),
        ("Event Synchronize", NO_STREAM),
        ("Stream Synchronize", 7),
    ]


@pytest.mark.parametrize(
    ("given", "numbers"),
    [
        ([1, -1], [1, 2**32 - 1]),
        ([1107294656, -1107294656], [1107294656, 3187672640]),  # the lower halves of ids of pthreads
        (["-7", "stream 7", "thread-7", 7], [2**32 - 7, 7, 7, 7]),
        ([-(2**31), 2**31], [2**31, 2**31]),
        ([-(2**40)], [109951162]),
        ([-1.5, None, ""], [1, 0, 0]),
    ],
)
def test_numbers_of_rows(given, numbers):
    assert row_numbers(given) == numbers


def test_memory_of_gpus_is_given_out_and_taken_back(step):
    operations = step.recording.memory_operations
    assert operations.operation.tolist() == [1, 2]
    assert operations.num_bytes.tolist() == [4096, 4096]
    assert operations.address.tolist() == [139624661909504] * 2
    assert (operations.start_ns + step.recording.clock.offset_ns).tolist() == [4500, 6000]


@pytest.mark.parametrize("suffix", [".gpurec", ".pb", ".json"])
def test_nothing_of_the_machine_or_its_user_is_taken_over(step, tmp_path, suffix):
    path = tmp_path / f"made{suffix}"
    step.save(path)
    known = path.read_bytes() + repr(dict(step.recording.environment)).encode() + step.summary().encode()
    assert not [secret for secret in SECRETS if secret.encode() in known]


def test_arguments_that_no_column_takes_are_counted(tmp_path):
    def event(number, **arguments):
        return {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": number, "dur": 1, "args": arguments}

    named = {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "GPU 0", "unread": 1}}
    events = [event(1, stream=7, queued=0, **{"new\ud800": "x"}), event(2, stream=7, queued=3), event(3), named]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    assert collector.load(path).recording.environment["arguments_without_columns"] == {"queued": 2, "new?": 1}
    path.write_text(json.dumps({"traceEvents": [event(1, **{f"a{i:03}": i for i in range(130)}), event(2, a129=1)]}))
    counts = collector.load(path).recording.environment["arguments_without_columns"]
    assert list(counts.items())[:2] == [("a129", 2), ("a000", 1)]
    assert (len(counts), counts["(others)"]) == (101, 30)
    path.write_text(json.dumps({"traceEvents": [event(1, stream=7)]}))
    assert "arguments_without_columns" not in collector.load(path).recording.environment


def load_events(tmp_path, events):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return collector.load(path)


def details_by_name(recording):
    annotations = recording.annotations
    return {
        name: recording.details[number - 1] if number else None
        for name, number in zip(annotations.recorded_names(), annotations.details_id.tolist(), strict=True)
    }


OPS = [
    event("cpu_op", "aten::addmm", 0, 9, args={
        "External id": 1, "Input Dims": [[8], [4, 16], [], [[1, 2], [3]], "bent"],
        "Input type": ["float", "c10::Half", "Scalar", "TensorList"], "Concrete Inputs": ["", "", "1", ""],
    }),
    event("cpu_op", "aten::mm", 10, 9, args={"External id": 2, "Input Dims": [[4, 16], [16, 8]]}),
    event("cpu_op", "aten::t", 20, 9, args={"External id": 3, "Input dims": [[16, 8]], "Input type": ["float"]}),
    event("cpu_op", "aten::relu", 30, 9, args={"External id": 4, "Call stack":
          "/home/someone/env/lib/python3.11/site-packages/torch/nn/modules/module.py(12): _call;"
          "/home/someone/work/train.py(40): step;train.py(7): <module>"}),
    event("cpu_op", "aten::sum", 40, 9, args={"External id": 5, "Input Dims": [[], []], "Input type": ["", ""]}),
]  # fmt: skip


def test_ops_know_the_shapes_types_and_values_of_their_arguments(tmp_path):
    known = details_by_name(load_events(tmp_path, OPS).recording)
    assert known["aten::addmm"].arguments == (
        Argument((8,), "float"),
        Argument((4, 16), "c10::Half"),
        Argument((), "Scalar", "1"),
        Argument(((1, 2), (3,)), "TensorList"),
        Argument(),
    )
    assert known["aten::mm"] == Details(arguments=(Argument((4, 16)), Argument((16, 8))))
    assert known["aten::t"].arguments == (Argument((16, 8), "float"),)
    assert known["aten::sum"] is None


def test_call_stacks_of_ops_name_no_folders_of_a_user(tmp_path):
    stack = details_by_name(load_events(tmp_path, OPS).recording)["aten::relu"].stack
    assert stack == (
        Frame("train.py", 7, "<module>", 0),
        Frame("train.py", 40, "step", 0),
        Frame("site-packages/torch/nn/modules/module.py", 12, "_call", 0),
    )


@pytest.mark.parametrize("suffix", [".gpurec", ".pb", ".json", "timeline.json", "of_pb.json"])
def test_details_of_ops_are_in_every_file_of_the_recording(tmp_path, suffix):
    step = load_events(tmp_path, OPS)
    given = step if suffix == "timeline.json" else step.recording
    if suffix == "of_pb.json":
        given.save(tmp_path / "step.pb")
        given = collector.load(tmp_path / "step.pb")
    given.save(tmp_path / f"made{suffix}")
    again = collector.load(tmp_path / f"made{suffix}").recording
    names = {name.replace("::", "."): details for name, details in details_by_name(step.recording).items()}
    assert {name.replace("::", "."): details for name, details in details_by_name(again).items()} == names


def unique(pairs):
    """An object of JSON, each key of which stands once."""
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


def test_shapes_of_ops_stand_once_in_every_file(tmp_path):
    step = load_events(tmp_path, OPS)
    for trip in range(3):
        recording = step.recording
        assert set(recording.annotations.texts("shapes_text_id")) == {""}
        assert details_by_name(recording)["aten::mm"] == Details(arguments=(Argument((4, 16)), Argument((16, 8))))
        step.save(tmp_path / f"{trip}.json")
        json.loads((tmp_path / f"{trip}.json").read_text(), object_pairs_hook=unique)
        step = collector.load(tmp_path / f"{trip}.json")


@pytest.mark.parametrize("shapes", ["[[4], [2, 4]]", "[]", "[[]]", "4 times 2", '[["a"]]'])
def test_shapes_that_are_no_details_stay_a_text(build, tmp_path, shapes):
    assert build.text("") == 0  # that of ops without a text
    ids = {"shapes_text_id": build.text(shapes), "op_sequence": 5}
    build.annotation("aten::mm", 0, 10, 1).annotation("aten::mm", 20, 10, 2)
    build.rows["annotations"][0].update(ids)
    capture = build.capture()
    capture["details"] = [[0, 0, "", [], [], [[[4], "", ""], [[2, 4], "float", ""]]]]
    capture["tables"]["annotations"]["details_id"][1] = 1
    step = Recording.from_capture(capture)
    for trip in range(2):
        step.save(tmp_path / f"{trip}.json")
        json.loads((tmp_path / f"{trip}.json").read_text(), object_pairs_hook=unique)
        step = collector.load(tmp_path / f"{trip}.json").recording
        assert step.annotations.texts("shapes_text_id") == [shapes, ""]
        assert step.annotations.details_id.tolist() == [0, 1]
        assert list(step.details) == [Details(arguments=(Argument((4,)), Argument((2, 4), "float")))]


def test_a_slice_has_shapes_once_where_a_recording_has_them_twice(build, tmp_path):
    build.text("")
    build.annotation("aten::mm", 0, 10, 1)
    build.rows["annotations"][0].update(shapes_text_id=build.text("[[4]]"))
    capture = build.capture()
    capture["details"] = [[0, 0, "", [], [], [[[4], "float", ""]]]]
    capture["tables"]["annotations"]["details_id"][0] = 1
    Recording.from_capture(capture).save(tmp_path / "step.json")
    json.loads((tmp_path / "step.json").read_text(), object_pairs_hook=unique)


def test_a_timeline_shows_what_is_stated_of_ops(tmp_path):
    load_events(tmp_path, OPS).save(tmp_path / "made.json")
    events = json.loads((tmp_path / "made.json").read_text())["traceEvents"]
    shown = {each["name"]: each.get("args", {}) for each in events if each["ph"] == "X"}
    assert shown["aten::addmm"] == {
        "shapes": "[[8], [4, 16], [], [[1, 2], [3]], []]",
        "types": '["float", "c10::Half", "Scalar", "TensorList", ""]',
        "values": '["", "", "1", "", ""]',
    }
    assert json.loads(shown["aten::relu"]["stack"])[0] == ["train.py", 7, "<module>", 0]


@pytest.mark.parametrize(
    "bad", ["[", "[1]", "7", '{"a": 1}', "[[[[1]]]]", "[Infinity]", '["x", -1, {}]', "null", "\ud800"]
)
def test_arguments_of_ops_that_cannot_be_read_are_left_out(tmp_path, bad):
    load_events(tmp_path, OPS).save(tmp_path / "made.json")
    trace = json.loads((tmp_path / "made.json").read_text())
    for each in trace["traceEvents"]:
        for key in ("shapes", "types", "values", "stack", "flops", "num_bytes") if each["ph"] == "X" else ():
            each.setdefault("args", {})[key] = bad
    (tmp_path / "bad.json").write_text(json.dumps(trace))
    recording = collector.load(tmp_path / "bad.json").recording
    assert len(recording.annotations) == len(OPS)
    recording.save(tmp_path / "again.gpurec")
    assert collector.load(tmp_path / "again.gpurec").recording.details == recording.details


def test_work_without_a_call_belongs_to_the_op_of_its_id_in_lower_case(tmp_path):
    """As activities spell it before PyTorch 1.10."""
    events = [
        event("Operator", "aten::add", 0, 9, args={"External id": 5}),
        event("Kernel", "k", 20, 1, args={**GPU, "correlation": 900, "external id": 5}),
    ]
    recording = load_events(tmp_path, events).recording
    assert recording.annotations_of(recording.kernels) == ["aten::add"]


def collective(start, duration, group, **about):
    arguments = {
        **GPU, "stream": 20, "correlation": start, "Collective name": "allreduce", "Process Group Name": group,
        "Group size": 4, "In msg nelems": 512, "Out msg nelems": 2048, "dtype": "Float", "Seq": start, **about,
    }  # fmt: skip
    return event("kernel", "ncclDevKernel_AllReduce_Sum_f32", start, duration, args=arguments)


COLLECTIVES = [
    event("kernel", "gemm", 0, 10, args={**GPU, "correlation": 1}),
    collective(5, 20, "tensor_parallel"),
    collective(30, 10, "0"),
    collective(35, 10, "tensor_parallel", stream=21),
    event("kernel", "ncclDevKernel_AllGather", 50, 4, args={**GPU, "stream": 20, "correlation": 50}),
]


@pytest.mark.parametrize("suffix", [".gpurec", ".pb", ".json", "timeline.json", ""])
def test_collectives_know_their_process_group(tmp_path, suffix):
    step = load_events(tmp_path, [*COLLECTIVES, event("cpu_op", "a first name of many", -5, 1)])
    recording = step.recording
    if suffix:
        (step if suffix == "timeline.json" else recording).save(tmp_path / f"made{suffix}")
        recording = collector.load(tmp_path / f"made{suffix}").recording
    rows = collective_rows(recording)
    assert rows[rows >= 0].tolist() == [0, 1, 2]
    assert recording.collectives.texts("name_id") == ["allreduce"] * 3
    assert recording.collectives.texts("group_name_id") == ["tensor_parallel", "0", "tensor_parallel"]
    assert recording.collectives.texts("type_name_id") == ["Float"] * 3
    assert recording.collectives.group_size.tolist() == [4] * 3
    assert recording.collectives.sequence.tolist() == [5, 30, 35]
    assert recording.collectives.num_in_elements.tolist() == [512] * 3
    assert recording.collectives.num_out_elements.tolist() == [2048] * 3
    assert "arguments_without_columns" not in recording.environment


TABLES_OF_TIMELINES = {
    "kernels": ("start_ns", "end_ns", "device_id", "stream_id", "correlation_id", "grid_x", "registers_per_thread"),
    "memcpys": ("start_ns", "end_ns", "device_id", "stream_id", "num_bytes", "copy_kind", "src_kind", "dst_kind"),
    "memsets": ("start_ns", "end_ns", "device_id", "stream_id", "num_bytes"),
    "api_calls": ("start_ns", "end_ns", "thread_id", "correlation_id"),
    "annotations": ("start_ns", "end_ns", "thread_id"),
    "synchronizations": ("start_ns", "end_ns", "sync_type", "stream_id", "context_id", "correlation_id"),
    "memory_operations": ("start_ns", "operation", "memory_kind", "address", "num_bytes", "device_id"),
    "other_ranges": ("start_ns", "end_ns", "thread_id"),
    "collectives": tuple(column for column in SCHEMA["collectives"] if not column.endswith(("name_id", "context_id"))),
    "devices": tuple(column for column in SCHEMA["devices"] if column != "name_id"),
}  # fmt: skip
"""Table -> the columns that come back of a drawn timeline."""


@pytest.mark.parametrize("form", ["recording", "step"])
@pytest.mark.parametrize(
    "name", ["hta/a100_rank0of2_nccl_metadata.json.gz", "torch_tutorial/h100_transformer_before.json.gz"]
)
def test_tables_of_a_recorded_trace_come_back_of_our_own_timeline(shared, tmp_path, name, form):
    step = collector.load(shared / "data" / "gpu_traces" / name)
    given = step.recording
    (step if form == "step" else given).save(tmp_path / "made.json")
    again = collector.load(tmp_path / "made.json").recording
    for table, columns in TABLES_OF_TIMELINES.items():
        one, other = getattr(given, table), getattr(again, table)
        assert len(one) == len(other), table
        order = [np.lexsort([each[column] for column in reversed(columns)]) for each in (one, other)]
        for column in columns:
            assert np.array_equal(one[column][order[0]], other[column][order[1]]), (table, column)
    for table in ("kernels", "collectives", "devices"):
        names = [sorted(getattr(recording, table).recorded_names()) for recording in (given, again)]
        assert names[0] == names[1]
    assert (
        analysis.overlap(again, by="group").to_json()["rows"] == analysis.overlap(given, by="group").to_json()["rows"]
    )


def test_slices_have_no_launch_shape_where_none_is_stated(tmp_path):
    shape = {"grid": [4, 2, 1], "block": [64, 1, 1], "registers per thread": 18}
    kernels = [event("kernel", "a", 1, 2, args=GPU), event("kernel", "b", 5, 2, args={**GPU, **shape})]
    output = tmp_path / "drawn.json"
    load_events(tmp_path, kernels).save(output)
    events = json.loads(output.read_text())["traceEvents"]
    slices = [each.get("args", {}) for each in events if each.get("cat") == "kernel"]
    assert ["grid" in each or "registers" in each for each in slices] == [False, True]
    assert slices[1]["grid"] == [4, 2, 1]
    assert collector.load(output).recording.kernels.grid_x.tolist() == [0, 4]


@pytest.mark.parametrize("command", ["timeline", "merge"])
def test_slices_of_kernels_have_what_is_stated_of_their_collective(tmp_path, command):
    load_events(tmp_path, [{**each, "ts": each["ts"] + 1000} for each in COLLECTIVES])
    output = tmp_path / "drawn.json"
    assert main([command, str(tmp_path / "trace.json"), "-o", str(output)]) == 0
    slices = [each for each in json.loads(output.read_text())["traceEvents"] if each.get("cat") == "kernel"]
    stated = [{key: each["args"].get(key) for key in ("collective", "group", "elements")} for each in slices]
    assert {"collective": "allreduce", "group": "tensor_parallel", "elements": 512} in stated
    assert sum(each["group"] is not None for each in stated) == 3


def test_exposed_communication_is_divided_by_process_group(tmp_path):
    recording = load_events(tmp_path, COLLECTIVES).recording
    answer = analysis.overlap(recording, by="group")
    found = [(row["group"], row["kernels"], row["communication_ns"], row["exposed_ns"], row["exposed_alone_ns"])
             for row in answer]  # fmt: skip
    assert found == [
        ("(no group)", 1, 4_000, 4_000, 4_000),
        ("0", 1, 10_000, 10_000, 5_000),
        ("tensor_parallel", 2, 30_000, 25_000, 20_000),
        ("(several groups)", 0, 5_000, 5_000, 5_000),
    ]
    assert answer.totals["exposed_alone_ns"] == analysis.overlap(recording).totals["exposed_communication_ns"]


UNREAD = [
    event("cpu_op", "aten::mm", 0, 9, args={"External id": 2, "Ev Idx": 7, "Input Dims": [[1]]}),
    event("cpu_op", "aten::t", 1, 2, args={"External id": 3, "note": "of /home/someone/x.py", "Collective name": "x"}),
    event("cuda_runtime", "cudaLaunchKernel", 3, 1, args={"correlation": 5, "cbid": 211}),
    event("kernel", "late", 30, 1, args={**GPU, "correlation": 6, "queued": 1, "ratio": 0.10, "sizes": [1, 2]}),
    event("kernel", "early", 20, 1, args={**GPU, "correlation": 5, "queued": 0, "ratio": "0.10", "Call stack": "s"}),
]


@pytest.mark.parametrize("is_saved", [False, True])
def test_arguments_that_no_column_takes_are_kept_as_text(tmp_path, is_saved):
    recording = load_events(tmp_path, UNREAD).recording
    if is_saved:
        recording.save(tmp_path / "made.gpurec")
        recording = collector.load(tmp_path / "made.gpurec").recording
    arguments = recording.arguments
    assert arguments.of_row("kernels", 0) == {"queued": "0", "ratio": "0.10", "Call stack": "s"}
    assert arguments.of_row("kernels", 1) == {"queued": "1", "ratio": "0.1", "sizes": "[1, 2]"}
    assert arguments.of_row("annotations", 0) == {"Ev Idx": "7"}
    assert arguments.of_row("annotations", 1) == {"note": "of ~/x.py", "Collective name": "x"}
    assert arguments.of_row("api_calls", 0) == {"cbid": "211"}
    assert arguments.tables["kernels"]["sizes"].values(2) == [None, "[1, 2]"]
    late = recording.kernels.start_ns[1]
    assert recording.between(late).arguments.of_row("kernels", 0) == arguments.of_row("kernels", 1)
    assert pickle.loads(pickle.dumps(recording)).arguments.of_row("kernels", 1) == arguments.of_row("kernels", 1)


ELSEWHERE = [
    event("cpu_op", "triton_poi", 0, 9, args={"External id": 2, "grid": "grid(100,)", "stream": 0, "bytes": 1}),
    event("cuda_runtime", "cudaLaunchKernel", 3, 1, args={"correlation": 5, "grid": [3, 1, 1], "stream": "0x0"}),
    event("python_function", "f", 1, 1, args={"stream": 8, "Seq": 1}),
    event("gpu_user_annotation", "step", 20, 9, args={"stream": 7, "device": 0, "grid": "none"}),
    event("cuda_sync", "Stream Sync", 40, 1, args={**GPU, "correlation": 6, "bytes": 2, "Addr": 3}),
    event("gpu_memset", "Memset (Device)", 50, 1, args={**GPU, "correlation": 7, "bytes": 4, "grid": 5, "toDevice": 6}),
    event("kernel", "k", 20, 1, args={**GPU, "correlation": 5, "bytes": 7, "Device Id": 8, "wait_on_stream": 9}),
    {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 9, "tid": 31, "ts": 4, "s": "t",
     "args": {"Device Type": 1, "Device Id": 0, "Addr": 139624661909504, "Bytes": 4096, "stream": 7}},
    {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 9, "tid": 31, "ts": 5, "s": "t",
     "args": {"Device Type": 0, "Device Id": -1, "Addr": 1, "Bytes": 64, "Total Allocated": 64}},
]  # fmt: skip


def test_arguments_with_a_column_in_another_table_are_kept_as_text(tmp_path):
    recording = load_events(tmp_path, ELSEWHERE).recording
    rows = {table: [recording.arguments.of_row(table, 0)] for table in SCHEMA if len(getattr(recording, table))}
    rows["other_ranges"].append(recording.arguments.of_row("other_ranges", 1))
    assert {table: own for table, own in rows.items() if any(own)} == {
        "annotations": [{"grid": "grid(100,)", "stream": "0", "bytes": "1"}],
        "api_calls": [{"grid": "[3, 1, 1]", "stream": "0x0"}],
        "other_ranges": [{"stream": "8", "Seq": "1"}, {"grid": "none"}],
        "synchronizations": [{"device": "0", "bytes": "2", "Addr": "3"}],
        "memsets": [{"grid": "5", "toDevice": "6"}],
        "kernels": [{"bytes": "7", "Device Id": "8", "wait_on_stream": "9"}],
        "memory_operations": [{"stream": "7"}],
    }
    assert recording.environment["arguments_without_columns"] == {
        "grid": 4, "stream": 4, "bytes": 3, "Addr": 1, "Device Id": 1, "Seq": 1, "Total Allocated": 1, "device": 1,
        "toDevice": 1, "wait_on_stream": 1,
    }  # fmt: skip


@pytest.mark.medium
def test_no_argument_of_any_row_is_left_out(tmp_path):
    """What an event states is in a column, among the arguments of its row, or an id that links rows."""
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies
    names = [
        "grid",
        "block",
        "bytes",
        "stream",
        "device",
        "context",
        "Seq",
        "dtype",
        "Addr",
        "Call stack",
        "fromDevice",
    ]
    names += ["Input Dims", "cuda_sync_kind", "wait_on_stream", "shared memory", "graph id", "size", "unheard of"]
    categories = ["cpu_op", "cuda_runtime", "kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "Trace"]
    made = st.lists(
        st.tuples(st.sampled_from([*categories, "gpu_user_annotation"]), st.sets(st.sampled_from(names))), max_size=8
    )
    tables = {
        "cpu_op": "annotations", "cuda_runtime": "api_calls", "kernel": "kernels", "gpu_memcpy": "memcpys",
        "gpu_memset": "memsets", "cuda_sync": "synchronizations",
    }  # fmt: skip
    kinds = {
        "annotations": OP, "api_calls": CALL, "kernels": KERNEL, "memcpys": MEMCPY, "memsets": MEMSET,
        "synchronizations": SYNC,
    }  # fmt: skip

    @hypothesis.given(made)
    def check(events):
        stated = [
            event(category, "e", 10 * place, 5, args=dict.fromkeys(sorted(own), "x"))
            for place, (category, own) in enumerate(events)
        ]
        recording = load_events(tmp_path, stated).recording
        counts = Counter()
        for table in {tables.get(category, "other_ranges") for category, _ in events}:
            of_table = [each for each in events if tables.get(each[0], "other_ranges") == table]
            kept = sorted(
                sorted(recording.arguments.of_row(table, row)) for row in range(len(getattr(recording, table)))
            )
            read = [
                ProfilerDialect.arguments_of[kinds.get(table, GPU_ANNOTATION if "user" in category else OTHER)]
                for category, _ in of_table
            ]
            left = [sorted(own - taken) for (_, own), taken in zip(of_table, read, strict=True)]
            assert kept == sorted(left)
            counts.update(name for own in left for name in own)
        assert recording.environment.get("arguments_without_columns", {}) == dict(counts)

    check()


def test_launch_shapes_and_sizes_that_only_the_calls_of_hip_state(tmp_path):
    on_gpu = {"device": 2, "stream": 0}
    launch = {"grid": [3, 2, 1], "block": [128, 1, 1], "shared memory": 512}
    in_threads = {"grid": [512, 8, 1], "block": [256, 3, 1], "shared memory": 0}
    copy = "Memcpy HtoD (Host -> Device)"
    events = [
        event("cuda_runtime", "hipLaunchKernel", 0, 1, args={"correlation": 1, **launch}),
        event("cuda_runtime", "hipExtModuleLaunchKernel", 2, 1, args={"correlation": 2, **in_threads}),
        event("cuda_runtime", "hipMemcpyWithStream", 4, 1, args={"correlation": 3, "size": "2560", "kind": "1"}),
        event("cuda_runtime", "hipMemcpyWithStream", 6, 1, args={"correlation": 4, "size": "99"}),
        event("cuda_runtime", "hipLaunchKernel", 8, 1, args={"correlation": 5, **launch}),
        event("cuda_runtime", "hipMemcpyAsync", 9, 1, args={"correlation": 6, "size": "64"}),
        event("kernel", "in_blocks", 10, 1, args={**on_gpu, "correlation": 1}),
        event("kernel", "in_threads", 20, 1, args={**on_gpu, "correlation": 2}),
        event("kernel", "stating", 30, 1, args={**on_gpu, "correlation": 5, "grid": [7, 1, 1], "shared memory": 9}),
        event("kernel", "alone", 40, 1, args=on_gpu),
        event("gpu_memcpy", copy, 50, 1, args={**on_gpu, "correlation": 3}),
        event("gpu_memcpy", copy, 60, 1, args={**on_gpu, "correlation": 4, "bytes": 5}),
        event("gpu_memcpy", copy, 70, 1, args={**on_gpu, "correlation": 6}),
        event("gpu_memcpy", copy, 80, 1, args={**on_gpu, "correlation": 6}),
    ]
    recording = load_events(tmp_path, events).recording
    found = {
        kernel.name: (
            (kernel.grid_x, kernel.grid_y, kernel.grid_z),
            (kernel.block_x, kernel.block_y, kernel.block_z),
            kernel.dynamic_shared_bytes,
        )
        for kernel in recording.kernels
    }
    assert found == {
        "in_blocks": ((3, 2, 1), (128, 1, 1), 512),
        "in_threads": ((2, 3, 1), (256, 3, 1), 0),
        "stating": ((7, 1, 1), (128, 1, 1), 9),
        "alone": ((0, 0, 0), (0, 0, 0), 0),
    }
    # The size of a call is that of its only copy; of two it is not known which has how much.
    assert recording.memcpys.num_bytes.tolist() == [2560, 5, 0, 0]
    assert recording.arguments.of_row("api_calls", 2) == {"size": "2560", "kind": "1"}


def test_a_process_that_is_named_as_a_gpu_is_no_cpu(tmp_path):
    """As in the traces of rocmProfileData, whose work has no category."""
    events = [
        {"ph": "M", "name": "process_name", "pid": "2", "args": {"name": "GPU2"}},
        {"ph": "X", "name": "CopyHostToDevice", "pid": "2", "tid": "0", "ts": "1", "dur": "5"},
        {"ph": "X", "name": "hipMemcpy", "pid": "1087077", "tid": "1087077", "ts": "0", "dur": "8"},
    ]
    step = load_events(tmp_path, events)
    assert {device.device: [node.node_name for node in device.node_stats] for device in step.step_stats.dev_stats} == {
        "/GPU2": ["CopyHostToDevice"], "/cpu:0": ["hipMemcpy"],
    }  # fmt: skip
    step.save(tmp_path / "again.json")
    assert {each.device for each in collector.load(tmp_path / "again.json").step_stats.dev_stats} == {"/GPU2", "/cpu:0"}


def test_calls_of_hip_are_launches_captures_and_waits(tmp_path):
    on_gpu = {"device": 0, "stream": 0}
    events = [
        event("cuda_runtime", "hipLaunchKernel", 0, 2, args={"correlation": 1}),
        event("cuda_runtime", "hipStreamBeginCapture", 3, 1, args={"correlation": 2}),
        event("cuda_runtime", "hipExtModuleLaunchKernel", 5, 1, args={"correlation": 3}),
        event("cuda_runtime", "hipStreamEndCapture", 7, 1, args={"correlation": 4}),
        event("cuda_runtime", "hipGraphLaunch", 9, 1, args={"correlation": 5}),
        event("cuda_runtime", "hipDeviceSynchronize", 11, 89, args={"correlation": 6}),
        event("cuda_runtime", "hipModuleLaunchKernel", 101, 1, args={"correlation": 7}),
        event("kernel", "eager", 4, 6, args={**on_gpu, "correlation": 1}),
        event("kernel", "node", 20, 10, args={**on_gpu, "correlation": 5}),
        event("kernel", "node", 30, 10, args={**on_gpu, "correlation": 5}),
        event("kernel", "after", 110, 10, args={**on_gpu, "correlation": 7}),
    ]
    step = load_events(tmp_path, events)
    assert (step.ledger.launches_seen, step.ledger.launches_matched, step.ledger.launches_captured) == (4, 3, 1)
    assert step.ledger.losses() == []
    (idle,) = analysis.idle(step)
    assert idle["synchronize_ns"] == 60_000
    domains = {row["domain"] for row in analysis.calls(step)}
    assert domains == {"runtime"}


def test_calls_of_unified_runtime_and_of_level_zero_are_launches_and_waits(tmp_path):
    """The calls of one launch have one correlation id, as those of CUDA's runtime and driver."""
    on_gpu = {"device": 0, "stream": 0}
    events = [
        event("xpu_runtime", "urEnqueueKernelLaunch", 0, 4, args={"correlation": 1}),
        event("xpu_driver", "zeCommandListAppendLaunchKernel", 1, 2, args={"correlation": 1}),
        event("xpu_runtime", "urQueueFinish", 5, 95, args={"correlation": 2}),
        event("xpu_runtime", "urEnqueueKernelLaunch", 101, 1, args={"correlation": 3}),
        event("kernel", "gemm_kernel", 10, 10, args={**on_gpu, "correlation": 1}),
        event("kernel", "gemm_kernel", 110, 10, args={**on_gpu, "correlation": 3}),
    ]
    step = load_events(tmp_path, events)
    assert (step.ledger.launches_seen, step.ledger.launches_matched) == (2, 2)
    assert step.ledger.losses() == []
    (idle,) = analysis.idle(step)
    assert idle["synchronize_ns"] == 80_000


def test_a_recorded_trace_of_hip_has_launch_shapes(shared):
    recording = collector.load(shared / "data" / "gpu_traces" / "hta" / "mi250_minitoy.json.gz").recording
    kernels = recording.kernels
    assert (kernels.grid_x > 0).all()
    assert set(zip(kernels.block_x.tolist(), kernels.block_y.tolist(), strict=True)) == {
        (128, 1), (256, 1), (32, 4), (512, 1),
    }  # fmt: skip
    gemms = [kernel for kernel in kernels if kernel.name.startswith("Cijk_")]
    assert [(kernel.grid_x, kernel.grid_y) for kernel in gemms] == [(2, 1), (2, 8)]
    assert recording.memcpys.num_bytes.tolist() == [2560, 2560]


def test_recordings_of_our_own_have_no_further_arguments(tmp_path):
    assert dict(load_events(tmp_path, [event("kernel", "k", 1, 1, args=GPU)]).recording.arguments.tables) == {}


def test_numbers_of_autograd_link_ops_to_their_backward_passes(tmp_path):
    evaluation = "autograd::engine::evaluate_function: MmBackward0"
    events = [
        event("cpu_op", "aten::matmul", 0, 30, args={"External id": 1, "Sequence number": 7, "Fwd thread id": 0}),
        event("cpu_op", "aten::mm", 5, 20, args={"External id": 2, "Sequence number": 7, "Fwd thread id": 0}),
        event("cuda_runtime", "cudaLaunchKernel", 6, 4, args={"correlation": 5, "External id": 2}),
        event("cpu_op", evaluation, 50, 40, tid=32, args={"External id": 3, "Sequence number": 7, "Fwd thread id": 1}),
        event("cpu_op", "aten::t", 55, 5, tid=32, args={"External id": 4, "Sequence number": -1}),
        event("cuda_runtime", "cudaLaunchKernel", 56, 4, tid=32, args={"correlation": 6, "External id": 4}),
        event("kernel", "gemm", 20, 8, args={**GPU, "correlation": 5, "External id": 2}),
        event("kernel", "gemm", 70, 16, args={**GPU, "correlation": 6, "External id": 4}),
    ]
    (tmp_path / "trace.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    found = collector.load(tmp_path / "trace.json")
    assert found.recording.annotations.op_sequence.tolist() == [8, 8, 8, 0]
    (row,) = analysis.backward(found)
    assert (row["path"], row["node"]) == ("aten::matmul/aten::mm", "MmBackward0")
    assert (row["forward_ns"], row["backward_ns"]) == (8_000, 16_000)
    assert "Sequence number" not in found.recording.environment.get("arguments_without_columns", {})
