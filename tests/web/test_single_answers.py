"""Answers that the served page asks for one at a time."""

from __future__ import annotations

from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource
from collector.web.given_rows import MOST_ROWS
from collector.web.single_answers import AskedAnswer, keys, single_answer


def test_a_file_whose_name_begins_with_a_dash_is_no_option_of_the_command(build):
    build.kernel("first", 10, 20)
    step = Step(RecordingSource(build.recording()))
    assert "devices" in keys()
    assert single_answer(step, "-x.gpurec", AskedAnswer("devices"))["cli"].startswith("collector stats ./-x.gpurec ")


def test_rows_are_sorted_by_a_text_as_the_page_sorts_them(build):
    for number in range(MOST_ROWS + 1):
        build.kernel(f"kernel_{number}", 10 * number, 5)
    step = Step(RecordingSource(build.recording()))
    asked = [AskedAnswer("kernels/name", sort=f"name.{order}") for order in ("asc", "desc")]
    first, last = (single_answer(step, "step.pb", each) for each in asked)
    assert first["values"][0][:3] == ["kernel_0", "kernel_1", "kernel_2"]
    assert last["values"][0][:2] == [f"kernel_{MOST_ROWS}", f"kernel_{MOST_ROWS - 1}"]


def test_rows_that_were_searched_for_have_no_total_of_all_rows(build):
    for number in range(MOST_ROWS + 1):
        build.kernel(f"kernel_{number}", 10 * number, 5)
    step = Step(RecordingSource(build.recording()))
    found = single_answer(step, "step.pb", AskedAnswer("kernels/name", search="kernel_12.$"))
    assert (found["rows"], len(found["values"][0]), found["totals"]) == (10, 10, {})
    every = single_answer(step, "step.pb", AskedAnswer("kernels/name", search="kernel", sort="name.asc"))
    assert (every["rows"], every["totals"]["count"]) == (MOST_ROWS + 1, MOST_ROWS + 1)
