"""Answers that the served page asks for one at a time."""

from __future__ import annotations

from collector.formats.step import RecordingSource, Step
from collector.web.single_answers import AskedAnswer, keys, single_answer


def test_a_file_whose_name_begins_with_a_dash_is_no_option_of_the_command(build):
    build.kernel("first", 10, 20)
    step = Step(RecordingSource(build.recording()))
    assert "devices" in keys()
    assert single_answer(step, "-x.gpurec", AskedAnswer("devices"))["cli"].startswith("collector stats ./-x.gpurec ")
