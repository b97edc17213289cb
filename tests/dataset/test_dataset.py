"""Steps that are written into a dataset give the same answers when they are read, whatever happens meanwhile."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys

import pytest

from collector import analysis
from collector.analysis.questions import QUESTIONS
from collector.errors import InvalidFileError, MissingDependencyError, OutputError
from collector.recording.cupti_enums import ALLOCATION, RELEASE

pytest.importorskip("pyarrow")

from collector.dataset import Dataset, DatasetWriter, dataset_writer
from collector.dataset.dataset_folder import Part, link_exclusively, path_of, tables
from collector.dataset.dataset_tables import RECORDED_TABLES
from collector.dataset.trace_events import drawn_events
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource


def answers(step):
    """Every answer about one step."""
    asked = [(name, by) for name, each in QUESTIONS.items() if not each.of_ranks for by in each.questions]
    return {(name, by): QUESTIONS[name].answer(step, by).to_json() for name, by in asked}


def write(folder, recording, **options):
    with DatasetWriter(folder, **{"run": "a", **options}) as writer:
        writer.write(recording)
    return Dataset(folder)


@pytest.mark.medium
def test_a_step_gives_the_same_answers_after_it_was_stored(example, tmp_path):
    (step,) = write(tmp_path, example)
    assert answers(step) == answers(example)


@pytest.mark.slow
def test_recorded_traces_give_the_same_answers_after_they_were_stored(recorded_traces, tmp_path):
    with DatasetWriter(tmp_path, run="a") as writer:
        for trace in recorded_traces:
            writer.write(trace.recording)
    for trace, step in zip(recorded_traces, Dataset(tmp_path), strict=True):
        assert answers(step) == answers(trace.recording)


@pytest.mark.medium
def test_a_part_in_which_a_device_was_idle_gives_the_same_answers_after_it_was_stored(build, tmp_path):
    build.kernel("gemm", 1_000).kernel("gemm", 50_000, device_id=1)
    part = analysis.between(build.recording(), 500, 9_000)
    (step,) = write(tmp_path, part)
    assert [row["device_id"] for row in analysis.devices(step)] == [0, 1]
    assert answers(step) == answers(part)


@pytest.mark.medium
def test_rows_that_are_set_apart_are_counted_for_each_table_though_they_are_not_stored(build, tmp_path):
    build.environment["source"] = "native"
    build.kernel("gemm", 999_999, 100).memset(-50, 10).annotation("late", 999_999, 100, 1).annotation("ran", -9, 20, 2)
    build.call("cuLaunchKernel", 5, -9)
    recording = build.recording()
    (step,) = write(tmp_path / "runs", recording)
    assert answers(step) == answers(recording)
    assert analysis.kernels(step).notes == ("The recording sets 1 kernel apart because of its times: see the ledger.",)
    (again,) = write(tmp_path / "again", step.recording)
    assert answers(again) == answers(recording)


@pytest.mark.medium
def test_annotations_and_their_details_come_back(build, tmp_path):
    build.annotation("step", -50, 2000, 1, 3).annotation("step/conv", 10, 200, 2, 4)
    build.launch(3, 5).launch(4, 20)
    build.kernel("k", 30, correlation_id=3).kernel("k", 1030, correlation_id=4)
    (step,) = write(tmp_path, build.recording())
    assert step.kernels.annotations() == ["step", "step/conv"]
    rows = Dataset(tmp_path).table("annotations")
    assert rows["path"].to_pylist() == ["step/conv", "step"]
    assert rows["is_in_step"].to_pylist() == [True, False]  # the other began before the step
    assert rows["parent_id"].to_pylist() == [1, None]


@pytest.mark.medium
def test_nodes_of_graphs_and_names_alone_come_back(build, start_ns, tmp_path):
    build.annotation("capture/conv", 100, 500, 11).annotation("before", -900, 100, 12).annotation("too", -700, 90, 14)
    build.annotation("replay", 2900, 1000, 13, 1).call("cudaGraphLaunch_v10000", 3000, 100, correlation_id=1)
    for number, captured in enumerate((11, 12, 14, 0)):
        node = {"graph_id": 3, "graph_node_id": number + 1, "captured_external_id": captured}
        build.kernel("gemm", 5000 + 200 * number, 100, correlation_id=1, **node)
    recording = build.recording()
    for place, each in enumerate((recording, recording.between(start_ns + 4000))):
        (step,) = write(tmp_path / str(place), each)
        assert step.kernels.annotations() == each.annotations_of(each.kernels)
        assert step.kernels.annotations()[:2] == ["replay/<captured_at>/capture/conv", "replay/<captured_at>/before"]
        assert answers(step) == answers(each)
        assert set(Dataset(tmp_path / str(place)).table("annotations")["parent_id"].to_pylist()) == {None}


@pytest.mark.medium
def test_a_part_that_has_all_rows_comes_back_as_a_part(build, start_ns, tmp_path):
    """The cost of tracing is that of the whole recording, and no part of the part's window."""
    build.counters["decode_cpu_ns"] = 700
    part = build.kernel("gemm", 10).recording().between(start_ns)
    (step,) = write(tmp_path, part)
    assert step.recording.is_part
    assert answers(step) == answers(part)


