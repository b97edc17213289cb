"""The command language, the one-shot command, and a scripted run at a real terminal."""

from __future__ import annotations

import os
import sys

import pytest

from collector.cli import main
from collector.profiler import commands, prompt
from collector.profiler.errors import OptionError
from collector.profiler.options import Options
from collector.protos import RunMetadata


@pytest.fixture
def step(tmp_path):
    """A recorded step of three kernels."""
    metadata = RunMetadata()
    device = metadata.step_stats.dev_stats.add(device="/gpu:0/stream:all")
    for number, name in enumerate(("net/a:sgemm", "net/b:relu", "net/b:relu")):
        device.node_stats.add(node_name=name, all_start_micros=10 + 50 * number, op_end_rel_micros=9 + number)
    path = tmp_path / "step.pb"
    path.write_bytes(metadata.SerializeToString())
    return path


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("scope -max_depth 4", "max_depth", 4),
        ("scope --max_depth=4", "max_depth", 4),
        ("op -step -1", "step", -1),
        ("op -select micros,bytes", "select", frozenset(("micros", "bytes"))),
        ("code -account_displayed_op_only -step 2", "account_displayed_op_only", True),
        ("code -account_displayed_op_only false", "account_displayed_op_only", False),
        ("graph -hide_name_regexes 'a.*,b'", "hide_name_regexes", ("a.*", "b")),
    ],
)
def test_options_are_understood(line, field, value):
    assert getattr(commands.parse_line(line, Options()).options, field) == value


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nonsense", "no command 'nonsense'"),
        ("scope -nonsense 1", "no option -nonsense"),
        ("scope -max_depth x", "is a number"),
        ("scope -max_depth", "needs a value"),
        ("scope max_depth", "is no option"),
        ("scope -select nonsense", "knows no 'nonsense'"),
        ("scope -order_by depth", "knows no 'depth'"),
        ("scope -show_name_regexes ([", "not a regular expression"),
        ("scope -output nonsense", "unknown output type"),
        ("scope -output file", "needs 'outfile'"),
        ("scope -output file:foo=1", "takes no 'foo'"),
        ("scope 'unclosed", "cannot read the line"),
        ("advise -nonsense 1", "no option -nonsense"),
        ("advise -small_copies.count x", "is a number"),
    ],
)
def test_trouble_is_one_line(line, said):
    with pytest.raises(OptionError, match=said.replace("(", r"\(")) as caught:
        commands.parse_line(line, Options())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "begun", "expected"),
    [
        ("sc", "sc", "scope"),
        ("scope -max_d", "-max_d", "-max_depth"),
        ("scope -select micros,dev", "dev", "device"),
        ("op -order_by ", "", "occurrence"),
        ("help -sel", "-sel", "select"),
        ("advise -e", "-e", "-explain"),
    ],
)
def test_completions(text, begun, expected):
    assert prompt.completions(text)[0] == begun
    assert expected in prompt.completions(text)[1]


def test_one_shot(step, tmp_path, capsys):
    out = tmp_path / "report.txt"
    assert main(["prof", str(step), "op", "-order_by", "micros", "-select", "micros,occurrence"]) == 0
    assert "relu" in capsys.readouterr().out
    assert main(["prof", str(step), "scope", "-output", f"file:outfile={out}"]) == 0
    assert "net/b/relu" in out.read_text()
    assert main(["prof", str(step), "advise"]) == 0
    assert "nothing to advise" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["prof"],
        ["prof", "missing.pb", "scope"],
        ["prof", "{step}", "scope", "-step", "9"],
        ["prof", "{step}", "code"],
        ["prof", "{step}", "op", "-output", "timeline:outfile=x"],
        ["prof", "--profile_path=x", "{step}", "scope"],
        ["prof", "--graph_path={step}", "scope"],
        ["prof", "--checkpoint_path=missing", "{step}", "scope"],
    ],
)
def test_bad_input_is_one_line_and_status_2(words, step, capsys):
    assert main([word.replace("{step}", str(step)) for word in words]) == 2
    said = capsys.readouterr().err
    assert said.startswith("collector: ")
    assert said.count("\n") == 1


def test_the_prompt_survives_trouble():
    written: list[str] = []
    asked = prompt.Prompt(lambda command: f"{command.name} {command.options.max_depth}\n")
    asked.run(["scope", "nonsense", "set -max_depth 3", "op", "op -max_depth 5", "op", ""], written.append)
    assert written[:2] == ["scope 10\n", written[1]]
    assert "no command" in written[1]
    assert written[3:6] == ["op 3\n", "op 5\n", "op 3\n"]
    assert "-max_depth                  3" in written[6]


def test_at_a_terminal(step, tmp_path):
    pexpect = pytest.importorskip("pexpect")
    pytest.importorskip("prompt_toolkit")
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    child = pexpect.spawn(
        sys.executable, ["-m", "collector", "prof", str(step)], env=environment, encoding="utf-8", dimensions=(60, 200)
    )
    child.expect("prof>", timeout=60)

    def ask(line: str, answer: str) -> None:
        child.send(line)
        child.send("\r")
        child.expect(answer, timeout=60)

    ask("scope", "net/b/relu")
    ask("nonsense", "no command")
    ask("help op", "by op type")
    ask("set -select occurrence", "prof>")
    ask("op", "op occurrence")
    ask("", "-max_depth")
    ask("advise -explain", "small_|launch_|dominating_|tensor_")
    child.expect("prof>", timeout=60)
    child.send("gra")
    child.expect("graph", timeout=60)  # offered below the line
    child.send("\t\r")
    child.expect("_TFProfRoot", timeout=60)
    child.expect("prof>", timeout=60)
    child.sendeof()
    child.expect(pexpect.EOF, timeout=60)
    assert "help op" in (tmp_path / "collector" / "prof_history").read_text()
