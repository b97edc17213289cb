"""An answer without a row says why: what was not recorded, or that nothing of the kind happened."""

from __future__ import annotations

import json

import pytest

import collector
from collector.analysis.questions import QUESTIONS
from collector.cli import main
from collector.errors import CollectorError
from collector.recording.capture import empty_capture
from collector.recording.recording import Recording
from collector.recording.schema import SCHEMA

ASKED = [(name, by) for name, question in QUESTIONS.items() if not question.of_ranks for by in question.questions]
NEVER_EMPTY = {"steps"}
"""Questions that have a row for every recording."""


def answers_about(recording, name, by):
    return QUESTIONS[name].answer(recording, by)


def nothing(build):
    return build


def work_alone(build):
    """One kernel that lasts the whole step, without a call, an annotation or a graph."""
    return build.kernel("gemm", 0, 1_000_000)


def host_alone(build):
    return build.call("cudaGetDevice_v3020", 10).annotation("layer", 0, 50, 1)


def late_work(build):
    return build.kernel("gemm", 999_999, 100).memcpy(999_999, 100).memset(999_999, 100)


def releases(build):
    return build.raw(
        "memory_operations", start_ns=build.clock["cupti_start_ns"] + 5, operation=2, num_bytes=64, address=9
    )


FILLED = [nothing, work_alone, host_alone, late_work, releases]


@pytest.mark.parametrize("source", ["native", "profiler"])
@pytest.mark.parametrize("fill", FILLED)
@pytest.mark.parametrize(("name", "by"), ASKED)
def test_an_answer_has_rows_or_says_why_not(build, name, by, fill, source):
    build.environment["source"] = source
    recording = fill(build).recording()
    answer = answers_about(recording, name, by)
    if len(answer):
        return
    assert name not in NEVER_EMPTY
    *_, reason = answer.notes
    assert reason[0].isupper()
    assert reason.endswith(".")
    assert reason in " ".join(answer.text().split())
    if fill is nothing:
        assert ("The file has no" in reason) == (source == "profiler" and name != "ledger")


@pytest.mark.parametrize(
    ("name", "fill", "source", "reason"),
    [
        ("graphs", work_alone, "native", "No kernel, copy or memset belongs to a known launch of a CUDA graph."),
        ("launches", work_alone, "native", "No call that launched them is in the recording."),
        ("idle_gaps", work_alone, "native", "No device was idle."),
        ("copies", work_alone, "profiler", "The file has no copies or memsets."),
        (
            "kernels",
            host_alone,
            "native",
            "The recording has no kernels: none happened, or the kind kernels was left out.",
        ),
        (
            "calls",
            work_alone,
            "native",
            "The recording has no calls of CUDA: none happened, or the kinds runtime_api and driver_api were left out.",
        ),
        (
            "memory",
            work_alone,
            "native",
            "The recording has no memory operations, which are recorded on request only (kind memory_operations).",
        ),
        ("annotation_times", work_alone, "native", "The recording has no annotations: the program made none."),
        ("kernels", late_work, "native", "The recording sets 1 kernel apart because of its times: see the ledger."),
        (
            "devices",
            late_work,
            "native",
            "The recording sets 3 kernels, copies or memsets apart because of their times: see the ledger.",
        ),
    ],
)
def test_reasons(build, name, fill, source, reason):
    build.environment["source"] = source
    assert answers_about(fill(build).recording(), name, "").notes == (reason,)


@pytest.mark.parametrize(
    ("source", "asked", "reason"),
    [
        ("native", "kernels", "The recording has no kernels: none happened, or the kind kernels was left out"),
        (
            "native",
            "memory",
            "The recording has no memory operations, which are recorded on request only (kind memory_operations)",
        ),
        ("profiler", "kernels", "The file has no kernels"),
    ],
)
def test_rows_that_are_set_apart_and_missing_may_be_those_that_were_asked_for(build, tmp_path, source, asked, reason):
    """A Chrome trace has only the number of such rows."""
    build.environment["source"] = source
    late_work(build).recording().save(tmp_path / "step.json")
    assert answers_about(collector.load(tmp_path / "step.json"), asked, "").notes == (
        f"{reason}, or they are among the 3 rows set apart because of their times, of which only the number is known: "
        "see the ledger.",
    )


@pytest.mark.parametrize("by", QUESTIONS["ranks"].by)
def test_ranks_without_a_common_collective(build, by):
    ranks = [type(build)().kernel(f"ncclDevKernel_{name}", 10).recording() for name in ("AllReduce", "AllGather")]
    with pytest.raises(CollectorError, match="no collective"):
        QUESTIONS["ranks"].ask(ranks, by=by)


def test_nothing_was_traced(build):
    build.counters["untraced"] = 1
    assert answers_about(build.recording(), "graphs", "").notes == ("Nothing was traced.",)


def test_several_steps_and_no_step(build):
    build.environment["source"] = "native"
    recording = build.kernel("gemm", 10).recording()
    empty = Recording.from_capture(empty_capture())
    assert QUESTIONS["graphs"].ask([empty, recording]).notes == (
        "No kernel, copy or memset belongs to a known launch of a CUDA graph.",
    )
    assert QUESTIONS["kernels"].ask([empty, recording]).notes == ()
    assert QUESTIONS["kernels"].ask([]).notes == ("No step was given.",)


def test_every_table_that_a_question_needs_exists():
    from collector.analysis.empty_answers import _ROWS

    assert set(_ROWS) <= set(SCHEMA)


@pytest.mark.parametrize("asked", ["kernels", "memory", "calls", "annotation_times"])
def test_a_part_knows_the_rows_that_its_recording_sets_apart(build, asked):
    build.environment["source"] = "native"
    recording = late_work(build).recording()
    part = recording.between(build.clock["cupti_start_ns"] + 5)
    (of_part,) = answers_about(part.between(build.clock["cupti_start_ns"] + 6), asked, "").notes
    (of_whole,) = answers_about(recording, asked, "").notes
    assert of_part.replace("This part of the recording", "The recording") == of_whole


@pytest.mark.parametrize("source", ["native", "profiler"])
def test_a_part_without_rows_says_nothing_of_the_rest(build, source):
    """Rows of the rest of the recording are neither missing nor left out."""
    build.environment["source"] = source
    recording = build.kernel("gemm", 10, 100).memcpy(500, 100).recording()
    part = recording.between(build.clock["cupti_start_ns"] + 400)
    whose, end = {
        "native": ("recording", ": none happened, or the kind kernels was left out."),
        "profiler": ("file", "."),
    }[source]
    assert answers_about(part, "kernels", "").notes == (f"This part of the {whose} has no kernels{end}",)
    assert answers_about(recording, "kernels", "").notes == ()


def test_the_command_says_it(build, tmp_path, capsys):
    build.environment["source"] = "native"
    path = tmp_path / "step.gpurec"
    build.kernel("gemm", 10).recording().save(path)
    assert main(["stats", str(path), "--question", "graphs"]) == 0
    assert "No kernel, copy or memset belongs to a known launch of a CUDA graph." in capsys.readouterr().out
    assert main(["stats", str(path), "--question", "graphs", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert told["notes"] == ["No kernel, copy or memset belongs to a known launch of a CUDA graph."]
