"""Unusable input gives one line and exit status 2 on the command line, and one line at the prompt, which continues."""

from __future__ import annotations

import gzip
import re
import struct

import pytest

import collector
from collector.cli import main
from collector.profiler import Profiler, prompt
from collector.profiler.profile_options import Options
from collector.profiler.profiler_errors import ViewError
from collector.profiler.reporter import MAX_LEVELS
from collector.protos import (
    GraphDef,
    OpLogProto,
    PprofProfile,
    RunMetadata,
)
from collector.testing import SimulatedGpu


def _graph(*names: str) -> GraphDef:
    graph = GraphDef()
    for name in names:
        graph.node.add(name=name, op="Add", device="/cpu:0").attr["T"].s = b"float"
    return graph


def _step(*names: str) -> RunMetadata:
    metadata = RunMetadata()
    device = metadata.step_stats.dev_stats.add(device="/job:localhost/replica:0/task:0/device:CPU:0")
    for number, name in enumerate(names):
        device.node_stats.add(node_name=name, all_start_micros=10 + number, op_end_rel_micros=3)
    return metadata


def _op_log(name: str = "a", depth: int = 1) -> OpLogProto:
    log = OpLogProto()
    log.id_to_string[1] = "f"
    entry = log.log_entries.add(name=name, float_ops=5, types=["mine"])
    for line in range(depth):
        entry.code_def.traces.add(file_id=1, function_id=1, lineno=line)
    return log


def _profile() -> bytes:
    profiler = Profiler(_graph("a"))
    profiler.add_step(0, _step("a"))
    return profiler.serialize_to_string()


def _pprof() -> PprofProfile:
    profile = PprofProfile(string_table=["", "count"])
    profile.sample_type.add(type=1, unit=1)
    return profile


FILES = {
    "graph": _graph("a").SerializeToString(),
    "run_meta": _step("a").SerializeToString(),
    "op_log": _op_log().SerializeToString(),
    "profile": _profile(),
    "pprof": _pprof().SerializeToString(),
    "pprof, zipped": gzip.compress(_pprof().SerializeToString()),
    "graph, half zipped": gzip.compress(_graph("a").SerializeToString())[:-9],
    "text": b"node { name: 'a' } nonsense",
    "json": b'{"traceEvents": 1}',
    "rubbish": b"\xff\xfe\x07" * 30,
    "nothing": b"",
}
BELONGS = {"graph_path": "graph", "run_meta_path": "run_meta", "op_log_path": "op_log", "profile_path": "profile"}


@pytest.fixture
def files(tmp_path):
    """A file of every kind; name -> path."""
    for name, content in FILES.items():
        (tmp_path / name.replace(", ", "_")).with_suffix(".pb").write_bytes(content)
    return {name: (tmp_path / name.replace(", ", "_")).with_suffix(".pb") for name in FILES}


def _refused(words: list[str], capsys) -> str:
    """The one line on stderr of a command that ends with status 2."""
    assert main(["prof", *words]) == 2
    out, line = capsys.readouterr()
    assert out == ""
    assert line.startswith("collector: ")
    assert line.count("\n") == 1
    return line


def _given(flag: str, path, files) -> list[str]:
    before = [f"--run_meta_path={files['run_meta']}"] if flag in ("op_log_path", "checkpoint_path") else []
    return [*before, f"--{flag}={path}" if flag != "step" else str(path), "scope"]


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("flag", [*BELONGS, "step", "checkpoint_path"])
def test_wrong_kind_of_file_for_a_flag(flag, kind, files, capsys):
    words = _given(flag, files[kind], files)
    if kind == {**BELONGS, "step": "run_meta"}.get(flag):
        assert main(["prof", *words]) == 0
    else:
        assert files[kind].stem in _refused(words, capsys)


@pytest.mark.parametrize("flag", [*BELONGS, "step", "checkpoint_path"])
def test_a_file_that_is_not_there(flag, files, tmp_path, capsys):
    assert "No such file" in _refused(_given(flag, tmp_path / "absent.pb", files), capsys)


@pytest.mark.parametrize("flag", [*BELONGS, "step"])
def test_a_folder(flag, files, tmp_path, capsys):
    cause = "this is a folder" if flag == "step" else "Is a directory"
    assert cause in _refused(_given(flag, tmp_path, files), capsys)


