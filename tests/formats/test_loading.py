"""Reading traces back: every kind of file, whole, damaged, or something else altogether."""

from __future__ import annotations

import gzip
import io
import json
import re
import signal
import subprocess
import sys
import tarfile
import tracemalloc
import zipfile

import numpy as np
import pytest
from google.protobuf import text_format

pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from properties import examples

from collector.errors import InvalidFileError, OutputError
from collector.formats.foreign_files import FOREIGN
from collector.formats.loading import load
from collector.formats.registry import output_of
from collector.protos import DeviceStepStats, NodeExecStats, RunMetadata, StepStats
from collector.recording.ledger import Ledger
from collector.stepstats.from_recording import run_metadata
from collector.timeline import Timeline, chrome_trace
from tests.support.file_permissions import permissions_hold


def step(nodes=3):
    return StepStats(
        dev_stats=[
            DeviceStepStats(
                device="/gpu:0/stream:7",
                node_stats=[
                    NodeExecStats(
                        node_name=f"layer{i}:sgemm",
                        timeline_label="void sgemm<float>(int) regs:64",
                        all_start_micros=1_700_000_000_000_000 + 10 * i,
                        all_end_rel_micros=5,
                        op_end_rel_micros=5,
                    )
                    for i in range(nodes)
                ],
            )
        ]
    )


@pytest.fixture
def write(tmp_path):
    def write(name, data):
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    return write


@pytest.mark.medium
@pytest.mark.parametrize("start", ["", "\n", "\n "])
def test_the_text_of_a_trace_is_never_in_memory_as_a_whole(write, start):
    """PyTorch's traces begin with a line feed, as messages do."""
    events = [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": n, "dur": 1} for n in range(60_000)]
    path = write("trace.json", start + json.dumps({"schemaVersion": 1, "traceEvents": events}))
    load(path)  # what is imported on the way
    tracemalloc.start()
    try:
        load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < path.stat().st_size / 2


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("StepStats", step().SerializeToString()),
        ("RunMetadata", RunMetadata(step_stats=step()).SerializeToString()),
        ("StepStats", b"# a comment\n" + text_format.MessageToString(step()).encode()),
        ("RunMetadata", text_format.MessageToString(RunMetadata(step_stats=step())).encode()),
    ],
    ids=["StepStats", "RunMetadata", "StepStats text", "RunMetadata text"],
)
def test_messages_come_back_as_they_were(write, kind, data, pack):
    trace = load(write("step.pb", pack(data)))
    assert (trace.kind, trace.step_stats, trace.skipped, trace.warning) == (kind, step(), {}, "")


