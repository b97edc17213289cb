"""Options that select a part of a step: where they select nothing, the command says so and names what there is."""

from __future__ import annotations

import pytest

import collector
from collector.cli import main
from collector.protos import RunMetadata
from collector.recording.recording import Recording
from collector.stepstats.from_recording import run_metadata
from collector.testing import SimulatedGpu


@pytest.fixture
def step_file(step_capture, tmp_path):
    path = tmp_path / "step.pb"
    path.write_bytes(run_metadata(Recording.from_capture(step_capture)).SerializeToString())
    return path


def printed(capsys, *words) -> tuple[int, str]:
    status = main([str(word) for word in words])
    return status, capsys.readouterr().err


@pytest.mark.parametrize("output", ["out.json", "out.pftrace.gz"])
@pytest.mark.parametrize(
    ("options", "cause", "instead"),
    [
        (("--device", "nosuch"), "no device matches 'nosuch'", "/gpu:0/memcpy"),
        (("--name", "nosuch"), "no slice has a name that matches 'nosuch'", "The names with most time are "),
        (("--min-duration", "900s"), "no slice is as long as 900 s", "The longest takes "),
        (("--window", "9000s.."), "no slice overlaps the window", "The step is "),
        (("--device", "cpu", "--name", "MEMCPYHtoD"), "no slice meets all conditions at once", "leave one out"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_timeline_of_nothing_is_an_error_and_leaves_the_file_that_was_there(
    step_file, output, options, cause, instead, capsys
):
    path = step_file.with_name(output)
    path.write_bytes(b"before")
    status, text = printed(capsys, "timeline", step_file, "-o", path, *options)
    assert status == 2
    assert text.count("\n") == 1
    assert text.startswith(f"collector: {step_file}: {cause}. ")
    assert instead in text
    assert path.read_bytes() == b"before"


def test_the_names_that_are_offered_select_slices(step_file, capsys):
    _, text = printed(capsys, "timeline", step_file, "-o", step_file.with_name("out.json"), "--name", "nosuch")
    name = text.partition("most time are ")[2].partition(",")[0].strip()
    status, _ = printed(capsys, "timeline", step_file, "-o", step_file.with_name("out.json"), "--name", f"^{name}$")
    assert status == 0


@pytest.mark.simulator
def test_a_window_behind_a_journal_is_answered_with_the_length_of_the_journal(tmp_path, capsys):
    journal = tmp_path / "step.journal"
    with SimulatedGpu(cuda="12.4") as gpu, collector.trace(journal=journal, stream=True):
        gpu.launch("relu", stream=7, duration_ns=3_000)
    status, text = printed(capsys, "timeline", journal, "-o", tmp_path / "out.json", "--window", "5s..6s")
    assert status == 2
    assert f"{journal}: no slice overlaps the window. The step is " in text
    assert not (tmp_path / "out.json").exists()


def test_a_step_without_slices_is_drawn_whatever_is_selected(tmp_path, capsys):
    message = RunMetadata()
    message.step_stats.dev_stats.add(device="/gpu:0/stream:7")
    path = tmp_path / "step.pb"
    path.write_bytes(message.SerializeToString())
    status, text = printed(capsys, "timeline", path, "-o", tmp_path / "out.json", "--name", "nosuch")
    assert (status, "matches" in text) == (0, False)


def test_a_timeline_of_no_slices_on_request_is_written(step_file):
    path = step_file.with_name("out.json")
    assert main(["timeline", str(step_file), "-o", str(path), "--max-events", "0"]) == 0
    assert path.exists()


@pytest.mark.parametrize("words", [["-o", "out.pb"], ["-o", "out.json", "--tensorflow"]])
def test_a_selection_of_what_is_not_drawn_names_the_reason(step_file, words, capsys, monkeypatch):
    monkeypatch.chdir(step_file.parent)
    status, text = printed(capsys, "timeline", step_file, *words, "--device", "gpu")
    assert status == 2
    assert text.startswith(f"collector: {words[-1]}: options that select slices apply to .json")


# --- other commands


def test_a_window_without_work_is_said_beside_the_answer(step_file, capsys):
    status, text = printed(capsys, "stats", step_file, "--question", "kernels", "--window", "0ns..1ns")
    assert status == 0
    assert text.startswith(f"collector: {step_file}: no launch and no activity overlaps --window; the step is ")


def test_a_window_with_work_is_not_commented(step_file, capsys):
    assert printed(capsys, "stats", step_file, "--question", "kernels", "--window", "0ns..") == (0, "")


@pytest.mark.parametrize("view", ["scope", "graph", "op"])
@pytest.mark.parametrize(
    ("option", "instead"),
    [
        ("-show_name_regexes", "no name matches, and all of a name has to"),
        ("-start_name_regexes", "no name matches, and all of a name has to"),
        ("-account_type_regexes", "no type matches, and all of a type has to"),
    ],
)
def test_expressions_of_prof_that_match_nothing_are_named(step_file, view, option, instead, capsys):
    status, text = printed(capsys, "prof", step_file, view, option, "nosuch")
    assert status == 0
    assert text.startswith(f"collector: {option} nosuch: {instead}")
    assert "There are " in text
    assert text.count("\n") == 1


@pytest.mark.parametrize("words", [(), ("-show_name_regexes", ".*"), ("-show_name_regexes", ".*[a-z].*")])
def test_an_answer_of_prof_that_shows_something_is_not_commented(step_file, words, capsys):
    assert printed(capsys, "prof", step_file, "scope", *words) == (0, "")


def test_limits_of_prof_that_nothing_passes_are_named(step_file, capsys):
    status, text = printed(capsys, "prof", step_file, "scope", "-min_micros", "999999999")
    assert (status, text.startswith("collector: no node passes all options; without them there are ")) == (0, True)


@pytest.mark.simulator
def test_a_marker_that_matches_nothing_is_an_error(tmp_path, capsys):
    for rank in (0, 1):
        with SimulatedGpu(cuda="12.4") as gpu, collector.trace(tmp_path / f"rank{rank}.pb", rank=rank):
            gpu.launch("ncclKernel_AllReduce", stream=7, duration_ns=3_000)
    files = [tmp_path / f"rank{rank}.pb" for rank in (0, 1)]
    status, text = printed(capsys, "merge", *files, "-o", tmp_path / "m.json", "--align", "--marker", "nosuch")
    assert status == 2
    assert text == (
        "collector: nothing in the inputs matches the marker 'nosuch'. Without a marker, the collectives "
        "(all-reduce, ...) relate the clocks\n"
    )
    assert not (tmp_path / "m.json").exists()
    assert main(["merge", *map(str, files), "-o", str(tmp_path / "m.json"), "--align", "--marker", "allreduce"]) == 0