@pytest.mark.medium
def test_a_part_of_a_step_counts_the_copies_between_gpus_that_were_not_recorded(build, start_ns, tmp_path):
    build.environment = {"peer_copies": False}
    build.call("cudaMemcpyPeerAsync_v4000", 10, correlation_id=4).call(
        "cudaMemcpyPeerAsync_v4000", 900, correlation_id=5
    )
    (step,) = write(tmp_path, build.recording())
    assert step.ledger.peer_copies_unrecorded == 2
    assert step.recording.between(start_ns + 800, start_ns + 1000).ledger.peer_copies_unrecorded == 1


@pytest.mark.medium
def test_ids_that_do_not_fit_a_signed_number_and_odd_names_come_back(build, tmp_path):
    odd = 'a "quoted"\nname\0 with \u2028 and \U0001f600'
    build.kernel(odd, 0, correlation_id=7, graph_id=2**32 - 1, graph_node_id=2**63 + 5)
    (step,) = write(tmp_path, build.recording())
    assert step.kernels.graph_node_id.tolist() == [2**63 + 5]
    assert step.kernels.recorded_names() == [odd]
    assert Dataset(tmp_path).table("kernels")["graph_node_id"].to_pylist() == [5 - 2**63]


@pytest.mark.slow
def test_what_a_file_says_beyond_the_columns_is_kept(recorded_traces, tmp_path):
    recording = recorded_traces[2].recording
    with DatasetWriter(tmp_path, run="a") as writer:
        writer.write(recording)
    dataset = Dataset(tmp_path)
    said = {
        table: {name: column.value(int(column.rows[0])) for name, column in columns.items() if len(column.rows)}
        for table, columns in recording.arguments.tables.items()
    }
    (step,) = dataset
    kept = {
        table: {name: column.value(int(column.rows[0])) for name, column in columns.items()}
        for table, columns in step.recording.arguments.tables.items()
    }
    assert kept == {table: values for table, values in said.items() if values}
    rows = dataset.table("args")
    assert set(rows["table"].to_pylist()) <= {table.name for table in RECORDED_TABLES}


def test_kernels_say_how_full_they_make_the_device_and_whether_they_use_tensor_cores(build, tmp_path):
    build.raw("devices", compute_major=8, num_multiprocessors=108)
    shape = {"grid_x": 1, "grid_y": 1, "grid_z": 1, "block_x": 256, "block_y": 1, "block_z": 1}
    build.kernel("sm80_xmma_gemm", 0, registers_per_thread=64, **shape).kernel("relu", 10, block_x=0).kernel("gemm", 20)
    rows = write(tmp_path, build.recording()).table("kernels")
    assert rows["occupancy_percent"].to_pylist() == [50, None, 50]
    assert rows["uses_tensor_cores"].to_pylist() == ["yes", "no evidence", "unknown"]


