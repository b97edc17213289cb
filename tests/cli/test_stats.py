"""The command ``collector stats``: the figures of `collector.analysis`, for people, programs and spreadsheets."""

from __future__ import annotations

import csv
import io
import json

import pytest

from collector import analysis
from collector.analysis.questions import ALIASES, BY_ALONE, QUESTIONS
from collector.cli import main


@pytest.fixture
def step(build, tmp_path):
    """A saved step of two kernels and a copy, and its recording."""
    build.launch(5, 1000).kernel("_Z3addIfEvPT_i", 2000, 100, correlation_id=5).annotation("conv", 500, 4000, 3, 5)
    build.kernel("=HYPERLINK", 9000, 300, grid_x=8).memcpy(12_000)
    recording = build.recording()
    recording.save(tmp_path / "step.pb")
    return tmp_path / "step.pb", recording


def stats(capsys, *arguments):
    status = main(["stats", *map(str, arguments)])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_an_overview_answers_every_question_but_those_of_single_rows(step, capsys):
    path, _ = step
    status, out, err = stats(capsys, path)
    assert (status, err) == (0, "")
    overview = {name: question for name, question in QUESTIONS.items() if question.in_overview}
    assert all(question.ask(step[1]).definition in " ".join(out.split()) for question in overview.values())
    _, out, _ = stats(capsys, path, "--json")
    assert [answer["question"] for answer in json.loads(out)] == list(overview)
    assert QUESTIONS.keys() - overview.keys() >= {"idle_gaps", "launch_delays", "steps", "ranks"}


def test_a_given_number_of_rows_holds_in_every_form(step, capsys):
    path, recording = step
    whole = analysis.kernels(recording).to_json()
    asked = (path, "--question", "kernels")
    _, out, _ = stats(capsys, *asked, "--json", "--rows", 1)
    (answer,) = json.loads(out)
    note = "These are the first 1 of 2 rows; the totals are those of all rows."
    assert answer == {**whole, "rows": whole["rows"][:1], "notes": [*whole["notes"], note]}
    for rows, expected in ((1, 1), (2, 2), (3, 2), ("all", 2)):
        _, out, _ = stats(capsys, *asked, "--csv", "--rows", rows)
        assert len(list(csv.DictReader(io.StringIO(out)))) == expected
        _, out, _ = stats(capsys, *asked, "--markdown", "--rows", rows)
        assert len([line for line in out.splitlines() if line.startswith("|")]) == 2 + expected
    _, out, _ = stats(capsys, *asked, "--json", "--rows", 2)
    assert json.loads(out) == [whole]


def test_ranks_refuse_one_step_and_answer_two(step, capsys, tmp_path):
    path, recording = step
    status, out, err = stats(capsys, path, "--question", "ranks")
    assert (status, out) == (2, "")
    assert err.startswith("collector: waits between ranks need the steps of at least two ranks: 1 was given")
    for rank in (0, 1):
        recording.save(tmp_path / f"rank{rank}.gpurec")
    status, _, err = stats(capsys, tmp_path / "rank0.gpurec", tmp_path / "rank1.gpurec", "--question", "ranks")
    assert status == 2
    assert "the clocks of the ranks 0, 1 cannot be related" in err


@pytest.fixture
def of_ranks(build, tmp_path):
    """The files of two ranks, the second of which begins a collective 30 ns later on a clock 5 ns ahead."""
    paths = []
    for rank, (start, ahead) in enumerate([(10, 0), (40, 5)]):
        made = type(build)().kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", start + ahead, 50 - start)
        made.recording().save(tmp_path / f"rank{rank}.gpurec")
        paths.append(tmp_path / f"rank{rank}.gpurec")
    return paths


@pytest.mark.parametrize(
    ("options", "clock", "caused_ns"),
    [
        (["--clock-offset", "0=0", "--clock-offset", "1=5"], ["given", "given"], [30, 0]),
        (["--same-clock"], ["believed", "believed"], [35, 0]),
    ],
)
def test_clocks_of_ranks_are_given_or_believed(of_ranks, capsys, options, clock, caused_ns):
    status, out, err = stats(capsys, *of_ranks, "--question", "ranks", *options, "--json")
    assert (status, err) == (0, "")
    (answer,) = json.loads(out)
    columns = [column["name"] for column in answer["columns"]]
    rows = [dict(zip(columns, row, strict=True)) for row in answer["rows"]]
    assert [row["clock"] for row in rows] == clock
    assert [row["caused_ns"] for row in rows] == caused_ns


