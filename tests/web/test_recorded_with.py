"""How a step was recorded, as the page states it."""

from __future__ import annotations

import pytest
from hostile_names import EVIL
from report_pages import page_of

import collector
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource
from collector.web.recorded_with import recorded_with
from collector.web.report_file import write_report

KNOWN = {
    "source": "native",
    "simulated": False,
    "cuda_version": 13000,
    "driver_version": 12040,
    "cupti_api_version": 130001,
    "cupti_path": "/home/someone/libcupti.so.13",
    "devices": {0: "NVIDIA H200"},
}
SHOWN = [
    ("source", "CUPTI, read by cupti-collector"),
    ("CUDA", "13.0"),
    ("driver", "for CUDA up to 12.4"),
    ("CUPTI", "API version 130001"),
    ("GPU 0", "NVIDIA H200"),
]


def test_it_has_program_versions_and_models_and_no_path(build, tmp_path):
    build.environment = KNOWN
    recording = build.kernel("k", 1000).recording()
    assert recorded_with(recording) == SHOWN
    path = tmp_path / "step.html"
    write_report(path, [("step", Step(RecordingSource(recording)))])
    assert page_of(path)["steps"][0]["recorded_with"] == [list(each) for each in SHOWN]
    assert "someone" not in str(page_of(path))


def test_a_file_of_another_program_may_state_anything(build):
    build.environment = {"source": EVIL, "cuda_version": "13", "driver_version": -1, "cupti_api_version": True}
    assert recorded_with(build.kernel("k", 1000).recording()) == [("source", EVIL)]
    build.environment = {}
    assert recorded_with(build.recording()) == []


def test_recorded_traces_name_their_program(shared):
    traces = shared / "data" / "gpu_traces"
    assert ("source", "the trace of another profiler") in recorded_with(
        collector.load(traces / "hta" / "a100_alexnet.json.gz").recording
    )
    (source,) = (
        text
        for name, text in recorded_with(collector.load(traces / "nsys_ai" / "mock.sqlite.gz").recording)
        if name == "source"
    )
    assert source.startswith("Nsight Systems 2026")


@pytest.mark.viewer
@pytest.mark.slow
def test_the_view_of_losses_shows_it(report_page, build, tmp_path):
    build.environment = {**KNOWN, "devices": {0: f"<b>{EVIL}"}}
    path = tmp_path / "step.html"
    write_report(path, [("step", Step(RecordingSource(build.kernel("k", 1000).recording())))])
    page = report_page.open(path, "view=trust").page
    texts = page.locator("dl.sides > div").all_inner_texts()
    assert [text.split("\n")[0] for text in texts] == [name for name, _ in SHOWN]
    assert "for CUDA up to 12.4" in texts[2]
    assert page.locator("dl.sides b").count() == 0
    assert report_page.unlawful() == []