def test_a_profile_and_something_else(files, capsys):
    for other in (f"--graph_path={files['graph']}", str(files["run_meta"])):
        assert "cannot be combined" in _refused([f"--profile_path={files['profile']}", other, "scope"], capsys)


def test_a_step_of_another_graph(tmp_path, capsys):
    for name, message in (("graph", _graph("a", "b")), ("mine", _step("a")), ("other", _step("x", "x", "y"))):
        (tmp_path / name).write_bytes(message.SerializeToString())
    graph = f"--graph_path={tmp_path / 'graph'}"
    assert main(["prof", graph, f"--run_meta_path={tmp_path / 'mine'}", "op"]) == 0
    assert "collector: step 0: 50.0% of the graph's nodes ran\n" in capsys.readouterr().err
    assert "does not belong to the graph" in _refused([graph, f"--run_meta_path={tmp_path / 'other'}", "op"], capsys)


def test_run_metadata_without_a_step_is_reported(tmp_path, capsys):
    empty = RunMetadata()
    empty.partition_graphs.add()
    (tmp_path / "run_meta").write_bytes(empty.SerializeToString())
    (tmp_path / "graph").write_bytes(_graph("a").SerializeToString())
    words = [f"--graph_path={tmp_path / 'graph'}", f"--run_meta_path={tmp_path / 'run_meta'}", "scope"]
    assert main(["prof", *words]) == 2
    assert "does not belong" in capsys.readouterr().err


# --- Questions that cannot be answered ---------------------------------------------------------------------------


def _deep_scope() -> Profiler:
    return Profiler(_graph("a/" * 1_000_000 + "a", "b"))


def _deep_graph() -> Profiler:
    graph = _graph("0")
    for number in range(1, MAX_LEVELS + 10):
        graph.node.add(name=str(number), op="Add", input=[str(number - 1)])
    return Profiler(graph)


def _deep_stack() -> Profiler:
    return Profiler(_graph("a"), _op_log("a", MAX_LEVELS + 10))


def _cycle() -> Profiler:
    graph = _graph("a", "b", "c")
    for node, source in zip(graph.node, "bca", strict=True):
        node.input.append(source)
    return Profiler(graph)


def _plain() -> Profiler:
    profiler = Profiler(_graph("a"))
    profiler.add_step(0, _step("a"))
    return profiler


HOPELESS = {
    "scope a million deep": (_deep_scope, "scope", "a name is 1000000 scopes deep"),
    "graph too deep to show": (_deep_graph, "graph -max_depth 1000000", "the graph view is more than 10000 levels"),
    "stack too deep to show": (_deep_stack, "code -max_depth 1000000", "the code view is more than 10000 levels"),
    "graph of a circle": (_cycle, "graph", "has cycles and no start"),
    "code without traces": (_plain, "code", "No code trace"),
    "no such step": (_plain, "scope -step 7", "-step=7 not found.*Available steps: 0"),
    "no such command": (_plain, "scopes", "no command 'scopes'"),
    "no such option": (_plain, "scope -max_dept 3", "no option -max_dept"),
    "no such attribute": (_plain, "scope -select micro", "-select has no value 'micro'"),
    "no such order": (_plain, "scope -order_by depth", "-order_by has no value 'depth'"),
    "no regular expression": (_plain, "scope -show_name_regexes [a", "not a regular expression: '\\[a'"),
    "no number": (_plain, "scope -min_bytes 1k", "-min_bytes is a number"),
    "no such output": (_plain, "scope -output html", "unknown output type 'html'"),
    "output without a file": (_plain, "scope -output timeline", "needs 'outfile'"),
    "no folder for the output": (_plain, "scope -output file:outfile={tmp}/no/file", "cannot write"),
    "timeline of the op view": (_plain, "op -output timeline:outfile=x", "doesn't support timeline"),
    "pprof of two attributes": (_plain, "scope -select bytes,micros -output pprof:outfile=x", "'code' view"),
    "unclosed quote": (_plain, "scope 'a", "cannot read the line"),
}