def test_a_gzip_file_in_several_parts(write):
    data = step(50).SerializeToString()
    assert load(write("step.pb", gzip.compress(data[:300]) + gzip.compress(data[300:]))).step_stats == step(50)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.json", b"", "the file is empty"),
        ("a.pb", b"", "the file is empty"),
        ("a.json", b'[{"frame": {"name": "ROOT"}, "children": []}, {"CUDA": {}}]', "a profile of Proton"),
        ("a.json", b'[{"name": "a"}]', "nothing is an event with a time"),
        ("a.json", b'[{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "p"}}]', "an event with a time"),
        ("a.json", b" \n ", "the file is empty"),
        ("a.json", b"{", "character 0"),
        ("a.json", b'{"a": 1}', "without a list of trace events"),
        ("a.json", b'{"traceEvents": 3}', "without a list of trace events"),
        ("a.json", b'{"nodes": [' + b'{"id": 1}, ' * 300_000 + b"3]}", "JSON without a list of trace events"),
        ("a.json", b'{"nodes": [' + b'{"id": 1}, ' * 300_000 + b"3", "JSON that is cut off or wrong before its list"),
        ("a.json", b"[" * 100_000, "nested too deeply"),
        ("a.json", b'[{"ph": "X", "ts": "soon"}]', "events without a possible time"),
        ("a.sqlite", b"SQLite format 3\0" + bytes(100), "an SQLite database"),
        ("a.pb", b"PK\x03\x04 but no archive", "not a recording"),
        ("a.pb", b"\x1f\x8b broken", "damaged gzip"),
        ("a.pb", b"\x0a\x05ab", "byte"),
        ("a.pb", b"<html></html>", "not a StepStats or RunMetadata message"),
        ("a.pb", b"\x08\x01\x12\x03abc", "not a StepStats or RunMetadata message"),
        ("a.pbtxt", "step_stats { dev_stats { device: 3 } }", "line 1, column"),
        ("a.pbtxt", "step_stats { dev_stats {", "broken proto text"),
    ],
)
def test_what_cannot_be_read_is_one_line_with_the_file_and_the_place(write, name, data, says):
    path = write(name, data)
    with pytest.raises(InvalidFileError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert says in message
    assert "\n" not in message


@pytest.mark.parametrize("name", ["locked/step.json", "locked", "n" * 300])
def test_what_cannot_be_looked_at_is_one_line_with_the_file(name, tmp_path):
    (tmp_path / "locked").mkdir(mode=0)
    with permissions_hold(), pytest.raises(InvalidFileError, match=f"^{tmp_path / name}: [A-Z][a-z ]*$"):
        load(tmp_path / name)


@pytest.mark.parametrize("text", ["{", "[" * 100_000], ids=["cut", "nested"])
@pytest.mark.parametrize("field", ["details", "other_tables"])
def test_columns_that_are_damaged_are_one_line_with_the_file(build, tmp_path, field, text):
    message = run_metadata(build.kernel("relu", 100).recording())
    setattr(message.capture, field, text)
    path = tmp_path / "step.pb"
    path.write_bytes(message.SerializeToString())
    with pytest.raises(InvalidFileError, match=f"^{path}: the columns of the step are damaged") as raised:
        _ = load(path).recording
    assert "\n" not in str(raised.value)


def test_names_of_devices_that_are_nested_too_deeply_are_left_out(build):
    message = run_metadata(build.kernel("relu", 100).recording())
    message.provenance.environment["devices"] = "[" * 100_000
    assert "relu" in chrome_trace(message)


def test_a_message_with_an_empty_step_is_an_empty_step(write):
    assert load(write("step.pb", b"\x0a\x00")).step_stats == StepStats()


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("num_bytes", [100, 1 << 16, 1 << 17])
@pytest.mark.parametrize(("magic", "what"), FOREIGN.items(), ids=FOREIGN.values())
def test_a_foreign_file_of_any_size_is_named(write, magic, what, num_bytes, pack):
    with pytest.raises(InvalidFileError) as caught:
        load(write("step.pb", pack(magic + bytes(num_bytes - len(magic)))))
    assert f"this is {what}, not a trace" in str(caught.value)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", ["step.json", "report.sqlite", "host.xplane.pb"])
def test_a_pointer_of_git_lfs_says_how_to_get_the_file(write, name, pack):
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"
    with pytest.raises(InvalidFileError, match=r"this is a pointer of Git LFS, not a trace\..*git lfs pull"):
        load(write(name, pack(pointer)))


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["tar", "tar.gz"])
@pytest.mark.parametrize("num_bytes", [100, 1 << 17])
def test_a_tar_archive_is_to_be_unpacked(write, num_bytes, pack):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo("trace.json")
        member.size = num_bytes
        archive.addfile(member, io.BytesIO(bytes(num_bytes)))
    with pytest.raises(InvalidFileError, match=r"this is a tar archive, not a trace\. Unpack it, and give"):
        load(write("traces.tar", pack(packed.getvalue())))


def test_a_zip_archive_without_a_recording_is_to_be_unpacked(write, tmp_path):
    with zipfile.ZipFile(tmp_path / "trace.zip", "w") as archive:
        archive.writestr("trace.json", '{"traceEvents": []}')
    with pytest.raises(InvalidFileError, match=r"a zip archive that holds no recording\. Unpack it, and give"):
        load(tmp_path / "trace.zip")


@pytest.mark.parametrize("num_bytes", [100, 1 << 17])
def test_a_table_of_a_recipe_of_nsight_systems_names_the_recipe(write, num_bytes):
    columns = b"\x15\x0cName\x15\x0cProjected Start\x15\x0cRangeStack"
    with pytest.raises(InvalidFileError) as caught:
        load(write("trace.parquet", b"PAR1" + bytes(num_bytes) + columns + b"PAR1"))
    assert "a Parquet table of the recipe nvtx_gpu_proj_trace of Nsight Systems" in str(caught.value)
    assert "nsys export --type sqlite" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_of_processes_and_threads_with_a_lone_surrogate(write):
    for name in ("p\ud800", "p\ud800 Compute", "/device:GPU:0 \ud800"):
        events = [
            {"ph": "M", "name": "process_name", "pid": "a\udfff", "args": {"name": name}},
            {"ph": "M", "name": "thread_name", "pid": "a\udfff", "tid": 1, "args": {"name": name}},
            {"ph": "X", "cat": "Op", "name": "x\ud800", "pid": "a\udfff", "tid": 1, "ts": 5, "dur": 1},
            {"ph": "X", "cat": "Op", "name": "x\ud800", "pid": "b\udfff", "tid": 1, "ts": 5, "dur": 1},
        ]
        devices = load(write("trace.json", json.dumps(events))).step_stats.dev_stats
        assert sum(len(device.node_stats) for device in devices) == 2


