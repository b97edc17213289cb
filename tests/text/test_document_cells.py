"""Cells of CSV and Markdown: readable by other programs, whatever the names in them are."""

from __future__ import annotations

import csv
import io

import pytest
from hostile_names import EVIL, obeyed
from markdown_cells import markdown_cells

pytest.importorskip("hypothesis")

from hypothesis import example, given
from hypothesis import strategies as st

from collector.text.document_cells import csv_text, markdown_row, markdown_text
from collector.text.terminal import printable

ANY_TEXT = st.text(st.characters())
"""Also lone surrogates, which Python uses for bytes that are not UTF-8."""


@given(st.lists(ANY_TEXT, min_size=1, max_size=4))
@example(["nul\0", "tab\there", "line\nbreak\r\n", EVIL])
@example(["\ud800", '"', ",", "\u2028", ""])
def test_csv_has_one_line_a_row_and_shows_what_cannot_be_printed(texts):
    made = csv_text([texts, range(len(texts))])
    assert made.count("\n") == 2
    assert obeyed(made) == set()
    assert "\0" not in made
    made.encode()
    names, numbers = csv.reader(io.StringIO(made))
    assert [name.removeprefix("'") for name in names] == [printable(text).removeprefix("'") for text in texts]
    assert numbers == [str(place) for place in range(len(texts))]


@given(ANY_TEXT)
def test_no_cell_of_csv_is_a_formula(text):
    (cell,) = next(csv.reader(io.StringIO(csv_text([[text]]))))
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))


def test_csv_has_numbers_as_they_are_and_nothing_for_what_is_not_known():
    assert csv_text([[-1, 2**64, 0.1, None, float("nan"), -0.5]]) == "-1,18446744073709551616,0.1,,,-0.5\n"


@given(st.lists(ANY_TEXT, min_size=1, max_size=4))
@example([r"a\|b", "a|b", "\\", "\\\\|"])
def test_a_row_of_markdown_has_a_cell_for_each_text(texts):
    line = markdown_row(texts)
    assert obeyed(line) == set()
    assert "\n" not in line
    assert markdown_cells(line) == [printable(text).strip(" ") for text in texts]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("gemm<float>(int*)", r"gemm\<float\>(int\*)"),
        ("total_ns", "total_ns"),
        ("__init__", r"\_\_init\_\_"),
        ("_Z3add", r"\_Z3add"),
        ("a\0b", r"a\\x00b"),
        ("[link](to)", r"\[link\](to)"),
        ("lambda $_0", r"lambda \$\_0"),
        ("`code` ~x~ #1 & co", r"\`code\` \~x\~ \#1 \& co"),
    ],
)
def test_markdown_shows_names_as_they_are(text, shown):
    assert markdown_text(text) == shown