def test_offsets_of_clocks_are_refused_where_they_mean_nothing(step, of_ranks, capsys):
    for options in (["--same-clock"], ["--clock-offset", "1=5"]):
        status, out, err = stats(capsys, step[0], "--question", "kernels", *options)
        assert (status, out) == (2, "")
        assert "apply to --question ranks only" in err
    twice = ["--clock-offset", "1=5", "--clock-offset", "1=6"]
    status, _, err = stats(capsys, *of_ranks, "--question", "ranks", *twice)
    assert (status, err) == (2, "collector: --clock-offset is given twice for one rank\n")


@pytest.mark.parametrize("name", [name for name, question in QUESTIONS.items() if not question.of_ranks])
def test_json_has_the_figures_that_python_gives(step, capsys, name):
    path, recording = step
    status, out, _ = stats(capsys, path, "--question", name, "--json")
    (answer,) = json.loads(out)
    expected = QUESTIONS[name].ask(recording)
    assert status == 0
    assert answer == json.loads(json.dumps(expected.to_json()))
    assert answer["question"] == name


@pytest.mark.parametrize(
    ("alias", "question"),
    [(alias, question) for alias, question in ALIASES.items() if not QUESTIONS[question[0]].of_ranks],
)
def test_reports_of_other_tools_are_answered_under_their_names(step, capsys, alias, question):
    path, recording = step
    name, by = question
    _, out, _ = stats(capsys, path, "--question", alias, "--json")
    expected = QUESTIONS[name].answer(recording, by)
    assert json.loads(out) == json.loads(json.dumps([expected.to_json()]))


@pytest.mark.parametrize("words", [["kernels"], ["STEP", "gpu_gaps"], ["--question", "idle", "kernels", "STEP"]])
def test_a_question_in_the_place_of_a_file_is_answered_with_its_option(step, capsys, words):
    name = next(each for each in words if each in ("kernels", "gpu_gaps"))
    status, out, err = stats(capsys, *(step[0] if word == "STEP" else word for word in words))
    assert (status, out) == (2, "")
    assert err == f"collector: {name}: No such file or directory. To ask this question, write --question {name}\n"


def test_a_file_may_have_the_name_of_a_question(step, capsys, monkeypatch):
    monkeypatch.chdir(step[0].parent)
    step[0].rename("kernels")
    assert stats(capsys, "kernels", "--question", "devices")[0] == 0


def test_csv_is_read_by_a_spreadsheet_and_holds_no_formula(step, capsys):
    path, _ = step
    _, out, _ = stats(capsys, path, "--question", "kernels", "--by", "shape", "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["name"], row["grid"], row["total_ns"]) for row in rows] == [
        ("'=HYPERLINK", "8,1,1", "300"),
        ("add<float>", "1,1,1", "100"),
    ]


def test_markdown(step, capsys):
    path, _ = step
    _, out, _ = stats(capsys, path, "--question", "copies", "--markdown")
    assert "| device id | kind | source | target | count | unknown sizes | bytes | total | union | bandwidth |" in out
    assert "| 0 | HtoD | Pageable | Device | 1 | 0 | 4.096 kB | 1 µs |" in out


def test_several_steps_are_numbered(step, capsys):
    path, _ = step
    _, out, _ = stats(capsys, path, path, "--question", "devices", "--json")
    (answer,) = json.loads(out)
    assert [row[0] for row in answer["rows"]] == [0, 1]


def test_a_part_of_the_steps_of_ranks_keeps_the_ranks(of_ranks, capsys):
    options = ("--question", "ranks", "--same-clock", "--json")
    _, whole, _ = stats(capsys, *reversed(of_ranks), *options)
    _, part, _ = stats(capsys, *reversed(of_ranks), *options, "--window", "0us..1ms")
    assert json.loads(part)[0]["rows"] == json.loads(whole)[0]["rows"]


def test_the_window_may_be_the_span(step, capsys):
    path, recording = step
    _, out, _ = stats(capsys, path, "--question", "devices", "--window", "span", "--json")
    (answer,) = json.loads(out)
    assert answer["rows"][0][1] == analysis.devices(recording, window="span")["window_ns"][0] == 11_000


def test_the_window_may_be_a_part_of_the_step(build, tmp_path, capsys):
    for number in range(10):
        build.kernel(f"kernel_{number}", 1000 * number, 500)
    recording = build.recording()
    recording.save(tmp_path / "step.gpurec")
    _, out, _ = stats(capsys, tmp_path / "step.gpurec", "--question", "kernels", "--window", "2.25us..4us", "--json")
    began = recording.clock.cupti_start_ns
    answer = analysis.kernels(recording.between(began + 2_250, began + 4_000))
    assert json.loads(out)[0]["rows"] == answer.to_json()["rows"]
    assert sorted(answer["name"]) == ["kernel_2", "kernel_3"]
    _, out, _ = stats(capsys, tmp_path / "step.gpurec", "--question", "devices", "--window", "2.25us..4us", "--json")
    (row,) = json.loads(out)[0]["rows"]
    assert row[1:4] == [1_750, 750, 1_000]  # what lies outside of the part does not count
    with pytest.raises(SystemExit):
        stats(capsys, tmp_path / "step.gpurec", "--window", "4us..2us")
    assert "'4us..2us' ends before it begins" in capsys.readouterr().err


