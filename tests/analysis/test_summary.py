"""The table for a terminal."""

from __future__ import annotations

import re

import pytest

from collector.analysis import devices
from collector.analysis.summary import summarize


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    """A terminal that is wide enough for every table."""
    monkeypatch.setenv("COLUMNS", "100")


def test_it_names_kernels_copies_devices_and_what_was_counted(build):
    build.environment["simulated"] = False
    for number in range(3):
        build.launch(number + 1, 100 * number)
        build.kernel("_Z3addIfEvPT_i", 10_000 * number + 1000, 3000, correlation_id=number + 1)
    build.kernel("relu", 60_000, 1000).memcpy(100_000, 1000, num_bytes=25_000).memset(200_000, 1000, num_bytes=500)
    text = summarize(build.recording(), color=False)
    assert re.search(r"add<float> +3 +9 µs +3 µs +90.0%", text)
    assert re.search(r"relu +1 +1 µs +1 µs +10.0%", text)
    assert re.search(r"HtoD +1 +25,000 +1 µs +25.0", text)
    assert re.search(r"memset +1 +500 +1 µs +0.5", text)
    assert re.search(r"/gpu:0 +12 µs +988 µs +1.2%", text)
    assert "3 launches, 4 kernels, 1 copy, 1 memset" in text
    assert "simulated" not in text


def test_unknown_sizes_are_reported_to_be_unknown(build):
    build.memcpy(10, 1000, num_bytes=0).memset(5000, 1000, num_bytes=0).memset(9000, 1000, num_bytes=500)
    text = summarize(build.recording(), color=False)
    assert re.search(r"HtoD +1 +unknown +1 µs +Pageable to Device *\n", text)
    assert re.search(r"memset +2 +500 and more +2 µs +0.5", text)


