"""Whatever a program does, files, datasets and SQL have the numbers of Python, also of a part of the step."""

from __future__ import annotations

from random import Random

import pytest

pytest.importorskip("hypothesis")

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from properties import examples
from random_programs import random_program
from random_steps import random_step

import collector
from collector.analysis import between
from collector.analysis.questions import QUESTIONS
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource

ASKED = [(name, by) for name, question in QUESTIONS.items() if not question.of_ranks for by in question.questions]
SEEDS = st.integers(0, 1 << 32)


def same_in_each_run(number):
    """Settings of a property whose seeds say nothing about the size of a step, so that smaller ones are no simpler."""
    return settings(max_examples=examples(number), derandomize=True, phases=[Phase.explicit, Phase.generate])


def subjects(build, chance):
    """A step, and a part of it."""
    recording = build.recording()
    ends = sorted(chance.randrange(recording.clock.window_ns + 1) for _ in range(2))
    return recording, between(recording, *ends)


def told(step):
    """The answers about a step. Rows that were set apart, which few formats hold, are counted by `ledger` alone."""
    answers = {key: QUESTIONS[key[0]].answer(step, key[1]) for key in ASKED if key != ("ledger", "table")}
    return {
        key: (answer.to_json()["rows"], answer.totals, answer.losses, [each.length_ns for each in answer.windows])
        for key, answer in answers.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["gpurec", "pb", "json"])
def test_files_have_the_numbers_of_the_recording(tmp_path_factory, suffix):
    @given(SEEDS)
    @same_in_each_run(60)
    def check(seed):
        chance = Random(seed)
        for recording in subjects(random_program(chance), chance):
            path = tmp_path_factory.mktemp("files") / f"step.{suffix}"
            Step(RecordingSource(recording)).save(path)
            assert told(collector.load(path)) == told(recording)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("make", [random_program, random_step])
def test_a_dataset_and_its_views_have_the_numbers_of_the_recordings(tmp_path_factory, make):
    pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    from sql_engines import duckdb_rows, native_rows, native_steps

    from collector.dataset import Dataset, DatasetWriter

    @given(st.lists(SEEDS, min_size=8, max_size=8))
    @same_in_each_run(4)
    def check(seeds):
        given_steps = []
        for chance in map(Random, seeds):
            given_steps += subjects(make(chance), chance)
        folder = tmp_path_factory.mktemp("runs")
        with DatasetWriter(folder, run="a") as writer:
            for recording in given_steps:
                writer.write(recording)
        dataset = Dataset(folder)
        for step, recording in zip(dataset, given_steps, strict=True):
            assert told(step) == told(recording)
        rows, columns = duckdb_rows(dataset)
        native = native_rows(dataset, columns) | native_steps(dataset, columns)
        stored = {view for view in native if view.startswith("answer_")}
        assert {view: rows[view] for view in stored} == {view: native[view] for view in stored}

    check()
