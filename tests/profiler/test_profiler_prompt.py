"""The command language, the one-shot command, and a scripted run at a real terminal."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys

import pytest

from collector.cli import main
from collector.profiler import commands, prompt
from collector.profiler.advice.step_advice import thresholds
from collector.profiler.profile_options import Options
from collector.profiler.profiler_errors import OptionError
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


def test_a_file_after_the_command_is_told_where_it_belongs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "step.pb").touch()
    with pytest.raises(OptionError, match=r"'step.pb' is not an option\. Name files before the command"):
        commands.parse_line("scope step.pb", Options())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense", "no command 'nonsense'"),
        ("scopes", "no command 'scopes'; did you mean scope?"),
        ("scope -nonsense 1", "no option -nonsense. See help"),
        ("scope -nonsense", "no option -nonsense"),
        ("scope --json -step 0", "no option -json"),
        ("scope -max_dept", "no option -max_dept; did you mean -max_depth?"),
        ("scope -max_depth x", "is a number"),
        ("scope -max_depth", "needs a value"),
        ("scope max_depth", "is not an option"),
        ("scope -select nonsense", "has no value 'nonsense'"),
        ("scope -order_by depth", "has no value 'depth'"),
        ("scope -show_name_regexes ([", "not a regular expression"),
        ("scope -output nonsense", "unknown output type"),
        ("scope -output file", "needs 'outfile'"),
        ("scope -output file:foo=1", "takes no 'foo'"),
        ("scope 'unclosed", "cannot read the line"),
        ("advise -nonsense 1", "no option -nonsense"),
        ("advise -nonsense", "no option -nonsense"),
        ("advise -explian", "no option -explian; did you mean -explain?"),
        ("advise -small_copies.count x", "is a number"),
    ],
)
def test_trouble_is_one_line(line, message):
    with pytest.raises(OptionError, match=re.escape(message)) as caught:
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
        ("help launch", "launch", "launch_bound.idle_share"),
        ("advise -launch_b", "-launch_b", "-launch_bound.idle_share"),
        ("advise -explain -sm", "-sm", "-small_copies.count"),
        ("advise -e", "-e", "-explain"),
    ],
)
def test_completions(text, begun, expected):
    assert prompt.completions(text)[0] == begun
    assert expected in prompt.completions(text)[1]


def test_help_explains_every_threshold():
    sentence = "The GPU idles because the host launches too late. (default 0.2)"
    assert commands.help_text(["-launch_bound.idle_share"]) == f"launch_bound.idle_share: {sentence}\n"
    first, *options = commands.help_text(["advise"]).splitlines()
    assert first.startswith("advise: findings")
    assert [option.split()[0] for option in options] == ["-explain", *(f"-{name}" for name in thresholds())]
    assert any(option.startswith("  -launch_bound.idle_share ") and option.endswith(sentence) for option in options)


def test_one_shot(step, tmp_path, capsys):
    out = tmp_path / "report.txt"
    assert main(["prof", str(step), "op", "-order_by", "micros", "-select", "micros,occurrence"]) == 0
    assert "relu" in capsys.readouterr().out
    assert main(["prof", str(step), "scope", "-output", f"file:outfile={out}"]) == 0
    assert "net/b/relu" in out.read_text()
    assert main(["prof", str(step), "advise"]) == 0
    assert "nothing to advise" not in capsys.readouterr().out


def test_without_a_standard_input_the_scope_view_is_printed(step, capsys, monkeypatch):
    """As a shell starts it with ``<&-``."""
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["prof", str(step)]) == 0
    assert "net" in capsys.readouterr().out


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
    message = capsys.readouterr().err
    assert message.startswith("collector: ")
    assert message.count("\n") == 1


def test_the_prompt_survives_trouble():
    written: list[str] = []
    asked = prompt.Prompt(lambda command: f"{command.name} {command.options.max_depth}\n")
    asked.run(["scope", "nonsense", "set -max_depth 3", "op", "op -max_depth 5", "op", ""], written.append)
    assert written[:2] == ["scope 10\n", written[1]]
    assert "no command" in written[1]
    assert written[3:6] == ["op 3\n", "op 5\n", "op 3\n"]
    assert "-max_depth                  3" in written[6]


class Terminal:
    """``collector prof`` at a terminal of its own, typed at as a person would."""

    PROMPT = "prof>"

    def __init__(self, step, home) -> None:
        pexpect = pytest.importorskip("pexpect", reason="THE PROMPT WAS NOT TRIED AT A TERMINAL: pexpect is missing")
        pytest.importorskip("prompt_toolkit", reason="THE PROMPT WAS NOT TRIED AT A TERMINAL: no prompt_toolkit")
        environment = {
            **os.environ,
            "XDG_STATE_HOME": str(home),
            "TERM": "xterm-256color",
            "PROMPT_TOOLKIT_NO_CPR": "1",
        }
        environment.pop("NO_COLOR", None)
        self._child = pexpect.spawn(
            sys.executable,
            ["-m", "collector", "prof", str(step)],
            env=environment,
            encoding="utf-8",
            dimensions=(60, 200),
            timeout=None,
        )
        self._eof = pexpect.EOF
        self.see(self.PROMPT)

    def see(self, pattern: str) -> str:
        """Waits for ``pattern``; what was printed up to its end."""
        self._child.expect(pattern)
        return self._child.before + self._child.after

    def type(self, keys: str) -> None:
        self._child.send(keys)

    def ask(self, line: str, answer: str) -> str:
        """Types a line; its answer up to the next prompt."""
        self.type(f"{line}\r")
        seen = self.see(answer)
        return seen + self.see(self.PROMPT)

    def leave(self) -> int:
        """Ends with control-D; the exit status."""
        self._child.sendeof()
        self._child.expect(self._eof)
        self._child.close()
        return self._child.exitstatus


@pytest.mark.slow
def test_every_feature_of_the_prompt_at_a_terminal(step, tmp_path):
    terminal = Terminal(step, tmp_path)

    # Answers, in colours: a bold legend, names that stand out.
    seen = terminal.ask("scope -select micros,occurrence", "net/b/relu")
    assert re.search(r"\x1b\[[\d;]*m", seen)
    assert re.search(r"\x1b\[1m(?:node name)", seen)
    assert re.search(r"\x1b\[36m *net/a", seen)

    # Trouble is one line, and the prompt lives on.
    terminal.ask("nonsense", "no command 'nonsense'")
    terminal.ask("scope -order_by depth", "has no value 'depth'")
    terminal.ask("scope -show_name_regexes (", "not a regular expression")
    terminal.ask("code", "No code trace")

    # Help: all of it, a command, an option; nothing on nonsense.
    terminal.ask("help", "account_displayed_op_only")
    terminal.ask("help op", "by op type")
    terminal.ask("help -min_bytes", "requested at least")
    terminal.ask("help nonsense", "no help on")

    # What is set stays; what a line says is for this line; an empty line shows what is in force.
    terminal.ask("set -select occurrence -max_depth 7", "")
    terminal.ask("op", "op occurrence")
    terminal.ask("op -select micros", "total execution time")
    terminal.ask("", "-max_depth +7[\\s\\S]*-select +occurrence")

    # Advice, with evidence on demand.
    terminal.ask("advise", "dominating_kernel: ")
    terminal.ask("advise -explain", "times, .* of ")
    assert "dominating_kernel: " not in terminal.ask("advise -dominating_kernel.share 1", "tensor_core_free_matmuls: ")

    # An answer to a file, from where the next line is read only when it is written.
    terminal.ask(f"scope -output file:outfile={tmp_path / 'report.txt'}", "")
    terminal.ask("help op", "by op type")
    assert "net/b/relu" in (tmp_path / "report.txt").read_text()

    # Completion: of commands, options, values; with the tab key.
    terminal.type("gra")
    terminal.see("graph")  # offered below the line
    terminal.type("\t -sel")
    terminal.see("-select")
    terminal.type("\t mic")
    terminal.see("micros")
    terminal.type("\t\r")
    terminal.see("_TFProfRoot")
    terminal.see(Terminal.PROMPT)

    # Control-C drops the line, not the prompt.
    terminal.type("half a line\x03")
    terminal.see(Terminal.PROMPT)
    terminal.ask("op -max_depth 1", "sgemm|relu")
    assert terminal.leave() == 0

    # The next session remembers: arrow up brings the last line back.
    assert "graph -select micros" in (tmp_path / "collector" / "prof_history").read_text()
    terminal = Terminal(step, tmp_path)
    terminal.type("\x1b[A")
    terminal.see("op -max_depth 1")
    terminal.type("\r")
    terminal.see("sgemm|relu")
    terminal.see(Terminal.PROMPT)
    assert terminal.leave() == 0


@pytest.mark.medium
def test_piped_it_is_plain_and_ends_with_its_input(step):
    lines = "help op\nnonsense\nset -max_depth 1\nscope\n\nop -select micros\n"
    done = subprocess.run(
        [sys.executable, "-m", "collector", "prof", str(step)],
        input=lines,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "FORCE_COLOR": "1"},
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert Terminal.PROMPT not in done.stdout
    parts = ("op: by op type", "no command 'nonsense'", "_TFProfRoot", "-max_depth                  1", "relu")
    places = [done.stdout.index(part) for part in parts]
    assert places == sorted(places)


def test_without_prompt_toolkit_lines_are_read_plainly(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    lines = iter(["help op"])

    def read(shown: str) -> str:
        assert shown == prompt.PROMPT
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", read)
    prompt.interact(prompt.Prompt(lambda command: ""))
    message = capsys.readouterr().out
    assert "pip install 'cupti-collector[prompt]'" in message
    assert "by op type" in message


@pytest.mark.parametrize("is_terminal", [False, True])
def test_without_anybody_to_ask_the_scope_view_is_the_answer(is_terminal, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr("sys.stdin.isatty", lambda: is_terminal, raising=False)
    prompt.interact(prompt.Prompt(lambda command: f"{command.name} by {command.options.order_by}\n"))
    assert capsys.readouterr().out == "scope by name\n"


def test_without_anybody_to_ask_recorded_steps_are_summarised(monkeypatch, capsys, build, tmp_path):
    path = tmp_path / "step.pb"
    build.kernel("relu", 100).recording().save(path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert main(["prof", str(path)]) == 0
    printed = capsys.readouterr().out
    assert main(["summary", str(path)]) == 0
    assert printed == capsys.readouterr().out
    assert "Kernels: 1 of 1 name" in printed


def test_a_recorded_step_begins_with_what_takes_the_gpu_longest(monkeypatch, capsys, tmp_path):
    metadata = RunMetadata()
    host = metadata.step_stats.dev_stats.add(device="/cpu:0")
    host.node_stats.add(node_name="a_long_loop", all_start_micros=1, op_end_rel_micros=9000)
    host.node_stats.add(node_name="cudaLaunchKernel", all_start_micros=10_000, op_end_rel_micros=50)
    device = metadata.step_stats.dev_stats.add(device="/gpu:0/stream:all")
    for name, start, duration in (("small:k", 10, 20), ("small:k2", 40, 90), ("zlarge:k", 300, 500)):
        device.node_stats.add(node_name=name, all_start_micros=start, op_end_rel_micros=duration)
    path = tmp_path / "step.pb"
    path.write_bytes(metadata.SerializeToString())
    assert main(["prof", str(path), "scope"]) == 0
    report = capsys.readouterr().out.partition("node name")[2]
    names = re.findall(r"^ +(\S+) \(", report, re.MULTILINE)
    order = ["zlarge", "zlarge/k", "small", "small/k2", "small/k", "a_long_loop", "cudaLaunchKernel"]
    assert names == order


@pytest.mark.parametrize("words", [["-h"], ["--help"], ["scope", "-h"], ["scope", "-max_depth", "3", "--help"]])
def test_help_is_asked_for_as_of_other_commands(step, capsys, words):
    assert main(["prof", str(step), *words]) == 0
    assert capsys.readouterr().out == commands.help_text()
    assert main(["prof", str(step), "advise", *words[-1:]]) == 0
    assert capsys.readouterr().out == commands.help_text(["advise"])
