"""Completion in a real bash, and the look of help."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest

from collector.cli import main, subcommands
from collector.options import KINDS, KINDS_ON_REQUEST

pytest.importorskip("shtab")


def completed(script: str, line: str, folder, *, breaks: str = "=") -> list[str]:
    """What bash offers for the last word of a line; it takes each of the characters ``breaks`` for a word."""
    words = [word for part in line.split() for word in (re.split(f"([{breaks}])", part) if breaks else [part]) if word]
    program = f"""
{script}
COMP_LINE={line!r}
COMP_WORDS=({" ".join(words)}{' ""' if line.endswith(" ") else ""})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
COMP_POINT=${{#COMP_LINE}}
$(complete -p collector | sed 's/.*-F //; s/ .*//')
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True, cwd=folder)
    return sorted(done.stdout.split())


@pytest.mark.medium
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_commands_options_values_and_files(capsys, tmp_path):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert "-F _shtab_collector collector" in script
    (tmp_path / "step.pb").write_bytes(b"")
    assert completed(script, "collector ", tmp_path) == subcommands()
    assert completed(script, "collector ti", tmp_path) == ["timeline"]
    assert completed(script, "collector timeline --max", tmp_path) == ["--max-events"]
    assert completed(script, "collector info --source n", tmp_path) == ["native"]
    assert completed(script, "collector timeline st", tmp_path) == ["step.pb"]
    for words in ("prof", "prof --graph_path", "prof step.pb", "compare", "compare step.pb", "sql", "ui", "run python"):
        assert completed(script, f"collector {words} st", tmp_path) == ["step.pb"], words
    assert completed(script, "collector run ./st", tmp_path) == ["./step.pb"]
    assert "complete -o bashdefault -o default -F" in script  # names of files where there is nothing else


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_a_value_after_an_equals_sign(capsys, tmp_path):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    (tmp_path / "step.pb").write_bytes(b"")
    idle = ["idle", "idle_gaps", "idle_ops", "idle_time_breakdown"]
    questions = completed(script, "collector stats step.pb --question ", tmp_path)
    assert set(idle) < set(questions)
    assert completed(script, "collector stats step.pb --question=id", tmp_path) == idle
    assert completed(script, "collector stats --question=", tmp_path) == questions
    assert completed(script, "collector timeline --output=st", tmp_path) == ["step.pb"]
    assert completed(script, "collector stats --question=idle st", tmp_path) == ["step.pb"]
    assert completed(script, "collector stats --question=id", tmp_path, breaks="") == [
        f"--question={each}" for each in idle
    ]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_values_that_are_no_choices_of_the_parser(capsys, tmp_path):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    (tmp_path / "runs").mkdir()
    (tmp_path / "spare.txt").touch()
    kinds = ["duckdb", "ndjson", "parquet", "sqlite"]
    assert completed(script, "collector export step.pb --to ", tmp_path) == kinds
    assert completed(script, "collector export step.pb --to s", tmp_path) == ["sqlite"]
    assert completed(script, "collector export step.pb --to parquet ", tmp_path) == ["runs"]
    assert completed(script, "collector export --to parquet runs sp", tmp_path) == ["spare.txt"]
    for words, values in {
        "sql --dialect ": ["bigquery", "datafusion", "duckdb", "spark"],
        "sql --dialect=s": ["spark"],
        "sql --print answer_idle": ["answer_idle", "answer_idle_gaps", "answer_idle_ops"],
        "stats --window ": ["span", "step"],
        "stats --rows ": ["all"],
        "run --capture-range ": ["cudaProfilerApi"],
        "run --capture-range-end ": ["repeat", "stop"],
        "run --nvtx-domains ": ["default"],
        "run --kinds mems": ["memsets"],
        "run --kinds kernels,mems": ["kernels,memsets"],
        "run --kinds=kernels,mems": ["kernels,memsets"],
    }.items():
        assert completed(script, f"collector {words}", tmp_path) == values, words
    assert set(KINDS) | set(KINDS_ON_REQUEST) == set(completed(script, "collector run --kinds ", tmp_path))


def test_zsh_completes_two_values_of_one_option_and_lists(capsys):
    assert main(["completion", "zsh"]) == 0
    script = capsys.readouterr().out
    assert ":(parquet duckdb sqlite ndjson):DIR:_files -/" in script
    assert ":_values -s , value kernels memcpys " in script
    assert ":(duckdb datafusion spark bigquery)" in script


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_the_other_shells_have_a_script(capsys, shell):
    assert main(["completion", shell]) == 0
    assert "timeline" in capsys.readouterr().out


@pytest.mark.medium
def test_a_command_on_a_terminal_imports_nothing_for_help():
    program = """
import sys
from collector.cli import command_parser
sys.stdout.isatty = lambda: True
assert command_parser(["info"]).parse_args(["info"]).subcommand == "info"
assert not {"rich", "rich_argparse"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.medium
def test_help_on_a_terminal_has_the_words_of_plain_help(capsys, monkeypatch):
    def help_of(*command: str) -> str:
        with pytest.raises(SystemExit):
            main([*command, "--help"])
        return capsys.readouterr().out

    def words(text: str) -> set[str]:
        return {word.rstrip(",") for word in re.sub(r"\x1b\[[\d;]*m", "", text).lower().split()}

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for command in ((), *((each,) for each in subcommands())):
        plain = help_of(*command)
        assert "\x1b" not in plain
        with monkeypatch.context() as patch:
            patch.setattr(sys.stdout, "isatty", lambda: True)
            coloured = help_of(*command)
            assert "\x1b" in coloured, command
            patch.setenv("NO_COLOR", "1")
            assert help_of(*command) == plain
        assert words(coloured) == words(plain), command
