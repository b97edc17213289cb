"""Steps of several runs in one trace: each run has ranks, steps and clocks of its own."""

from __future__ import annotations

import json

import pytest
from captures import CaptureBuilder

import collector
from collector import CollectorError
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource

RUNS = ("monday", "tuesday")
AHEAD_NS = {("monday", 0): 0, ("monday", 1): 5_000_000, ("tuesday", 0): 0, ("tuesday", 1): -123_456}


def a_step(run, rank, later_ns=0):
    """A step with collectives that all ranks of a run left together, and calls of a process."""
    build = CaptureBuilder()
    for moment in ("wall_start_ns", "wall_stop_ns"):
        build.clock[moment] += AHEAD_NS[run, rank] + later_ns
    for place in range(9):
        own_ns = (rank * 37 + place * 11) % 500
        name = "ncclDevKernel_AllReduce_Sum_f32"
        start_ns = 10_000 * (place + 1)
        build.launch(place + 1, start_ns - 1000, process_id=100)
        build.kernel(name, start_ns - own_ns, 1000 + own_ns, correlation_id=place + 1)
    return Step(RecordingSource(build.recording()), rank=rank, run=run)


@pytest.fixture
def steps():
    """Two ranks of two runs; the second run began a minute later."""
    return [a_step(run, rank, 60_000_000_000 * RUNS.index(run)) for run in RUNS for rank in (0, 1)]


def processes_in(path):
    events = json.loads(path.read_text())["traceEvents"]
    return {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}


def test_each_run_has_processes_and_steps_of_its_own(steps, tmp_path):
    report = collector.merge([*steps, a_step("monday", 0, 1_000_000_000)], tmp_path / "all.json")
    assert [(each.run, each.rank, each.step, each.added_to_correlations) for each in report.inputs] == [
        ("monday", 0, 0, 0),
        ("monday", 0, 1, 9),
        ("monday", 1, 0, 0),
        ("tuesday", 0, 0, 0),
        ("tuesday", 1, 0, 0),
    ]
    places = [f"{run} {rank}" for run in RUNS for rank in (0, 1)]
    names = [*processes_in(report.output).values()]
    assert [name for name in names if "GPU" in name] == [f"{place} GPU 0" for place in places]
    trace = json.loads(report.output.read_text())
    rows = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert {f"run {run} rank {rank}" for run in RUNS for rank in (0, 1)} <= rows
    marks = [event["name"] for event in trace["traceEvents"] if event["ph"] in "iI"]
    assert {"run monday step 0", "run monday step 1", "run tuesday step 0"} <= set(marks)
    assert [each.get("run") for each in trace["otherData"]["inputs"]] == [each.run for each in report.inputs]


def test_steps_of_one_run_are_drawn_as_without_it(steps, tmp_path):
    ranks = [Step(RecordingSource(step.recording), rank=step.rank) for step in steps[:2]]
    for name, inputs in (("run", steps[:2]), ("none", ranks)):
        collector.merge(inputs, tmp_path / f"{name}.json", clock_offsets="estimate")
    with_run, without = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("run", "none"))
    for each in with_run["otherData"]["inputs"]:
        assert each.pop("run") == "monday"
    assert with_run == without


def test_clocks_are_related_within_each_run(steps, tmp_path):
    report = collector.merge(steps, tmp_path / "all.json", clock_offsets="estimate")
    assert {key: clock.offset_ns for key, clock in report.clock_offsets.items()} == pytest.approx(AHEAD_NS, abs=60)
    assert [clock.source for clock in report.clock_offsets.values()] == ["reference", "estimated"] * 2
    stated = json.loads(report.output.read_text())["otherData"]["clock_offsets"]
    assert [*stated] == [f"run {run} rank {rank}" for run, rank in AHEAD_NS]


def test_given_offsets_are_those_of_the_ranks_of_each_run(steps, tmp_path):
    report = collector.merge(steps, tmp_path / "all.json", clock_offsets={1: 700})
    assert {key: clock.offset_ns for key, clock in report.clock_offsets.items()} == {(run, 1): 700 for run in RUNS}
    with pytest.raises(CollectorError, match="rank 2, of which there is no input: there are 0, 1"):
        collector.merge(steps, tmp_path / "all.json", clock_offsets={2: 700})


def test_overlaid_steps_of_several_runs_begin_together(steps, tmp_path):
    report = collector.merge(steps, tmp_path / "all.json", layout="overlay", clock_offsets="estimate")
    begins = [each.start_ns + each.shift_ns for each in report.inputs]
    assert max(begins) - min(begins) < 1000


@pytest.mark.parametrize("layout", ["sequence", "overlay"])
@pytest.mark.parametrize("suffixes", [("json",), ("xplane.pb",), ("json", "xplane.pb"), ("json", "json")])
def test_a_trace_of_several_runs_that_is_read_back_keeps_them_apart(steps, tmp_path, suffixes, layout):
    path = collector.merge(steps, tmp_path / f"0.{suffixes[0]}", layout=layout).output
    for number, suffix in enumerate(suffixes[1:], start=1):
        collector.load(path).save(tmp_path / f"{number}.{suffix}")
        path = tmp_path / f"{number}.{suffix}"
    recording = collector.load(path).recording
    assert len(recording.kernels) == 36
    assert len(set(recording.kernels.device_id.tolist())) == 4
    assert len(set(recording.kernels.correlation_id.tolist())) == 36
    assert len(set(recording.api_calls.process_id.tolist())) == 4


def test_a_merged_trace_of_several_runs_has_no_rank(steps, tmp_path):
    first = collector.merge(steps[::2], tmp_path / "first.json").output
    report = collector.merge([first], tmp_path / "again.json")
    assert report.inputs[0].rank is None
