"""Many steps, many ranks, one trace."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import weakref
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

import collector
from collector import CollectorError, InvalidFileError, UnknownFormatError
from collector.cli import main
from collector.files.atomic_files import packed
from collector.merging import merged_trace
from collector.protos import DeviceStepStats, NodeExecStats, RunMetadata, StepStats
from collector.protos.xplane_pb2 import XSpace

EPOCH_NS = 1_700_000_000_000_000_000
NO_NODES = StepStats(dev_stats=[DeviceStepStats(device="/gpu:0/stream:all")])


def node(name, start_ns, duration_ns, label=""):
    return NodeExecStats(
        node_name=name,
        timeline_label=label,
        all_start_micros=start_ns // 1000,
        all_start_nanos=start_ns,
        all_end_rel_micros=max(duration_ns // 1000, 1),
        all_end_rel_nanos=duration_ns,
    )


def step(start_ns=0, kernels=3, prefix="", names="k{}"):
    nodes = [node(f"op:{names.format(i)}", EPOCH_NS + start_ns + 100 * i, 50) for i in range(kernels)]
    return StepStats(dev_stats=[DeviceStepStats(device=f"{prefix}/gpu:0/stream:7", node_stats=nodes)])


@pytest.fixture
def write(tmp_path):
    def write(name, message):
        path = tmp_path / name
        path.write_bytes(message.SerializeToString())
        return path

    return write


def drawn(path):
    """Process name -> [(slice, ts, dur)], in the order in which viewers show them, and the file's own words."""
    data = path.read_bytes()
    trace = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    about = {kind: {} for kind in ("process_name", "process_sort_index")}
    for event in trace["traceEvents"]:
        if event["name"] in about:
            [about[event["name"]][event["pid"]]] = event["args"].values()
    names = about["process_name"]
    slices: dict[str, list] = {names[pid]: [] for pid in sorted(names, key=about["process_sort_index"].get)}
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            slices[names[event["pid"]]].append((event["name"], event["ts"], event["dur"], event["tid"]))
    return slices, trace["otherData"], [event for event in trace["traceEvents"] if event["ph"] == "i"]


def rows(slices):
    return {row for *_, row in slices}


def test_steps_follow_each_other_on_the_same_tracks(write, tmp_path):
    paths = [write(f"step_{number}.pb", step(1000 * number)) for number in (2, 10, 7)]
    report = collector.merge(paths, tmp_path / "all.json")
    slices, about, marks = drawn(report.output)
    assert list(slices) == ["GPU 0", "Steps"]
    [kernels, steps] = slices.values()
    assert [start for _, start, _, _ in kernels] == [0, 0.1, 0.2, 5, 5.1, 5.2, 8, 8.1, 8.2]
    assert len(rows(kernels)) == 1
    assert [row[:3] for row in steps] == [("step 2", 0, 0.25), ("step 7", 5, 0.25), ("step 10", 8, 0.25)]
    assert [(mark["name"], mark["ts"]) for mark in marks] == [("step 2", 0), ("step 7", 5), ("step 10", 8)]
    assert about["base_time_ns"] == str(EPOCH_NS + 2000)
    assert [each.step for each in report.inputs] == [2, 7, 10]
    assert [each.slices for each in report.inputs] == [3, 3, 3]


def test_overlaid_steps_begin_together_in_processes_of_their_own(write, tmp_path):
    paths = [write(f"step{number}.pb", step(1_000_000 * number, kernels=number)) for number in (1, 2)]
    slices, _, marks = drawn(collector.merge(paths, tmp_path / "all.json", layout="overlay").output)
    assert [row[:2] for row in slices["step 1 GPU 0"]] == [("k0", 0)]
    assert [row[:2] for row in slices["step 2 GPU 0"]] == [("k0", 0), ("k1", 0.1)]
    assert sorted(row[:2] for row in slices["Steps"]) == [("step 1", 0), ("step 2", 0)]
    assert marks == []


