"""Profiles of Proton: the sums in them, the questions that sums answer, and one clear line for all that needs times."""

from __future__ import annotations

import gzip
import json

import pytest
from hostile_names import EVIL, obeyed

from collector import analysis
from collector.analysis.questions import QUESTIONS
from collector.cli import main
from collector.errors import CollectorError, InvalidFileError
from collector.formats.loading import load
from collector.profiler import ProfileOptionBuilder, Profiler
from collector.recording.capture import empty_capture
from collector.recording.recording import Recording

RECORDED = ("proton/cuda_example.json.gz", "proton/triton_example.json.gz")
REFUSAL = "this profile holds sums without start times"
ROOT = {"frame": {"name": "ROOT", "type": "function"}, "metrics": {"count": 0, "time (ns)": 0}}


def node(name, *children, **metrics):
    """A node of a tree; ``ns`` is its time."""
    named = {"time (ns)" if key == "ns" else key: value for key, value in metrics.items()}
    placed = {"device_id": "0", "device_type": "CUDA"} if "count" in metrics else {}
    return {
        "children": list(children),
        "frame": {"name": name, "type": "function"},
        "metrics": {**placed, **named},
    }


@pytest.fixture
def write(tmp_path):
    def write_tree(*nodes, devices=None, name="x.hatchet"):
        path = tmp_path / name
        path.write_text(json.dumps([{**ROOT, "children": nodes}, devices or {"CUDA": {}}]))
        return path

    return write_tree


@pytest.fixture
def recording(shared):
    """A recorded profile by its name, and what counts.json says of it."""
    folder = shared / "data" / "gpu_traces"
    counts = json.loads((folder / "counts.json").read_text())
    return lambda name: (folder / name, counts[name])


@pytest.fixture
def model(write):
    """A layer with two kernels, one of them twice, and a kernel under no frame."""
    return write(
        node("model", node("gemm", ns=3000, count=2, flops16=4000, bytes=64), node("relu", ns=1000, count=1)),
        node("copy", ns=500, count=5),
    )


def test_figures_at_the_root_are_those_of_a_kernel_of_its_name(tmp_path):
    root = {**ROOT, "metrics": {"count": 2, "time (ns)": 30, "device_id": "0", "device_type": "CUDA"}}
    path = tmp_path / "x.hatchet"
    path.write_text(json.dumps([{**root, "children": [node("gemm", ns=3000, count=1)]}, {"CUDA": {}}]))
    step = load(path)
    assert [row.path for row in step.sums.rows] == [("ROOT",), ("gemm",)]
    for by in ("name", "op"):
        found = analysis.kernels(step, by=by)
        assert found["name"].tolist() == ["gemm", "ROOT"]
        assert found["total_ns"].tolist() == [3000, 30]
    assert analysis.ops(step).totals


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_profiles_hold_the_figures_that_were_counted(recording, name):
    path, truth = recording(name)
    sums = load(path).sums
    assert (sums.num_nodes, sums.depth) == (truth["nodes"], truth["depth"])
    assert sum(row.runs for row in sums.rows) == truth["total_count"]
    assert sum(row.total_ns for row in sums.rows) == truth["total_time_ns"]
    found = [
        {
            "count": row.runs,
            "device": f"{row.device_type} {row.device_id}",
            "name": row.path[-1],
            "total_ns": row.total_ns,
        }
        for row in sums.kernels
    ]
    assert sorted(found, key=lambda row: row["name"]) == sorted(truth["top10"], key=lambda row: row["name"])
    assert not sums.unread
    devices = {
        str(each.device_id): {
            "arch": each.architecture,
            "bus_width": each.memory_bus_bits,
            "clock_rate": each.clock_khz,
            "memory_clock_rate": each.memory_clock_khz,
            "num_sms": each.num_multiprocessors,
        }
        for each in sums.devices
    }
    assert {"CUDA": devices} == truth["device_info"]


@pytest.mark.parametrize("name", RECORDED)
def test_questions_and_profiler_have_the_same_sums(recording, name):
    path, truth = recording(name)
    step = load(path)
    assert analysis.kernels(step).totals == {"count": truth["total_count"], "total_ns": truth["total_time_ns"]}
    assert analysis.ops(step).totals == {"self_activities": truth["total_count"], "self_ns": truth["total_time_ns"]}
    profiler = Profiler()
    profiler.add_recorded_step(0, path)
    runs = {node.name.rpartition("/")[2]: node.run_count(0) for node in profiler.model.nodes.values()}
    assert {row["name"]: runs[row["name"]] for row in truth["top10"]} == {
        row["name"]: row["count"] for row in truth["top10"]
    }
    micros = {node.name.rpartition("/")[2]: node.figures(0)[1] for node in profiler.model.nodes.values()}
    for row in truth["top10"]:
        assert micros[row["name"]] == (row["total_ns"] + 500) // 1000


