"""Tables have colours on a terminal, and none where ``NO_COLOR`` or ``TERM=dumb`` says so."""

from __future__ import annotations

import contextlib
import re
import sys
from pathlib import Path

import pytest

from collector.bench import report_tables
from collector.cli import main
from collector.recording.recording import Recording
from collector.stepstats.from_recording import run_metadata
from collector.testing import SimulatedGpu

ESCAPE = "\x1b"


@pytest.fixture
def step(step_capture, tmp_path: Path) -> str:
    path = tmp_path / "step.pb"
    path.write_bytes(run_metadata(Recording.from_capture(step_capture)).SerializeToString())
    return str(path)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The variables are those of a terminal with colours."""
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def shown(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    """What a command prints on a terminal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.stdout, "isatty", lambda: True)
        with contextlib.suppress(SystemExit):  # of help
            main(command)
    return capsys.readouterr().out


@pytest.mark.simulator
@pytest.mark.parametrize(
    "command",
    [
        ("summary", "STEP"),
        ("stats", "STEP"),
        ("compare", "STEP", "STEP"),
        ("demo", "--simulate"),
        ("info",),
        ("info", "--help"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_that_wants_no_colours_gets_none(command, variable, value, step, terminal, capsys):
    words = [step if word == "STEP" else word for word in command]
    if command != ("demo", "--simulate"):
        with SimulatedGpu():
            coloured = shown(capsys, *words)
            terminal.setenv(variable, value)
            plain = shown(capsys, *words)
    else:
        coloured = shown(capsys, *words)
        terminal.setenv(variable, value)
        plain = shown(capsys, *words)
    assert ESCAPE in coloured
    assert plain
    assert ESCAPE not in plain


def test_an_empty_no_color_says_nothing(step, terminal, capsys):
    terminal.setenv("NO_COLOR", "")
    assert ESCAPE in shown(capsys, "summary", step)


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_tables_of_a_benchmark_have_none(variable, value, terminal, capsys):
    def changes() -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys.stdout, "isatty", lambda: True)
            console, text = report_tables._console(None, 80)
            console.print("[yellow]note[/yellow]")
            return text.getvalue()

    coloured = changes()
    terminal.setenv(variable, value)
    assert ESCAPE in coloured
    assert ESCAPE not in changes()


def test_no_other_module_asks_whether_a_stream_is_a_terminal_to_choose_colours(root: Path):
    """`collector.text.terminal.shows_colours` is the one place that decides."""
    asking = re.compile(r"colou?r.*isatty|isatty.*colou?r", re.IGNORECASE)
    found = [
        f"{file.relative_to(root)}: {line.strip()}"
        for file in (root / "collector").rglob("*.py")
        for line in file.read_text(encoding="utf-8").splitlines()
        if asking.search(line) and file.name != "terminal.py"
    ]
    assert found == []
