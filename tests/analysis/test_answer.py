"""The forms of an Answer: for programs, terminals, notebooks and other libraries."""

from __future__ import annotations

import dataclasses
import importlib
import json
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import collector.analysis.answer as answer_module
from collector import analysis
from collector.analysis import Answer, Column, compare, devices, kernels, ops
from collector.analysis.asked import Question
from collector.analysis.compare import BY
from collector.analysis.named_question import NAMED_QUESTIONS
from collector.analysis.questions import QUESTIONS
from collector.analysis.ranks import QUESTIONS as RANKS_BY
from collector.analysis.ranks import ranks
from collector.analysis.units import UNITS

COLUMNS = (
    Column("name", "text", "Which."),
    Column("total_ns", "ns", "How long."),
    Column("size", "bytes", "How large."),
    Column("share", "share", "How much of all."),
    Column("rate", "bytes/s", "How fast."),
)


@pytest.fixture
def answer():
    return Answer(
        question="made",
        definition="Figures <made> up.",
        columns=COLUMNS,
        values={
            "name": np.array(["a\x1b[31m", "<b>"], object),
            "total_ns": np.array([(1 << 62) + 1, -1500]),
            "size": np.array([4096, 1]),
            "share": np.array([0.25, 0.75]),
            "rate": np.array([40e9, float("nan")]),
        },
        totals={"total_ns": (1 << 62) - 1499},
        losses=("3 records\x07 were dropped",),
    )


@pytest.mark.parametrize("question", [*QUESTIONS, "compare"])
@pytest.mark.parametrize("given", ["step.pb", Path("step.pb"), ["a.pb", "b.pb"]], ids=str)
def test_the_name_of_a_file_is_answered_with_how_to_load_it(question, given):
    with pytest.raises(TypeError, match=r"not the name of a file: load it first, by collector\.load\(path\)$"):
        compare(given, given) if question == "compare" else QUESTIONS[question].ask(given)


@pytest.mark.parametrize("question", [*QUESTIONS, "compare"])
@pytest.mark.parametrize(("given", "named"), [(None, "NoneType"), (3, "int"), ([3], "int")])
def test_anything_else_is_answered_with_its_type(question, given, named):
    with pytest.raises(TypeError, match=f"a question takes steps and recordings, not {named}$"):
        compare(given, given) if question == "compare" else QUESTIONS[question].ask(given)


def test_rows_and_columns(answer):
    assert len(answer) == 2
    assert answer["size"].tolist() == [4096, 1]
    assert [row["name"] for row in answer] == ["a\x1b[31m", "<b>"]
    assert repr(answer) == "<Answer made: 2 rows of name, total_ns, size, share, rate>"


def test_a_column_that_is_not_there_is_answered_with_those_that_are(answer):
    with pytest.raises(KeyError, match="answer made has no column 'total': name, total_ns, size, share, rate"):
        answer["total"]


def test_columns_and_values_fit(answer):
    with pytest.raises(ValueError, match="do not fit"):
        Answer("made", "", COLUMNS[:1], {"other": np.zeros(1)})
    with pytest.raises(ValueError, match="do not fit"):
        Answer("made", "", COLUMNS[1:3], {"total_ns": np.zeros(1), "size": np.zeros(2)})


def test_a_unit_that_does_not_exist_is_refused_where_a_column_is_used_first():
    column = Column("size", "byte", "How large.")
    with pytest.raises(ValueError, match="column size: no unit 'byte'; there are ns, bytes, "):
        Question("made", "Figures.", (column,))
    with pytest.raises(ValueError, match="no unit 'byte'"):
        Answer("made", "", (column,), {"size": np.zeros(1)})


def test_a_question_sums_its_own_columns_and_names_tables_that_exist():
    with pytest.raises(ValueError, match="question made: no column 'bytes'; there are name, total_ns, size, "):
        Question("made", "Figures.", COLUMNS, summed=("total_ns", "bytes"))
    with pytest.raises(ValueError, match=r"question made: no table 'kernel'; there are .*kernels"):
        Question("made", "Figures.", COLUMNS, tables=("kernel",))


def test_a_terminal_shows_units_and_losses_and_obeys_no_name(answer):
    text = str(answer)
    assert "Figures <made> up." in text
    for shown in ("-1.5 µs", "4.096 kB", "25.0%", "40 GB/s", "incomplete: 3 records\\x07 were dropped", "\\x1b[31m"):
        assert shown in text
    assert "\x1b" not in text
    assert "\x07" not in text


def test_a_terminal_says_how_much_it_does_not_show(answer):
    assert "1 more of 2 rows" in answer.text(rows=1)
    assert "more of" not in answer.text(rows=None)


def test_a_heading_states_no_unit_where_the_values_state_theirs(answer):
    heads, _, *rows = answer.to_markdown().splitlines()
    assert heads == "| name | total | size | share | rate |"
    assert "-1.5 µs" in rows[1]
    assert "total_ns" not in answer._repr_html_()
    assert answer.to_csv().startswith("name,total_ns,size,share,rate\n")
    assert answer.to_json()["columns"][1]["unit"] == "ns"


def test_headings_differ_where_only_units_distinguish_columns():
    columns = tuple(Column(name, unit, "Some.") for name, unit in (("moved_ns", "ns"), ("moved_bytes", "bytes")))
    both = Answer("made", "Both.", columns, {column.name: np.array([1000]) for column in columns})
    assert both.to_markdown().startswith("| moved time | moved bytes |\n")
    assert "moved time" in both.text()