def test_steps_of_clocks_far_apart_and_of_one_number_are_overlaid_too(write, tmp_path):
    years = 3 * 365 * 24 * 3600 * 10**9
    starts = {"rank0_step1": 0, "rank1_step1": 700, "rank2_step1": years, "again_rank0_step1": years // 2}
    paths = [write(f"{name}.pb", step(start_ns)) for name, start_ns in starts.items()]
    report = collector.merge(paths, tmp_path / "all.json", layout="overlay")
    begins = {Path(each.name).stem: each.start_ns + each.shift_ns - EPOCH_NS for each in report.inputs}
    assert begins == {"rank0_step1": 0, "rank1_step1": 700, "rank2_step1": 0, "again_rank0_step1": 0}


def test_steps_without_a_number_get_those_that_no_name_states(write, tmp_path):
    paths = [write(f"{name}.pb", step(1000 * place)) for place, name in enumerate(["a", "step1", "b", "step2", "c"])]
    for layout in ("sequence", "overlay"):
        report = collector.merge(paths, tmp_path / "all.json", layout=layout)
        assert [(Path(each.name).stem, each.step) for each in report.inputs] == [
            ("a", 0), ("step1", 1), ("b", 3), ("step2", 2), ("c", 4),
        ]  # fmt: skip


def test_the_command_names_the_files_of_steps_with_the_same_number(write, tmp_path, capsys):
    for place, folder in enumerate(("before", "now")):
        (tmp_path / folder).mkdir()
        for number in (1, 2):
            write(f"{folder}/step_{number}.pb", step(1000 * place + 100 * number))
    paths = [str(tmp_path / folder) for folder in ("before", "now")]
    assert main(["merge", *paths, "-o", str(tmp_path / "all.json"), "--overlay"]) == 0
    reported = capsys.readouterr().err
    for number, other in ((1, 3), (2, 4)):
        assert f"now/step_{number}.pb: drawn as step {other}, because another file is step {number} as well" in reported
    assert "before" not in reported
    assert main(["merge", *paths, "-o", str(tmp_path / "all.json")]) == 0
    assert capsys.readouterr().err == ""


def test_steps_that_overlap_in_time_never_share_a_track(write, tmp_path):
    paths = [write(f"part{number}.pb", step(60 * number)) for number in range(3)]
    slices, _, _ = drawn(collector.merge(paths, tmp_path / "all.json").output)
    kernels = slices["GPU 0"]
    assert len(rows(kernels)) == 3
    for row in rows(kernels):
        times = sorted((round(start * 1000), round(length * 1000)) for _, start, length, on in kernels if on == row)
        assert all(start + length <= after for (start, length), (after, _) in pairwise(times))


def test_ranks_are_processes_of_their_own_with_the_rank_before_the_name(write, tmp_path):
    paths = [write(f"rank{rank}.pb", step()) for rank in (0, 1, 11)]
    slices, about, _ = drawn(collector.merge(paths, tmp_path / "all.json").output)
    assert list(slices) == ["rank 0 GPU 0", "rank 1 GPU 0", "rank 11 GPU 0", "Steps"]
    assert len(rows(slices["Steps"])) == 3
    assert about["clock_offsets"] == {}


def test_a_rank_that_the_devices_name_is_not_named_twice(write, tmp_path):
    paths = [write(f"{rank}.pb", step(prefix=f"/job:worker/replica:0/task:{rank}")) for rank in (0, 3)]
    report = collector.merge(paths, tmp_path / "all.json")
    assert [each.rank for each in report.inputs] == [0, 3]
    slices, _, _ = drawn(report.output)
    assert list(slices) == ["worker 0 GPU 0", "worker 3 GPU 0", "Steps"]


@pytest.mark.parametrize("output", ["all.json", "all.xplane.pb"])
@pytest.mark.parametrize(
    "prefix", [f"/job:worker/replica:0/task:{'9' * 5000}", f"/gpu:{'9' * 5000}"], ids=["rank", "GPU"]
)
def test_the_number_of_a_device_may_have_more_digits_than_python_converts(write, tmp_path, prefix, output):
    paths = [write(f"{name}.pb", step(prefix=prefix)) for name in "ab"]
    report = collector.merge(paths, tmp_path / output)
    assert [each.rank for each in report.inputs] == [None, None]


def test_a_single_machine_has_no_rank(write, tmp_path):
    local = "/job:localhost/replica:0/task:0"
    report = collector.merge([write("step1.pb", step(prefix=local))], tmp_path / "all.json")
    assert report.inputs[0].rank is None


def collectives(rank, ahead_ns, jitter=0, count=9):
    """What one rank saw of collectives that all ranks left together: it began when it was ready."""
    nodes = [
        node(
            "allreduce:ncclDevKernel_AllReduce_Sum_f32",
            EPOCH_NS + ahead_ns + 10_000 * i - (rank * 37 + i * 11) % 500,
            1000 + (rank * 37 + i * 11) % 500 + (jitter * (i % 3 - 1)),
            "ncclDevKernel_AllReduce_Sum_f32(ncclDevKernelArgs) regs:96",
        )
        for i in range(count)
    ]
    nodes.append(node("send:sendrecv", EPOCH_NS + ahead_ns + rank * 777, 5 + rank))
    return StepStats(dev_stats=[DeviceStepStats(device="/gpu:0/stream:7", node_stats=nodes)])


def test_clocks_are_put_right_by_what_the_ranks_did_together(write, tmp_path):
    ahead = {0: 0, 1: 5_000_000, 2: -123_456}
    paths = [write(f"rank{rank}_step4.pb", collectives(rank, ns, jitter=30)) for rank, ns in ahead.items()]
    report = collector.merge(paths, tmp_path / "all.json", clock_offsets="estimate")
    for rank, ns in ahead.items():
        clock = report.clock_offsets[rank]
        assert abs(clock.offset_ns - ns) <= 60
        if rank:
            assert (clock.source, clock.markers) == ("estimated", 9)
            assert 0 <= clock.error_ns <= 60
    slices, about, _ = drawn(report.output)
    assert about["clock_offsets"]["1"]["offset_ns"] == report.clock_offsets[1].offset_ns
    ends = [
        [round((ts + dur) * 1000) for name, ts, dur, _ in rows if "AllReduce" in name]
        for process, rows in slices.items()
        if "GPU" in process
    ]
    assert all(max(moment) - min(moment) <= 200 for moment in zip(*ends, strict=True))


def test_given_clock_offsets_are_taken_as_they_are(write, tmp_path):
    paths = [write("rank0.pb", step()), write("rank1.pb", step(700))]
    report = collector.merge(paths, tmp_path / "all.json", clock_offsets={1: 700})
    slices, about, _ = drawn(report.output)
    first, second = (slices[f"rank {rank} GPU 0"] for rank in (0, 1))
    assert [row[:3] for row in first] == [row[:3] for row in second]
    [(rank, given)] = about["clock_offsets"].items()
    assert (rank, given["offset_ns"], given["error_ns"], given["source"]) == ("1", 700, None, "given")


def test_losses_of_each_step_are_marked(write, tmp_path):
    lossy = RunMetadata(step_stats=step(5000))
    lossy.provenance.ledger["records_dropped"] = 12
    paths = [write("step0.pb", RunMetadata(step_stats=step())), write("step1.pb", lossy)]
    report = collector.merge(paths, tmp_path / "all.json")
    _, about, marks = drawn(report.output)
    [loss] = [mark for mark in marks if mark["name"].startswith("lost")]
    assert loss["ts"] == 5.25  # where the second step ends
    assert [each["ledger"] for each in about["inputs"]] == [{}, {"records_dropped": 12}]


def test_damage_that_only_drawing_shows_is_one_line_with_the_file(write, tmp_path):
    damaged = RunMetadata(step_stats=step(5000))
    damaged.capture.other_tables = "["
    paths = [write("step0.pb", RunMetadata(step_stats=step())), write("step1.pb", damaged)]
    with pytest.raises(collector.InvalidFileError, match=f"^{paths[1]}: the tables of devices, .* are damaged"):
        collector.merge(paths, tmp_path / "all.json")
    assert not (tmp_path / "all.json").exists()


@pytest.mark.parametrize("options", [{"layout": "stacked"}, {"clock_offsets": "guess"}], ids=str)
def test_an_unknown_way_of_merging_is_refused(write, tmp_path, options):
    path = write("step0.pb", RunMetadata(step_stats=step()))
    [(name, value)] = options.items()
    with pytest.raises(ValueError, match=f"^{name}='{value}': "):
        collector.merge([path], tmp_path / "all.json", **options)


def test_mixed_inputs(write, tmp_path):
    timeline = tmp_path / "step1.json"
    timeline.write_text(collector.timeline.Timeline(step(1000)).generate_chrome_trace_format())
    own = tmp_path / "step2.json.gz"
    collector.chrome_trace(step(2_000_000), own)
    inputs = [write("step0.pb", RunMetadata(step_stats=step())), timeline, own, step(3_000_000), collector.load(own)]
    report = collector.merge(inputs, tmp_path / "all.json.gz")
    slices, _, _ = drawn(report.output)
    counts = Counter(round(ts) for _, ts, _, _ in slices["GPU 0"])
    assert counts == {0: 3, 1: 3, 2000: 6, 3000: 3}


def test_a_merged_trace_can_be_read_and_merged_again(write, tmp_path):
    ranks = [write(f"rank{rank}.pb", step()) for rank in (0, 1)]
    once = collector.merge(ranks, tmp_path / "once.json").output
    devices = {device.device for device in collector.load(once).step_stats.dev_stats}
    assert {f"/job:worker/replica:0/task:{rank}/gpu:0/stream:7" for rank in (0, 1)} <= devices
    again = collector.merge([once], tmp_path / "again.json").output
    assert list(drawn(again)[0]) == ["worker 0 GPU 0", "worker 1 GPU 0", "Steps"]


@pytest.mark.parametrize(
    ("inputs", "output", "error", "says"),
    [
        ([], "a.json", CollectorError, "nothing to merge"),
        (["step1.pb"], "a.pbtxt", UnknownFormatError, "no format for several steps"),
        (["nothing.pb"], "a.json", InvalidFileError, "nothing.pb"),
        (["empty.pb"], "a.json", InvalidFileError, "nothing in it has a time"),
        (["step1.pb", "later.pb"], "a.json", CollectorError, "later.pb begins 115 days after the first step"),
    ],
)
def test_what_cannot_be_merged(write, tmp_path, inputs, output, error, says):
    write("step1.pb", step())
    write("empty.pb", NO_NODES)
    write("later.pb", step(10**16))
    with pytest.raises(error, match=re.escape(says)):
        collector.merge([tmp_path / name for name in inputs], tmp_path / output)
    assert not (tmp_path / output).exists()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("make", [str, Path, collector.load], ids=["str", "Path", "step"])
def test_a_single_input_is_no_list_of_inputs(write, tmp_path, make):
    path = write("step1.pb", step())
    with pytest.raises(TypeError, match=r"merge takes several inputs, not one: write \["):
        collector.merge(make(path), tmp_path / "a.json")
    assert not (tmp_path / "a.json").exists()


def test_an_input_without_times_is_named_and_the_others_are_drawn(write, tmp_path):
    report = collector.merge([write("step1.pb", step()), write("empty.pb", NO_NODES)], tmp_path / "all.json")
    assert [(Path(each.name).name, each.slices) for each in report.inputs] == [("step1.pb", 3), ("empty.pb", 0)]
    assert report.inputs[1].skipped == {"inputs without a timed node": 1}


@pytest.mark.parametrize("suffix", ["json", "pftrace", "xplane.pb"])
@pytest.mark.parametrize("later", [{"kernels": 5}, {"start_ns": -5000}, {"prefix": "/job:worker/replica:0/task:7"}])
def test_an_input_that_changes_meanwhile_is_named_and_nothing_is_written(write, tmp_path, suffix, later):
    paths = [write("step1.pb", step()), write("step2.pb", step(1000))]

    def change(what, *_):
        if what.startswith("drawing"):
            write("step2.pb", step(**later))

    with pytest.raises(CollectorError, match=r"step2.pb changed while it was read\. Merge again"):
        collector.merge(paths, tmp_path / f"all.{suffix}", progress=change)
    assert sorted(tmp_path.iterdir()) == paths


def test_same_inputs_same_bytes(write, tmp_path):
    paths = [write(f"step{number}.pb", step(1000 * number)) for number in range(3)]
    for suffix in ("json", "json.gz", "pftrace", "pftrace.gz", "xplane.pb"):
        once = collector.merge(paths, tmp_path / f"a.{suffix}").output.read_bytes()
        assert collector.merge(paths[::-1], tmp_path / f"b.{suffix}").output.read_bytes() == once


@pytest.mark.medium
def test_every_writer_packs_a_trace_alike(write, tmp_path):
    source = write("step.pb", step(kernels=3000))
    collector.merge([source], tmp_path / "merged.json.gz")
    collector.chrome_trace(step(kernels=3000), tmp_path / "drawn.json.gz")
    assert main(["timeline", "--tensorflow", str(source), "-o", str(tmp_path / "tensorflow.json.gz")]) == 0
    for path in list(tmp_path.glob("*.json.gz")):
        again = tmp_path / f"again_{path.name}"
        with again.open("wb") as file, packed(file, again) as stream:
            stream.write(gzip.decompress(path.read_bytes()))
        assert path.read_bytes() == again.read_bytes(), path.name


@pytest.mark.medium
@pytest.mark.parametrize(
    "suffix", ["json", *(pytest.param(suffix, marks=pytest.mark.slow) for suffix in ("pftrace", "xplane.pb"))]
)
def test_memory_does_not_grow_with_the_number_of_inputs(tmp_path, suffix):
    path = tmp_path / "step.pb"
    path.write_bytes(step(kernels=20_000, names="some_kernel_with_a_name_{}").SerializeToString())

    def peak_bytes(count):
        code = (
            "import collector, resource, sys\n"
            f"collector.merge([{str(path)!r}] * {count}, {str(tmp_path / f'all.{suffix}')!r}, layout='sequence')\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return int(done.stdout)

    # Twelve times the input is 150 MB as messages; what may grow is a few words for each input.
    assert peak_bytes(12) - peak_bytes(1) < 12_000_000


@pytest.mark.parametrize("align", [False, True])
def test_one_input_at_a_time_is_in_memory(write, tmp_path, monkeypatch, align):
    """Otherwise a merge of files of the same size takes half as much again as one of them."""
    held = []

    def load_one(path):
        assert [each for each in held if each() is not None] == []
        loaded = collector.load(path)
        held.append(weakref.ref(loaded))
        return loaded

    monkeypatch.setattr(merged_trace, "load", load_one)
    paths = [write(f"rank{rank}.pb", step(1000 * rank, names="ncclAllReduce{}")) for rank in range(3)]
    merged = collector.merge(paths, tmp_path / "all.json", clock_offsets="estimate" if align else None)
    assert (len(merged.inputs), len(held)) == (3, 6)


def test_the_command(write, tmp_path, capsys):
    paths = [str(write(f"rank{rank}.pb", collectives(rank, 1000 * rank))) for rank in range(2)]
    output = tmp_path / "all.pftrace"
    assert main(["merge", *paths, "-o", str(output), "--align"]) == 0
    printed, complaints = capsys.readouterr()
    assert complaints == ""  # no progress bar: this is not a terminal
    assert "2 inputs, 20 slices" in printed
    assert re.search(r"rank 1: clock 1000 ns ahead, ±\d+ ns \(9 common moments\)", printed)
    assert output.stat().st_size > 0


def test_the_command_reports_damage(write, tmp_path, capsys):
    path = write("step1.pb", step(kernels=50))
    path.write_bytes(path.read_bytes()[:-10])
    assert main(["merge", str(path), "-o", str(tmp_path / "all.json")]) == 0
    assert "not all of it could be read" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--clock-offset=1", "--clock-offset=a=b", "--align --clock-offset=1=2"])
def test_the_command_refuses_nonsense(write, tmp_path, capsys, option):
    path = write("step1.pb", step())
    with pytest.raises(SystemExit) as left:
        main(["merge", str(path), "-o", str(tmp_path / "all.json"), *option.split()])
    assert left.value.code == 2
    assert capsys.readouterr().err.startswith("collector: ")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--align", "--marker", "("], "'(' is not a regular expression"),
        (["--marker", "barrier"], "--marker names the collectives for --align"),
        (["--clock-offset", "5=700"], "rank 5, of which there is no input: there are 3"),
        (["--clock-offset", "3=700", "--clock-offset", "3=1"], "twice for one rank"),
    ],
)
def test_options_that_would_do_nothing_are_reported(write, tmp_path, capsys, options, says):
    path = write("rank3.pb", step())
    assert main(["merge", str(path), "-o", str(tmp_path / "all.json"), *options]) == 2
    printed, complaint = capsys.readouterr()
    assert printed == ""
    assert complaint.startswith("collector: ")
    assert says in complaint
    assert complaint.count("\n") == 1
    assert not (tmp_path / "all.json").exists()


def test_to_align_takes_two_ranks(write, tmp_path, capsys):
    path = write("rank3.pb", step())
    assert main(["merge", str(path), "-o", str(tmp_path / "all.json"), "--align"]) == 0
    assert "the inputs are not of several ranks" in capsys.readouterr().out


def test_a_broken_file_among_many_is_named_and_nothing_is_written(write, tmp_path, capsys):
    paths = [write(f"step{number}.pb", step(1000 * number)) for number in range(4)]
    paths[2].write_bytes(b"\xff no protobuf at all")
    for suffix in ("json", "json.gz", "pftrace", "xplane.pb"):
        target = tmp_path / f"all.{suffix}"
        target.write_text("before")
        assert main(["merge", *map(str, paths), "-o", str(target)]) == 2
        complaint = capsys.readouterr().err
        assert complaint.startswith(f"collector: {paths[2]}: ")
        assert complaint.count("\n") == 1
        assert target.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_a_merged_trace_that_is_read_back_keeps_its_steps_in_xspace(write, tmp_path):
    files = [
        write(f"rank{rank}_step{number}.pb", step(1000 * number + 100 * rank)) for rank in (0, 1) for number in (4, 7)
    ]
    merged = collector.merge(files, tmp_path / "all.json").output
    for path in (tmp_path / "again.xplane.pb", tmp_path / "timeline.xplane.pb"):
        if path.name.startswith("again"):
            collector.merge([merged], path)
        else:
            assert main(["timeline", str(merged), "-o", str(path)]) == 0
        space = XSpace.FromString(path.read_bytes())
        gpus = [plane for plane in space.planes if "GPU" in plane.name]
        assert [plane.name for plane in gpus] == [f"/device:GPU:0 job:worker/replica:0/task:{rank}" for rank in (0, 1)]
        causes = [
            [
                next(stat.int64_value for stat in event.stats if plane.stat_metadata[stat.metadata_id].name == "_c")
                for event in plane.lines[0].events
            ]
            for plane in gpus
        ]
        assert causes == [[1] * 3 + [2] * 3] * 2
        [host] = [plane for plane in space.planes if plane.name == "/host:CPU"]
        [steps] = host.lines
        assert [(event.offset_ps, event.duration_ps) for event in steps.events] == [(0, 350_000), (3_000_000, 350_000)]


def test_overlaid_ranks_that_the_devices_name_have_planes_of_their_own(write, tmp_path):
    paths = [write(f"{rank}.pb", step(prefix=f"/job:worker/replica:0/task:{rank}")) for rank in (0, 3)]
    report = collector.merge(paths, tmp_path / "all.xplane.pb", layout="overlay")
    space = XSpace.FromString(report.output.read_bytes())
    names = [plane.name for plane in space.planes if "GPU" in plane.name]
    assert names == ["/device:GPU:0 rank 0 step 0", "/device:GPU:0 rank 3 step 0"]


def test_arguments_of_impossible_values_are_refused_before_anything_is_read(tmp_path):
    for arguments, named in (
        ({"clock_offsets": 3}, "clock_offsets=3: estimate, the offset of each rank such as "),
        ({"clock_offsets": {0: "a"}}, r"clock_offsets\[0\] takes a whole number, not 'a'"),
        ({"marker": 3}, "marker takes a regular expression as text, not 3"),
        ({"marker": None}, "marker takes a regular expression as text, not None"),
        ({"progress": 3}, "progress takes a function, not 3"),
    ):
        with pytest.raises(TypeError, match=named):
            collector.merge([tmp_path / "missing.pb"], tmp_path / "all.json", **arguments)
    with pytest.raises(collector.CollectorError, match=r"marker='\(' is not a regular expression"):
        collector.merge([tmp_path / "missing.pb"], tmp_path / "all.json", marker="(")
