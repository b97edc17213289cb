"""Options of a drawing with impossible values: the errors name the option, the value and the remedy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from collector.timeline import Timeline, View, chrome_trace


@pytest.mark.parametrize("window", [(3,), (1, 2, 3), 3, "ab", ("a", "b"), None, [], (math.nan, None), (0.5, 2.5)])
def test_a_window_is_two_whole_numbers(example, window):
    with pytest.raises(TypeError, match="window_ns takes a pair of whole numbers in ns, or None for an open end, not "):
        chrome_trace(example, window_ns=window)


def test_a_window_does_not_end_before_it_begins(example):
    with pytest.raises(ValueError, match="window_ns ends at 1 ns, before it begins at 5 ns"):
        chrome_trace(example, window_ns=(5, 1))


@pytest.mark.parametrize("option", ["devices", "names"])
def test_expressions_are_checked_before_anything_is_drawn(example, option, tmp_path):
    with pytest.raises(ValueError, match=rf"{option}='\(' is not a regular expression: .*Escape a character"):
        chrome_trace(example, tmp_path / "step.json", **{option: "("})
    for value in (3, b"x", ["a"]):
        with pytest.raises(TypeError, match=f"{option} takes a regular expression as text, not "):
            chrome_trace(example, **{option: value})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["min_duration_ns", "max_events"])
def test_numbers_are_whole_and_not_negative(example, option):
    with pytest.raises(ValueError, match=f"{option} is -1: at least 0 is needed"):
        chrome_trace(example, **{option: -1})
    for value in ("3", math.nan, 2.5, True):
        with pytest.raises(TypeError, match=f"{option} takes a whole number, not "):
            chrome_trace(example, **{option: value})


def test_other_options_have_their_types(example):
    for option, value in (("arrows", "no"), ("counters", 3), ("arrows", None)):
        with pytest.raises(TypeError, match=f"{option} takes True or False, not "):
            chrome_trace(example, **{option: value})
    with pytest.raises(TypeError, match="label takes text, not 3"):
        chrome_trace(example, label=3)
    with pytest.raises(TypeError, match=r"no option 'window'; did you mean window_ns\? The options are devices, "):
        chrome_trace(example, window=(0, 1))


def test_numbers_of_numpy_and_lists_are_taken(example):
    view = View(window_ns=[np.int64(1), None], max_events=np.int32(5), min_duration_ns=np.uint8(2))
    assert view == View(window_ns=(1, None), max_events=5, min_duration_ns=2)


def test_tensorflows_timeline_takes_messages_and_texts(example):
    for step in (None, 3, "step.pb"):
        with pytest.raises(TypeError, match="a timeline is drawn of StepStats or RunMetadata, and not of "):
            Timeline(step).generate_chrome_trace_format()
    for value in (3, None):
        with pytest.raises(TypeError, match="op_time takes text, not "):
            Timeline(b"").generate_chrome_trace_format(op_time=value)