def test_json_is_exact_and_says_what_columns_mean(answer):
    told = json.loads(json.dumps(answer.to_json(), allow_nan=False))
    assert told["schema"] == "collector.answer/1"
    assert told["columns"][1] == {"name": "total_ns", "unit": "ns", "meaning": "How long."}
    assert told["rows"][0][1] == (1 << 62) + 1
    assert told["losses"] == ["3 records\x07 were dropped"]


def test_what_is_not_known_is_null_in_json(answer):
    assert json.loads(json.dumps(answer.to_json(), allow_nan=False))["rows"][1][4] is None


def test_a_notebook_shows_a_table_without_markup_of_strangers(answer):
    shown = answer._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown
    assert "Figures &lt;made&gt; up." in shown


def test_arrow_has_units(example):
    pytest.importorskip("pyarrow")
    table = devices(example).to_arrow()
    assert table.schema.field("busy_ns").metadata[b"unit"] == b"ns"
    assert table.to_pylist()[0]["busy_ns"] == 690
    assert table.schema.metadata[b"question"] == b"devices"


def test_an_empty_answer_has_the_same_types(build, example):
    pytest.importorskip("pyarrow")
    assert kernels(build.recording()).to_arrow().schema.types == kernels(example).to_arrow().schema.types


def test_pandas(example):
    pytest.importorskip("pandas")
    assert kernels(example).to_pandas()["total_ns"].sum() == 710


def test_polars_by_arrow_s_stream(example):
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    assert polars.DataFrame(kernels(example))["total_ns"].sum() == kernels(example).to_polars()["total_ns"].sum() == 710


def test_losses_of_the_ledger_travel(build):
    build.counters["records_dropped"] = 3
    answer = devices(build.kernel("k", 100).recording())
    assert any("3 records" in loss for loss in answer.losses)


@pytest.mark.medium
def test_the_json_of_every_question_fits_the_schema_of_answers(example):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(Path(answer_module.__file__).with_name("answer.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    of_steps = [question for question in QUESTIONS.values() if not question.of_ranks]
    answers = [question.ask(asked) for question in of_steps for asked in (example, [example, example])]
    answers += [ranks([example, example], by=by, clock_offsets=None) for by in RANKS_BY]
    answers += [compare(example, example, by=by) for by in BY]
    assert schema["properties"]["columns"]["items"]["properties"]["unit"]["enum"] == list(UNITS)
    for answer in answers:
        told = json.loads(json.dumps(answer.to_json(), allow_nan=False))
        jsonschema.validate(told, schema)
        assert all(len(row) == len(told["columns"]) for row in told["rows"])
        assert all(re.fullmatch("[a-z][a-z0-9_]*", column["name"]) for column in told["columns"])


def test_notes_are_shown_and_exported(answer):
    noted = dataclasses.replace(answer, notes=("Three steps are few\x07.",))
    assert "Three steps are few\\x07." in str(noted)
    assert "Three steps are few" in noted._repr_html_()
    assert noted.to_json()["notes"] == ["Three steps are few\x07."]


def test_paths_with_a_depth_are_shown_as_a_tree_unless_names_are_whole(build):
    build.launch(1, 100).kernel("k", 1000, 500, correlation_id=1)
    build.annotation("layer", 0, 500, 1).annotation("layer/conv", 50, 300, 2, 1)
    text = ops(build.recording()).text()
    assert "\n   conv " in text
    assert "depth" not in text
    assert "\n layer/conv " in ops(build.recording()).text(whole_names=True)


def test_a_terminal_shows_no_column_in_which_nothing_is_known(answer):
    unknown = dataclasses.replace(answer, values=answer.values | {"rate": np.full(2, np.nan)})
    assert "rate" in str(answer)
    assert "rate" not in str(unknown)


def test_an_answer_without_rows_says_so(build):
    assert "There are no rows." in str(kernels(build.recording()))


@pytest.mark.medium
def test_lines_of_every_answer_fit_the_terminal(example):
    of_steps = [question for question in QUESTIONS.values() if not question.of_ranks]
    for width in (60, 80, 100, 140):
        for question in of_steps:
            text = question.ask(example).text(width=width)
            assert max(map(len, text.splitlines())) <= width


def test_every_question_of_the_package_is_listed_with_the_others():
    for module in pkgutil.iter_modules(analysis.__path__, "collector.analysis."):
        importlib.import_module(module.name)
    assert NAMED_QUESTIONS.keys() == QUESTIONS.keys(), "import its function in collector/analysis/questions.py"


def test_headings_are_of_columns_that_questions_have():
    columns = {
        (name, column.name)
        for name, named in QUESTIONS.items()
        for each in named.questions.values()
        for column in each.columns
    }
    assert answer_module._HEADINGS.keys() <= columns


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_is_a_public_function_and_in_the_table_of_the_documentation(root, name):
    assert getattr(analysis, name) is QUESTIONS[name].ask
    assert name in analysis.__all__
    page = (root / "docs" / "analysis.md").read_text(encoding="utf-8")
    assert f"\n| `{name}` |" in page, "add its line to the table of questions in docs/analysis.md"
