"""Names of strangers in the output of commands: no form of an answer has a character that readers obey or refuse."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import re
import subprocess
import sys

import pytest
from hostile_names import EVIL, obeyed
from markdown_cells import markdown_cells

from collector.analysis.questions import QUESTIONS
from collector.cli import main

NAMES = [f"nul\0{EVIL}", "tab\there", "two\nlines\r\n", "pi|pe\\|<b>*_x_", "=cmd()"]


@pytest.fixture
def files(tmp_path):
    """Two traces of kernels, copies, calls and ops with these names, one of them with half of a surrogate pair."""
    paths = []
    for number in (1, 2):
        events = []
        for place, name in enumerate([*NAMES, "half\ud800"]):
            own = {"pid": 9, "tid": 1, "ph": "X", "dur": 90}
            at = 1000 * place
            events += [
                {**own, "cat": "user_annotation", "name": f"ProfilerStep#{place}", "ts": at, "dur": 1000},
                {**own, "cat": "cpu_op", "name": name, "ts": at},
                {**own, "cat": "cuda_runtime", "name": f"cudaLaunch{name}", "ts": at + 5, "dur": 2,
                 "args": {"correlation": place + 1}},
                {**own, "cat": "kernel", "name": f"ncclKernel{name}", "ts": at + 10, "pid": 0, "tid": 7,
                 "dur": number * 9 + place,
                 "args": {"device": 0, "stream": 7, "correlation": place + 1, "grid": [1, 1, 1], "block": [32, 1, 1],
                          "Collective name": name, "Process Group Name": name, "dtype": name}},
            ]  # fmt: skip
        path = tmp_path / f"rank{number}.json"
        path.write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": number, "world_size": 3}}))
        paths.append(path)
    return paths


def printed(capsys, *arguments):
    assert main([*map(str, arguments)]) in (0, 3)
    out = capsys.readouterr().out
    assert obeyed(out) == set()
    return out


ASKED = [
    pytest.param((name, by), id=f"{name}-{by}" if by else name)
    for name, question in QUESTIONS.items()
    for by in question.questions
]


@pytest.mark.medium
@pytest.mark.parametrize("asked", ASKED)
def test_stats_in_every_form(files, capsys, asked):
    name, by = asked
    options = ["--question", name, *(["--by", by] if by else []), *(["--same-clock"] if name == "ranks" else [])]
    (answer,) = json.loads(printed(capsys, "stats", *files, *options, "--json"))
    printed(capsys, "stats", *files, *options)
    rows = list(csv.reader(io.StringIO(out := printed(capsys, "stats", *files, *options, "--csv"))))
    assert out.count("\n") == len(rows) == 1 + len(answer["rows"])
    assert all(len(row) == len(answer["columns"]) for row in rows)
    assert "\t" not in out
    _, _, *lines = printed(capsys, "stats", *files, *options, "--markdown").splitlines()
    assert [len(markdown_cells(line)) for line in lines] == [len(answer["columns"])] * (2 + len(answer["rows"]))


@pytest.mark.medium
@pytest.mark.parametrize("form", [[], ["--json"], ["--markdown"], ["--by", "kernel", "--csv"]])
def test_comparisons(files, capsys, form):
    assert printed(capsys, "compare", *files, *form)


def test_summaries(files, capsys):
    assert "nul\\x00" in printed(capsys, "summary", *files)


@pytest.mark.medium
@pytest.mark.parametrize("form", [[], ["--json"], ["--csv"], ["--markdown"]])
def test_rows_of_queries(files, capsys, form):
    pytest.importorskip("duckdb")
    query = 'select name, op, chr(27) || name as "odd|head" from kernels'
    out = printed(capsys, "sql", files[0], query, *form)
    if "--csv" in form:
        assert len(list(csv.reader(io.StringIO(out)))) == out.count("\n") == 1 + len(NAMES) + 1


@pytest.mark.parametrize("view", ["scope", "op", "graph", "advise"])
def test_views_of_the_profiler(files, capsys, view):
    assert printed(capsys, "prof", files[0], view)


@pytest.mark.medium
@pytest.mark.parametrize(
    "command",
    [
        ["stats"],
        *(
            pytest.param(command, marks=pytest.mark.slow)
            for command in (["summary"], ["compare"], ["stats", "--question", "kernels", "--csv"])
        ),
    ],
)
@pytest.mark.parametrize(
    "environment",
    [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}],
    ids=["another encoding", "the C locale"],
)
def test_an_output_of_another_encoding_gets_escapes(files, command, environment):
    """Such as a pipe on a machine with Latin-1, or a terminal of the C locale without Python's UTF-8 mode."""
    name, *options = command
    program = [sys.executable, "-m", "collector", name, *map(str, files), *options]
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONIOENCODING"}
    done = subprocess.run(program, env=inherited | environment, capture_output=True, text=True, encoding="ascii")
    assert done.returncode in (0, 3), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout
    assert not re.search(
        r"\\u2500|\\u2026|\\xb5", done.stdout + done.stderr
    )  # signs of tables and units are not escaped


