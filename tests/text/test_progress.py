"""The progress bar: on a terminal, and only for long operations."""

from __future__ import annotations

import io

import pytest

from collector.cli import main
from collector.text import progress as progress_module
from collector.text.progress import progress


def terminal_of(monkeypatch):
    """Standard error as a terminal; within the test, as pytest sets the stream before each."""
    stream = io.StringIO()
    stream.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm-256color")
    return stream


def test_a_bar_says_what_is_done_and_obeys_no_markup(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with progress("reading", after_s=0) as report:
        report("reading [red]a.json", 1, 2)
    assert "reading [red]a.json" in terminal.getvalue()
    assert "1/2" in terminal.getvalue()


def test_what_is_quick_has_no_bar(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with progress("reading", after_s=3600) as report:
        report("reading a.json", 1, 2)
    assert terminal.getvalue() == ""


def test_a_bar_that_is_not_wanted_is_not_drawn(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with progress("reading", shown=False, after_s=0) as report:
        report("reading a.json", 1, 2)
    assert terminal.getvalue() == ""


def test_what_is_no_terminal_has_no_bar(capsys):
    with progress("reading", after_s=0) as report:
        report("reading a.json", 1, 2)
    assert capsys.readouterr().err == ""


def test_an_error_ends_the_bar(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with pytest.raises(ValueError, match="no step"), progress("reading", after_s=0):
        raise ValueError("no step")
    assert terminal.getvalue().endswith(("\x1b[?25h", "\x1b[2K"))


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["timeline", "{}", "-o", "out.json"], ["reading step.gpurec", "writing out.json"]),
        (["merge", "{}", "-o", "out.json"], ["merging"]),
        (["stats", "{}"], ["reading step.gpurec", "answering"]),
        (["summary", "{}"], ["reading step.gpurec", "summing up step.gpurec"]),
        (["compare", "{}", "{}"], ["reading step.gpurec", "comparing"]),
        (["report", "{}", "-o", "out.html"], ["reading step.gpurec", "writing out.html"]),
        (["prof", "{}", "scope"], ["reading", "answering scope"]),
    ],
    ids=lambda each: each[0],
)
def test_commands_that_read_and_write_have_bars(command, shown, build, tmp_path, monkeypatch):
    build.launch(1, 10).kernel("k", 100, correlation_id=1).recording().save(tmp_path / "step.gpurec")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress_module, "SHOWN_AFTER_S", 0)
    terminal = terminal_of(monkeypatch)
    assert main([each.format("step.gpurec") for each in command]) in (0, 3)
    for text in shown:
        assert text in terminal.getvalue()
