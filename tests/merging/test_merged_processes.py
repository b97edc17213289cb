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
from collector import analysis
from collector.formats.collector_timeline import CollectorTrace
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource
from collector.profiler.advice.step_activity import Activity
from collector.profiler.step_reader import read_step
from collector.recording.annotation_details import Argument, Details
from collector.recording.journal_facts import JournalProcess
from collector.recording.text_columns import text_column
from collector.stepstats.object_tables import OBJECT_TABLES


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
@settings(max_examples=examples(60))
@given(recordings=st.lists(process_recordings(), min_size=2, max_size=3))
def test_a_merged_file_answers_as_its_ranks(tmp_path_factory, suffix, recordings):
    folder = tmp_path_factory.mktemp("merged")
    names = [f"rank{rank}" for rank in range(len(recordings))]
    merged = collector.merge(_saved(recordings, folder, ".gpurec", names), folder / f"all{suffix}").output
    alone = [collector.load(path).recording for path in _saved(recordings, folder, suffix, names)]
    together = collector.load(merged).recording
    for figure in FIGURES:
        assert +figure(together) == _sum(figure, alone), figure.__name__


@pytest.mark.parametrize("names", [("rank0", "rank1"), ("first", "second")], ids=["ranks", "of no name"])
@pytest.mark.parametrize("figure", [delays, op_times], ids=lambda figure: figure.__name__)
def test_steps_with_the_same_ids(build, tmp_path, names, figure):
    """Files without ranks are drawn on the same tracks, where correlation ids alone keep their launches apart."""
    recordings = _job(build)
    merged = collector.merge(_saved(recordings, tmp_path, ".gpurec", names), tmp_path / "all.json").output
    assert +figure(collector.load(merged).recording) == _sum(figure, recordings)


@pytest.mark.parametrize("names", [("step_1", "step_1"), ("step_0", "other"), ("rank2_step_1", "rank2_step_1")])
@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.__name__)
def test_overlaid_steps_of_one_number_have_processes_of_their_own(build, tmp_path, names, figure):
    recordings = _job(build)
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
    paths = [tmp_path / "first" / f"{names[0]}.gpurec", tmp_path / "second" / f"{names[1]}.gpurec"]
    for recording, path in zip(recordings, paths, strict=True):
        recording.save(path)
    report = collector.merge(paths, tmp_path / "all.json", layout="overlay")
    assert len({each.step for each in report.inputs}) == 2
    assert +figure(collector.load(report.output).recording) == _sum(figure, recordings)


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


def _with_objects(build, job):
    """The processes of a job with rows of the tables that a drawn trace has in its metadata, and an environment."""
    recordings = []
    for process, recording in enumerate(job):
        made = type(build)()
        made.text("")
        place = {"device_id": 0, "context_id": 1, "stream_id": 7}
        made.raw("devices", device_id=0, name_id=made.text(f"GPU of {process}"), num_multiprocessors=132)
        made.raw("contexts", device_id=0, context_id=1, null_stream_id=7)
        made.raw("streams", context_id=1, stream_id=7, priority=-1 - process, correlation_id=2)
        made.raw("cuda_events", **place, correlation_id=9, event_id=4, event_sync_id=5)
        first_ns = int(recording.kernels.start_ns[0])
        made.raw(
            "collectives", **place, start_ns=first_ns, correlation_id=1, group_name_id=made.text(f"group {process}")
        )
        sample = {"sample": 1400 + process, "name_id": made.text("clock"), "unit_name_id": made.text("MHz")}
        made.raw("counter_samples", device_id=0, start_ns=first_ns, **sample)
        objects = made.recording().to_capture()
        capture = recording.to_capture()
        capture["details"] = [Details(flops=10 + process, arguments=(Argument((2, 3), "float", "x"),))]
        capture["tables"]["annotations"]["details_id"] = np.ones(1, np.uint32)
        capture["environment"] |= {
            "source": "native",
            "devices": {0: f"GPU of {process}"},
            "thread_names": {11: f"thread of {process}"},
            "cuda_version": "12.4",
        }
        num_strings = len(capture["strings"])
        capture["strings"] += objects["strings"]
        for table in OBJECT_TABLES:
            columns = {name: values.copy() for name, values in objects["tables"][table].items()}
            for name in filter(text_column, columns):
                columns[name] += np.uint32(num_strings)
            capture["tables"][table] = columns
        recordings.append(type(recording).from_capture(capture))
    return recordings