def test_a_field_of_another_wire_type_is_not_written_again(write, tmp_path):
    """protobuf keeps it as an unknown field; our reader refuses a message that has one."""
    node = step(1).dev_stats[0].node_stats[0].SerializeToString() + b"\x42\x02\xff\xff"
    bent = node + b"\x2d\0\0\0\0"  # all_end_rel_micros as a fixed32
    device = b"\x0a\x05/gpu:" + b"\x12" + bytes([len(bent)]) + bent
    trace = load(write("step.pb", b"\x0a" + bytes([len(device)]) + device))
    assert trace.skipped["bytes of unknown fields"] > 0
    assert load(write("again.pb", trace.serialized())).step_stats == trace.step_stats


def test_a_recording_comes_back_with_its_step(build, tmp_path):
    path = tmp_path / "step.gpurec"
    build.kernel("sgemm", 1000).memcpy(3000).recording().save(path)
    trace = load(path)
    assert (trace.kind, trace.warning) == ("recording", "")
    assert [device.device for device in trace.step_stats.dev_stats] == [
        "/gpu:0/stream:all",
        "/gpu:0/stream:7",
        "/gpu:0/memcpy",
    ]
    assert trace.recording.kernels.start_ns.tolist() == [1_700_000_000_000_001_000]


@pytest.mark.medium
@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 12_000), junk=st.binary(min_size=1, max_size=6), drop=st.integers(0, 6))
def test_a_damaged_recording_is_read_or_refused(build, tmp_path, at, junk, drop):
    path = tmp_path / "step.gpurec"
    if not path.exists():
        build.kernel("sgemm", 1000).recording().save(path)
    data = path.read_bytes()
    at = min(at, len(data))
    damaged = tmp_path / "damaged.gpurec"
    damaged.write_bytes(data[:at] + junk + data[at + drop :])
    message = ""
    try:
        load(damaged)
    except InvalidFileError as error:
        message = str(error)
    assert "\n" not in message


