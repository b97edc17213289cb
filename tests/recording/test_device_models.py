"""The models of GPUs, from the tables of a recording and from its environment."""

from __future__ import annotations

import pytest

import collector
from collector.analysis.compare import compare
from collector.analysis.notebook_overview import overview_html
from collector.analysis.summary import summarize
from collector.recording.device_models import device_models, models_in_words
from collector.web.run_figures import run_figures

H100, H200 = "NVIDIA H100 80GB HBM3", "NVIDIA H200"


@pytest.fixture
def gpus(build, monkeypatch):
    """A recording of work on devices 0 and 2, by the names that the environment states."""
    monkeypatch.setenv("COLUMNS", "100")
    build.kernel("k", 1000, 500, device_id=0).kernel("k", 2000, 500, device_id=2)

    def of(names):
        build.environment.update(devices=names, simulated=False)
        return build.recording()

    return of


def test_they_are_those_of_devices_that_worked(gpus):
    assert device_models(gpus({0: H100, 1: "Display", 2: H200})) == {0: H100, 2: H200}
    assert device_models(gpus({"0": H100, "2": ""})) == {0: H100}
    assert device_models(gpus(None)) == {}


def test_a_simulated_gpu_has_none(build):
    build.environment.update(devices={0: H100}, simulated=True)
    assert device_models(build.kernel("k", 1000, 500).recording()) == {}


def test_recorded_properties_come_before_the_environment(build):
    build.environment.update(devices={0: "stated", 1: H100}, simulated=False)
    build.kernel("k", 1000, 500, device_id=0).kernel("k", 2000, 500, device_id=1)
    build.raw("devices", device_id=0, name_id=build.text(H200)).raw("devices", device_id=1, name_id=build.text(""))
    assert device_models(build.recording()) == {0: H200, 1: H100}


def test_in_words_each_model_stands_once_and_none_if_one_is_unknown(gpus):
    both = gpus({0: H100, 2: H100})
    assert models_in_words([both, both]) == H100
    assert models_in_words([both, gpus({0: H200, 2: H100})]) == f"{H100}, {H200}"
    assert models_in_words([both, gpus({0: H200})]) == ""


def test_the_summary_and_the_notebook_show_them(gpus):
    recording = gpus({0: H100, 2: "<b>"})
    lines = summarize(recording, color=False).splitlines()
    assert [line.split(maxsplit=6)[-1] for line in lines if line.startswith(" /gpu:")] == [H100, "<b>"]
    html = overview_html(recording)
    assert f">{H100}</td>" in html
    assert "<b>" not in html.replace("<b></b>", "")
    assert "model" not in summarize(gpus(None), color=False)
    assert "model" not in overview_html(gpus(None))


def test_a_comparison_says_that_the_models_differ(gpus):
    one, other = gpus({0: H100, 2: H100}), gpus({0: H200, 2: H200})
    (note,) = (note for note in compare(one, other).notes if "GPU" in note)
    assert note == f"The GPUs differ: {H100} before, {H200} now."
    for same in (compare(one, one), compare(one, gpus(None)), compare(gpus(None), other)):
        assert not [note for note in same.notes if "GPU" in note]


def test_the_list_of_runs_has_them(build, tmp_path):
    build.environment.update(devices={0: H100}, simulated=False)
    build.kernel("k", 1000, 500).recording().save(tmp_path / "step.gpurec")
    assert run_figures(collector.load(tmp_path / "step.gpurec"))["gpu"] == H100
