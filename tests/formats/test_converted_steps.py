"""A step that is converted, once or twice: the file has its figures, or states what it does not have."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

import collector
from collector.analysis.questions import QUESTIONS
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource
from collector.recording.annotation_details import Details
from collector.recording.recording import Recording
from collector.recording.schema import SCHEMA
from collector.recording.text_columns import text_column
from collector.stepstats.object_tables import OBJECT_TABLES
from collector.stepstats.typed_columns import NODE_COLUMNS

SUFFIXES = ("gpurec", "pb", "json", "xplane.pb")
WHOLE = ("gpurec", "pb", "json")
"""The formats with a place for every column that questions read."""
ASKED = [
    (name, by) for name, question in QUESTIONS.items() if not question.of_ranks for by in question.questions
]  # fmt: skip


UNKNOWN_APART = (
    ", or they are among the 1 row set apart because of its times, of which only the number is known: see the ledger"
)
"""The end of notes on empty answers about drawn traces, which do not have the rows that were set apart."""


@pytest.fixture
def step(build, tmp_path):
    """A step that begins before its first activity, ends after its last one, and lost records."""
    begin_ns = build.clock["cupti_start_ns"]
    build.launch(1, 20_000).kernel("gemm", 30_000, 9_000, correlation_id=1).annotation("layer", 19_000, 2_000, 1, 1)
    build.launch(2, 40_000).memcpy(50_000, 2_000, correlation_id=2, copy_kind=10, src_context_id=1, dst_device_id=1)
    build.call("cudaStreamSynchronize_v3020", 60_000, 5_000, correlation_id=3, domain=2)
    wait = {"sync_type": 3, "stream_id": 7, "context_id": 1, "correlation_id": 3}
    build.raw("synchronizations", start_ns=begin_ns + 60_100, end_ns=begin_ns + 64_000, **wait)
    pool = {"pool_type": 1, "pool_address": 0x7E00, "pool_bytes": 1 << 25, "pool_used_bytes": 1 << 20}
    for number, operation in enumerate((1, 2)):
        build.call("cudaMalloc_v3020", 69_900 + 1000 * number, 500, correlation_id=4 + number, domain=2)
        place = {"address": 0x7F00, "num_bytes": 4096, "memory_kind": 3, "operation": operation, "context_id": 1}
        place["correlation_id"] = 4 + number
        build.raw("memory_operations", start_ns=begin_ns + 70_000 + 1000 * number, **place, **pool)
    build.annotation("weights", 69_000, 1_500, 2, 4).annotation("wait", 59_000, 9_000, 3, 7)
    build.call("cudaEventSynchronize_v3020", 66_000, 500, correlation_id=7, domain=2)
    wait = {"sync_type": 1, "stream_id": 2**32 - 1, "event_id": 2, "context_id": 1, "correlation_id": 7}
    build.raw("synchronizations", start_ns=begin_ns + 66_050, end_ns=begin_ns + 66_400, **wait)
    build.call("cudaGraphLaunch_v10000", 79_000, 500, correlation_id=8, domain=2).annotation(
        "replay", 78_500, 1_500, 4, 8
    )
    graph = {"graph_id": 4, "context_id": 1, "correlation_id": 8}
    build.raw("graph_launches", start_ns=begin_ns + 80_000, end_ns=begin_ns + 81_000, **graph)
    build.memset(90_000, 500, correlation_id=3, memory_kind=2, graph_id=5, graph_node_id=1 << 40)
    build.raw("devices", device_id=0, name_id=build.text("H100"))
    build.kernel("before the step", -500)
    build.counters |= {"records_dropped": 3, "decode_cpu_ns": 5_000}
    path = tmp_path / "step.gpurec"
    build.recording().save(path)
    return collector.load(path)


def converted(step, tmp_path, *suffixes):
    for number, suffix in enumerate(suffixes):
        path = tmp_path / f"{number}.{suffix}"
        step.save(path)
        step = collector.load(path)
    return step


def told(step):
    answers = {(name, by): QUESTIONS[name].answer(step, by) for name, by in ASKED}
    return {
        key: {
            **answer.to_json(),
            "windows": [each.length_ns for each in answer.windows],
            "notes": [note.replace(UNKNOWN_APART, "") for note in answer.notes],
        }
        for key, answer in answers.items()
        if key != ("ledger", "table")  # the rows that were set apart are not drawn
    }


@pytest.mark.medium
@pytest.mark.parametrize("suffixes", [(first, *second) for first in WHOLE for second in [(), *((s,) for s in WHOLE)]])
def test_every_question_has_one_answer_in_all_files(step, tmp_path, suffixes):
    found = converted(step, tmp_path, *suffixes)
    assert told(found) == told(step)
    (note,) = QUESTIONS["code_loading"].ask(found).notes
    assert (UNKNOWN_APART in note) == ("json" in suffixes)


@pytest.mark.parametrize(
    ("suffixes", "calls"),
    [
        *(((first, *second), calls) for first in WHOLE for second in [(), ("json",)] for calls in (True, False)),
        (("xplane.pb",), True),  # which states the op of GPU work alone: that of anything else is around its call
    ],
)
def test_a_call_that_launches_no_work_has_its_annotation(step, build, tmp_path, suffixes, calls):
    """And with it what it did: memory operations, waits, launches of whole graphs."""
    build.annotation("weights", 69_000, 1_900, 5)
    if not calls:
        build.rows["api_calls"] = []
    build.recording().save(tmp_path / "step.gpurec")
    step = collector.load(tmp_path / "step.gpurec")
    found = converted(step, tmp_path, *suffixes).recording
    for table in ("api_calls", "memory_operations", "synchronizations", "graph_launches", "kernels", "memcpys"):
        expected = step.recording.annotations_of(getattr(step.recording, table))
        assert found.annotations_of(getattr(found, table)) == expected
        assert any(expected) or table in ("api_calls", "memcpys")
    assert len(found.invalid.annotations) == len(step.recording.invalid.annotations)


def test_calls_of_merged_steps_have_their_annotations(step, tmp_path):
    """The steps of one process have correlation ids of their own."""
    paths = [tmp_path / f"{number}.gpurec" for number in (1, 2)]
    for path in paths:
        step.save(path)
    collector.merge(paths, tmp_path / "merged.json", layout="overlay")
    found = collector.load(tmp_path / "merged.json").recording
    assert sorted(found.annotations_of(found.memory_operations)) == ["", "", "weights", "weights"]
    assert sorted(found.annotations_of(found.graph_launches)) == ["replay", "replay"]


PREFIX = "/job:worker/replica:0/task:3"


@pytest.mark.medium
@pytest.mark.parametrize("then", ["", *WHOLE])
@pytest.mark.parametrize("first", WHOLE)
def test_a_step_of_a_rank_is_its_recording_in_all_files(step, tmp_path, first, then):
    ranked = Step(RecordingSource(step.recording, PREFIX))
    found = converted(ranked, tmp_path, *filter(None, (first, then)))
    assert told(found) == told(step)
    assert found.common_prefix == PREFIX
    assert all(device.device.startswith(PREFIX) for device in found.step_stats.dev_stats)


@pytest.mark.parametrize("layout", ["sequence", "overlay"])
def test_a_merged_file_of_one_rank_has_its_rows(step, tmp_path, layout):
    Step(RecordingSource(step.recording, PREFIX)).save(tmp_path / "one.gpurec")
    collector.merge([tmp_path / "one.gpurec"], tmp_path / "merged.json", layout=layout)
    found = collector.load(tmp_path / "merged.json").recording
    assert {name: len(getattr(found, name)) for name in SCHEMA} == {
        name: len(getattr(step.recording, name)) for name in SCHEMA
    }


@pytest.mark.parametrize("suffixes", [("json",), ("json.gz", "json")])
def test_a_merged_trace_that_is_drawn_again_has_the_rows_of_its_processes(step, tmp_path, suffixes):
    for rank in range(2):
        step.save(tmp_path / f"rank{rank}.gpurec")
    collector.merge([tmp_path / f"rank{rank}.gpurec" for rank in range(2)], tmp_path / "merged.json")
    merged = collector.load(tmp_path / "merged.json")
    found = converted(merged, tmp_path, *suffixes)
    assert found.ledger == merged.ledger
    assert sorted(found.device_names()) == sorted(merged.device_names())
    for table in SCHEMA.keys() - {*OBJECT_TABLES, "external_correlations"}:  # those are of one process alone
        for column in SCHEMA[table]:
            own, expected = (values_of(each.recording, table, column) for each in (found, merged))
            assert own == expected, (table, column)


def values_of(recording: Recording, table: str, column: str) -> list[object]:
    """The values of a column, or the texts that it refers to."""
    values = getattr(getattr(recording, table), column).tolist()
    return [recording.strings[value] for value in values] if text_column(column) else values


NO_NAMES = [5, 1.5, True, "text", "[", ["GPU"], {"x": "GPU"}, {"0": 5}, {"9" * 30: "GPU"}, None]


@pytest.mark.medium
@pytest.mark.parametrize("suffix", ["gpurec", "pb", "json"])
@pytest.mark.parametrize("stated", NO_NAMES, ids=str)
def test_a_file_whose_names_of_devices_and_threads_are_none_is_read_without_them(build, tmp_path, suffix, stated):
    build.launch(1, 1_000).kernel("gemm", 2_000, 9_000, correlation_id=1)
    whole = build.recording()
    for key in ("devices", "thread_names", "thread_devices"):
        path = tmp_path / f"{key}.{suffix}"
        write_stating(path, whole, key, stated)
        found = collector.load(path)
        names = found.recording.environment.get(key, {})
        assert all(type(number) is int and type(name) is str for number, name in names.items())
        assert names == {} or (suffix, key) == ("json", "thread_names")  # there the rows of threads have names
        for other in SUFFIXES:
            assert len(converted(found, tmp_path, other).kernels) == 1


def write_stating(path: Path, recording: Recording, key: str, stated: object) -> None:
    """Write a file whose environment states something that no source of ours does."""
    if path.suffix == ".gpurec":
        Step(RecordingSource(recording.restated(environment={**recording.environment, key: stated}))).save(path)
        return
    step = Step(RecordingSource(recording))
    if path.suffix == ".pb":
        about = step.run_metadata.provenance
        about.environment[key] = json.dumps(stated)
        about.json_environment.append(key)
        step.save(path)
        return
    step.save(path)
    trace = json.loads(path.read_text())
    trace["otherData"]["environment"][key] = json.dumps(stated)
    trace["otherData"]["json_environment"].append(key)
    path.write_text(json.dumps(trace))


@pytest.mark.parametrize("suffix", ["pb", "pbtxt"])
def test_a_message_of_several_processes_states_the_rows_that_it_does_not_have(step, tmp_path, suffix):
    """Its nodes have their columns; the rows of objects are in the part of a recording that no merged step has."""
    paths = [tmp_path / f"rank{rank}.gpurec" for rank in range(2)]
    for path in paths:
        step.save(path)
    collector.merge(paths, tmp_path / "merged.json")
    merged = collector.load(tmp_path / "merged.json").recording
    found = converted(collector.load(tmp_path / "merged.json"), tmp_path, suffix).recording
    for table in NODE_COLUMNS:
        rows, expected = getattr(found, table), getattr(merged, table)
        assert len(rows) == len(expected)
        if table in ("kernels", "annotations"):
            assert sorted(rows.recorded_names()) == sorted(expected.recorded_names())
    (loss,) = (line for line in found.ledger.losses() if line.startswith("rows without columns"))
    assert loss.startswith("rows without columns (devices)")
    assert loss.endswith(f": {2 * len(step.recording.devices)}")
    assert not any("without columns" in line for line in merged.ledger.losses())


OF_PROFILES = [name for name, question in QUESTIONS.items() if not question.of_ranks and name != "ledger"]
"""Questions about what a profile has."""


@pytest.mark.medium
@pytest.mark.parametrize("then", [(), ("json",), ("pb",), ("gpurec",), ("xplane.pb",)])
def test_a_profile_has_the_window_and_the_ledger_and_states_the_rows_that_it_does_not_have(step, tmp_path, then):
    found = converted(step, tmp_path, "xplane.pb", *then)
    missing = [loss for loss in found.ledger.losses() if loss.startswith("rows without columns")]
    assert len(missing) == 1
    assert missing[0].startswith("rows without columns (devices)")
    assert set(step.ledger.losses()) < set(found.ledger.losses())
    assert len(found.ledger.losses()) == len(step.ledger.losses()) + 1
    assert found.recording.environment["simulated"] is True
    assert found.ledger.launches_seen == step.ledger.launches_seen
    for name in OF_PROFILES:
        expected, answer = QUESTIONS[name].ask(step), QUESTIONS[name].ask(found)
        assert json.dumps([dict(row) for row in answer]) == json.dumps([dict(row) for row in expected]), name
        assert answer.totals == expected.totals
        assert set(answer.losses) == {*expected.losses, *missing}
    held = {table for table in SCHEMA if len(getattr(step.recording, table)) == len(getattr(found.recording, table))}
    assert held >= {"kernels", "memcpys", "api_calls", "synchronizations", "memory_operations", "graph_launches"}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_profile_that_has_all_rows_is_complete(build, tmp_path, suffix):
    build.launch(1, 20_000).kernel("gemm", 30_000, 9_000, correlation_id=1).annotation("layer", 19_000, 2_000, 1, 1)
    build.recording().save(tmp_path / f"step.{suffix}")
    assert collector.load(tmp_path / f"step.{suffix}").ledger.losses() == []


@pytest.mark.parametrize("then", ["", *SUFFIXES, "pickle", "merged.json"])
@pytest.mark.parametrize("suffix", ["json", "xplane.pb"])
def test_an_op_without_a_row_is_a_name_alone(build, tmp_path, suffix, then):
    """Nothing tells when it was entered: it is neither an annotation of the step nor a slice, and it is not a loss."""
    build.annotation("before", -500, 900, 1, 1).annotation("layer", 19_000, 2_000, 2, 2)
    for number in (1, 2):
        build.launch(number, 10_000 * number).kernel("gemm", 40_000 * number, 9_000, correlation_id=number)
    build.recording().save(tmp_path / f"rank0.{suffix}")
    step = collector.load(tmp_path / f"rank0.{suffix}")
    if then == "merged.json":
        step.save(tmp_path / "rank1.gpurec")
        collector.merge([tmp_path / f"rank0.{suffix}", tmp_path / "rank1.gpurec"], tmp_path / "merged.json")
        step = collector.load(tmp_path / "merged.json")
    recording = pickle.loads(pickle.dumps(step.recording)) if then == "pickle" else step.recording
    if then in SUFFIXES:
        recording = converted(step, tmp_path, then).recording
    ranks = 2 if then == "merged.json" else 1
    assert recording.annotations_of(recording.kernels) == ["before", "layer"] * ranks
    assert recording.annotations.names() == ["layer"] * ranks
    assert (recording.ledger.early, recording.ledger.invalid_timestamps) == (ranks, 0)
    ops = {row["path"]: (row["runs"], row["host_ns"]) for row in collector.analysis.ops(recording)}
    assert ops == {"before": (0, 0), "layer": (ranks, ranks * 2_000)}
    document = json.loads(collector.chrome_trace(recording))
    assert [each["name"] for each in document["traceEvents"] if each.get("cat") == "op"] == ["layer"] * ranks


@pytest.mark.parametrize("then", ["", *SUFFIXES])
@pytest.mark.parametrize("suffix", [*SUFFIXES, "merged.json"])
def test_nodes_of_one_graph_have_the_op_of_their_own_capture(build, tmp_path, suffix, then):
    """They share the correlation id of the launch. One capture was before the step, and one node has none."""
    build.annotation("capture/conv", 100, 500, 11).annotation("capture/relu", -700, 200, 12)
    build.annotation("replay", 2900, 1000, 13, 1)
    build.call("cudaGraphLaunch_v10000", 3000, 100, correlation_id=1)
    for number, captured in enumerate((11, 12, 0)):
        node = {"graph_id": 3, "graph_node_id": number + 1, "captured_external_id": captured}
        build.kernel("gemm", 5000 + 200 * number, 100, correlation_id=1, **node)
    build.memcpy(6000, 100, correlation_id=1, graph_id=3, graph_node_id=4, captured_external_id=11)
    build.kernel("alone", 7000, 100, graph_id=4, graph_node_id=1, captured_external_id=12)
    recording = build.recording()
    recording.save(tmp_path / "rank0.gpurec")
    step = collector.load(tmp_path / "rank0.gpurec")
    if suffix == "merged.json":
        collector.merge([tmp_path / "rank0.gpurec"], tmp_path / "merged.json")
        step = collector.load(tmp_path / "merged.json")
    else:
        step = converted(step, tmp_path, suffix)
    found = converted(step, tmp_path, *filter(None, [then])).recording
    conv, relu = ("<captured_at>/capture/conv", "<captured_at>/capture/relu")
    assert found.annotations_of(found.kernels) == [f"replay/{conv}", f"replay/{relu}", "replay", relu]
    assert found.annotations_of(found.memcpys) == [f"replay/{conv}"]
    assert found.ledger.external_correlations == recording.ledger.external_correlations == 1
    assert collector.analysis.ops(found)["self_ns"].tolist() == collector.analysis.ops(recording)["self_ns"].tolist()


@pytest.mark.parametrize("suffixes", [(suffix,) for suffix in WHOLE] + [("json", "pb"), ("pb", "json")])
def test_an_object_that_is_not_there_is_not_the_first_one(build, tmp_path, suffixes):
    """Events and streams have numbers from 0 on, and a range that is still open has no thread that ended it."""
    none = 2**32 - 1
    for at, (sync_type, stream, event) in enumerate([(4, none, none), (3, 7, none), (1, none, 5), (2, 0, 0)]):
        place = {"sync_type": sync_type, "stream_id": stream, "event_id": event, "context_id": 1}
        build._add("synchronizations", 1000 * at, 500, place)
    for at, end_thread in enumerate([0, 11, 12]):
        build._add("nvtx_ranges", 1000 * at, 500, {"name": "data", "thread_id": 11, "end_thread_id": end_thread})
    build.raw("devices", device_id=0, name_id=build.text("H100"), gpu_instance_id=none, compute_instance_id=0)
    build.kernel("gemm", 7000)
    build.recording().save(tmp_path / "step.gpurec")
    found = converted(collector.load(tmp_path / "step.gpurec"), tmp_path, *suffixes).recording
    waits = [(row.sync_type, row.stream_id, row.event_id) for row in found.synchronizations]
    assert sorted(waits) == [(1, none, 5), (2, 0, 0), (3, 7, none), (4, none, none)]
    assert found.nvtx_ranges["end_thread_id"].tolist() == [0, 11, 12]
    assert (found.devices["gpu_instance_id"][0], found.devices["compute_instance_id"][0]) == (none, 0)


@pytest.mark.parametrize(
    "suffixes", [(first, *second) for first in [*WHOLE, "xplane.pb"] for second in [(), ("json",)]]
)
def test_an_annotation_has_the_op_that_was_stated_alone(build, tmp_path, suffixes):
    """The label of its slice has an op in any case, as TensorFlow's tools take it from there."""
    given = {
        "net/relu": Details(),
        "net/conv": Details(op="Conv2D", inputs=("net/relu",)),
        "net/pool": Details(flops=7),
        "net/": Details(),
        "relu": Details(op="Relu"),
    }
    for number, (path, details) in enumerate(given.items(), start=1):
        build.annotation(path, 1000 * number, 500, number)
        build.rows["annotations"][-1]["details_id"] = number if details != Details() else 0
    capture = build.kernel("gemm", 7000).capture()
    capture["details"] = list(given.values())
    Recording.from_capture(capture).save(tmp_path / "step.gpurec")
    found = converted(collector.load(tmp_path / "step.gpurec"), tmp_path, *suffixes).recording
    of_rows = [found.details[number - 1] if number else Details() for number in found.annotations.details_id.tolist()]
    assert dict(zip(found.annotations.names(), of_rows, strict=True)) == given


