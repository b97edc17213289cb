"""Answers that the served page asks for one at a time."""

from __future__ import annotations

import pytest

from collector.analysis.named_question import NamedQuestion
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource
from collector.web.given_rows import MOST_ROWS
from collector.web.opened_runs import RefusedError
from collector.web.single_answers import AskedAnswer, keys, single_answer
from collector.web.text_search import matching_texts


def test_a_file_whose_name_begins_with_a_dash_is_no_option_of_the_command(build):
    build.kernel("first", 10, 20)
    step = Step(RecordingSource(build.recording()))
    assert "devices" in keys()
    assert single_answer(step, "-x.gpurec", AskedAnswer("devices"))["cli"].startswith("collector stats ./-x.gpurec ")


@pytest.mark.medium
def test_rows_are_sorted_by_a_text_as_the_page_sorts_them(build):
    for number in range(MOST_ROWS + 1):
        build.kernel(f"kernel_{number}", 10 * number, 5)
    step = Step(RecordingSource(build.recording()))
    asked = [AskedAnswer("kernels/name", sort=f"name.{order}") for order in ("asc", "desc")]
    first, last = (single_answer(step, "step.pb", each) for each in asked)
    assert first["values"][0][:3] == ["kernel_0", "kernel_1", "kernel_2"]
    assert last["values"][0][:2] == [f"kernel_{MOST_ROWS}", f"kernel_{MOST_ROWS - 1}"]


@pytest.mark.medium
def test_rows_that_were_searched_for_have_no_total_of_all_rows(build):
    for number in range(MOST_ROWS + 1):
        build.kernel(f"kernel_{number}", 10 * number, 5)
    step = Step(RecordingSource(build.recording()))
    found = single_answer(step, "step.pb", AskedAnswer("kernels/name", search="kernel_12.$"))
    assert (found["rows"], len(found["values"][0]), found["totals"]) == (10, 10, {})
    every = single_answer(step, "step.pb", AskedAnswer("kernels/name", search="kernel", sort="name.asc"))
    assert (every["rows"], every["totals"]["count"]) == (MOST_ROWS + 1, MOST_ROWS + 1)


@pytest.mark.medium
def test_an_answer_is_made_once_for_all_that_is_searched_in_it(build, monkeypatch):
    for number in range(MOST_ROWS + 1):
        build.kernel(f"kernel_{number}", 10 * number, 5)
    step = Step(RecordingSource(build.recording()))
    make, made, latest = NamedQuestion.answer, [], {}
    searches = [AskedAnswer("kernels/name", search=text) for text in ("", "k", "kernel_12.$")]
    searches += [AskedAnswer("kernels/name", sort="name.asc"), AskedAnswer("kernels/stream")]
    searches += [AskedAnswer("kernels/name", (0, 30_000), "k"), AskedAnswer("kernels/name", (0, 30_000), "kernel_1")]
    searches += [AskedAnswer("kernels/name")]
    expected = [single_answer(step, "step.pb", each) for each in searches]
    monkeypatch.setattr(NamedQuestion, "answer", lambda *asked: made.append(asked[2]) or make(*asked))
    assert [single_answer(step, "step.pb", each, latest) for each in searches] == expected
    assert (made, len(latest)) == (["name", "stream", "name", "name", "name"], 1)


@pytest.mark.medium
def test_a_search_that_would_not_end_is_refused_and_the_next_one_is_answered(build, monkeypatch):
    for number in range(MOST_ROWS + 1):
        build.kernel(f"{'a' * 40}_{number}", 10 * number, 5)
    step = Step(RecordingSource(build.recording()))
    with monkeypatch.context() as shorter:
        shorter.setattr("collector.web.text_search.LONGEST_S", 0.5)
        with pytest.raises(RefusedError, match=r"search for '\(a\+\)\+\$' was ended after 0.5 s.*part of the name"):
            single_answer(step, "step.pb", AskedAnswer("kernels/name", search="(a+)+$"))
    assert single_answer(step, "step.pb", AskedAnswer("kernels/name", search="A_12.$"))["rows"] == 10


def test_any_text_can_be_searched():
    texts = ["", "\udc80", "\u017f\n", "kernel\x00", "kernel\x00", "\U0001f600"]
    assert matching_texts("", texts) == set(texts)
    assert matching_texts("^S", texts) == {"\u017f\n"}
    assert matching_texts("[\udc80\x00\U0001f600]", texts) == {"\udc80", "kernel\x00", "\U0001f600"}
    with pytest.raises(RefusedError, match="not a regular expression: missing"):
        matching_texts("(", texts)