def _objects(recording):
    """The rows of these tables without their ids, with the work and the calls to which the ids link them."""
    found = Counter()
    kernels, calls = recording.kernels, recording.api_calls
    for table in OBJECT_TABLES:
        rows = getattr(recording, table)
        texts = {name: rows.texts(name) for name in rows.columns if text_column(name)}
        for number, row in enumerate(rows):
            linked = kernels
            for column in ("device_id", "context_id", "stream_id"):
                linked = linked[linked[column] == getattr(row, column)] if column in rows.columns else linked
            correlation = getattr(row, "correlation_id", 0)
            values = [getattr(row, name) for name in rows.columns if not name.endswith(("_id", "_ns"))]
            values += [own[number] for own in texts.values()]
            values += linked.names()
            values += [name.partition("_v")[0] for name in calls[calls.correlation_id == correlation].names()]
            found[(table, *values, "start_ns" not in rows.columns or row.start_ns in linked.start_ns)] += 1
    for row in recording.annotations:
        details = recording.details[row.details_id - 1] if row.details_id else None
        found["annotations", recording.environment["thread_names"].get(row.thread_id), str(details)] += 1
    environment = {key: recording.environment.get(key) for key in ("source", "simulated", "cuda_version")}
    return found + Counter(environment.items()) + Counter(recording.environment["devices"].values())


def _of_one_file(objects):
    """The objects of two files in one, which states its environment once."""
    return objects - Counter({("source", "native"): 1, ("simulated", True): 1, ("cuda_version", "12.4"): 1})


@pytest.mark.parametrize("layout", ["sequence", "overlay"])
@pytest.mark.parametrize("names", [("rank0", "rank1"), ("first", "second")], ids=["ranks", "of no name"])
def test_a_merged_trace_has_the_tables_and_the_environments_of_its_inputs(build, tmp_path, names, layout):
    recordings = _with_objects(build, _job(build))
    paths = _saved(recordings, tmp_path, ".gpurec", names)
    merged = collector.merge(paths, tmp_path / "all.json", layout=layout).output
    found = collector.load(merged).recording
    if layout == "sequence" and names == ("first", "second"):  # these share their tracks
        assert {table: len(getattr(found, table)) for table in OBJECT_TABLES if len(getattr(found, table))} == {
            **dict.fromkeys(("devices", "contexts", "streams"), 1),
            **dict.fromkeys(("cuda_events", "collectives", "counter_samples"), 2),
        }
        assert sorted(each.flops for each in found.details) == [10, 11]
    else:
        assert _objects(found) == _of_one_file(_sum(_objects, recordings))
    if layout == "sequence":
        assert found.clock.wall_start_ns == min(each.clock.wall_start_ns for each in recordings)
    found.save(tmp_path / "again.gpurec")
    assert _objects(collector.load(tmp_path / "again.gpurec").recording) == _objects(found)


@pytest.mark.parametrize(
    "stated",
    [
        {"device_prefix": ["/job:worker/replica:0/task:0"]},
        {"window_ns": [str(2**63 - 2), str(2**63 - 1)], "shift_ns": 2**62},
        {"window_ns": 5, "shift_ns": "x", "added_to_correlations": None, "slices": "many"},
        {"devices": [{"device_id": "a", "start_ns": []}, 7], "streams": {"context_id": 1}, "cuda_events": [{}]},
        {"collectives": [{"start_ns": 2**63 - 1, "correlation_id": 2**70}], "shift_ns": 2**62},
        {"environment": {"devices": "[1", "thread_names": '{"x": 1}'}, "json_environment": ["devices", 3], "source": 5},
    ],
)
def test_impossible_metadata_of_an_input_is_left_out(build, tmp_path, stated):
    recordings = _with_objects(build, _job(build))
    paths = _saved(recordings, tmp_path, ".gpurec", ["rank0", "rank1"])
    merged = collector.merge(paths, tmp_path / "all.json").output
    document = json.loads(merged.read_text())
    document["otherData"]["inputs"][0] |= stated
    merged.write_text(json.dumps(document))
    found = collector.load(merged).recording
    assert found.kernels.names() == [name for each in recordings for name in each.kernels.names()]
    assert "GPU of 1" in found.devices.texts("name_id")