@pytest.mark.parametrize("end", ["", "1s", "99999999s", "9223372036854775807ns", "99999999999999s"])
def test_a_window_ends_with_the_step(build, tmp_path, capsys, end):
    recording = build.kernel("kernel", 1000, 500).recording()
    recording.save(tmp_path / "step.gpurec")
    _, out, _ = stats(capsys, tmp_path / "step.gpurec", "--question", "devices", "--window", f"1us..{end}", "--json")
    assert json.loads(out)[0]["rows"][0][1] == recording.clock.window_ns - 1000


@pytest.mark.parametrize("window", ["99s..", "99s..100s", "99999999999999s.."])
def test_a_window_behind_the_step_is_refused(build, tmp_path, capsys, window):
    build.kernel("kernel", 1000, 500).recording().save(tmp_path / "step.gpurec")
    status, _, err = stats(capsys, tmp_path / "step.gpurec", "--question", "kernels", "--window", window)
    assert status == 2
    assert "step.gpurec is 1 ms long, and --window begins after that" in err


@pytest.mark.parametrize("columns", ["60", "100", "200"])
def test_a_terminal_of_any_width_breaks_no_figure(step, capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    path, _ = step
    _, out, _ = stats(capsys, path, "--question", "devices")
    assert "exposed communication" in " ".join(out.split())
    assert "13 ms" not in out
    assert "999 µs" in out or "1 ms" in out


def test_what_was_lost_is_said_once(build, tmp_path, capsys):
    build.counters["records_dropped"] = 3
    build.kernel("k", 100).recording().save(tmp_path / "step.gpurec")
    _, out, _ = stats(capsys, tmp_path / "step.gpurec")
    assert out.count("3 records") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--csv"], "--csv prints one answer: choose it with --question"),
        (["--question", "copies", "--by", "op"], "--by op: copies counts its rows by one key only"),
        (["--question", "tensor_cores", "--by", "op"], "--by op: the rows of tensor_cores are counted by use, name"),
        (["--question", "copies", "--window", "span"], "--window span: copies is always about the whole step"),
    ],
)
def test_what_does_not_go_together_is_one_line(step, capsys, arguments, says):
    path, _ = step
    status, out, err = stats(capsys, path, *arguments)
    assert (status, out) == (2, "")
    assert err == f"collector: {says}\n"


@pytest.mark.parametrize(
    "arguments", [["--question", "weather"], ["--rows", "0"], ["--rows", "few"], ["--json", "--csv"]]
)
def test_arguments_that_mean_nothing_are_one_line(step, capsys, arguments):
    path, _ = step
    with pytest.raises(SystemExit) as left:
        stats(capsys, path, *arguments)
    assert left.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_file_that_cannot_be_read_is_one_line(tmp_path, capsys):
    (tmp_path / "a.pb").write_bytes(b"<html></html>")
    status, out, err = stats(capsys, tmp_path / "a.pb")
    assert (status, out, err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(
    ("by", "question"), [(by, found) for by, found in BY_ALONE.items() if not QUESTIONS[found[0]].of_ranks]
)
def test_what_time_is_asked_for_by_says_the_question(step, capsys, by, question):
    path, recording = step
    name, counted_by = question
    _, out, _ = stats(capsys, path, "--by", by, "--json")
    expected = QUESTIONS[name].ask(recording, **({"by": counted_by} if counted_by else {}))
    assert json.loads(out) == json.loads(json.dumps([expected.to_json()]))


def test_time_by_rank_is_asked_of_several(step, capsys):
    path, _ = step
    alone, named = (stats(capsys, path, *words) for words in (["--by", "rank"], ["--question", "ranks"]))
    assert alone == named
    assert alone[0] == 2


@pytest.mark.parametrize("columns", ["80", "150"])
def test_the_help_has_a_line_for_each_question(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit):
        main(["stats", "--help"])
    _, _, listed = capsys.readouterr().out.partition("\nquestions, and the keys of --by:\n")
    lines = listed.partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in lines if line[2] != " "] == list(QUESTIONS)
    assert max(map(len, lines)) <= int(columns) - 2
    assert "\n  idle_gaps         Each gap with the part of each cause, the longest first.\n" in listed
    assert "By name, whole_name, op, shape, stream." in " ".join(listed.split())
    assert all(alias in listed for alias in ALIASES)


def test_kernels_are_counted_by_kernel(step, capsys):
    path, _ = step
    by_kernel, by_name = (stats(capsys, path, "--question", "kernels", "--by", by)[1] for by in ("kernel", "name"))
    assert by_kernel == by_name