def test_losses_stand_at_the_end_one_line_each_in_red(build, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    build.counters.update(records_dropped=7)
    recording = build.kernel("k", 10).kernel("early", -10).recording()
    plain = summarize(recording, color=False).splitlines()
    assert "INCOMPLETE" in plain[-3]
    assert plain[-2].strip().startswith("CUPTI dropped 7 records")
    assert "1 activity starts before the step" in plain[-1]
    assert "\x1b[31m" in summarize(recording, color=True).splitlines()[-1]
    assert "\x1b" not in "".join(plain)


def test_work_without_times_has_its_names_and_the_error_that_took_them(build, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for correlation, name in ((1, "gemm"), (2, "gemm"), (3, "write_to")):
        build.launch(correlation, 10 * correlation).raw("kernels", correlation_id=correlation, name_id=build.text(name))
    build.call("cuCtxSynchronize", 100, correlation_id=4, return_value=700)
    assert summarize(build.recording()).splitlines()[-2:] == [
        "Kernels without times: gemm (2 times), write_to (1 time)",
        "cuCtxSynchronize returned CUDA error 700 (CUDA_ERROR_ILLEGAL_ADDRESS), after which its context is unusable",
    ]


def test_lines_fit_the_terminal(build, monkeypatch):
    build.counters.update(records_dropped=7)
    recording = build.kernel("k" * 300, 10).annotation("layer", 0, 50, 1).memcpy(10, 1000).recording()
    for width in (60, 80, 100, 140):
        monkeypatch.setenv("COLUMNS", str(width))
        assert max(map(len, summarize(recording, color=False).splitlines())) <= width


def test_a_complete_step_says_so(build):
    assert summarize(build.kernel("k", 10).recording(), color=False).endswith("nothing was lost")


def test_a_simulated_step_says_so_first(build):
    assert summarize(build.recording(), color=False).startswith("simulated GPU")


def test_more_kernels_than_fit_are_summed_up(build):
    for number in range(15):
        build.kernel(f"k{number:02}", 10_000 * number, 1000 + number)
    text = summarize(build.recording(), color=False)
    assert "k14" in text
    assert "k04" not in text
    assert re.search(r"\(5 others\) +5 +5.01 µs", text)


def test_names_that_look_like_markup_are_shown_as_they_are(build):
    assert "[red]k[/red]" in summarize(build.kernel("[red]k[/red]", 10).recording(), color=False)


def test_an_untraced_step_says_why_instead_of_an_empty_table(build):
    assert summarize(build.recording(), unavailable="no driver", color=False) == "not traced: no driver"


@pytest.mark.parametrize(
    ("intervals", "busy"),
    [
        ([(0, 10)], 10),
        ([(0, 10), (10, 10)], 20),
        ([(0, 10), (5, 10)], 15),
        ([(0, 100), (10, 5), (50, 5)], 100),
        ([(50, 5), (0, 10), (2, 3), (52, 10)], 22),
        ([(5, 0), (5, 0)], 0),
    ],
)
def test_a_device_is_busy_while_at_least_one_activity_runs(build, intervals, busy):
    for number, (start, duration) in enumerate(intervals):
        build.kernel("k", start, duration, stream_id=number)
    build.memcpy(0, 7, device_id=3)
    answer = devices(build.recording())
    assert dict(zip(answer["device_id"].tolist(), answer["busy_ns"].tolist(), strict=True)) == {0: busy, 3: 7}


def test_time_by_annotation_stands_beside_the_kernels(build):
    build.launch(1, 10).launch(2, 20).launch(3, 30)
    build.kernel("k", 1000, 100, correlation_id=1).kernel("k", 2000, 300, correlation_id=2)
    build.kernel("k", 3000, 600, correlation_id=3)
    build.annotation("layer", 0, 50, 1, 1).annotation("layer/conv", 15, 20, 2, 2)
    lines = summarize(build.recording(), color=False).splitlines()
    shown = [" ".join(line.split()) for line in lines]
    assert "annotation activities self total share" in shown
    assert "layer 2 100 ns 400 ns 40.0%" in shown
    assert "conv 1 300 ns 300 ns 30.0%" in shown
    assert any(line.startswith("   conv") for line in lines)
    assert "(no annotation) 1 600 ns 600 ns 60.0%" in shown


def test_a_step_without_annotations_has_no_table_of_them(build):
    assert "annotation" not in summarize(build.launch(1, 10).kernel("k", 10, correlation_id=1).recording(), color=False)


def test_a_step_without_launches_says_the_likely_causes(build):
    build.environment["source"] = "native"
    text = " ".join(summarize(build.annotation("layer", 0, 50, 1).recording(), color=False).split())
    for cause in ("another process", "another copy of the CUDA libraries", "nothing ran on a GPU"):
        assert cause in text
    build.counters["buffers_outstanding"] = 1
    assert "likely causes" not in summarize(build.recording(), color=False)
    build.counters.clear()
    assert "likely causes" not in summarize(build.kernel("k", 10).recording(), color=False)


@pytest.mark.parametrize(
    ("fill", "held"),
    [
        (
            lambda build: build.annotation("mm", 0, 50, 1).annotation("add", 60, 50, 2),
            "it has 2 annotations",
        ),
        (
            lambda build: build.annotation("range", 0, 50, 1).call("cudaGetDevice_v3020", 10),
            "it has 1 annotation and 1 call of CUDA",
        ),
        (lambda build: build, "it has no event"),
    ],
)
def test_a_file_of_another_program_without_gpu_work_says_what_it_has_instead(build, fill, held):
    build.environment["source"] = "profiler"
    text = " ".join(summarize(fill(build).recording(), color=False).split())
    assert f"the file has no GPU work: no kernel, copy or memset, and no launch; {held}" in text
    for advice in ("likely causes", "collector info", "trace it"):
        assert advice not in text


def test_a_recording_and_a_step_have_the_same_summary(build):
    recording = build.kernel("k", 10).recording()
    assert recording.summary() == summarize(recording)