@pytest.mark.medium
def test_the_fuzzers_seeds_and_finds_are_still_read(root):
    done = subprocess.run(
        [sys.executable, root / "fuzz" / "fuzz_readers.py", "--replay"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.match(r"\d+ inputs", done.stdout)


def test_every_format_that_is_read_is_fuzzed(root, load_module):
    fuzzer = load_module(root / "fuzz" / "fuzz_readers.py")
    assert not set(fuzzer.readers()) - set(fuzzer.seeds()), "add a small file to seeds() of fuzz/fuzz_readers.py"
    assert not set(fuzzer.seeds()) - set(fuzzer.readers()), "seeds() of fuzz/fuzz_readers.py has files of no format"
    assert {folder.name for folder in (root / "fuzz" / "corpus").iterdir()} <= {*fuzzer.readers(), "converter"}


def test_a_missing_file_and_a_folder(tmp_path):
    for path in (tmp_path / "nothing.pb", tmp_path):
        with pytest.raises(InvalidFileError, match=str(path)):
            load(path)


def test_another_message_is_not_taken_for_a_step(write):
    from collector.protos import GraphDef, NodeDef

    graph = GraphDef(node=[NodeDef(name=f"n{i}", op="MatMul", input=["a", "b"]) for i in range(4)])
    with pytest.raises(InvalidFileError, match="not a StepStats or RunMetadata"):
        load(write("graph.pb", graph.SerializeToString()))


@pytest.mark.parametrize("whole", [step(20), RunMetadata(step_stats=step(20))], ids=["StepStats", "RunMetadata"])
def test_a_cut_message_keeps_its_whole_nodes(write, whole):
    data = whole.SerializeToString()
    trace = load(write("cut.pb", data[: len(data) * 3 // 4]))
    [device] = trace.step_stats.dev_stats
    kept = len(device.node_stats)
    assert 10 <= kept < 16
    assert list(device.node_stats) == list(step(20).dev_stats[0].node_stats)[:kept]
    assert trace.skipped == {"nodes cut off": 1}
    assert trace.cut_at == len(data) * 3 // 4
    assert "cut.pb" in trace.warning


def test_a_file_is_in_memory_once(write):
    data = step().SerializeToString() * 40_000  # messages that follow each other are one
    path = write("step.pb", data)
    tracemalloc.start()
    try:
        trace = load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert trace.wire()[0] == data
    assert peak < 1.5 * len(data)


@pytest.mark.medium
def test_the_text_of_a_message_is_never_in_memory_as_a_whole(tmp_path):
    message, path = RunMetadata(step_stats=step(5000)), tmp_path / "step.pbtxt"
    source = load_message(message, tmp_path)
    source.save(path)  # imports
    tracemalloc.start()
    try:
        source.save(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < path.stat().st_size / 2
    assert path.read_text() == text_format.MessageToString(source.run_metadata)


def load_message(message, folder):
    """The step in a file of this message."""
    (folder / "step.pb").write_bytes(message.SerializeToString())
    return load(folder / "step.pb")


def test_a_full_disk_is_one_error_for_a_text_too(tmp_path):
    full = tmp_path / "step.pbtxt"
    full.symlink_to("/dev/full")
    with pytest.raises(OutputError, match="No space left"):
        load_message(RunMetadata(step_stats=step(5000)), tmp_path).save(full)


def test_a_name_that_is_not_utf8_is_mended(write):
    data = step().SerializeToString().replace(b"layer1", b"layer\xff")
    trace = load(write("step.pb", data))
    assert [node.node_name for node in trace.step_stats.dev_stats[0].node_stats] == [
        "layer0:sgemm",
        "layer\ufffd:sgemm",
        "layer2:sgemm",
    ]
    assert sum(trace.skipped.values()) == 1


def test_damaged_gzip_keeps_what_came_before(write):
    data = gzip.compress(step(2000).SerializeToString(), mtime=0)
    trace = load(write("step.pb.gz", data[: len(data) // 2]))
    assert 0 < len(trace.step_stats.dev_stats[0].node_stats) < 2000
    assert trace.skipped["gzip streams cut off"] == 1


EVENTS = [
    {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}},
    {"ph": "M", "name": "thread_name", "pid": 9, "tid": 31, "args": {"name": "main"}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 31, "ts": 0.5, "dur": 9,
     "args": {"External id": 4}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 31, "ts": 2.25, "dur": 3,
     "args": {"correlation": 17}},
    {"ph": "X", "cat": "kernel", "name": "void ns::gemm<float>(int)", "pid": 0, "tid": 7, "ts": 1700000000001245.375,
     "dur": 1.0009, "args": {"device": 0, "stream": 7, "correlation": 17, "External id": 4, "grid": [2, 1, 1],
                             "registers per thread": 40}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7, "ts": 30, "dur": 2,
     "args": {"bytes": 4096}},
]  # fmt: skip


def as_json(events):
    # A double cannot hold the kernel's time: the text has to.
    return json.dumps(events).replace("1700000000001245.2", "1700000000001245.375").replace("1245.5", "1245.375")


def test_a_profilers_trace_becomes_our_devices(write):
    trace = load(write("trace.json", as_json({"traceEvents": EVENTS})))
    devices = {device.device: device for device in trace.step_stats.dev_stats}
    assert list(devices) == ["/cpu:0", "/gpu:0/stream:all", "/gpu:0/stream:7", "/gpu:0/memcpy"]
    copy, kernel = devices["/gpu:0/stream:7"].node_stats
    assert kernel.node_name == "aten.mm:gemm<float>"
    assert kernel.timeline_label == "void ns::gemm<float>(int) regs:40 shm:0 grid:2,1,1 block:0,0,0"
    assert kernel.all_start_nanos == 1_700_000_000_001_245_375
    assert kernel.all_end_rel_nanos == 1001  # 1.0009 us, to the nearest nanosecond
    assert (kernel.scheduled_nanos, kernel.thread_id) == (2250, 31)
    assert copy.node_name == "MEMCPYHtoD:MEMCPYHtoD"
    assert copy.timeline_label == "MEMCPYHtoD 4096 bytes (Pageable to Device)"
    assert dict(devices["/cpu:0"].thread_names) == {31: "main"}
    assert trace.skipped == {}


def row(category, name, start, duration, thread=1, **arguments):
    given = {key.replace("_", " "): value for key, value in arguments.items()}
    return {"ph": "X", "cat": category, "name": name, "pid": 9, "tid": thread, "ts": start, "dur": duration,
            "args": given}  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "op"),
    [
        ([row("cpu_op", "aten::view", 0, 5, External_id=17), row("cpu_op", "aten::mm", 10, 20, External_id=3)],
         "aten.mm"),
        ([row("Operator", "aten::linear", 0, 90), row("Operator", "aten::mm", 10, 20)], "aten.mm"),
        ([row("cpu_op", "aten::mm", 10, 20), row("cpu_op", "aten::linear", 10, 90)], "aten.mm"),
        ([row("cpu_op", "aten::t", 10, 90), row("cpu_op", "aten::mm", 10, 90)], "aten.mm"),
        ([row("user_annotation", "step", 0, 90), row("cpu_op", "aten::view", 5, 3)], "step"),
        ([row("cpu_op", "aten::mm", 0, 90), row("python_function", "forward", 10, 20)], "aten.mm"),
        ([row("cpu_op", "aten::mm", 0, 90), row("cpu_op", "aten::add", 10, 20, thread=2)], "aten.mm"),
        ([row("cpu_op", "aten::mm", 0, 90), row("cpu_op", "aten::add", 10, 2)], "aten.mm"),
        ([row("cpu_op", "aten::mm", 0, 12)], "gemm"),
    ],
    ids=[
        "external id is the correlation id", "innermost, early format", "same start", "same range", "user annotation",
        "no Python function", "another thread's", "one that ended", "ended as the call began",
    ],
)  # fmt: skip
def test_the_op_of_gpu_work_is_the_innermost_open_at_its_launch(write, rows, op):
    launch = row("cuda_runtime", "cudaLaunchKernel", 12, 4, correlation=17)
    kernel = row("kernel", "gemm", 50, 8, device=0, stream=7, correlation=17, External_id=17)
    [node] = devices_of(load(write("trace.json", json.dumps([kernel, *rows, launch]))))["/gpu:0/stream:7"]
    assert node.node_name == f"{op}:gemm"


def test_an_external_id_names_the_op_only_of_work_without_a_call(write):
    events = [
        row("cpu_op", "aten::mm", 0, 5, External_id=4),
        row("cuda_runtime", "cudaLaunchKernel", 12, 4, correlation=17),
        row("kernel", "called", 50, 8, device=0, stream=7, correlation=17, External_id=4),
        row("kernel", "orphan", 60, 8, device=0, stream=7, correlation=18, External_id=4),
    ]
    nodes = devices_of(load(write("trace.json", json.dumps(events))))["/gpu:0/stream:7"]
    assert [node.node_name for node in nodes] == ["called:called", "aten.mm:orphan"]


def devices_of(trace):
    return {device.device: list(device.node_stats) for device in trace.step_stats.dev_stats}


@pytest.mark.parametrize(
    "text",
    [
        as_json(EVENTS),
        as_json(EVENTS)[:-1],
        as_json(EVENTS)[:-1] + ",",
        as_json(EVENTS)[:-1] + ",\n]",
        "\ufeff" + as_json(EVENTS),
    ],
    ids=["list", "no bracket", "comma", "comma and bracket", "byte order mark"],
)
def test_a_trace_without_its_closing_brackets_is_whole(write, text):
    trace = load(write("trace.json", text))
    assert sum(len(device.node_stats) for device in trace.step_stats.dev_stats) == 7
    assert trace.warning == ""


UNCLOSED = "end of the file missing (its closing brackets are not there)"
NO_BASE = "base time cut off (the times do not say the date)"


@pytest.mark.parametrize(
    ("text", "skipped"),
    [
        ('{"traceEvents": ' + as_json(EVENTS)[:-1], {UNCLOSED: 1, NO_BASE: 1}),
        ('{"traceEvents": ' + as_json(EVENTS), {UNCLOSED: 1, NO_BASE: 1}),
        ('{"traceEvents": ' + as_json(EVENTS) + ', "baseTimeNano', {UNCLOSED: 1, NO_BASE: 1}),
        ('{"baseTimeNanoseconds": 1700000000000000000, "traceEvents": ' + as_json(EVENTS[:4])[:-1], {UNCLOSED: 1}),
        ('{"traceEvents": ' + as_json(EVENTS[4:5])[:-1], {UNCLOSED: 1}),
        ('{"traceEvents": ' + as_json(EVENTS[:4]) + ', "baseTimeNanoseconds": 1700000000000000000} and more', {}),
        ('{"traceEvents": ' + as_json(EVENTS[:4]) + "}", {}),
    ],
    ids=["no brackets", "no brace", "cut in the rest", "base before", "wall times", "more after it", "whole"],
)
def test_a_trace_whose_end_is_missing_says_so(write, text, skipped):
    trace = load(write("trace.json", text))
    assert trace.skipped == skipped
    assert sum(len(device.node_stats) for device in trace.step_stats.dev_stats) > 0


def test_a_base_time_after_the_events_counts_though_more_follows(write):
    text = '{"traceEvents": ' + as_json(EVENTS[2:4]) + ', "baseTimeNanoseconds": 1700000000000000000} and more'
    [device] = load(write("trace.json", text)).step_stats.dev_stats
    assert device.node_stats[0].all_start_nanos == 1_700_000_000_000_000_500


CUT = as_json(EVENTS)[:-20]
BROKEN_FILES = {
    "a.json": ('{"traceEvents": ' + CUT, "unreadable rest of the file"),
    "b.json": ('{"traceEvents": ' + as_json(EVENTS)[:-1], UNCLOSED),
    "c.json": (as_json([*EVENTS, {"ph": "X", "ts": "soon"}]), "events without a possible time"),
    "d.json.gz": (gzip.compress(as_json(EVENTS).encode(), mtime=0)[:-12], "gzip streams cut off"),
    "e.pb": (step(20).SerializeToString()[:400], "nodes cut off"),
    "f.pb": (step().SerializeToString() + b"\x0a", "unreadable rest of the file"),
    "g.pb": (step().SerializeToString().replace(b"layer1", b"layer\xff"), "texts that are not UTF-8 (mended)"),
}


@pytest.mark.parametrize("name", BROKEN_FILES)
@pytest.mark.parametrize("suffix", [".json", ".pb", ".pbtxt", ".json.gz"])
def test_what_is_made_of_a_broken_file_says_what_was_lost(write, tmp_path, name, suffix):
    content, reason = BROKEN_FILES[name]
    trace = load(write(name, content))
    made = tmp_path / f"made{suffix}"
    output_of(made)(trace, made)
    again = load(made)
    assert again.run_metadata.provenance.unread[reason] == 1
    lines = Ledger.of(again.run_metadata.provenance).losses()
    assert f"{reason} in the file that the step was read from: 1" in lines
    if suffix == ".json":
        about = json.loads(made.read_text())["otherData"]
        lines = trace.ledger.losses()
        assert about["losses"] == about["not_drawn"][-len(lines) :] == lines
        marks = [event["name"] for event in json.loads(made.read_text())["traceEvents"] if event["ph"] == "i"]
        assert f"lost: {reason} in the file that the step was read from" in marks


def test_a_whole_file_makes_a_trace_that_says_nothing_of_losses(write, tmp_path):
    made = tmp_path / "made.json"
    output_of(made)(load(write("step.pb", step().SerializeToString())), made)
    assert "losses" not in json.loads(made.read_text())["otherData"]
    assert json.loads(made.read_text())["otherData"]["not_drawn"] == []


def test_a_recordings_ledger_comes_back_with_its_drawn_trace(build, tmp_path):
    made = tmp_path / "made.json"
    build.counters["records_dropped"] = 7
    recording = build.kernel("sgemm", 1000).recording()
    chrome_trace(recording, made)
    found, expected = load(made).run_metadata.provenance, run_metadata(recording).provenance
    assert found.ledger == expected.ledger
    assert Ledger.of(found).losses() == recording.ledger.losses() != []
    assert (found.collector_version, found.source, found.simulated, found.environment) == (
        expected.collector_version,
        expected.source,
        expected.simulated,
        expected.environment,
    )


def test_a_loaded_trace_shows_itself_in_one_line(write):
    path = write("large.pb", step(1000).SerializeToString())
    trace = load(path)
    num_nodes = sum(len(device.node_stats) for device in trace.step_stats.dev_stats)
    assert num_nodes >= 1000
    assert repr(trace) == f"<Step {str(path)!r}: StepStats, 1 device, {num_nodes:,} nodes>"
    cut = load(write("cut.pb", path.read_bytes()[:-5]))
    assert repr(cut).endswith("nodes, not all of it could be read>")
    assert "\n" not in repr(load(write("a\nb.pb", step(1).SerializeToString())))


def test_a_row_of_a_drawn_trace_is_the_device_and_thread_it_was_drawn_from(tmp_path):
    device = DeviceStepStats(device="/cpu:0", thread_names={4711: "thread 0 (python)"})
    device.node_stats.add(node_name="op", all_start_nanos=1_000_000, all_end_rel_nanos=1000, thread_id=4711)
    chrome_trace(StepStats(dev_stats=[device]), tmp_path / "trace.json")
    [read] = load(tmp_path / "trace.json").step_stats.dev_stats
    assert (read.device, read.node_stats[0].thread_id) == ("/cpu:0", 4711)


def test_rows_of_older_traces_have_their_devices_in_the_names_of_processes(write):
    events = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "rank 3 GPU 0 stream 7 (/gpu:0/stream:7)"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 9, "args": {"name": "stream 7"}},
        {"ph": "X", "name": "sgemm", "cat": "kernel", "pid": 1, "tid": 9, "ts": 1, "dur": 2},
    ]
    path = write("old.json", json.dumps({"traceEvents": events, "otherData": {"base_time_ns": "500"}}).encode())
    gpu = "/job:worker/replica:0/task:3/gpu:0"
    assert [device.device for device in load(path).step_stats.dev_stats] == [f"{gpu}/stream:7", f"{gpu}/stream:all"]


def test_times_of_an_unknown_date_are_not_dated_1970(write, tmp_path):
    made = tmp_path / "made.json"
    chrome_trace(load(write("trace.json", as_json(EVENTS[2:4]))), made)
    about = json.loads(made.read_text())["otherData"]
    assert (about["base_time_ns"], about["base_time"]) == ("500", "")


def test_a_trace_cut_inside_an_event_says_so(write):
    text = as_json(EVENTS)
    trace = load(write("trace.json", text[:-20]))
    assert trace.cut_at == text.rindex('{"ph"')
    assert sum(len(device.node_stats) for device in trace.step_stats.dev_stats) == 4
    assert f"from position {trace.cut_at} on" in trace.warning


def test_odd_values_are_counted_not_believed(write):
    odd = [
        {"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 5, "dur": -1},
        {"ph": "X", "name": "b", "pid": 1, "tid": 1, "ts": 6},
        {"ph": "X", "name": "c", "pid": 1, "tid": 1, "ts": float("nan"), "dur": 1},
        {"ph": "X", "name": "d", "pid": 1, "tid": 1, "ts": 10**30, "dur": 1},
        {"ph": "X", "name": "e\ud800", "pid": [], "tid": {}, "ts": "8", "dur": "1e-1", "args": 3},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 3},
        {"ph": "B", "name": "f", "pid": 1, "tid": 1, "ts": 3},
        "not an event",
    ]
    trace = load(write("odd.json", json.dumps(odd)))
    nodes = [node for device in trace.step_stats.dev_stats for node in device.node_stats]
    assert [(node.node_name, node.all_start_nanos, node.all_end_rel_nanos) for node in nodes] == [
        ("a", 5000, 0),
        ("b", 6000, 0),
        ("e?", 8000, 100),
    ]
    assert trace.skipped == {
        "negative durations (taken as 0)": 1,
        "durations missing or impossible (taken as 0)": 1,
        "events without a possible time": 2,
        "ends without a beginning": 1,
        "beginnings without an end": 1,
        "events that are not objects": 1,
    }


SLICE = {"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}
OTHER_EVENTS = [
    {"ph": "b", "id": 1, "name": "request", "ts": 1, "pid": 1, "tid": 1, "cat": "c"},
    {"ph": "e", "id": 1, "name": "request", "ts": 9, "pid": 1, "tid": 1, "cat": "c"},
    {"ph": "C", "name": "GPU util", "ts": 1, "pid": 1, "args": {"v": 3}},
    {"ph": "i", "name": "mark", "ts": 1, "pid": 1, "tid": 1, "s": "t"},
    {"ph": "I", "name": "mark", "ts": 1, "pid": 1, "tid": 1},
    {"ph": "\n", "name": "odd", "ts": 1, "pid": 1, "tid": 1},
    {"ph": "i", "name": "Iteration Start: PyTorch Profiler", "ts": 0, "pid": "Traces", "tid": "Trace", "s": "g"},
    {"ph": "i", "name": "Record Window End", "ts": 9, "pid": "", "tid": "", "s": "g"},
    {"ph": "s", "id": 1, "name": "arrow", "ts": 1, "pid": 1, "tid": 1},
]


def test_events_that_no_table_takes_are_counted_by_their_phase(write):
    trace = load(write("others.json", as_json([SLICE, *OTHER_EVENTS])))
    assert trace.skipped == {
        "asynchronous events (phase b)": 1,
        "asynchronous events (phase e)": 1,
        "counters (phase C)": 1,
        "instants (phase i)": 1,
        "instants (phase I)": 1,
    }
    assert "instants (phase I) in the file that the step was read from: 1" in trace.ledger.losses()


def test_a_file_of_asynchronous_events_alone_says_so(write):
    path = write("async.json", as_json(OTHER_EVENTS[:2]))
    with pytest.raises(InvalidFileError, match=r"no event of it can be read \(asynchronous events \(phase b\), async"):
        load(path)


def test_threads_with_ids_beyond_32_bits_are_kept_apart(write):
    """Ids of pthreads are addresses, which have the same first digits."""
    threads = (140_234_567_890_123, 140_234_567_900_000, 140_234_567, "1402345678", "thread 7")
    events = [
        {"ph": "X", "cat": "cpu_op", "name": f"op{place}", "ts": 1000, "dur": 10, "pid": 7, "tid": thread}
        for place, thread in enumerate(threads)
    ] + [
        {"ph": "M", "name": "thread_name", "pid": 7, "tid": thread, "args": {"name": f"name {place}"}}
        for place, thread in enumerate(threads)
    ]
    recording = load(write("threads.json", as_json(events))).recording
    annotations = recording.annotations
    numbers = dict(zip(annotations.names(), annotations.thread_id.tolist(), strict=True))
    assert numbers == {"op0": 140_234_568, "op1": 140_234_569, "op2": 140_234_567, "op3": 1_402_345_678, "op4": 7}
    assert recording.environment["thread_names"] == {
        numbers[f"op{place}"]: f"name {place}" for place in range(len(threads))
    }


def test_begin_and_end_make_one_slice(write):
    events = [
        {"ph": "B", "name": "outer", "pid": 1, "tid": 1, "ts": 1},
        {"ph": "B", "name": "inner", "pid": 1, "tid": 1, "ts": 2},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 3},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 9},
    ]
    [device] = load(write("pairs.json", json.dumps(events))).step_stats.dev_stats
    assert [(n.node_name, n.all_start_nanos, n.all_end_rel_nanos) for n in device.node_stats] == [
        ("outer", 1000, 8000),
        ("inner", 2000, 1000),
    ]


@pytest.mark.medium
@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    base=st.sampled_from([
        step().SerializeToString(),
        RunMetadata(step_stats=step()).SerializeToString(),
        as_json(EVENTS).encode(),
        text_format.MessageToString(step()).encode(),
        gzip.compress(step().SerializeToString(), mtime=0),
    ]),
    at=st.integers(0, 400),
    junk=st.binary(max_size=6),
    drop=st.integers(0, 40),
)  # fmt: skip
def test_any_damage_gives_a_trace_or_one_line(tmp_path, base, at, junk, drop):
    path = tmp_path / "damaged.bin"
    path.write_bytes(base[:at] + junk + base[at + drop :])
    message = ""
    try:
        trace = load(path)
    except InvalidFileError as error:
        message = str(error)
    else:
        path.write_bytes(trace.serialized())
        assert load(path).step_stats == trace.step_stats
    assert "\n" not in message


@pytest.mark.medium
def test_tensors_of_loops_come_back_in_a_time_that_grows_with_their_number(write):
    """Nodes of one name by the thousand: each tensor was looked for among all of them."""
    many = 5_000
    nodes = [
        NodeExecStats(
            node_name="while/add",
            timeline_label="while/add = Add(while/add, while/add:1)",
            all_start_micros=10 * number,
            all_end_rel_micros=5,
            output=[{"slot": 0}, {"slot": 1}],
        )
        for number in range(many)
    ]
    step = StepStats(dev_stats=[DeviceStepStats(device="/cpu:0", node_stats=nodes)])
    text = Timeline(step).generate_chrome_trace_format(show_memory=True)
    [device] = load(write("loop.json", text)).step_stats.dev_stats
    assert [len(node.output) for node in device.node_stats] == [2] * many


def test_tensors_and_arrows_of_no_process(write):
    events = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/cpu:0 Compute"}},
        {"ph": "X", "cat": "Op", "name": "Add", "pid": 1, "tid": [], "ts": 5, "dur": 1, "args": {"name": "a"}},
    ]
    for more in ([{"ph": "N", "pid": []}, {"ph": "O", "pid": {}}], [{"ph": "s", "pid": [], "tid": {}, "ts": []}]):
        trace = load(write("odd.json", json.dumps(events + more)))
        assert [node.node_name for node in trace.step_stats.dev_stats[0].node_stats] == ["a"]


def test_an_escape_that_python_warns_of_is_read_in_silence(tmp_path):
    path = tmp_path / "step.pbtxt"
    path.write_text('dev_stats { device: "\\/gpu:0" }')
    assert load(path).step_stats.dev_stats[0].device == "\\/gpu:0"


def test_a_step_of_one_device_with_strange_fields_is_read_back(tmp_path):
    """Bytes of a RunMetadata begin like those of a StepStats: fields that are not known must not decide."""
    device = b"\x0a\x06/gpu:0" + b"\x3a\x01x" + b"\x1a\x05\x08\x01\x12\x01t"
    path = tmp_path / "step.pb"
    path.write_bytes(b"\x0a" + bytes([len(device)]) + device)
    trace = load(path)
    path.write_bytes(trace.serialized())
    again = load(path)
    assert again.step_stats == trace.step_stats
    assert [each.device for each in again.step_stats.dev_stats] == ["/gpu:0"]


@pytest.fixture
def two_kernels(build, tmp_path):
    """A step with a kernel at its begin, and another one at its end."""
    build.kernel("first", 0, 1000).kernel("second", 8000, 1000).recording().save(tmp_path / "step.gpurec")
    return tmp_path / "step.gpurec"


@pytest.mark.parametrize(
    ("window", "names"),
    [
        ((0, float("inf")), ["first", "second"]),
        ((float("-inf"), float("inf")), ["first", "second"]),
        ((0, 1e300), ["first", "second"]),
        ((None, 2e-6), ["first"]),
        ([5e-6, None], ["second"]),
        ((np.float32(5e-6), np.int64(1)), ["second"]),
        ((float("inf"), None), []),
    ],
)
def test_a_window_may_be_open_and_infinite(two_kernels, window, names):
    assert load(two_kernels, window=window).recording.kernels.names() == names


@pytest.mark.parametrize("window", [0, 1.5, "01", ("0", "1"), (0,), (0, 1, 2), (True, 1), {}])
def test_a_window_that_is_no_pair_of_numbers_is_refused(two_kernels, window):
    with pytest.raises(TypeError, match="window takes a pair of numbers in seconds"):
        load(two_kernels, window=window)


def test_a_window_with_an_end_that_is_no_number_is_refused(two_kernels):
    with pytest.raises(ValueError, match="NaN is not a time"):
        load(two_kernels, window=(float("nan"), 1))


def test_the_exception_of_a_signal_handler_is_none_of_the_file(tmp_path, monkeypatch):
    """A `TimeoutError` is an OSError, as those of a file that cannot be read are."""

    def end_waiting(*_: object) -> None:
        raise TimeoutError

    (tmp_path / "step.json").write_bytes(b'{"traceEvents": []}')
    before = signal.signal(signal.SIGALRM, end_waiting)
    try:
        monkeypatch.setattr("pathlib.Path.open", end_waiting)
        with pytest.raises(TimeoutError):
            load(tmp_path / "step.json")
    finally:
        signal.signal(signal.SIGALRM, before)