def test_the_memory_that_was_held_is_a_counter(build, tmp_path):
    first = {"memory_kind": 3, "address": 64, "num_bytes": 100}
    second = {**first, "address": 128, "num_bytes": 40}
    for at, operation, row in (
        (10, ALLOCATION, first),
        (20, ALLOCATION, second),
        (20, RELEASE, first),
        (30, RELEASE, second),
    ):
        build.raw("memory_operations", start_ns=build.clock["cupti_start_ns"] + at, operation=operation, **row)
    dataset = write(tmp_path, build.recording())
    rows = dataset.table("counters").to_pylist()
    start_ns = dataset.table("steps")["start_ns"].to_pylist()[0]
    assert [(row["at_ns"] - start_ns, row["value"]) for row in rows] == [(10, 100), (20, 40), (30, 0)]
    assert {(row["name"], row["unit"], row["device_id"]) for row in rows} == {("memory Device", "bytes", 0)}


@pytest.mark.medium
def test_a_dataset_of_an_earlier_program_with_fewer_tables_is_read_and_extended(example, tmp_path):
    import pyarrow.parquet

    (path,) = write(tmp_path, example).files.of("kernels")
    rows = pyarrow.parquet.read_table(path, partitioning=None)
    may_be_null = pyarrow.schema([field.with_nullable(True) for field in rows.schema])
    pyarrow.parquet.write_table(rows.cast(may_be_null), path)  # it did not say which columns are always known
    schema = json.loads((tmp_path / "schema.json").read_text())
    fewer = {name: table for name, table in schema["tables"].items() if name != "counters"}
    (tmp_path / "schema.json").write_text(json.dumps({**schema, "tables": fewer}))
    assert Dataset(tmp_path).table("counters").num_rows == 0
    dataset = write(tmp_path, example)
    assert json.loads((tmp_path / "schema.json").read_text()) == schema
    assert answers(dataset[0]) == answers(dataset[1]) == answers(example)
    assert dataset.table("kernels").num_rows == 2 * len(example.kernels)
    if importlib.util.find_spec("duckdb"):
        assert dataset.sql("select count(*) as n from kernels")["n"].tolist() == [2 * len(example.kernels)]


@pytest.mark.medium
def test_what_is_not_known_is_null_and_nothing_else(build, tmp_path):
    build.kernel("k", 0, correlation_id=0).memcpy(10, num_bytes=0)
    rows = write(tmp_path, build.recording())
    kernels, copies = rows.table("kernels"), rows.table("copies")
    assert kernels["correlation_id"].null_count == kernels["graph_id"].null_count == 1
    assert copies["num_bytes"].to_pylist() == [0]
    assert kernels["registers_per_thread"].to_pylist() == [0]


@pytest.mark.medium
def test_only_the_files_of_a_step_are_read_for_it(build, tmp_path, monkeypatch):
    for name in ("a", "b", "c"):
        with DatasetWriter(tmp_path, run="run") as writer:
            writer.write(build.kernel(name, 100).recording())
    dataset = Dataset(tmp_path)
    assert len(dataset) == 3
    read = []
    parquet = importlib.import_module("pyarrow.parquet")
    read_table = parquet.read_table
    monkeypatch.setattr(parquet, "read_table", lambda path, **how: read.append(path) or read_table(path, **how))
    assert dataset[1].kernels.names() == ["a", "b"]
    names = {path.name for path in read if path.relative_to(tmp_path).parts[0] not in ("runs", "ranks")}
    assert names == {"part-1.parquet"}


def test_a_step_without_rows_is_a_step(build, tmp_path):
    dataset = write(tmp_path, build.recording())
    assert len(dataset) == 1
    assert not len(dataset[0].kernels)
    assert dataset.table("kernels").num_rows == 0


@pytest.mark.medium
def test_times_count_from_the_first_step_of_the_run(example_builder, tmp_path):
    first = example_builder.recording()
    for name in ("cupti_start_ns", "cupti_stop_ns", "wall_start_ns", "wall_stop_ns"):
        example_builder.clock[name] += 5000
    for rows in example_builder.rows.values():
        for row in rows:
            row.update({name: row[name] + 5000 for name in ("start_ns", "end_ns") if name in row})
    with DatasetWriter(tmp_path, run="a") as writer:
        writer.write(first)
        writer.write(example_builder.recording())
    dataset = Dataset(tmp_path)
    assert dataset.table("runs")["base_ns"].to_pylist() == [first.clock.wall_start_ns]
    assert dataset.table("steps")["start_ns"].to_pylist() == [0, 5000]
    assert dataset[1].kernels.start_ns[0] == first.kernels.start_ns[0] + 5000


