"""Arguments of questions with impossible values: the errors name the argument, the value and the remedy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from collector import analysis


@pytest.mark.parametrize("question", ["idle", "idle_gaps", "idle_ops", "critical_path"])
def test_a_gap_is_a_whole_number_from_0_on(example, question):
    ask = getattr(analysis, question)
    with pytest.raises(ValueError, match="kernel_gap_ns is -1: at least 0 is needed"):
        ask(example, kernel_gap_ns=-1)
    for value in (math.nan, "3", None, 2.5, math.inf):
        with pytest.raises(TypeError, match="kernel_gap_ns takes a whole number, not "):
            ask(example, kernel_gap_ns=value)
    assert ask(example, kernel_gap_ns=np.int64(2000)).values.keys() == ask(example).values.keys()


@pytest.mark.parametrize("question", ["steps", "memory_growth"])
def test_marks_and_switches_are_checked(example, question):
    ask = getattr(analysis, question)
    with pytest.raises(ValueError, match=r"mark='\(' is not a regular expression: "):
        ask(example, mark="(")
    for value in (3, None, b"x"):
        with pytest.raises(TypeError, match="mark takes a regular expression as text, not "):
            ask(example, mark=value)
    with pytest.raises(TypeError, match="first_apart takes True or False, not 'no'"):
        ask(example, first_apart="no")


def test_a_part_lies_between_two_numbers(example):
    for ask in (analysis.between, lambda step, start, end: step.between(start, end)):
        for start, end, named in (("a", "b", "start_ns takes a number, not 'a'"), (0, "b", "end_ns takes a number")):
            with pytest.raises(TypeError, match=named):
                ask(example, start, end)
        with pytest.raises(ValueError, match="start_ns is nan: NaN is not a time"):
            ask(example, math.nan, 1)
        with pytest.raises(ValueError, match="does not end before it starts, as 5 to 1 ns does"):
            ask(example, 5, 1)
    with pytest.raises(TypeError, match="end_ns takes a number, not None"):
        analysis.between(example, 0, None)


def test_shares_of_a_comparison_are_numbers(example):
    for name in ("false_discoveries", "least_effect"):
        for value in ("x", None):
            with pytest.raises(TypeError, match=f"{name} takes a number, not "):
                analysis.compare(example, example, **{name: value})
        with pytest.raises(ValueError, match=f"{name}=nan: "):
            analysis.compare(example, example, **{name: math.nan})
    with pytest.raises(ValueError, match="least_effect=-1: a share from 0 on is needed"):
        analysis.compare(example, example, least_effect=-1)


def test_clock_offsets_are_checked_before_the_ranks(example):
    for value, named in (
        (3, "clock_offsets=3: estimate, the offset of each rank such as "),
        ([1], r"clock_offsets=\[1\]: estimate"),
        ({0: "a"}, r"clock_offsets\[0\] takes a whole number, not 'a'"),
        ({"a": 1}, "a rank of clock_offsets takes a whole number, not 'a'"),
        ({0: math.nan}, r"clock_offsets\[0\] takes a whole number, not nan"),
    ):
        with pytest.raises(TypeError, match=named):
            analysis.ranks([example, example], clock_offsets=value)
    with pytest.raises(ValueError, match="clock_offsets='x': estimate, the offset of each rank, or None"):
        analysis.ranks([example, example], clock_offsets="x")


def test_the_text_of_an_answer_has_whole_numbers_of_rows_and_characters(example):
    answer = analysis.kernels(example)
    for name, least in (("rows", 0), ("width", 1)):
        with pytest.raises(ValueError, match=f"{name} is -1: at least {least} is needed"):
            answer.text(**{name: -1})
        for value in (math.nan, "x", 2.5):
            with pytest.raises(TypeError, match=f"{name} takes a whole number, not "):
                answer.text(**{name: value})
    assert "more of" in answer.text(rows=0)
