"""Damaged traces of PyTorch on the command line: an answer that counts what is missing."""

from __future__ import annotations

import json

import pytest

import collector
from collector.cli import main

BROKEN = (
    "bare_event_list_no_closing_bracket",
    "invalid_utf8_names",
    "missing_closers",
    "nan_and_infinity",
    "negative_missing_dur_and_args",
    "repeated_kernels",
    "string_timestamps",
    "truncated_gzip_stream",
    "truncated_mid_event",
)
COMMANDS = ("summary", "stats", "prof", "timeline", "compare", "merge")


@pytest.fixture
def broken(shared):
    return shared / "data/gpu_traces/broken_derived"


def test_every_file_is_tested(broken):
    assert {path.name.removesuffix(".json.gz") for path in broken.iterdir()} == set(BROKEN)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", BROKEN)
def test_what_can_be_read_is_answered(broken, tmp_path, capsys, caplog, name, command):
    path, output = broken / f"{name}.json.gz", tmp_path / "out.json"
    arguments = {
        "stats": ["--question", "devices", "--json"],
        "timeline": ["-o", str(output)],
        "merge": [str(path), "-o", str(output), "--quiet"],
        "compare": [str(path)],
        "prof": ["scope"],
    }
    status = main([command, str(path), *arguments.get(command, [])])
    printed = capsys.readouterr()
    assert status == (3 if command == "compare" else 0)  # 3: not enough steps for a comparison
    assert all(line.startswith("collector: ") for line in printed.err.splitlines())
    if command in ("timeline", "merge"):
        assert json.loads(output.read_text())["traceEvents"]
    else:
        assert printed.out
    # Whatever could not be read is said beside the answer.
    step = collector.load(path)
    said = printed.err + caplog.text  # the profiler logs it
    assert not step.warning or any(reason in said for reason in step.skipped)
    assert step.ledger.unread.keys() >= step.skipped.keys()