def starts_of_annotations(recording):
    """Of each kernel the time at which its annotation began, as ns from the window's begin."""
    links = dict(
        zip(
            recording.external_correlations["correlation_id"],
            recording.external_correlations["external_id"],
            strict=True,
        )
    )
    annotations = recording.annotations
    starts = dict(zip(annotations["external_id"], annotations.start_ns - recording.clock.cupti_start_ns, strict=True))
    return [int(starts.get(links.get(each), -1)) for each in recording.kernels["correlation_id"]]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_work_belongs_to_the_annotation_that_was_open_when_it_was_launched(build, tmp_path, suffix):
    """Several annotations of one path are open at once, on other threads and around each other."""
    path = "ns::layer"
    build.annotation(path, 1000, 8000, 1, 1, 2, 5).annotation(path, 3000, 1000, 2, 3).annotation(path, 1500, 300, 3, 4)
    build.rows["annotations"][1]["thread_id"] = 12
    build.annotation("other", 3500, 1000, 4, 6)
    for correlation, launched, thread in (
        (4, 1600, 11),
        (1, 2000, 11),
        (3, 3200, 12),
        (6, 3600, 13),
        (2, 6000, 11),
        (5, 6500, 13),
    ):
        build.launch(correlation, launched, thread_id=thread)
        build.kernel("gemm", 10_000 + launched, 100, correlation_id=correlation)
    build.recording().save(tmp_path / f"step.{suffix}")
    found = collector.load(tmp_path / f"step.{suffix}").recording
    assert (
        starts_of_annotations(found) == starts_of_annotations(build.recording()) == [1500, 1000, 3000, 3500, 1000, 1000]
    )
    assert len(found.invalid.annotations) == 0


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_work_without_a_call_belongs_to_the_last_annotation_of_its_name(build, tmp_path, suffix):
    """Its launch came before it, at a time that is not known."""
    for number in (1, 2):
        build.annotation("layer", 1000 * number, 300, number, number).annotation("other", 1000 * number + 400, 300, 9)
        build.kernel("gemm", 1000 * number + 500, 100, correlation_id=number)
    build.recording().save(tmp_path / f"step.{suffix}")
    found = collector.load(tmp_path / f"step.{suffix}").recording
    assert starts_of_annotations(found) == starts_of_annotations(build.recording()) == [1000, 2000]
    assert len(found.invalid.annotations) == 0


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_op_may_have_a_number_in_its_name(build, tmp_path, suffix):
    """As the steps of PyTorch's profiler do."""
    build.annotation("ProfilerStep#3", 100, 5000, 11, 1).annotation("ProfilerStep#2", -900, 100, 12, 2)
    for number in (1, 2):
        build.launch(number, 500 * number).kernel("gemm", 5000 + 200 * number, 100, correlation_id=number)
    build.recording().save(tmp_path / f"step.{suffix}")
    found = collector.load(tmp_path / f"step.{suffix}").recording
    assert found.annotations_of(found.kernels) == ["ProfilerStep#3", "ProfilerStep#2"]


