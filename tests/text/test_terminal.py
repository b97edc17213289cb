"""Untrusted names of kernels, ops, processes and files are shown on a terminal without any effect on it."""

from __future__ import annotations

import io
import json

import pytest
from hostile_names import EVIL, obeyed

pytest.importorskip("hypothesis")

from hypothesis import given
from hypothesis import strategies as st

from collector import profiler
from collector.analysis.summary import summarize
from collector.cli import main
from collector.profiler import prompt
from collector.text.terminal import printable, printable_lines


def row(category, name, pid, tid, start, duration, **arguments):
    return {"ph": "X", "cat": category, "name": name + EVIL, "pid": pid, "tid": tid, "ts": start, "dur": duration,
            "args": arguments}  # fmt: skip


@pytest.fixture
def trace(tmp_path):
    events = [
        {"ph": "M", "name": "process_name", "pid": 9, "args": {"name": "p" + EVIL}},
        row("cpu_op", "op", 9, 1, 1_700_000_000_000_000, 90),
        row("cuda_runtime", "cudaLaunchKernel", 9, 1, 1_700_000_000_000_005, 2, correlation=3),
        row("kernel", "k", 0, 7, 1_700_000_000_000_010, 9, device=0, stream=7, correlation=3, grid=[1, 1, 1]),
        {"ph": "X", "name": "no time" + EVIL, "ts": "soon" + EVIL},
    ]
    path = tmp_path / f"trace{EVIL}.json"
    path.write_text(json.dumps(events))
    return path


@pytest.mark.parametrize("colored", [False, True], ids=["plain", "on a terminal"])
@pytest.mark.parametrize("view", ["scope", "op", "graph", "advise"])
def test_answers_about_a_trace(trace, capsys, monkeypatch, view, colored):
    if colored:
        answers = []
        monkeypatch.setattr("rich.console.Console.print", lambda _, text, **__: answers.append(text.plain))
        monkeypatch.setattr(prompt, "_edited_lines", lambda: [view])
        for stream in ("stdin", "stdout"):
            monkeypatch.setattr(f"sys.{stream}", type("Terminal", (io.StringIO,), {"isatty": lambda _: True})())
        assert main(["prof", str(trace)]) == 0
        shown = "".join(answers)
    else:
        assert main(["prof", str(trace), view]) == 0
        shown = "".join(capsys.readouterr())
    assert shown
    assert obeyed(shown) == set()
    assert r"\x1b" in shown or view == "advise"


@pytest.mark.parametrize("command", ["timeline", "merge"])
def test_warnings_of_what_is_converted(trace, tmp_path, capsys, command):
    assert main([command, str(trace), "-o", str(tmp_path / f"out{EVIL}.json")]) == 0
    printed = "".join(capsys.readouterr())
    assert r"\x1b" in printed
    assert obeyed(printed) == set()


@pytest.mark.parametrize("command", ["timeline", "prof"])
def test_errors(tmp_path, capsys, command):
    path = tmp_path / f"nothing{EVIL}.json"
    path.write_text(EVIL)
    output = ["-o", str(tmp_path / "out.json")] if command == "timeline" else ["scope"]
    assert main([command, str(path), *output]) == 2
    printed = capsys.readouterr()
    assert r"\x1b" in printed.err
    assert obeyed(printed.out + printed.err) == set()


def test_a_steps_summary(build):
    shown = summarize(build.kernel("k" + EVIL, 1000).recording(), color=False)
    assert r"\x1b" in shown
    assert obeyed(shown) == set()


def test_views_that_python_prints(trace, capsys, caplog):
    asked = profiler.Profiler()
    asked.add_recorded_step(0, trace)
    regexes = {key: [".*"] for key in ("account_type_regexes", "start_name_regexes", "show_name_regexes")}
    asked.profile_name_scope({"select": ["micros"], "output": "stdout", "max_depth": 9, **regexes})
    shown = capsys.readouterr().out
    for text in (shown, caplog.text):
        assert r"\x1b" in text
        assert obeyed(text) == set()


@given(st.text())
def test_what_is_printable_is_one_line_and_what_was_stays(text):
    assert printable(text).isprintable()
    assert printable(printable(text)) == printable(text)
    assert obeyed(printable_lines(text)) == set()
    assert printable_lines(text).count("\n") == text.count("\n")
    if text.isprintable():
        assert printable(text) == text
