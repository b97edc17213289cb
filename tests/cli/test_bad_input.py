"""Bad input to every command and function: one clear line and no output, or the readable part and a count."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import struct
import threading
import zlib

import pytest
from reference.in_python import use_python

import collector
from collector.cli import main
from collector.errors import InvalidFileError, OutputError, UnknownFormatError
from collector.profiler import Profiler
from collector.protos import DeviceStepStats, GraphDef, NodeDef, NodeExecStats, RunMetadata, StepStats

START_NS = 1_700_000_000_000_000_000


def kernel(number, **fields):
    times = {"all_start_nanos": START_NS + 100 * number, "all_end_rel_nanos": 50}
    return NodeExecStats(node_name=f"op{number}:k", timeline_label="k regs:1", **times | fields)


STREAM = DeviceStepStats(device="/gpu:0/stream:7", node_stats=[kernel(number) for number in range(40)])
STEP = StepStats(dev_stats=[STREAM])
NO_DEVICES = b"\x0a\x00"
"""A message with an empty step."""
WIRE = STEP.SerializeToString()
STORED = gzip.compress(WIRE, compresslevel=0, mtime=0)  # its bytes as they are, behind 15 of heads
ODD_TIMES = StepStats(
    dev_stats=[
        DeviceStepStats(
            device="/gpu:0/stream:7",
            node_stats=[
                kernel(0),
                kernel(1, all_start_nanos=-5),
                kernel(2, all_end_rel_nanos=-2),
                kernel(3, all_start_nanos=2**63 - 1, all_end_rel_nanos=2**63 - 1),
                NodeExecStats(node_name="without"),
            ],
        )
    ]
).SerializeToString()
KERNEL = b'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2,"args":{"stream":7}}'
OPS = b'{"name":"process_name","ph":"M","pid":1,"args":{"name":"/cpu:0 Compute"}},'
GRAPH = GraphDef(node=[NodeDef(name=f"n{number}", op="MatMul") for number in range(4)]).SerializeToString()
RANDOM = bytes.fromhex("d1f07c0a995be22341")


def event(**fields):
    return json.dumps(
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2} | fields
    ).encode()


REFUSED = {
    "protobuf cut in its first node": ("a.pb", WIRE[:30], "at byte 30: the file ends inside field"),
    "a graph": ("a.pb", GRAPH, "not a StepStats or RunMetadata message (at byte"),
    "noise": ("a.pb", RANDOM * 50, "not a StepStats or RunMetadata message (at byte"),
    "zeros": ("a.pb", bytes(100_000), "(at byte 0: field number 0"),
    "a web page": ("a.json", b"<!DOCTYPE html><html></html>", "(at byte 0"),
    "proto text cut off": ("a.pbtxt", b'dev_stats { device: "/cpu:0"', "broken proto text at "),
    "proto text with a number too large": (
        "a.pbtxt",
        b"dev_stats {\n node_stats {\n all_start_micros: 9999999999999999999 } }",
        "broken proto text at line 3, column 20",
    ),
    "gzip cut in its head": ("a.json.gz", gzip.compress(b"[" + KERNEL)[:4], "is empty (gzip streams cut off: 1)"),
    "damaged gzip": ("a.pb.gz", b"\x1f\x8b\x08\x00" + b"\xff" * 40, "damaged gzip"),
    "nothing in gzip": ("a.json.gz", gzip.compress(b""), "the file is empty"),
    "nothing": ("a.json", b"", "the file is empty"),
    "nothing called a recording": ("a.gpurec", b"", "the file is empty"),
    "white space": ("a.json", b" \n" * 5000, "the file is empty"),
    "JSON cut before its events": ("a.json", b'{"traceEvents"', "(character 0)"),
    "JSON cut in its first event": ("a.json", b"[" + KERNEL[:20], "position 1)"),
    "JSON of something else": ("a.json", b'{"a": 1}', "without a list of trace events (character 0)"),
    "JSON nested too deeply": ("a.json", b"[" * 200_000, "nested too deeply (character 0)"),
    "a recording cut short": ("a.gpurec", b"PK\x03\x04" + bytes(50), "not a recording, or cut short"),
}
"""Name -> (file, content, what is said)."""

_OF_THE_STEP = ("the file has no GPU work",)
"""Warnings about a step of which all could be read."""
DRAWN = {
    "protobuf cut in a later node": ("a.pb", WIRE[: len(WIRE) // 2], 19, f"from position {len(WIRE) // 2} on: nodes"),
    "gzip cut in the middle": ("a.pb.gz", STORED[: len(WIRE) // 2 + 15], 19, "gzip streams cut off: 1, nodes"),
    "JSON without its closing bracket": ("a.json", b"[" + KERNEL, 1, ""),
    "JSON that ends with a comma": ("a.json", b"[" + KERNEL + b",", 1, ""),
    "JSON object that ends with a comma": (
        "a.json",
        b'{"traceEvents":[' + KERNEL + b",",
        1,
        "end of the file missing (its closing brackets are not there): 1",
    ),
    "JSON cut in a later event": (
        "a.json",
        b"[" + KERNEL + b"," + KERNEL[:30],
        1,
        f"from position {len(KERNEL) + 2} on",
    ),
    "NaN": ("a.json", b"[" + event(ts=float("nan")) + b"," + KERNEL + b"]", 1, "events without a possible time: 1"),
    "infinity": ("a.json", b"[" + event(dur=float("inf")) + b"]", 1, "durations missing or impossible (taken as 0): 1"),
    "negative durations": ("a.json", b"[" + event(dur=-3) + b"]", 1, "negative durations (taken as 0): 1"),
    "negative times": ("a.json", b"[" + event(ts=-3) + b"," + KERNEL + b"]", 2, ""),
    "huge times": ("a.json", b"[" + event(ts=10**30) + b"," + KERNEL + b"]", 1, "events without a possible time: 1"),
    "numbers of thousands of digits": (
        "a.json",
        b"[" + event(ts=1).replace(b'"ts": 1', b'"ts": ' + b"9" * 5000) + b"," + KERNEL + b"]",
        1,
        "events without a possible time: 1",
    ),
    "a huge base": (
        "a.json",
        b'{"traceEvents":[' + KERNEL + b'],"otherData":{"base_time_ns":"9223372036854775807"}}',
        1,
        "impossible base times (taken as 0): 1",
    ),
    "a profiler's huge base": (
        "a.json",
        b'{"traceEvents":[' + KERNEL + b'],"baseTimeNanoseconds":9223372036854775807}',
        1,
        "impossible base times (taken as 0): 1",
    ),
    "odd times in a message": ("a.pb", ODD_TIMES, 1, "could not place 4 nodes in time"),
    "invalid UTF-8 in a message": ("a.pb", WIRE.replace(b"op7", b"o\xff7"), 40, "texts that are not UTF-8 (mended): 1"),
    "invalid UTF-8 in JSON": (
        "a.json",
        b"[" + KERNEL.replace(b'"k"', b'"k\xff"') + b"]",
        1,
        "bytes that are not UTF-8 (the first at byte 35; mended): 1",
    ),
    "half a surrogate pair": ("a.json", b"[" + event(name="k\ud800") + b"]", 1, ""),
    "a device listed twice": ("a.pb", StepStats(dev_stats=[STREAM, STREAM]).SerializeToString(), 80, ""),
    "no events": ("a.json", b"[]", 0, *_OF_THE_STEP),
    "a RunMetadata without a step": ("a.pb", RunMetadata(step_stats=StepStats()).SerializeToString(), 0, ""),
    "devices without nodes": ("a.pb", StepStats(dev_stats=[{"device": "/cpu:0"}] * 2).SerializeToString(), 0, ""),
}
"""Name -> (file, content, slices, what is said)."""


@pytest.fixture
def write(tmp_path):
    def write(name, data):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


def files_of(folder):
    return sorted(path.name for path in folder.iterdir())


def read_strictly(data):
    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(data.decode("utf-8"), parse_constant=refuse)


def slices(path):
    trace = read_strictly(path.read_bytes())
    # Of a merge, without the slices that are the steps.
    return sum(event["ph"] == "X" and not event["name"].startswith("step ") for event in trace["traceEvents"])


COMMANDS = [
    pytest.param("timeline", "out.json", id="timeline"),
    pytest.param("timeline", "out.pftrace", id="timeline-pftrace"),
    pytest.param("timeline", "out.xplane.pb", id="timeline-xplane"),
    pytest.param("merge", "out.json", id="merge"),
]


@pytest.mark.parametrize(("command", "output"), COMMANDS)
@pytest.mark.parametrize("shape", REFUSED)
def test_refused(shape, command, output, write, tmp_path, capsys):
    name, data, says = REFUSED[shape]
    path = write(name, data)
    assert main([command, str(path), "-o", str(tmp_path / output)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"collector: {path}: ")
    assert says in printed.err
    assert printed.err.count("\n") == 1
    assert files_of(tmp_path) == [name]
    with pytest.raises(InvalidFileError) as caught:
        collector.load(path)
    assert printed.err == f"collector: {' '.join(str(caught.value).split())}\n"


@pytest.mark.parametrize("name", ["a.pb", "a.pbtxt", "a.pb.gz"])
@pytest.mark.parametrize("output", ["out.json", "out.pb", "out.xplane.pb"])
def test_a_file_without_a_byte_is_no_step_to_convert(name, output, write, tmp_path, capsys):
    """A message without any field has no bytes, but then there is nothing to convert either."""
    path = write(name, gzip.compress(b"") if name.endswith(".gz") else b"")
    assert main(["timeline", str(path), "-o", str(tmp_path / output)]) == 2
    assert capsys.readouterr().err == f"collector: {path}: the file is empty. Record the step again\n"
    assert files_of(tmp_path) == [name]


@pytest.mark.parametrize("shape", DRAWN)
def test_drawn(shape, write, tmp_path, capsys):
    name, data, count, says = DRAWN[shape]
    output = tmp_path / "out.json"
    path = write(name, data)
    assert main(["timeline", str(path), "-o", str(output)]) == 0
    printed = capsys.readouterr()
    assert slices(output) == count
    assert printed.out == ""
    assert says in printed.err
    assert bool(printed.err) == bool(says)
    assert all(line.startswith("collector: ") for line in printed.err.splitlines())
    trace = collector.load(path)
    assert collector.chrome_trace(trace) == output.read_text()
    if says and says not in _OF_THE_STEP and "could not place" not in says:
        assert says in trace.warning
        assert str(path) in trace.warning
    others = ["out.pb", "out.pbtxt", "out.xplane.pb", "out.pftrace"]
    for other in others:
        assert main(["timeline", str(path), "-o", str(tmp_path / other)]) == 0
    assert collector.load(tmp_path / "out.pb").step_stats == trace.step_stats
    assert collector.load(tmp_path / "out.pbtxt").step_stats == trace.step_stats


@pytest.mark.parametrize("shape", DRAWN)
def test_drawn_by_merge(shape, write, tmp_path, capsys):
    """Beside a step that is whole: what is broken is told, and what is there is drawn."""
    name, data, count, says = DRAWN[shape]
    output = tmp_path / "out.json"
    whole = write("whole.pb", WIRE)
    path = write(name, data)
    with contextlib.suppress(InvalidFileError):
        if collector.load(path).kind.endswith("trace") or "base" in shape:
            whole.write_bytes(NO_DEVICES)  # counts from another beginning: too far from a step of our time
    status = main(["merge", str(path), str(whole), "-o", str(output)])
    printed = capsys.readouterr()
    if whole.read_bytes() == NO_DEVICES and count == 0:
        assert (status, files_of(tmp_path)) == (2, sorted([name, "whole.pb"]))
        assert printed.err == f"collector: {path}: nothing in it has a time, nor in the others\n"
        return
    assert status == 0, printed.err
    assert slices(output) == count + (0 if whole.read_bytes() == NO_DEVICES else 40)
    if "could not place" in says:
        assert "nodes without a possible time: 4" in printed.err
    else:
        assert says in printed.err


@pytest.mark.parametrize("length", [91, 123])
def test_a_message_that_begins_like_json_is_a_message(length, write):
    """A device of 91 bytes begins with a line feed and ``[``, of 123 with a line feed and ``{``."""
    padding = length - len(DeviceStepStats(device="d", node_stats=[kernel(0)]).SerializeToString())
    device = DeviceStepStats(device="d" * (padding + 1), node_stats=[kernel(0)])
    step = StepStats(dev_stats=[device])
    data = step.SerializeToString()
    assert data[:2] in (b"\n[", b"\n{")
    trace = collector.load(write("a.pb", data))
    assert (trace.kind, trace.step_stats, trace.warning) == ("StepStats", step, "")


@pytest.mark.parametrize("text", [b"\n[" + KERNEL + b"]", b'\n{"traceEvents":[' + KERNEL + b"]}", b"\n[\n" + KERNEL])
def test_json_after_an_empty_line_is_json(text, write):
    trace = collector.load(write("a.json", text))
    assert (trace.kind, trace.warning) == ("Chrome trace", "")
    assert [device.device for device in trace.step_stats.dev_stats] == ["/gpu:0/stream:all", "/gpu:0/stream:7"]


# --- the converters themselves, which take bytes


@pytest.fixture(params=["native", "python"])
def each_backend(request, monkeypatch):
    if request.param == "python":
        use_python(monkeypatch)


@pytest.mark.parametrize("whole", [WIRE, RunMetadata(step_stats=STEP).SerializeToString()], ids=["step", "metadata"])
def test_chrome_trace_of_cut_bytes_names_the_place(whole, each_backend):
    with pytest.raises(InvalidFileError, match=r"not a whole (StepStats|RunMetadata) message: .* \(at byte \d+\)"):
        collector.chrome_trace(whole[: len(whole) // 2])


def test_chrome_trace_of_a_cut_message_leaves_no_file(tmp_path, each_backend):
    with pytest.raises(InvalidFileError):
        collector.chrome_trace(WIRE[:100], tmp_path / "out.json")
    assert files_of(tmp_path) == []


def test_timeline_of_cut_bytes_names_the_place(each_backend):
    with pytest.raises(InvalidFileError, match=r"not a (whole )?StepStats message: .* \(at byte \d+\)"):
        collector.Timeline(WIRE[: len(WIRE) // 2]).generate_chrome_trace_format()


@pytest.mark.parametrize("number", [10**30, -(10**30)])
def test_times_beyond_64_bits_filter_like_the_largest_there_are(number, each_backend):
    text = collector.chrome_trace(STEP, window_ns=(None, number), min_duration_ns=0)
    drawn = json.loads(text)["otherData"]["drawn"]
    assert (drawn["slices"], drawn["filtered"]) == ((40, 0) if number > 0 else (0, 40))
    assert json.loads(collector.chrome_trace(STEP, max_events=10**30))["otherData"]["drawn"]["slices"] == 40


@pytest.mark.parametrize("number", ["-1", "²", "2.5", "1_000", "+5", " 5", "9" * 5000])
@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("timeline step.pb -o out.json --max-events", "is not a number of slices"),
        ("bench . --runs", "is not a number of runs"),
        ("ui . --port", "is not a port"),
    ],
)
def test_a_count_is_of_digits_alone_and_of_at_most_4300(words, says, number, capsys):
    with pytest.raises(SystemExit):
        main([*words.split(), number])
    assert f"'{number}' {says}" in capsys.readouterr().err


def test_fewer_events_than_none_are_refused():
    with pytest.raises(ValueError, match="max_events is -1"):
        collector.chrome_trace(STEP, max_events=-1)


# --- what is not an ordinary file


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "timeline",
            "this is a folder, and not a journal. "
            "Name a file in it, or merge its traces: collector merge FOLDER -o FILE",
        ),
        ("merge", "there are no traces in this folder. Give files of steps, a folder of them, or a pattern"),
    ],
)
def test_a_folder(command, message, tmp_path, capsys):
    folder = tmp_path / "a.pb"
    folder.mkdir()
    assert main([command, str(folder), "-o", str(tmp_path / "out.json")]) == 2
    assert capsys.readouterr().err == f"collector: {folder}: {message}\n"


def feed(pipe, data):
    def write():
        with contextlib.suppress(BrokenPipeError):
            pipe.write_bytes(data)

    thread = threading.Thread(target=write)
    thread.start()
    return thread


def test_a_pipe_is_read_as_a_file_is(build, tmp_path):
    build.kernel("sgemm", 1000).recording().save(tmp_path / "step.gpurec")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    large = StepStats(dev_stats=[STREAM] * 50).SerializeToString()
    for data, kind in (
        (WIRE, "StepStats"),
        (large, "StepStats"),
        ((tmp_path / "step.gpurec").read_bytes(), "recording"),
    ):
        writer = feed(pipe, data)
        assert collector.load(pipe).kind == kind
        writer.join()


def test_a_pipe_cannot_be_merged(tmp_path, capsys):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert main(["merge", str(pipe), "-o", str(tmp_path / "out.json")]) == 2
    assert "a pipe can be read only once. Write it to a file first" in capsys.readouterr().err
    assert files_of(tmp_path) == ["pipe"]


@pytest.mark.parametrize(
    ("start", "num_bytes", "says"),
    [
        (b"", 3 << 30, "(at byte 0: field number 0"),
        (WIRE + bytes(1 << 16), 3 << 30, "larger than the 2 GiB that a protobuf message can be"),
        (b"[" + KERNEL + b" " * (1 << 16), 5 << 30, "larger than 4 GiB"),
    ],
    ids=["zeros", "message", "JSON"],
)
def test_a_sparse_file_of_gigabytes_is_refused_without_being_read(start, num_bytes, says, tmp_path):
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.write(start)
        file.truncate(num_bytes)
    with pytest.raises(InvalidFileError, match=str(path)) as caught:
        collector.load(path)
    assert says in str(caught.value)


@pytest.mark.medium
def test_gigabytes_in_gzip_are_refused_by_the_first_of_them(write):
    packer = zlib.compressobj(wbits=31)
    data = b"".join(packer.compress(bytes(1 << 20)) for _ in range(64)) + packer.flush()
    with pytest.raises(InvalidFileError, match="at byte 0: field number 0"):
        collector.load(write("bomb.pb.gz", data * 60))


def test_a_device_without_an_end_is_refused():
    with pytest.raises(InvalidFileError, match="/dev/zero: not a StepStats or RunMetadata message"):
        collector.load("/dev/zero")


# --- what is written and cannot be read back


@pytest.mark.parametrize(
    ("output", "called", "what"),
    [
        ("step.pftrace", "step.pftrace", "a Perfetto trace"),
        ("step.pftrace.gz", "step.pftrace.gz", "a Perfetto trace"),
        ("step.pftrace", "step.json", "a Perfetto trace"),
        ("step.pftrace", "step", "a Perfetto trace"),
    ],
)
def test_what_cannot_be_read_back_says_what_it_is(output, called, what, write, tmp_path, capsys):
    step = write("in.pb", WIRE)
    assert main(["timeline", str(step), "-o", str(tmp_path / output)]) == 0
    path = (tmp_path / output).rename(tmp_path / called)
    assert main(["timeline", str(path), "-o", str(tmp_path / "again.json")]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"collector: {path}: this is {what}, which cannot be read back. ")
    assert printed.count("\n") == 1


def test_a_perfetto_trace_as_other_programs_begin_it_is_reported(write):
    packet = b"\x32\x04\x0a\x02\x08\x06\x18\x05\x50\x01"  # clocks, user, sequence
    path = write("other", b"\x0a" + struct.pack("B", len(packet)) + packet)
    with pytest.raises(InvalidFileError, match="this is a Perfetto trace"):
        collector.load(path)


# --- outputs


@pytest.mark.parametrize("command", ["timeline", "merge"])
@pytest.mark.parametrize("suffix", ["", ".txt", ".perfetto-trace", ".pftrace.zip", ".jsonl"])
def test_a_suffix_without_a_format_is_named_with_those_that_have_one(suffix, command, write, tmp_path, capsys):
    step = write("in.pb", WIRE)
    output = tmp_path / f"out{suffix}"
    assert main([command, str(step), "-o", str(output)]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"collector: {output}: no format ")
    assert all(word in printed for word in ("Use ", ".json", ".pftrace"))
    assert printed.count("\n") == 1
    assert files_of(tmp_path) == ["in.pb"]


@pytest.mark.parametrize("name", ["out", "out.txt", "out.pb", "out.perfetto-trace"])
def test_chrome_trace_draws_into_what_has_a_traces_suffix_alone(name, tmp_path):
    with pytest.raises(UnknownFormatError, match=r"no trace has this suffix\. Use \.json"):
        collector.chrome_trace(STEP, tmp_path / name)
    assert files_of(tmp_path) == []


@pytest.mark.parametrize("link", [None, "symlink_to", "hardlink_to"])
@pytest.mark.parametrize("command", ["timeline", "merge"])
def test_the_output_is_not_an_input(command, link, write, tmp_path, capsys):
    step = write("in.json", b"[" + KERNEL + b"]")
    output = step
    if link is not None:
        output = tmp_path / "out.json"
        getattr(output, link)(step)
    assert main([command, str(step), "-o", str(output)]) == 2
    printed = capsys.readouterr().err
    assert printed == f"collector: cannot write {output}: it is an input. Give the output another name\n"
    assert step.read_bytes() == b"[" + KERNEL + b"]"


@pytest.mark.parametrize(
    "words",
    [
        ["in.pb", "scope", "-output", "file:outfile=in.pb"],
        ["in.pb", "op", "-output", "file:outfile=./in.pb"],
        ["in.pb", "scope", "-select", "micros", "-output", "pprof:outfile=in.pb"],
        ["in_0", "graph", "-step", "0", "-output", "timeline:outfile=in"],
        ["--run_meta_path=first.pb,in.pb", "scope", "-output", "file:outfile=in.pb"],
        ["--graph_path=graph.pb", "scope", "-output", "file:outfile=graph.pb"],
        ["--profile_path=profile", "scope", "-output", "file:outfile=profile"],
    ],
    ids=" ".join,
)
def test_a_view_of_a_profile_is_not_written_over_an_input(words, write, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("in.pb", "in_0", "first.pb"):
        write(name, RunMetadata(step_stats=STEP).SerializeToString())
    write("graph.pb", GRAPH)
    write("profile", Profiler(GRAPH).serialize_to_string())
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert main(["prof", *words]) == 2
    assert ": it is an input. Give the output another name" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_merge_into_one_of_many_inputs_is_refused(write, tmp_path):
    inputs = [write(f"{number}.json", b"[" + KERNEL + b"]") for number in range(3)]
    with pytest.raises(OutputError, match="it is an input"):
        collector.merge(inputs, inputs[1])
    assert {path.read_bytes() for path in inputs} == {b"[" + KERNEL + b"]"}


@pytest.mark.parametrize("option", ["--max-events", "--min-duration", "--window"])
def test_numbers_beyond_64_bits_on_the_command_line(option, write, tmp_path):
    step = write("in.pb", WIRE)
    value = {"--max-events": "9" * 30, "--min-duration": "9" * 30 + "s", "--window": ".." + "9" * 30 + "s"}[option]
    status = main(["timeline", str(step), "-o", str(tmp_path / "out.json"), option, value])
    if option == "--min-duration":
        assert (status, (tmp_path / "out.json").exists()) == (2, False)
    else:
        assert (status, slices(tmp_path / "out.json")) == (0, 40)


# --- what --max-events does to counters


def test_counters_are_drawn_whole_or_not_at_all(write, tmp_path, capsys):
    """Of the copies that are kept alone they would say too little, so they go; the file and the command say so."""
    copy = {"node_name": "MEMCPYHtoD", "timeline_label": "MEMCPYHtoD 64 bytes"}
    copies = [{**copy, "all_start_nanos": START_NS + number, "all_end_rel_nanos": 10 + number} for number in range(4)]
    path = write("in.pb", StepStats(dev_stats=[{"device": "/gpu:0/memcpy", "node_stats": copies}]).SerializeToString())
    output = tmp_path / "out.json"

    def counters():
        trace = read_strictly(output.read_bytes())
        found = [event["args"]["bytes"] for event in trace["traceEvents"] if event["ph"] == "C"]
        return found, trace["otherData"]

    assert main(["timeline", str(path), "-o", str(output), "--max-events", "4"]) == 0
    found, about = counters()
    assert (max(found), found[-1], about["not_drawn"], capsys.readouterr().err) == (256, 0, [], "")
    assert main(["timeline", str(path), "-o", str(output), "--max-events", "3"]) == 0
    found, about = counters()
    message = "left out the 1 shortest slice, 10 ns in all, none longer than 10 ns; and all counters"
    assert (found, about["not_drawn"], about["drawn"]["counter_values"]) == ([], [message], 0)
    assert capsys.readouterr().err == f"collector: {output}: {message}\n"
    with pytest.raises(SystemExit):
        main(["timeline", "--help"])
    assert "counters, which would be wrong, are then left out too" in " ".join(capsys.readouterr().out.split())


# --- the profiler's own readers

GRAPH_TEXT = b'node {\n  name: "a"\n  op: 3\n}\n'
NO_MESSAGE = {
    "cut": (GRAPH[:20], "(byte 20: the end, inside field 1;"),
    "another message": (WIRE, "(byte 0: fields of another message; byte 1: no UTF-8)"),
    "noise": (RANDOM * 50, "byte 0: no UTF-8)"),
    "text that is wrong": (GRAPH_TEXT, "line 3, column 7: another word)"),
    "text nested too deeply": (b"node { attr { value { list { func {" * 3000, "text nested too deeply)"),
    "zeros": (bytes(100), "is no GraphDef (byte 0 is 0)"),
    "gzip cut": (gzip.compress(GRAPH, mtime=0)[:30], "is a broken gzip file of 30 bytes: "),
    "nothing": (b"", "is empty"),
}


@pytest.mark.parametrize("shape", NO_MESSAGE)
def test_what_is_no_message_for_the_profiler(shape, write, tmp_path, capsys):
    data, says = NO_MESSAGE[shape]
    path = write("graph.pb", data)
    assert main(["prof", f"--graph_path={path}", "scope"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"collector: {path} ")
    assert says in printed.err
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("shape", REFUSED)
def test_steps_refused_by_the_profiler(shape, write, tmp_path, capsys):
    name, data, says = REFUSED[shape]
    path = write(name, data)
    assert main(["prof", str(path), "scope"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"collector: {path}")
    assert says in printed.err
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("flag", ["graph_path", "profile_path"])
def test_gigabytes_that_are_no_message_are_not_read(flag, tmp_path, capsys):
    for number, start in enumerate((b"", b"\n")):
        path = tmp_path / f"{number}.pb"
        with path.open("wb") as file:
            file.write(start)
            file.truncate(3 << 30)
        assert main(["prof", f"--{flag}={path}", "scope"]) == 2
        assert ("byte 0 is 0", "larger than the 2 GiB")[number] in capsys.readouterr().err