@pytest.mark.medium
def test_analysis_takes_a_dataset_as_it_takes_recordings(example, example_dataset):
    assert analysis.devices(example_dataset).to_json() == analysis.devices([example] * 4).to_json()
    assert analysis.ranks(example_dataset, clock_offsets=None)["rank"].tolist() == [0, 1]


@pytest.mark.medium
def test_only_the_row_groups_of_a_step_are_read(example, tmp_path, monkeypatch):
    import pyarrow.parquet

    monkeypatch.setattr("collector.dataset.dataset_writer.ROWS_OF_GROUP", 10)
    with DatasetWriter(tmp_path, run="a") as writer:
        for _ in range(5):
            writer.write(example)
    file = pyarrow.parquet.ParquetFile(path_of(tmp_path, tables()["kernels"], Part("a", 0, 0)))
    assert file.num_row_groups == 5
    group = file.metadata.row_group(3).column(0)
    assert (group.path_in_schema, group.statistics.min, group.statistics.max) == ("step", 3, 3)
    assert set(Dataset(tmp_path).table("kernels", step=3)["step"].to_pylist()) == {3}


@pytest.mark.medium
def test_later_steps_are_appended_in_files_of_their_own(example, tmp_path):
    write(tmp_path, example)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    dataset = write(tmp_path, example)
    assert [key.step for key in dataset.keys] == [0, 1]
    assert all(path.read_bytes() == content for path, content in before.items())
    with DatasetWriter(tmp_path, run="a") as writer, pytest.raises(OutputError, match="step 1 already"):
        writer.write(example, step=1)


@pytest.mark.medium
def test_ranks_write_side_by_side(example, tmp_path):
    with DatasetWriter(tmp_path, run="a", rank=0) as first, DatasetWriter(tmp_path, run="a", rank=1) as second:
        second.write(example)
        first.write(example)
    assert [key.rank for key in Dataset(tmp_path).keys] == [0, 1]
    assert len(Dataset(tmp_path, rank=1)) == 1
    with pytest.raises(InvalidFileError, match="no step of rank 2"):
        Dataset(tmp_path, rank=2)
    with pytest.raises(InvalidFileError, match=r"run b and rank 0\. It has steps of: run a rank 0, run a rank 1$"):
        Dataset(tmp_path, run="b", rank=0)


@pytest.mark.medium
def test_what_a_killed_writer_left_is_not_read_and_the_next_write_goes_on(example, tmp_path):
    write(tmp_path, example)
    killed = write(tmp_path, example)
    last = killed.files.of("steps")[-1]
    last.rename(last.with_name(".part-1.parquet.0123.part"))
    assert len(Dataset(tmp_path)) == 1
    assert Dataset(tmp_path).table("kernels").num_rows == len(example.kernels)
    assert {path.name for path in Dataset(tmp_path).files.unfinished} == {"part-1.parquet"}
    dataset = write(tmp_path, example)
    assert [key.step for key in dataset.keys] == [0, 1]
    assert not dataset.files.unfinished


@pytest.fixture
def named(build):
    """Makes a recording of one kernel."""

    def recording(name):
        build.rows["kernels"].clear()
        return build.kernel(name, 0).recording()

    return recording


def names_by_step(folder):
    """The names of the kernels, and of the kernels in the facts, by step; a step without kernels has none."""
    dataset = Dataset(folder)
    found = {key.step: [] for key in dataset.keys}
    for table in ("kernels", "step_kernel_names"):
        rows = dataset.table(table)
        for step, name in zip(rows["step"].to_pylist(), rows["name"].to_pylist(), strict=True):
            found[step].append(name)
    return found


