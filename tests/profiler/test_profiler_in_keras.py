"""Our callbacks in `keras.Model.fit`, and in a stand-in that calls them as Keras does."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from programs import results_of

pytest.importorskip("collector._native", reason="the native extension is not built")

pytestmark = pytest.mark.simulator


def _missing() -> str:
    if find_spec("keras") is None:
        return "keras is not installed"
    if find_spec("tensorflow") is None and find_spec("torch") is None:
        return "keras has neither tensorflow nor torch to run on"
    return ""


@pytest.fixture(scope="module", params=["stand-in", "keras"])
def left(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each scenario of `keras_runs.py` left behind; in a process of its own, which Keras and TensorFlow fill."""
    if request.param == "keras" and _missing():
        pytest.skip(f"OUR CALLBACKS WERE NOT TRIED IN KERAS ITSELF, ONLY BESIDE A STAND-IN: {_missing()}")
    return results_of("keras_runs.py", request.param, str(tmp_path_factory.mktemp("runs")))


def _files(*steps: int) -> dict[str, list[str]]:
    return {f"timeline-{step}.json": ["train"] for step in steps}


@pytest.mark.medium
def test_steps_are_counted_over_epochs_and_validation_is_in_none(left):
    assert left["several_epochs"] == _files(2, 4, 6, 8)


@pytest.mark.medium
def test_a_second_fit_goes_on_counting(left):
    assert left["fit_twice"] == _files(2, 4, 6)


@pytest.mark.medium
def test_stopped_in_the_middle_of_an_epoch(left):
    assert left["stopped_early"] == [_files(2, 4), ["own"]]


@pytest.mark.medium
def test_a_batch_that_fails_leaves_nothing_open_and_no_file(left):
    message, kernels, files = left["fails_in_a_traced_batch"]
    assert "the batch fails" in message
    assert kernels == ["own"]
    assert files == _files(2, 4)  # the failed batch was no step: 1, and then 2, 3, 4


def test_the_next_fit_ends_what_a_failed_one_left(left):
    assert left["fails_and_the_hook_was_not_closed"] == _files(2, 4)


def test_several_batches_in_one_call(left):
    found = left["several_batches_per_call"]
    if isinstance(found, str):
        assert "steps_per_execution" in found
        pytest.skip(f"Keras on this backend: {found}")
    assert found == ["timeline-4.json", "timeline-8.json", "timeline-12.json"]


def test_copies_count_for_themselves(left):
    assert left["copied"] == [_files(2, 4)] * 3


def test_a_session_of_the_programs_own_keeps_everything(left):
    assert left["beside_a_session_of_ones_own"] == [["train"] * 3, {}]


def test_every_batch_is_a_step_of_its_kind(left):
    kernels, kinds, is_dumped = left["steps_by_kind"]
    assert kernels == {"1": ["train"], "3": ["infer"], "5": ["train"], "10": ["infer"], "12": ["infer"]}
    assert kinds == ["predict", "test", "train"]
    assert is_dumped


def test_a_failed_batch_is_no_step_of_a_context(left):
    assert left["a_failed_batch_is_no_step"] == [0, 2]
    assert left["the_context_ends_with_a_failed_batch"] == [["own"], [0]]


def test_nothing_is_left_open(left):
    assert left["nothing_is_left"] == [{}, ["own"], []]
