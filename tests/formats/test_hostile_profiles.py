"""Exports of nsys and XSpace profiles with repeated rows, impossible times, ids of 64 bits, hostile names, cut, empty.

Each gives answers with a count of what was left out, or one line with the file and exit status 2.
"""

from __future__ import annotations

import sqlite3

import pytest

import collector
from collector import analysis
from collector.analysis.questions import QUESTIONS
from collector.cli import main
from collector.protos.xplane_pb2 import XEvent, XEventMetadata, XLine, XPlane, XSpace, XStat, XStatMetadata

HOSTILE = 'a"b\n\0c,<script>=1+1'
LARGE = 1 << 63
NS = 1000
"""Picoseconds."""
KERNELS = "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, demangledName INTEGER"
CALLS = "start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER"


def nsys(path, kernels):
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", [(1, HOSTILE), (2, "cudaLaunchKernel_v7000")])
        database.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({KERNELS})")
        rows = [(start, start + duration, 0, 7, number, 1) for start, duration, number in kernels]
        database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?)", rows)
        database.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME ({CALLS})")
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (0, 5, 0, 1, 2)")
    database.close()


def xspace(path, kernels):
    gpu = XPlane(name="/device:GPU:0")
    gpu.event_metadata[1].CopyFrom(XEventMetadata(id=1, name=HOSTILE))
    gpu.stat_metadata[1].CopyFrom(XStatMetadata(id=1, name="correlation_id"))
    line = XLine(name="Stream #7(Compute)")
    for start, duration, number in kernels:
        stats = [XStat(metadata_id=1, uint64_value=number)]
        line.events.append(XEvent(metadata_id=1, offset_ps=start * NS, duration_ps=duration * NS, stats=stats))
    gpu.lines.append(line)
    path.write_bytes(XSpace(planes=[gpu]).SerializeToString())


@pytest.fixture(params=[(nsys, "a.sqlite"), (xspace, "a.xplane.pb")], ids=["nsys", "xspace"])
def write(request, tmp_path):
    make, name = request.param

    def write(*kernels):
        make(tmp_path / name, kernels)
        return tmp_path / name

    return write


def told(capsys, *arguments):
    """The exit status of a command, and what it printed on standard output and error."""
    try:
        status = main([*map(str, arguments)])
    except SystemExit as error:
        status = error.code
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_repeated_rows_count_once_in_times_and_each_in_numbers(write):
    recording = collector.load(write((100, 50, 1), (100, 50, 1), (200, 10, 2))).recording
    answer = analysis.devices(recording)
    assert answer["busy_ns"].tolist() == [60]
    assert analysis.kernels(recording)["count"].tolist() == [3]
    assert "1 activity equals another in every column" in " ".join((*answer.losses, *answer.notes))


def test_impossible_times_are_counted(write):
    step = collector.load(write((100, 50, 1), (-500, 20, 2), (300, -40, 3)))
    answer = analysis.devices(step)
    assert 1 <= len(step.recording.kernels) <= 3
    assert step.ledger.invalid_timestamps + sum(step.skipped.values()) >= 1
    assert all(value >= 0 for value in answer["busy_ns"].tolist())


@pytest.mark.parametrize("name", [name for name, question in QUESTIONS.items() if not question.of_ranks])
def test_every_question_is_answered(write, name):
    kernels = [(100, 50, 1), (100, 50, 1), (-500, 20, 2), (300, -40, 3), (400, 1, LARGE - 1)]
    answer = QUESTIONS[name].ask(collector.load(write(*kernels)))
    answer.text(), answer.to_csv(), answer.to_markdown(), answer.to_json()


def test_ids_of_64_bits_are_ids_or_none(write):
    kernels = collector.load(write((100, 50, LARGE - 1), (200, 50, 1))).recording.kernels
    assert len(kernels) == 2
    assert max(kernels.correlation_id.tolist()) < 1 << 32


@pytest.mark.parametrize("command", [["summary"], ["stats"], ["stats", "--markdown"]])
def test_names_break_no_output(write, capsys, command):
    path = write((100, 50, 1))
    status, out, err = told(capsys, *command, path)
    assert (status, err) == (0, "")
    assert "\0" not in out
    assert HOSTILE not in out
    assert collector.load(path).recording.kernels.demangled_names() == [HOSTILE]


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("command", ["summary", "stats", "compare"])
def test_a_cut_file_is_one_line_or_an_answer_that_says_so(write, capsys, share, command):
    path = write(*((100 * number, 50, number) for number in range(1, 400)))
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    status, out, err = told(capsys, command, *[path] * (2 if command == "compare" else 1))
    assert status in ((0, 2) if command != "compare" else (2, 3))
    assert err.startswith("collector: ")
    assert str(path) in err
    if status == 2:
        assert (out, err.count("\n")) == ("", 1)


def test_a_profile_without_kernels_says_that_there_are_none(write, capsys):
    status, out, err = told(capsys, "summary", write())
    assert (status, out == "") in ((0, False), (2, True))
    assert "Traceback" not in err