@pytest.mark.medium
def test_of_two_writers_of_a_rank_the_later_takes_the_next_numbers(named, tmp_path):
    first, second = (DatasetWriter(tmp_path, run="a") for _ in range(2))
    first.write(named("first"))
    second.write(named("second"))
    second.write(named("third"))
    first.close()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    second.close()
    assert second.write(named("fourth")) == 3
    second.close()
    assert names_by_step(tmp_path) == {at: [name] * 2 for at, name in enumerate(("first", "second", "third", "fourth"))}
    assert all(path.read_bytes() == content for path, content in before.items())
    assert not [path for path in tmp_path.rglob(".*") if path.is_file()]


@pytest.mark.medium
def test_steps_that_get_later_numbers_have_the_files_of_steps_with_these_numbers(example, tmp_path, monkeypatch):
    monkeypatch.setattr("collector.dataset.dataset_writer.ROWS_OF_GROUP", 10)
    copied = {"trace_events": drawn_events(Step(RecordingSource(example)))}
    for name in ("one", "two"):
        write(tmp_path / name, example)
    late = DatasetWriter(tmp_path / "one", run="a")
    late.write(example, name="warm-up", copied=copied)
    late.write(example)
    for name in ("one", "two"):
        write(tmp_path / name, example)
    late.close()
    with DatasetWriter(tmp_path / "two", run="a") as writer:
        writer.write(example, name="warm-up", copied=copied)
        writer.write(example)
    one, two = (
        {path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.*")}
        for name in ("one", "two")
    )
    assert one == two


@pytest.mark.medium
def test_a_number_that_was_given_is_kept_or_refused(named, tmp_path, monkeypatch):
    monkeypatch.setattr("collector.dataset.dataset_writer._PATIENCE_S", 0)
    first, second, third = (DatasetWriter(tmp_path, run="a") for _ in range(3))
    first.write(named("first"), step=5)
    second.write(named("second"), step=4)
    second.write(named("second"), step=6)
    third.write(named("third"), step=7)
    first.close()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    with pytest.raises(OutputError, match="another process adds one of the steps 4 to 6 of rank 0 to the run a"):
        second.close()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")} == before
    third.close()
    assert names_by_step(tmp_path) == {5: ["first"] * 2, 7: ["third"] * 2}
    assert not [path for path in tmp_path.rglob(".*") if path.is_file()]


@pytest.mark.medium
def test_a_writer_that_begins_or_ends_while_another_gives_its_files_names_takes_none_of_them(
    named, tmp_path, monkeypatch
):
    """Before each name that one writer gives to a file, another writer begins, and one that had begun before ends."""
    waiting = []
    link = dataset_writer.link_exclusively

    def link_after_another_writer(temporary, target):
        if target.parent.parent.parent.name in ("kernels", "ledger", "steps") and waiting:
            writer = waiting.pop()
            writer.close()
            write(tmp_path, named("begun later"))
        return link(temporary, target)

    for _ in range(3):
        waiting.append(DatasetWriter(tmp_path, run="a"))
    for writer in waiting:
        writer.write(named("begun before"))
    monkeypatch.setattr(dataset_writer, "link_exclusively", link_after_another_writer)
    write(tmp_path, named("first"))
    found = names_by_step(tmp_path)
    assert sorted(found) == list(range(7))
    assert sorted(found.values()) == [["begun before"] * 2] * 3 + [["begun later"] * 2] * 3 + [["first"] * 2]
    assert not Dataset(tmp_path).files.unfinished


_WRITING_PROGRAM = """
import sys
from collector.dataset import DatasetWriter
from collector.recording.recording import Recording
step = Recording.load(sys.argv[2])
for _ in range(15):
    with DatasetWriter(sys.argv[1], run="a") as writer:
        writer.write(step, name=sys.argv[3])
"""


@pytest.mark.slow
def test_two_processes_of_a_rank_add_all_their_steps(named, tmp_path):
    folder = tmp_path / "runs"
    processes = []
    for name in ("one", "two"):
        named(name).save(tmp_path / f"{name}.gpurec")
        command = [sys.executable, "-c", _WRITING_PROGRAM, str(folder), str(tmp_path / f"{name}.gpurec"), name]
        processes.append(subprocess.Popen(command))
    whole = 0
    while any(process.poll() is None for process in processes):
        if (folder / "schema.json").exists():
            assert all(len(names) == 2 for names in names_by_step(folder).values())
            whole += 1
    assert whole
    assert [process.wait() for process in processes] == [0, 0]
    steps = Dataset(folder).table("steps")
    assert names_by_step(folder) == dict(
        zip(steps["step"].to_pylist(), ([name] * 2 for name in steps["name"].to_pylist()), strict=True)
    )
    assert sorted(steps["step"].to_pylist()) == list(range(30))
    assert not [path for path in folder.rglob(".*") if path.is_file()]


_KILLED_AT_THE_END = """
import os, signal, sys
from collector.dataset import DatasetWriter, dataset_writer
from collector.recording.recording import Recording
link = dataset_writer.link_exclusively
def link_or_die(temporary, target):
    if target.parts[-4:-2] == ("steps", "run=a"):
        os.kill(os.getpid(), signal.SIGKILL)
    return link(temporary, target)
dataset_writer.link_exclusively = link_or_die
with DatasetWriter(sys.argv[1], run="a") as writer:
    for _ in range(2):
        writer.write(Recording.load(sys.argv[2]))
"""


@pytest.mark.slow
def test_steps_that_a_killed_writer_was_adding_are_left_out_and_deleted_later(named, tmp_path):
    folder = tmp_path / "runs"
    named("killed").save(tmp_path / "step.gpurec")
    command = [sys.executable, "-c", _KILLED_AT_THE_END, str(folder), str(tmp_path / "step.gpurec")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert Dataset(folder).files.unfinished
    write(folder, named("next"))
    assert names_by_step(folder) == {2: ["next"] * 2}
    for path in folder.rglob(".*"):
        os.utime(path, (0, 0))
    write(folder, named("last"))
    assert names_by_step(folder) == {2: ["next"] * 2, 3: ["last"] * 2}
    assert not Dataset(folder).files.unfinished
    assert not [path for path in folder.rglob(".*") if path.is_file()]


@pytest.mark.medium
def test_a_number_that_a_killed_writer_claimed_is_refused_with_the_file_to_delete(named, tmp_path, monkeypatch):
    monkeypatch.setattr("collector.dataset.dataset_writer._PATIENCE_S", 0)
    write(tmp_path, named("first"))
    claim = tmp_path / "steps" / "run=a" / "rank=0" / ".part-5.claim"
    claim.write_text("7")
    writer = DatasetWriter(tmp_path, run="a")
    writer.write(named("again"), step=5)
    with pytest.raises(OutputError, match="adds step 5 of rank 0 to the run a") as refused:
        writer.close()
    assert str(claim) in refused.value.remedy
    claim.unlink()
    with DatasetWriter(tmp_path, run="a") as writer:
        writer.write(named("again"), step=5)
    assert names_by_step(tmp_path) == {0: ["first"] * 2, 5: ["again"] * 2}


def test_finished_files_are_never_abandoned_and_no_claim_is_left(named, tmp_path):
    write(tmp_path, named("first"))
    for path in tmp_path.rglob("*"):
        os.utime(path, (0, 0))
    write(tmp_path, named("second"))
    assert names_by_step(tmp_path) == {0: ["first"] * 2, 1: ["second"] * 2}
    assert not [path for path in tmp_path.rglob(".*") if path.is_file()]


@pytest.mark.medium
def test_a_part_claims_all_of_its_steps(named, tmp_path, monkeypatch):
    claimed = set()

    def link(temporary, target):
        claimed.update((path.name, path.read_text()) for path in tmp_path.rglob("*.claim"))
        return link_exclusively(temporary, target)

    monkeypatch.setattr("collector.dataset.dataset_writer.link_exclusively", link)
    with DatasetWriter(tmp_path, run="a") as writer:
        for step in (5, 6, 7):
            writer.write(named("k"), step=step)
    assert claimed == {(".part-5.claim", "8")}  # the number after the last


@pytest.mark.medium
def test_files_of_a_writer_that_is_alive_are_never_abandoned(example, tmp_path, monkeypatch):
    monkeypatch.setattr("collector.dataset.dataset_writer.ROWS_OF_GROUP", 1)
    with DatasetWriter(tmp_path, run="a") as writer:
        writer.write(example)
        files = list(tmp_path.rglob(".*.part"))
        assert files
        for path in files:
            os.utime(path, (0, 0))
        write(tmp_path, example)
        assert all(path.exists() for path in files)
    assert [answers(step) for step in Dataset(tmp_path)] == [answers(example)] * 2


def test_a_name_that_is_taken_before_the_answer_of_a_network_file_system_is_lost_is_the_writers_own(
    tmp_path, monkeypatch
):
    link = os.link

    def link_twice(source, target):
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", link_twice)
    for name, is_free in (("one", True), ("two", False)):
        (tmp_path / name).write_text(name)
        assert link_exclusively(tmp_path / name, tmp_path / "target") == is_free
    assert (tmp_path / "target").read_text() == "one"
    assert not (tmp_path / "one").exists()


@pytest.mark.medium
def test_a_step_that_appears_while_the_files_are_listed_is_whole_or_absent(example, tmp_path, monkeypatch):
    write(tmp_path, example)
    listed = type(tmp_path).rglob
    waiting = [example]

    def listed_slowly(path, pattern):
        for each in sorted(path.iterdir()) if path == tmp_path else [path]:
            yield from listed(each, pattern)
            if each.name == "kernels" and waiting:
                write(tmp_path, waiting.pop())

    monkeypatch.setattr(type(tmp_path), "rglob", listed_slowly)
    dataset = Dataset(tmp_path)
    assert not waiting
    assert [key.step for key in dataset.keys] == [0]
    assert all(table in ("runs", "ranks") or len(parts) == 1 for table, parts in dataset.files.by_table.items())
    assert answers(dataset[0]) == answers(example)
    assert [answers(step) for step in Dataset(tmp_path)] == [answers(example)] * 2


_KILLED_PROGRAM = """
import os, signal, sys
from collector.dataset import DatasetWriter
from collector.recording.recording import Recording
import collector.dataset.dataset_writer
collector.dataset.dataset_writer.ROWS_OF_GROUP = 1  # rows of the step are in files when the program is killed
step = Recording.load(sys.argv[2])
with DatasetWriter(sys.argv[1], run="a") as writer:
    writer.write(step)
with DatasetWriter(sys.argv[1], run="a") as writer:
    writer.write(step)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_dataset_is_whole_after_its_writer_was_killed_and_forgets_what_that_left(example, tmp_path):
    example.save(tmp_path / "step.gpurec")
    folder = tmp_path / "runs"
    command = [sys.executable, "-c", _KILLED_PROGRAM, str(folder), str(tmp_path / "step.gpurec")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    left = list(folder.rglob("*.part"))
    assert left
    assert len(Dataset(folder)) == 1
    assert answers(Dataset(folder)[0]) == answers(example)
    assert [key.step for key in write(folder, example).keys] == [0, 1]
    assert all(path.exists() for path in left)  # another process may still be writing them
    for path in left:
        os.utime(path, (0, 0))
    assert len(write(folder, example)) == 3
    assert not list(folder.rglob("*.part"))


def test_a_writer_that_fails_leaves_nothing(example, tmp_path):
    def fail():
        with DatasetWriter(tmp_path, run="a") as writer:
            writer.write(example)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert len(Dataset(tmp_path)) == 0
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".part")]


@pytest.mark.medium
def test_files_of_others_are_named_and_left_alone(example, tmp_path):
    write(tmp_path, example)
    foreign = tmp_path / "kernels" / "run=a" / "mine.parquet"
    foreign.write_bytes(b"not even Parquet")
    dataset = write(tmp_path, example)
    assert dataset.files.foreign == (foreign,)
    assert len(dataset) == 2
    assert foreign.read_bytes() == b"not even Parquet"


def test_versions_are_not_mixed(example, tmp_path):
    write(tmp_path, example)
    schema = json.loads((tmp_path / "schema.json").read_text())
    (tmp_path / "schema.json").write_text(json.dumps({**schema, "version": 2}))
    with pytest.raises(InvalidFileError, match=r"version 2 of the schema, and this program version 1"):
        Dataset(tmp_path)
    with pytest.raises(InvalidFileError, match="versions cannot be mixed"):
        write(tmp_path, example)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"name": "another"}', "[" * 100_000])
def test_a_folder_whose_schema_is_none_is_refused(tmp_path, content):
    (tmp_path / "schema.json").write_text(content)
    with pytest.raises(InvalidFileError, match=r"schema\.json"):
        Dataset(tmp_path)


def test_a_folder_with_other_things_is_refused(example, tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(OutputError, match="is not a dataset, and not empty"):
        write(tmp_path, example)
    with pytest.raises(InvalidFileError, match="is not a dataset"):
        Dataset(tmp_path)


@pytest.mark.parametrize("run", ["../a", "a/b", ".", "a b", "a\n", "x" * 200])
def test_a_run_has_a_name_that_a_folder_can_have(tmp_path, run):
    with pytest.raises(OutputError, match="a run cannot be called"):
        DatasetWriter(tmp_path, run=run)


@pytest.mark.medium
def test_no_environment_but_that_of_the_gpu_is_stored(build, example_dataset, tmp_path):
    build.environment |= {"cupti_path": "/home/somebody/libcupti.so", "hostname": "secret", "driver_version": 12080}
    dataset = write(tmp_path / "other", build.recording())
    stored = json.loads(dataset.table("steps")["environment"][0].as_py())
    assert set(stored) == {"source", "simulated", "driver_version"}
    assert b"secret" not in b"".join(path.read_bytes() for path in (tmp_path / "other").rglob("*.parquet"))


@pytest.mark.medium
def test_the_same_steps_give_the_same_bytes(example, tmp_path):
    for name in ("one", "two"):
        write(tmp_path / name, example)
    one, two = (
        {path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.*")}
        for name in ("one", "two")
    )
    assert one == two


@pytest.mark.medium
def test_schema_json_names_every_column_of_every_file(example_dataset):
    import pyarrow.parquet

    document = json.loads((example_dataset.folder / "schema.json").read_text())
    for name, parts in example_dataset.files.by_table.items():
        for path in parts.values():
            stored = pyarrow.parquet.read_schema(path)
            columns = {each["name"]: each["type"] for each in document["tables"][name]["columns"]}
            assert {field.name: str(field.type) for field in stored} == columns
    names = {column["name"].lower() for table in document["tables"].values() for column in table["columns"]}
    assert len(names) == len({column["name"] for table in document["tables"].values() for column in table["columns"]})


@pytest.mark.medium
def test_trace_adds_its_step_to_a_dataset(tmp_path, monkeypatch, example):
    from captures import FakeSource

    import collector

    monkeypatch.setenv("COLLECTOR_RUN", "monday")
    for _ in range(2):
        with collector.trace(source=FakeSource(example.to_capture()), dataset=tmp_path / "runs", rank=3):
            pass
    dataset = Dataset(tmp_path / "runs")
    assert list(dataset.keys) == [("monday", 3, 0), ("monday", 3, 1)]


def test_a_dataset_that_cannot_be_written_is_a_warning(tmp_path, example):
    from captures import FakeSource

    import collector

    (tmp_path / "runs").write_text("a file")
    with (
        pytest.warns(
            collector.CollectorWarning, match="the step will not be in the dataset: cannot write .*runs is not"
        ),
        collector.trace(source=FakeSource(example.to_capture()), dataset=tmp_path / "runs") as step,
    ):
        pass
    assert len(step.kernels) == len(example.kernels)


def test_without_pyarrow_trace_says_so_before_the_body_runs(monkeypatch, tmp_path):
    import sys

    import collector

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "pyarrow.parquet", raising=False)
    with pytest.raises(MissingDependencyError, match=r"pyarrow is not installed.*cupti-collector\[arrow\]"):
        collector.trace(dataset=tmp_path)
    with pytest.raises(MissingDependencyError, match="pyarrow is not installed"):
        Dataset(tmp_path)