def test_the_tree_of_a_profile(model):
    step = load(model)
    assert repr(step) == f"<Step {str(model)!r}: Proton profile, 8 launches in 5 nodes>"
    assert [(row.path, row.runs, row.total_ns) for row in step.sums.rows] == [
        (("model", "gemm"), 2, 3000),
        (("model", "relu"), 1, 1000),
        (("copy",), 5, 500),
    ]
    assert (step.is_recording, step.ledger.complete) == (False, True)


def test_kernels_and_ops_out_of_sums(model):
    step = load(model)
    by_name = analysis.kernels(step)
    assert [column.name for column in by_name.columns] == ["name", "count", "total_ns", "share", "num_bytes", "flops"]
    assert "without start times" in by_name.definition
    assert [list(row.values()) for row in by_name] == [
        ["gemm", 2, 3000, pytest.approx(3000 / 4500), 64, 4000],
        ["relu", 1, 1000, pytest.approx(1000 / 4500), 0, 0],
        ["copy", 5, 500, pytest.approx(500 / 4500), 0, 0],
    ]
    assert [(row["op"], row["name"]) for row in analysis.kernels(step, by="op")] == [
        ("model", "gemm"),
        ("model", "relu"),
        ("", "copy"),
    ]
    ops = analysis.ops(step)
    assert [(row["path"], row["activities"], row["self_ns"], row["total_ns"]) for row in ops] == [
        ("model", 3, 4000, 4000),
        ("(no annotation)", 5, 500, 500),
    ]
    both = analysis.kernels([step, step])
    assert both["step"].tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(("by", "name"), [("name", "add<float>"), ("whole_name", "void add<float>(float*, int)")])
def test_kernels_out_of_sums_have_short_and_whole_names(write, by, name):
    mangled = "_Z3addIfEvPT_i"
    step = load(write(node("model", node(mangled, ns=100, count=1)), node(mangled, ns=30, count=2)))
    (row,) = analysis.kernels(step, by=by)
    assert (row[by], row["count"], row["total_ns"]) == (name, 3, 130)


@pytest.mark.parametrize("by", ["shape", "stream"])
def test_sums_do_not_say_the_shape_or_stream_of_kernels(model, by):
    with pytest.raises(CollectorError, match=f"does not say the {by}"):
        analysis.kernels(load(model), by=by)


@pytest.mark.parametrize("name", [name for name, question in QUESTIONS.items() if not question.of_sums])
def test_other_questions_say_why_they_cannot_be_answered(model, name):
    with pytest.raises(InvalidFileError, match=REFUSAL):
        QUESTIONS[name].ask(load(model))


def test_sums_are_not_asked_together_with_a_recording(model):
    with pytest.raises(InvalidFileError, match=REFUSAL):
        analysis.kernels([Recording.from_capture(empty_capture()), load(model)])


