"""A file of several processes answers as their own files together do: no launch owns the work of another process."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st
from reference.processes_of_a_job import FIGURES, delays, op_times, process_recordings
from support.properties import examples

import collector
from collector.formats.step import RecordingSource, Step
from collector.profiler.advice.step_activity import Activity
from collector.profiler.step_reader import read_step
from collector.recording.journal import JournalProcess


def _saved(recordings, folder, suffix, names):
    paths = [folder / f"{name}{suffix}" for name in names]
    for recording, path in zip(recordings, paths, strict=True):
        recording.save(path)
    return paths


def _job(build):
    """Two processes whose ids, threads, streams and ops have the same numbers and names."""
    recordings = []
    for process in range(2):
        made = type(build)()
        for correlation in (1, 2, 3):
            made.launch(correlation, 1000 * correlation + 300 * process)
            made.kernel(f"k{process}", 5000 * correlation + 900 * process, 2000, correlation_id=correlation)
        made.annotation("layer", 900 + 300 * process, 2300, 5, 1, 2)
        made.call("cudaDeviceSynchronize", 8000 + 300 * process, 15000 + process, correlation_id=9)
        recordings.append(made.recording())
    return recordings


def _sum(figure, recordings):
    found = Counter()
    for recording in recordings:
        found.update(figure(recording))
    return +found


@pytest.mark.medium
@pytest.mark.parametrize("suffix", [".json", ".xplane.pb"])
@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.__name__)
@settings(max_examples=examples(40))
@given(recordings=st.lists(process_recordings(), min_size=2, max_size=3))
def test_a_merged_file_answers_as_its_ranks(tmp_path_factory, figure, suffix, recordings):
    folder = tmp_path_factory.mktemp("merged")
    names = [f"rank{rank}" for rank in range(len(recordings))]
    merged = collector.merge(_saved(recordings, folder, ".gpurec", names), folder / f"all{suffix}").output
    alone = [collector.load(path).recording for path in _saved(recordings, folder, suffix, names)]
    assert +figure(collector.load(merged).recording) == _sum(figure, alone)


@pytest.mark.parametrize("names", [("rank0", "rank1"), ("first", "second")], ids=["ranks", "of no name"])
@pytest.mark.parametrize("figure", [delays, op_times], ids=lambda figure: figure.__name__)
def test_steps_with_the_same_ids(build, tmp_path, names, figure):
    """Files without ranks are drawn on the same tracks, where correlation ids alone keep their launches apart."""
    recordings = _job(build)
    merged = collector.merge(_saved(recordings, tmp_path, ".gpurec", names), tmp_path / "all.json").output
    assert +figure(collector.load(merged).recording) == _sum(figure, recordings)


def test_processes_without_ranks(build, tmp_path):
    """Those that a journal states, as in the file of `collector run`."""
    recordings = _job(build)
    steps = [
        Step(RecordingSource(recording), process=JournalProcess(process, {}, True, ""))
        for process, recording in zip((41, 42), recordings, strict=True)
    ]
    step = collector.load(collector.merge(steps, tmp_path / "all.json").output)
    for figure in FIGURES:
        assert +figure(step.recording) == _sum(figure, recordings)
    devices = {device.device for device in step.step_stats.dev_stats}
    assert {f"/job:process/replica:0/task:{process}/gpu:0/stream:7" for process in (41, 42)} <= devices
    again = collector.merge([step], tmp_path / "again.json")
    assert again.inputs[0].rank is None
    assert +delays(collector.load(again.output).recording) == _sum(delays, recordings)


def test_ids_that_no_other_step_has_are_drawn_as_they_are(build, tmp_path):
    first, second = _job(build)
    later = second.to_capture()
    for table in later["tables"].values():
        if "correlation_id" in table:
            table["correlation_id"] = table["correlation_id"] + np.uint32(100)
    for name, recording in (("step1", first), ("step2", type(first).from_capture(later)), ("step3", second)):
        recording.save(tmp_path / f"{name}.gpurec")
    report = collector.merge([tmp_path / f"step{number}.gpurec" for number in (1, 2, 3)], tmp_path / "all.json")
    assert sorted(each.added_to_correlations for each in report.inputs) == [0, 0, 109]
    ids = {args["correlation"] for each in _slices(report.output) if "correlation" in (args := each.get("args", {}))}
    assert ids == {*(1, 2, 3, 9), *(101, 102, 103, 109), *(110, 111, 112, 118)}


def _slices(path):
    return [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]


@pytest.mark.parametrize("layout", ["sequence", "overlay"])
@pytest.mark.parametrize("suffix", [".pb", ".xplane.pb", ".json"])
@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.__name__)
def test_a_file_made_of_a_merged_one_keeps_processes_apart(build, tmp_path, figure, suffix, layout):
    recordings = _job(build)
    paths = _saved(recordings, tmp_path, ".gpurec", ["rank0_step1", "rank1_step1"])
    merged = collector.load(collector.merge(paths, tmp_path / "all.json", layout=layout).output)
    assert +figure(merged.recording) == _sum(figure, recordings)
    merged.save(tmp_path / f"again{suffix}")
    assert +figure(collector.load(tmp_path / f"again{suffix}").recording) == _sum(figure, recordings)


def test_losses_of_the_inputs_are_those_of_the_file(build, tmp_path):
    recordings = _job(build)
    build.counters["records_dropped"] = 3
    lossy = [build.kernel("k", 10, correlation_id=1).call("cudaLaunchKernel", 1, correlation_id=2).recording()]
    paths = _saved([*recordings, *lossy], tmp_path, ".gpurec", ["rank0", "rank1", "rank2"])
    step = collector.load(collector.merge(paths, tmp_path / "all.json").output)
    stated = [collector.load(path).ledger for path in paths]
    for ledger in (step.ledger, step.recording.ledger):
        assert sorted(ledger.losses()) == sorted(stated[2].losses())
        assert ledger.launches_seen == sum(each.launches_seen for each in stated)
    foreign = tmp_path / "rank3.pb"
    foreign.write_bytes(collector.load(paths[0]).step_stats.SerializeToString())
    step = collector.load(collector.merge([*paths, foreign], tmp_path / "all.json").output)
    assert set(stated[2].losses()) <= set(step.recording.ledger.losses())
    assert step.recording.ledger.launches_seen == sum(each.launches_seen for each in [*stated, stated[0]])


def test_advice_counts_the_waits_of_a_devices_own_task(build, tmp_path):
    """Idle time of a device of one task is not the time in which the host of another one waits."""
    recordings = _job(build)
    late = type(build)()
    for correlation, start in ((1, 0), (2, 40_000)):
        late.launch(correlation, start).kernel("k", start + 600, 1000, correlation_id=correlation)
    recordings.append(late.recording())
    paths = _saved(recordings, tmp_path, ".gpurec", ["rank0", "rank1", "rank2"])
    merged = collector.load(collector.merge(paths, tmp_path / "all.json").output)

    def waits(step):
        return sorted(int(device.idle.causes.synchronizing.sum()) for device in Activity(read_step(step)).devices)

    alone = [collector.load(path) for path in _saved(recordings, tmp_path, ".json", ["rank0", "rank1", "rank2"])]
    assert waits(merged) == sorted(each for step in alone for each in waits(step))