@pytest.mark.parametrize("suffixes", [("json",), ("pb", "json"), ("gpurec", "json"), ("pb",)])
def test_objects_that_are_set_apart_are_no_objects_of_a_drawn_step(build, start_ns, tmp_path, suffixes):
    build.kernel("gemm", 1000, 100).raw("counter_samples", start_ns=start_ns - 900, sample=1)
    build.raw("counter_samples", start_ns=start_ns + 900, sample=2).raw("counter_samples", start_ns=0, sample=3)
    build.recording().save(tmp_path / "step.gpurec")
    found = converted(collector.load(tmp_path / "step.gpurec"), tmp_path, *suffixes)
    assert found.recording.counter_samples["sample"].tolist() == [2]
    assert found.ledger.counter_samples == 1
    assert (found.ledger.early, found.ledger.invalid_timestamps) == (1, 1)


def test_impossible_figures_of_a_device_are_written_into_a_profile(build, tmp_path):
    build.kernel("gemm", 1000, 100).raw(
        "devices", device_id=0, name_id=build.text("H100"), memory_kilobytes_per_s=2**64 - 1
    )
    build.recording().save(tmp_path / "step.xplane.pb")
    assert collector.load(tmp_path / "step.xplane.pb").kernels.names() == ["gemm"]


@pytest.mark.parametrize("suffix", ["json", "xplane.pb"])
def test_a_part_that_is_drawn_has_its_own_window(step, tmp_path, suffix):
    part = collector.analysis.between(step, 25_000, 45_000)
    assert converted(part, tmp_path, suffix).recording.clock.window_ns == 20_000
    if suffix == "json":
        collector.chrome_trace(step, tmp_path / "part.json", window_ns=(25_000, 45_000))
        found = collector.load(tmp_path / "part.json")
        assert found.recording.clock.window_ns == 20_000
        assert collector.analysis.devices(found).totals["busy_ns"] == 9_000
        assert any("filtered" in loss for loss in found.ledger.losses())


@pytest.mark.parametrize(
    "stated", [["9", "1"], ["1", "99"], ["x", "9"], [1, 2], ["5"], "5", None, ["9" * 30, "9" * 31]]
)
def test_an_impossible_window_in_a_trace_is_that_of_its_slices(step, tmp_path, stated):
    path = tmp_path / "step.json"
    step.save(path)
    document = json.loads(path.read_text())
    assert document["otherData"]["window_ns"] == [str(step.recording.clock.wall_start_ns + at) for at in (0, 10**6)]
    document["otherData"]["window_ns"] = stated
    path.write_text(json.dumps(document))
    assert collector.load(path).recording.clock.window_ns == 71_500