@pytest.mark.medium
def test_tables_in_ascii_are_as_wide_as_others(files, capsys):
    """Names have escapes, signs of our own similar characters of ASCII."""
    printed = {}
    for encoding in ("utf-8", "ascii"):
        program = [sys.executable, "-m", "collector", "summary", str(files[0])]
        environment = {**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "100"}
        done = subprocess.run(program, env=environment, capture_output=True, check=True)
        printed[encoding] = done.stdout.decode(encoding).splitlines()
    for plain, whole in zip(printed["ascii"], printed["utf-8"], strict=True):
        assert plain == whole.replace("─", "-").replace("µs", "us").replace("…", "~")
    assert any(re.search(r"\d us\b", line) for line in printed["ascii"])


@pytest.mark.medium
@pytest.mark.parametrize("columns", ["160", "70"])
@pytest.mark.parametrize("command", [["summary"], ["stats", "--question", "kernels"]], ids=lambda words: words[0])
def test_tables_are_aligned_where_names_are_escaped(tmp_path, command, columns):
    path = tmp_path / "step.json"
    names = ["plain", "\u65e5\u672c_kernel", "\xe9", "\xb5m", "10 \xb5s", "\U0001f600" * 9]
    events = [
        {"ph": "X", "cat": "kernel", "name": name, "ts": 10 * at, "dur": 9, "pid": 0, "tid": 7,
         "args": {"device": 0, "stream": 7, "correlation": at}}
        for at, name in enumerate(names, 1)
    ]  # fmt: skip
    path.write_text(json.dumps(events))
    program = [sys.executable, "-m", "collector", command[0], str(path), *command[1:]]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": columns}
    printed = subprocess.run(program, env=environment, capture_output=True, check=True, text=True).stdout
    lines = printed.splitlines()
    assert "\\u65e5" in printed
    found = 0
    for at, line in enumerate(lines):
        if re.fullmatch(r" -+", line):
            rows = list(itertools.takewhile(bool, lines[at + 1 :]))
            assert len({len(row) for row in rows}) == 1, printed  # their last cells are of one width
            assert len(rows[0]) <= len(line)
            found += 1
    assert found
    assert max(map(len, lines)) <= int(columns)


@pytest.mark.medium
def test_a_sign_in_a_name_is_escaped_in_ascii(tmp_path):
    path = tmp_path / "step.json"
    path.write_text(json.dumps([{"ph": "X", "cat": "kernel", "name": "µm kernel", "ts": 1, "dur": 9, "pid": 0, "tid": 7,
                                 "args": {"device": 0, "stream": 7, "correlation": 1}}]))  # fmt: skip
    program = [sys.executable, "-m", "collector", "stats", str(path), "--question", "kernels", "--csv"]
    done = subprocess.run(program, env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, text=True)
    assert "\\xb5m kernel" in done.stdout