def test_processes_and_devices_of_ranks_have_their_tables(build, tmp_path):
    """Those that a journal names, and those of devices that have a rank before their names."""
    recordings = _with_objects(build, _job(build))
    processes = [
        Step(RecordingSource(recording), process=JournalProcess(process, {}, True, ""))
        for process, recording in zip((41, 42), recordings, strict=True)
    ]
    ranks = [
        Step(RecordingSource(recording, f"/job:worker/replica:0/task:{rank}"))
        for rank, recording in enumerate(recordings)
    ]
    for steps in (processes, ranks):
        found = collector.load(collector.merge(steps, tmp_path / "all.json").output).recording
        assert _objects(found) == _of_one_file(_sum(_objects, recordings))


@pytest.mark.parametrize("suffix", [".json", ".xplane.pb"])
def test_a_merged_file_states_the_window_and_the_simulated_device(build, tmp_path, suffix):
    recordings = _job(build)
    paths = _saved(recordings, tmp_path, ".gpurec", ["rank0", "rank1"])
    found = collector.load(collector.merge(paths, tmp_path / f"all{suffix}").output).recording
    assert found.environment["simulated"] is True
    assert found.clock.window_ns == recordings[0].clock.window_ns
    paths = _saved(recordings, tmp_path, ".gpurec", ["step0", "step1"])
    overlaid = collector.merge(paths, tmp_path / f"all{suffix}", layout="overlay").output
    assert collector.load(overlaid).recording.clock.window_ns == recordings[0].clock.window_ns + 300


def test_rows_that_a_merged_profile_does_not_have_are_stated(build, tmp_path, start_ns):
    build.kernel("k", 500).raw("synchronizations", start_ns=start_ns + 900, end_ns=start_ns + 1000, sync_type=3)
    paths = _saved([build.recording()] * 2, tmp_path, ".gpurec", ["rank0", "rank1"])
    found = collector.load(collector.merge(paths, tmp_path / "all.xplane.pb").output)
    assert [loss.partition(":")[0] for loss in found.ledger.losses()] == [
        "rows without columns (synchronizations) in the file that the step was read from"
    ]


def test_a_report_is_shown_without_the_ledgers_that_it_has_in_order(build, tmp_path):
    _job(build)[0].save(tmp_path / "step0.pb")
    report = collector.merge([tmp_path / "step0.pb"], tmp_path / "one.json")
    assert report.inputs[0].ledger["kernels"] > 0
    assert list(report.inputs[0].ledger) == sorted(report.inputs[0].ledger)
    assert "ledger" not in repr(report)


def test_a_merged_trace_of_one_step_has_its_figures(build, tmp_path):
    """Also the window, by which its idle time is known, and a source that is not the same in all of them."""
    recordings = _with_objects(build, _job(build))
    recordings[0].save(tmp_path / "step0.gpurec")
    merged = collector.load(collector.merge([tmp_path / "step0.gpurec"], tmp_path / "one.json").output)
    assert merged.recording.clock.window_ns == recordings[0].clock.window_ns
    assert analysis.idle(merged).to_json()["rows"] == analysis.idle(recordings[0]).to_json()["rows"]
    (tmp_path / "rank1.pb").write_bytes(merged.step_stats.SerializeToString())  # states neither window nor source
    mixed = collector.load(
        collector.merge([tmp_path / "step0.gpurec", tmp_path / "rank1.pb"], tmp_path / "all.json").output
    ).recording
    assert mixed.environment["source"] == ""
    assert mixed.clock.window_ns < recordings[0].clock.window_ns
    assert mixed.devices.texts("name_id") == ["GPU of 0"]


@pytest.mark.parametrize("suffix", [".json", ".xplane.pb"])
def test_losses_of_the_inputs_are_those_of_the_file(build, tmp_path, suffix):
    recordings = _job(build)
    build.counters["records_dropped"] = 3
    lossy = [build.kernel("k", 10, correlation_id=1).call("cudaLaunchKernel", 1, correlation_id=2).recording()]
    paths = _saved([*recordings, *lossy], tmp_path, ".gpurec", ["rank0", "rank1", "rank2"])
    paths[1] = paths[1].with_suffix(".pb")
    recordings[1].save(paths[1])
    paths[1].write_bytes(paths[1].read_bytes()[:-10])  # this loss has no figure
    step = collector.load(collector.merge(paths, tmp_path / f"all{suffix}").output)
    stated = [collector.load(path).ledger for path in paths]
    assert stated[1].losses()
    for ledger in (step.ledger, step.recording.ledger):
        of_input = "rank 1: " if suffix == ".xplane.pb" else ""
        expected = [
            *stated[2].losses(),
            *(loss.replace("unreadable", f"{of_input}unreadable") for loss in stated[1].losses()),
        ]
        assert sorted(ledger.losses()) == sorted(expected)
        assert ledger.launches_seen == sum(each.launches_seen for each in stated)
    foreign = tmp_path / "rank3.pb"
    foreign.write_bytes(collector.load(paths[0]).step_stats.SerializeToString())
    step = collector.load(collector.merge([*paths, foreign], tmp_path / f"all{suffix}").output)
    assert set(stated[2].losses()) <= set(step.recording.ledger.losses())
    assert step.recording.ledger.launches_seen == sum(each.launches_seen for each in [*stated, stated[0]])