@pytest.mark.parametrize(
    "words",
    [
        ["timeline", "FILE", "-o", "out.json"],
        ["timeline", "FILE", "-o", "out.pftrace"],
        ["merge", "FILE", "-o", "out.json"],
        ["report", "FILE", "-o", "out.html"],
        ["compare", "FILE", "FILE"],
        ["stats", "FILE", "--question", "idle"],
        ["prof", "FILE", "advise"],
    ],
    ids=" ".join,
)
def test_commands_that_need_times_refuse_in_one_line(model, tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    assert main([str(model) if word == "FILE" else word for word in words]) == 2
    shown = capsys.readouterr().err.strip()
    assert f"{model}: {REFUSAL}. Ask collector prof" in shown
    assert "\n" not in shown
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.hatchet"]


def test_commands_that_sums_answer(model, capsys):
    assert main(["stats", str(model), "--json"]) == 0
    answers = json.loads(capsys.readouterr().out)
    assert [answer["question"] for answer in answers] == ["kernels", "ops"]
    assert main(["summary", str(model)]) == 0
    shown = capsys.readouterr()
    assert "gemm" in shown.out
    assert REFUSAL in shown.out
    assert not shown.err
    assert main(["prof", str(model), "scope"]) == 0
    assert "model/gemm (3us/3us, 3us/3us, 0us/0us)" in capsys.readouterr().out


def test_views_of_the_profiler_have_run_counts_flops_and_bytes(model):
    profiler = Profiler()
    profiler.add_recorded_step(0, load(model))
    gemm = profiler.model.nodes["model/gemm"]
    assert (gemm.run_count(0), gemm.static_float_ops, gemm.executions[0].memory[0].requested) == (2, 2000, 64)
    assert gemm.executions[0].start_micros == 0
    options = ProfileOptionBuilder.time_and_memory(min_bytes=0)
    found = profiler.profile_graph(options)
    assert [child.name for child in found.children] == ["model", "copy"]
    assert found.total_accelerator_exec_micros == 3 + 1 + 1
    again = Profiler.from_profile(profiler.serialize_to_string())
    assert again.profile_name_scope(options) == profiler.profile_name_scope(options)


def test_devices_of_one_path_add_up(write):
    path = write(node("gemm", ns=1000, count=1, flops8=10), node("gemm", ns=3000, count=3, flops8=90, device_id="1"))
    step = load(path)
    assert [row.device_id for row in step.sums.rows] == [0, 1]
    assert [list(row.values())[:3] for row in analysis.kernels(step)] == [["gemm", 4, 4000]]
    profiler = Profiler()
    profiler.add_recorded_step(0, step)
    assert (profiler.model.nodes["gemm"].run_count(0), profiler.model.nodes["gemm"].static_float_ops) == (4, 25)


def test_times_do_not_go_through_binary_numbers(tmp_path):
    path = tmp_path / "x.json"
    text = json.dumps([{**ROOT, "children": [node("a", ns=12345, count=1), node("b", ns=678, count=1)]}])
    path.write_text(text.replace("12345", "1000000000000000001.0").replace("678", "0.5e3"))
    assert [row.total_ns for row in load(path).sums.rows] == [1000000000000000001, 500]


def test_folders_of_python_files_stay_in_the_profile(write):
    path = write(node("/home/someone/project/model.py:12@forward", node("gemm", ns=1, count=1)))
    assert load(path).sums.rows[0].path == ("model.py:12@forward", "gemm")


def test_parts_that_cannot_be_read_are_counted(write):
    path = write(
        node("gemm", ns=1000, count=1, cycles=7),
        node("no count", ns=5),
        node("negative", ns=-5, count=1),
        node("large", ns=1 << 63, count=1),
        node("text", ns="5", count=1),
        node("no device", ns=1, count=1, device_id="first"),
        {"frame": {}, "metrics": {"time (ns)": 1, "count": 1, "device_id": str(1 << 63)}, "children": {}},
        {"frame": {"name": "a"}, "metrics": [], "children": []},
        "no node",
        devices={"CUDA": {"0": {"num_sms": -1}, "x": {}}, "HIP": 3},
    )
    step = load(path)
    assert step.skipped == {
        "children that are not lists": 1,
        "devices missing or not possible (taken as 0)": 2,
        "devices that cannot be read": 1,
        "metrics of other names": 1,
        "metrics that are not objects": 1,
        "metrics that are not possible numbers (taken as 0)": 4,
        "nodes that are not objects": 1,
        "nodes with a time or a count alone (their time is left out)": 1,
        "nodes without a name": 1,
    }
    assert "negative" in [row["name"] for row in analysis.kernels(step)]
    assert analysis.kernels(step).losses == tuple(step.ledger.losses())
    assert len(step.ledger.losses()) == 9


def test_sums_beyond_64_bits_are_left_out(write):
    step = load(write(*(node(f"k{i}", ns=1 << 61, count=1 << 61) for i in range(5))))
    assert analysis.kernels(step).totals == {"count": 1 << 62, "total_ns": 1 << 62}
    assert step.skipped["metrics that are not possible numbers (taken as 0)"] == 6
    assert main(["stats", str(step.path)]) == 0


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_profile_that_is_cut_off_is_refused_with_the_place(write, tmp_path, pack):
    whole = write(node("model", *(node(f"k{i}", ns=i, count=1) for i in range(1, 50)))).read_bytes()
    path = tmp_path / "cut.hatchet"
    for length in range(40, len(whole), 97):
        path.write_bytes(pack(whole[:length]))
        with pytest.raises(InvalidFileError) as caught:
            load(path)
        message = str(caught.value)
        assert message.startswith(f"{path}: this is a profile of Proton that is cut off or damaged at character")
        assert "\n" not in message


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'[{"frame": {"name": "ROOT"}, "children": []}, {"CUDA": {}}]', "no node has both a time and a count"),
        (b'[{"children": ' * 200_000, "nested too deeply"),
        (b'[{"frame": 3, "children": null}, 5]', "no node has both a time and a count"),
        (b'[{"frame": 1, "metrics": {"time (ns)": 1e999999999999999999999, "count": NaN}}]', "taken as 0): 2"),
    ],
)
def test_a_profile_without_sums_is_refused(tmp_path, data, says):
    path = tmp_path / "x.hatchet"
    path.write_bytes(data)
    with pytest.raises(InvalidFileError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: this is a profile of Proton")
    assert says in str(caught.value)


def test_hostile_names_are_shown_escaped(write, capsys):
    path = write(node(f"{EVIL}\0\ud800:/", node(f"k{EVIL}", ns=1000, count=1)))
    for words in (["summary"], ["stats"], ["stats", "--markdown"]):
        assert main([words[0], str(path), *words[1:]]) == 0
    assert main(["prof", str(path), "scope"]) == 0
    shown = capsys.readouterr()
    assert not obeyed(shown.out + shown.err)