@pytest.mark.parametrize("name", HOPELESS)
def test_the_prompt_says_so_in_a_line_and_lives_on(name, tmp_path):
    from collector.cli import prof

    make, line, message = HOPELESS[name]
    profiler = make()
    written: list[str] = []
    asked = prompt.Prompt(lambda command: prof._answer(profiler, command, []))
    asked.run([line.replace("{tmp}", str(tmp_path)), "op -max_depth 1"], written.append)
    assert written[0].count("\n") == 1

    assert re.search(message, written[0])
    assert "Profile:" in written[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["scope", "-step", "7"], "Available steps: 0"),
        (["scope", "-order_by", "depth"], "has no value 'depth'"),
        (["scope", "-select", "micro"], "has no value 'micro'"),
        (["scope", "-show_name_regexes", "[a"], "not a regular expression"),
        (["scope", "-trim_name_regexes", "a,("], "not a regular expression"),
        (["scope", "-nonsense", "1"], "no option -nonsense"),
        (["scope", "-output", "html"], "unknown output type"),
        (["scope", "-output", "file:outfile={tmp}/no/file"], "cannot write"),
        (["advise", "-nonsense", "1"], "no option -nonsense"),
        (["code"], "No code trace"),
        (["help", "nonsense"], "no help on 'nonsense'"),
    ],
)
def test_one_shot_says_so_and_ends_with_2(words, message, files, tmp_path, capsys):
    step = f"--run_meta_path={files['run_meta']}"
    assert message in _refused([step, *(word.replace("{tmp}", str(tmp_path)) for word in words)], capsys)


@pytest.mark.simulator
def test_a_warning_of_the_command_begins_with_its_name(tmp_path, capsys):
    path = str(tmp_path / "step.pb")
    with SimulatedGpu() as gpu, collector.trace(path, stacks=True), collector.annotate("op"):
        gpu.launch("k")
    for _ in range(2):  # in one process, each is printed once
        assert main(["prof", path, "code", "-account_displayed_op_only"]) == 0
        assert capsys.readouterr().err == "collector: Note: code view ignores account_displayed_op_only\n"


def test_a_scope_a_million_deep_on_the_command_line(tmp_path, capsys):
    (tmp_path / "graph").write_bytes(_graph("a/" * 1_000_000 + "a").SerializeToString())
    assert "1000000 scopes deep" in _refused([f"--graph_path={tmp_path / 'graph'}", "scope"], capsys)


def test_a_circle_on_the_command_line(tmp_path, capsys):
    graph = _graph("a", "b")
    graph.node[0].input.append("b")
    graph.node[1].input.append("a")
    (tmp_path / "graph").write_bytes(graph.SerializeToString())
    assert "the graph has cycles" in _refused([f"--graph_path={tmp_path / 'graph'}", "graph"], capsys)
    assert main(["prof", f"--graph_path={tmp_path / 'graph'}", "scope"]) == 0


def test_a_circle_beside_what_has_a_start_is_walked_once():
    graph = _graph("a", "b", "out")
    graph.node[0].input.append("b")
    graph.node[1].input.append("a")
    graph.node[2].input.append("a")
    report = Profiler(graph).reporter.ask("graph", Options(max_depth=MAX_LEVELS + 1))
    assert [line.split()[0] for line in report.text.splitlines()[-4:]] == ["_TFProfRoot", "out", "a", "b"]


@pytest.mark.medium
def test_deep_trees_can_be_asked_for_by_what_is_near_the_top():
    for make, view in ((_deep_graph, "graph"), (_deep_stack, "code"), (_deep_scope, "op")):
        assert make().reporter.ask(view, Options()).text.count("\n") > 5


def test_in_python_a_hopeless_question_is_an_empty_answer_and_a_logged_line(caplog):
    message = _cycle().profile_graph({"output": "none"})
    assert (message.name, len(message.children)) == ("_TFProfRoot", 0)
    assert "the graph has cycles" in caplog.text
    with pytest.raises(ViewError):
        _deep_scope().reporter.ask("scope", Options())


# --- Checkpoints -------------------------------------------------------------------------------------------------


def test_a_corrupt_checkpoint_on_the_command_line(files, tmp_path, capsys):
    index = tmp_path / "model.index"
    step = f"--run_meta_path={files['run_meta']}"
    for content in (b"", b"rubbish" * 20, bytes(40) + struct.pack("<Q", 0xDB4775248B80FB57)):
        index.write_bytes(content)
        assert "is not a checkpoint index" in _refused(
            [step, f"--checkpoint_path={tmp_path / 'model'}", "scope"], capsys
        )