@pytest.mark.parametrize("suffix", [".json", ".xplane.pb"])
def test_what_ranks_left_out_is_missing_from_the_earliest_time_on(build, tmp_path, suffix):
    """The second rank began 3,000 ns later; its 500 ns are 3,500 ns of the job's time. Both have a budget of 1 %."""
    ranks = []
    for delay_ns, since_ns in ((0, 9000), (3000, 500)):
        made = type(build)()
        made.clock = {name: time + (name != "uncertainty_ns") * delay_ns for name, time in made.clock.items()}
        made.counters = {"budget_millionths": 10_000, "shed_memsets_ns": since_ns, "shed_memcpys_ns": since_ns + 1000}
        ranks.append(made.kernel("k", 6000 + delay_ns).recording())
    paths = _saved(ranks, tmp_path, ".gpurec", ["rank0", "rank1"])
    expected = ["from 3.5 µs on without memsets (budget 1%)", "from 4.5 µs on without copies (budget 1%)"]
    step = collector.load(collector.merge(paths, tmp_path / f"all{suffix}").output)
    assert step.ledger.losses() == step.recording.ledger.losses() == expected
    clock, of_job = step.recording.clock, [recording.clock for recording in ranks]
    assert (clock.wall_start_ns, clock.wall_stop_ns) == (of_job[0].wall_start_ns, of_job[1].wall_stop_ns)
    foreign = tmp_path / "rank2.pb"  # states no ledger
    foreign.write_bytes(collector.load(paths[0]).step_stats.SerializeToString())
    step = collector.load(collector.merge([*paths, foreign], tmp_path / f"all{suffix}").output)
    assert [loss.partition(" on ")[2] for loss in step.recording.ledger.losses()[:2]] == [
        loss.partition(" on ")[2] for loss in expected
    ]


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".xplane.pb"])
@pytest.mark.parametrize("simulated", [(False, False), (False, True)], ids=["of cards", "one simulated"])
def test_a_file_with_made_up_times_says_so(build, tmp_path, suffix, simulated):
    recordings = []
    for is_simulated in simulated:
        made = type(build)()
        made.environment["simulated"] = is_simulated
        recordings.append(made.kernel("k", 1000).recording())
    paths = _saved(recordings, tmp_path, ".gpurec", ["rank0", "rank1"])
    merged = collector.load(collector.merge(paths, tmp_path / f"all{suffix}").output)
    assert bool(merged.recording.environment.get("simulated")) == any(simulated)
    assert merged.run_metadata.provenance.simulated == any(simulated)
    assert ("simulated GPU" in merged.summary()) == any(simulated)


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


def test_columns_and_the_ledger_of_a_merged_trace_make_no_nodes(build, tmp_path, monkeypatch):
    """Nodes take most of the time and memory of a large trace, and neither columns nor the ledger need them."""
    paths = _saved(_job(build), tmp_path, ".pb", ["rank0", "rank1"])
    collector.merge(paths, tmp_path / "all.json")
    expected = collector.load(tmp_path / "all.json")
    provenance, ledger = expected.run_metadata.provenance, expected.recording.ledger
    nodes, make_nodes = [], CollectorTrace._step_stats
    monkeypatch.setattr(
        CollectorTrace, "_step_stats", lambda trace, rows: nodes.append(len(rows)) or make_nodes(trace, rows)
    )
    step = collector.load(tmp_path / "all.json")
    assert step.ledger == expected.ledger
    assert step.recording.ledger == ledger
    assert step.provenance == step.provenance == provenance
    assert len(step.recording.kernels) == 6
    assert sum(nodes) == 2  # the marks of the steps
