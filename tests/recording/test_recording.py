"""Recordings: order, immutability, rows set apart, launches of activities, files, Arrow."""

from __future__ import annotations

import json
import pickle
import zipfile

import numpy as np
import pytest

import collector
from collector import analysis
from collector.recording.capture import Part
from collector.recording.cupti_enums import ANNOTATION_EXTERNAL_KIND
from collector.recording.launch_figures import LAUNCH_FIGURES
from collector.recording.recording import Recording
from collector.recording.schema import SCHEMA
from collector.stepstats.from_recording import run_metadata


def test_columns_are_the_schemas_and_read_only(step_capture):
    recording = Recording.from_capture(step_capture)
    for table, columns in SCHEMA.items():
        assert list(getattr(recording, table).columns) == list(columns)
        for values in getattr(recording, table).columns.values():
            assert not values.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        recording.kernels.start_ns[0] = 0
    with pytest.raises(AttributeError, match="cannot be changed"):
        recording.kernels = recording.memcpys
    with pytest.raises(TypeError):
        recording.environment["source"] = "other"


def test_columns_already_in_order_are_not_copied(build):
    capture = build.kernel("a", 1000).kernel("b", 3000).capture()
    recording = Recording.from_capture(capture)
    assert np.shares_memory(recording.kernels.start_ns, capture["tables"]["kernels"]["start_ns"])


def test_rows_come_in_order_of_device_context_stream_and_time_whatever_order_they_arrived_in(build, start_ns):
    rows = [
        ("f", 1, 1, 7, 10),
        ("e", 0, 2, 7, 10),
        ("d", 0, 1, 9, 10),
        ("c", 0, 1, 7, 90),
        ("b", 0, 1, 7, 20),
        ("a", 0, 1, 7, 10),
    ]
    for name, device, context, stream, start in rows:
        build.kernel(name, start, device_id=device, context_id=context, stream_id=stream)
    kernels = build.recording().kernels
    assert kernels.names() == ["a", "b", "c", "d", "e", "f"]
    assert kernels.start_ns[:3].tolist() == [start_ns + 10, start_ns + 20, start_ns + 90]


def test_an_enclosing_call_comes_before_the_call_inside_it_that_starts_with_it(build):
    build.call("inner", 10, 5).call("outer", 10, 50)
    assert build.recording().api_calls.names() == ["outer", "inner"]


def test_waits_come_in_order_of_context_stream_and_time(build, start_ns):
    for stream, start, duration in ((9, 10, 5), (7, 20, 5), (7, 10, 50), (7, 10, 5)):
        times = {"start_ns": start_ns + start, "end_ns": start_ns + start + duration}
        build.raw("synchronizations", context_id=1, stream_id=stream, **times)
    waits = build.recording().synchronizations
    assert waits.stream_id.tolist() == [7, 7, 7, 9]
    assert (waits.start_ns - start_ns).tolist() == [10, 10, 20, 10]
    assert waits.duration_ns.tolist() == [5, 50, 5, 5]


@pytest.mark.parametrize("misplaced", [0, 65_535, 65_536, 65_537, 199_998])
def test_one_row_out_of_order_among_many_is_put_in_its_place(build, start_ns, misplaced):
    capture = build.capture()
    times = start_ns + np.arange(200_000)
    times[misplaced : misplaced + 2] = times[misplaced : misplaced + 2][::-1]
    rows = {name: np.zeros(len(times), dtype) for name, dtype in SCHEMA["api_calls"].items()}
    capture["tables"]["api_calls"] = {**rows, "start_ns": times, "end_ns": times}
    assert (np.diff(Recording.from_capture(capture).api_calls.start_ns) == 1).all()


@pytest.mark.parametrize(
    ("start", "end"),
    [(0, 0), (0, 5), (5, 0), (9, 5), (-4, 5)],
    ids=["none", "no start", "no end", "reversed", "negative"],
)
def test_rows_without_usable_times_are_kept_apart_and_counted(build, start_ns, start, end):
    absolute = {"start_ns": start and start_ns + start, "end_ns": end and start_ns + end}
    if start < 0:
        absolute["start_ns"] = start
    build.kernel("good", 1000).raw("kernels", name_id=build.text("bad"), **absolute)
    recording = build.recording()
    assert recording.kernels.names() == ["good"]
    assert recording.invalid.kernels.names() == ["bad"]
    assert recording.ledger.invalid_timestamps == 1
    assert not recording.ledger.complete


def test_rows_outside_the_step_are_kept_apart_as_early_or_late(build):
    build.kernel("early", -500, 100).kernel("across the start", -50, 100)
    build.kernel("inside", 0, 1_000_000)
    build.kernel("across the end", 999_950, 100).kernel("late", 2_000_000, 100)
    recording = build.recording()
    assert recording.kernels.names() == ["inside"]
    assert recording.early.kernels.names() == ["early", "across the start"]
    assert recording.late.kernels.names() == ["across the end", "late"]
    assert recording.out_of_window.kernels.names() == ["early", "across the start", "across the end", "late"]
    assert (recording.ledger.early, recording.ledger.late, recording.ledger.out_of_window) == (2, 2, 4)


def test_activities_of_graphs_have_the_annotations_of_the_launch_and_of_the_capture(build):
    build.annotation("model", 0, 10, 60).annotation("train", 100, 50, 70, 1)
    for number, (correlation, captured) in enumerate([(1, 60), (1, 0), (2, 60), (2, 0), (1, 99)], 1):
        build.kernel("k", 1000 * number, correlation_id=correlation, captured_external_id=captured)
    recording = build.recording()
    paths = ["train/<captured_at>/model", "train", "<captured_at>/model", "", "train"]
    assert recording.annotations_of(recording.kernels) == paths


def test_an_annotation_still_open_at_the_end_ends_with_the_step(build, start_ns):
    build.raw("annotations", start_ns=start_ns + 5, end_ns=0, external_id=1, name_id=build.text("open"))
    annotations = build.recording().annotations
    assert annotations.end_ns.tolist() == [start_ns + 1_000_000]


@pytest.mark.parametrize("offset", [0, 99, 100, -100, 101, -101, -3_600_000_000_000, 7 * 86_400_000_000_000])
def test_the_clock_offset_is_signed_and_nothing_when_reading_the_clocks_explains_it(build, start_ns, offset):
    build.clock["wall_start_ns"] = start_ns + offset
    assert build.recording().clock.offset_ns == (offset if abs(offset) > 100 else 0)


def test_an_activity_belongs_to_the_outer_call_that_launched_it(build):
    build.launch(1, 1000).launch(2, 3000).kernel("k", 5000, correlation_id=2).kernel("k", 7000, correlation_id=9)
    recording = build.recording()
    rows = recording.launch_rows(recording.kernels.correlation_id)
    assert recording.api_calls[int(rows[0])].correlation_id == 2
    assert recording.api_calls.names()[rows[0]] == "cudaLaunchKernel_v7000"
    assert rows[1] == -1


def test_a_correlation_id_of_zero_belongs_to_nothing(build):
    build.call("cudaLaunchKernel", 10, correlation_id=0).kernel("k", 50, correlation_id=0)
    build.annotation("op", 0, 100, 5, 0)
    recording = build.recording()
    assert recording.launch_rows(recording.kernels.correlation_id).tolist() == [-1]
    assert recording.annotations_of(recording.kernels) == [""]


def test_the_annotation_is_found_whatever_order_its_records_came_in(build):
    # pytorch/kineto#1354: the correlation record may come in a later buffer than the kernel.
    build.kernel("k", 5000, correlation_id=2).kernel("k", 6000, correlation_id=1).kernel("k", 7000, correlation_id=3)
    build.annotation("b", 100, 10, 20, 2).annotation("a", 0, 10, 10, 1)
    recording = build.recording()
    assert recording.annotations_of(recording.kernels) == ["b", "a", ""]


def test_other_profilers_correlations_name_nothing(build):
    build.annotation("ours", 0, 10, 7).kernel("k", 100, correlation_id=1)
    build.raw("external_correlations", correlation_id=1, external_id=7, external_kind=3)
    recording = build.recording()
    assert recording.annotations_of(recording.kernels) == [""]
    assert recording.ledger.correlations_unmatched == 0


def test_a_table_is_filtered_sliced_and_iterated(build):
    build.kernel("a", 1000, 10, stream_id=7).kernel("b", 2000, 20, stream_id=8).kernel("a", 3000, 30, stream_id=7)
    kernels = build.recording().kernels
    assert len(kernels) == 3
    assert kernels.where(stream_id=7).names() == ["a", "a"]
    assert kernels[kernels.duration_ns > 15].duration_ns.tolist() == [30, 20]
    assert kernels[1:].names() == ["a", "b"]
    assert kernels[-1].stream_id == 8
    assert [row.stream_id for row in kernels] == [7, 7, 8]
    assert type(kernels[0]).__name__ == "Kernel"
    with pytest.raises(AttributeError, match="no column 'strem_id'"):
        kernels.where(strem_id=7)


def test_names_come_short_whole_and_as_recorded(build):
    kernels = build.kernel("_Z3addIfEvPT_i", 1).recording().kernels
    assert kernels.names() == ["add<float>"]
    assert kernels.demangled_names() == ["void add<float>(float*, int)"]
    assert kernels.recorded_names() == ["_Z3addIfEvPT_i"]


@pytest.mark.parametrize("broken", ["missing table", "missing column", "wrong type", "ragged"])
def test_a_capture_that_is_not_of_the_schema_is_refused(step_capture, broken):
    kernels = step_capture["tables"]["kernels"]
    if broken == "missing table":
        del step_capture["tables"]["kernels"]
    elif broken == "missing column":
        del kernels["grid_x"]
    elif broken == "wrong type":
        kernels["grid_x"] = kernels["grid_x"].astype("f8")
    else:
        kernels["grid_x"] = np.zeros(5, "i4")
    with pytest.raises(ValueError, match="kernels"):
        Recording.from_capture(step_capture)


@pytest.mark.parametrize("column", ["name_id", "group_name_id"])
def test_a_text_that_is_not_among_the_strings_is_refused(build, tmp_path, column):
    capture = build.kernel("a", 1000).raw("collectives", start_ns=1000).recording().to_capture()
    table = "kernels" if column == "name_id" else "collectives"
    capture["tables"][table][column] = np.array([len(capture["strings"])], "u4")
    with pytest.raises(ValueError, match=rf"{table}\.{column} points beyond the capture's \d+ strings"):
        Recording.from_capture(capture)


def test_a_file_whose_names_lack_their_texts_is_refused(build, tmp_path):
    full(build).save(tmp_path / "a.gpurec")

    def without_strings(name, data):
        return json.dumps({**json.loads(data), "strings": []}).encode() if name == "meta.json" else data

    rewritten(tmp_path / "a.gpurec", tmp_path / "b.gpurec", without_strings)
    with pytest.raises(collector.InvalidFileError, match=r"b\.gpurec: a damaged recording .*beyond the capture's 0"):
        Recording.load(tmp_path / "b.gpurec")


def full(build):
    build.counters.update(records_decoded=9, buffers_requested=2, oddity=3)
    build.environment["devices"] = {"0": "H100"}
    build.launch(1, 1000).kernel("_Z3addIfEvPT_i", 5000, correlation_id=1).kernel("early", -9000, 10)
    build.raw("memcpys", num_bytes=7).annotation("op", 1, 2, 3, 1)
    return build.recording()


def assert_same(one: Recording, other: Recording):
    assert (one.strings, one.clock, one.ledger) == (other.strings, other.clock, other.ledger)
    assert dict(one.environment) == dict(other.environment)
    for part in ("_tables", "invalid", "early", "late"):
        for table in SCHEMA:
            mine, theirs = getattr(getattr(one, part), table), getattr(getattr(other, part), table)
            assert list(mine) == list(theirs), (part, table)


def test_a_recording_survives_its_file(build, tmp_path):
    recording = full(build)
    recording.save(tmp_path / "step.gpurec")
    assert_same(recording, Recording.load(tmp_path / "step.gpurec"))


def test_equal_recordings_make_equal_files(build, tmp_path):
    recording = full(build)
    recording.save(tmp_path / "one.gpurec")
    Recording.load(tmp_path / "one.gpurec").save(tmp_path / "two.gpurec")
    assert (tmp_path / "one.gpurec").read_bytes() == (tmp_path / "two.gpurec").read_bytes()


def test_a_recording_survives_pickling(build):
    recording = full(build)
    assert_same(recording, pickle.loads(pickle.dumps(recording)))
    assert list(pickle.loads(pickle.dumps(recording.kernels))) == list(recording.kernels)


def test_any_reader_of_zip_and_npy_can_read_the_file(build, tmp_path):
    recording = full(build)
    recording.save(tmp_path / "step.gpurec")
    with zipfile.ZipFile(tmp_path / "step.gpurec") as archive:
        meta = json.loads(archive.read("meta.json"))
        with archive.open("kernels/start_ns.npy") as file:
            numbers = np.load(file)
    assert (meta["format"], meta["version"]) == ("collector recording", 2)
    packing = meta["columns"]["kernels"]["start_ns"]
    assert packing == {"type": "<i8", "rows": 2, "base": min(recording.early.kernels.start_ns)}
    starts = numbers.astype(packing["type"]) + packing["base"]
    assert sorted(starts.tolist()) == sorted([*recording.kernels.start_ns, *recording.early.kernels.start_ns])


def test_loading_says_which_file_is_not_a_recording_and_why(build, tmp_path):
    whole = tmp_path / "step.gpurec"
    full(build).save(whole)
    data = whole.read_bytes()
    for name, content in {"cut": data[:60], "foreign": b"hello", "empty": b""}.items():
        path = tmp_path / f"{name}.gpurec"
        path.write_bytes(content)
        with pytest.raises(collector.InvalidFileError, match=rf"{name}\.gpurec: not a recording"):
            Recording.load(path)
    with pytest.raises(collector.InvalidFileError, match=r"absent\.gpurec: No such file"):
        Recording.load(tmp_path / "absent.gpurec")
    other_zip = tmp_path / "other.gpurec"
    with zipfile.ZipFile(other_zip, "w") as archive:
        archive.writestr("meta.json", "[]")
    with pytest.raises(collector.InvalidFileError, match="not a recording"):
        Recording.load(other_zip)


@pytest.mark.slow
def test_a_recording_cut_anywhere_keeps_the_tables_that_are_whole(build, tmp_path):
    whole, cut = tmp_path / "step.gpurec", tmp_path / "cut.gpurec"
    recording = full(build)
    recording.save(whole)
    data = whole.read_bytes()
    with zipfile.ZipFile(whole) as archive:
        packings = json.loads(archive.read("meta.json"))["columns"]
        ends = {info.filename: info.header_offset + 30 + len(info.filename) + info.compress_size
                for info in archive.infolist()}  # fmt: skip
    kept = set()
    for length in range(ends["meta.json"], len(data), 97):
        cut.write_bytes(data[:length])
        found = Recording.load(cut)
        complete = {table for table in SCHEMA
                    if all(ends[f"{table}/{column}.npy"] <= length for column in SCHEMA[table]
                           if "value" not in packings[table][column])}  # fmt: skip
        for table in SCHEMA:
            expected = getattr(recording, table) if table in complete else ()
            assert len(getattr(found, table)) == len(expected), (table, length)
        assert found.ledger.tables_cut_off == len({*SCHEMA} - complete)
        assert (found.ledger.tables_cut_off == 0) == (len(complete) == len(SCHEMA))
        trace = collector.load(cut)
        assert trace.cut_at == (length if found.ledger.tables_cut_off else None)
        assert ("cut off" in trace.warning) == (trace.cut_at is not None)
        kept.add(len(complete))
    assert len(kept) >= 3
    assert max(kept) == len(SCHEMA)
    cut.write_bytes(data[: ends["meta.json"]])
    collector.load(cut).recording.save(tmp_path / "again.gpurec")
    again = collector.load(tmp_path / "again.gpurec")
    assert (again.warning, again.recording.ledger.complete) == ("", False)


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".pb", ".pbtxt", ".gpurec"])
def test_a_recording_is_saved_in_the_format_of_its_suffix(build, tmp_path, suffix):
    recording = full(build)
    path = tmp_path / f"step{suffix}"
    recording.save(path)
    kinds = {".json": "collector timeline", ".json.gz": "collector timeline", ".gpurec": "recording"}
    assert collector.load(path).kind == kinds.get(suffix, "RunMetadata")
    if suffix in (".pb", ".pbtxt"):
        assert collector.load(path).run_metadata == run_metadata(recording)


def test_a_recording_is_not_saved_under_a_suffix_that_says_no_format(build, tmp_path):
    with pytest.raises(collector.UnknownFormatError, match="no format has this suffix"):
        full(build).save(tmp_path / "step.txt")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".json", ".pb", ".pbtxt", ".gpurec"])
def test_an_empty_recording_is_read_back(build, tmp_path, suffix):
    path = tmp_path / f"step{suffix}"
    build.recording().save(path)
    trace = collector.load(path)
    assert (list(trace.step_stats.dev_stats), trace.warning) == ([], "")
    assert trace.run_metadata.provenance.ledger["kernels"] == 0


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/home/ada/env/site-packages/nvidia/libcupti.so.12", "site-packages/nvidia/libcupti.so.12"),
        ("/home/ada/cuda/lib64/libcupti.so.12", "libcupti.so.12"),
        ("/usr/local/cuda/lib64/libcupti.so.12", "/usr/local/cuda/lib64/libcupti.so.12"),
        ("libcupti.so", "libcupti.so"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("suffix", [".json", ".pb", ".pbtxt", ".gpurec", ".xplane.pb"])
def test_no_output_contains_the_path_of_libcupti_in_a_home(build, tmp_path, suffix, path, shown):
    build.environment["cupti_path"] = path
    recording = build.kernel("sgemm", 1000).recording()
    assert recording.environment["cupti_path"] == shown
    made = tmp_path / f"step{suffix}"
    recording.save(made)
    content = zipfile.ZipFile(made).read("meta.json") if suffix == ".gpurec" else made.read_bytes()
    assert b"/home/ada" not in content
    if suffix != ".xplane.pb":
        assert shown.encode() in content


def rewritten(path, target, change):
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = change(name, old.read(name))
            if content is not None:
                new.writestr(name, content)


def test_a_recording_of_a_newer_version_says_what_to_do(build, tmp_path):
    full(build).save(tmp_path / "a.gpurec")
    rewritten(
        tmp_path / "a.gpurec",
        tmp_path / "b.gpurec",
        lambda name, data: data.replace(b'"version": 2', b'"version": 3') if name == "meta.json" else data,
    )
    with pytest.raises(collector.InvalidFileError, match=r"version 3.*Upgrade"):
        Recording.load(tmp_path / "b.gpurec")


@pytest.mark.parametrize("member", ["kernels/start_ns.npy", "kernels/end_ns.npy", "meta.json"])
def test_a_recording_with_a_damaged_member_is_refused(build, tmp_path, member):
    full(build).save(tmp_path / "a.gpurec")
    rewritten(tmp_path / "a.gpurec", tmp_path / "gone.gpurec", lambda name, data: None if name == member else data)
    rewritten(tmp_path / "a.gpurec", tmp_path / "junk.gpurec", lambda name, data: data[:20] if name == member else data)
    for name in ("gone", "junk"):
        with pytest.raises(collector.InvalidFileError, match=rf"{name}\.gpurec: a damaged recording"):
            Recording.load(tmp_path / f"{name}.gpurec")


@pytest.mark.medium
def test_arrow_tables_hold_the_columns_and_names_as_dictionaries(build):
    pa = pytest.importorskip("pyarrow")
    recording = full(build)
    tables = recording.to_arrow()
    assert set(tables) == set(SCHEMA)
    kernels = tables["kernels"]
    assert kernels["start_ns"].to_pylist() == recording.kernels.start_ns.tolist()
    assert kernels["name"].to_pylist() == ["add<float>"]
    assert kernels["demangled_name"].to_pylist() == ["void add<float>(float*, int)"]
    assert pa.types.is_dictionary(kernels.schema.field("name").type)
    assert tables["annotations"]["name"].to_pylist() == ["op"]
    assert tables["memsets"].num_rows == 0


@pytest.mark.medium
def test_arrow_names_distinguish_instances_of_a_template_and_merge_spellings_of_one(build):
    pytest.importorskip("pyarrow")
    build.kernel("_Z3addIfEvPT_i", 1).kernel("_Z3addIdEvPT_i", 2000).kernel("void add<float>(float*, int)", 4000)
    column = build.recording().kernels.to_arrow()["name"].combine_chunks()
    assert sorted(column.dictionary.to_pylist()) == ["add<double>", "add<float>"]
    assert column.to_pylist() == ["add<float>", "add<double>", "add<float>"]


def test_arrow_without_pyarrow_says_what_to_install(build, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(collector.MissingDependencyError, match="pip install"):
        build.recording().to_arrow()


# --- parts of a recording


def test_between_keeps_what_overlaps_and_what_explains_it(build, start_ns):
    build.launch(1, 1000).kernel("early", 2000, 500, correlation_id=1)
    build.launch(2, 3000).kernel("chosen", 9000, 500, correlation_id=2).annotation("layer", 2900, 700, 4, 2)
    build.launch(3, 9600).kernel("late", 20_000, 500, correlation_id=3)
    whole = build.kernel("before the step", -500).recording()
    part = whole.between(start_ns + 8_000, start_ns + 9_500)
    assert part.kernels.names() == ["chosen"]
    assert part.annotations_of(part.kernels) == ["layer"]
    assert (part.launch_rows(part.kernels.correlation_id) >= 0).all()
    assert len(part.api_calls) == 1  # the launch, which is before the part
    rows = [sum(len(getattr(each, table)) for table in SCHEMA) for each in (whole, part)]
    assert part.ledger.source_counters["rows_cut"] == rows[0] + 1 - rows[1]
    assert part.ledger.kernels == 1
    assert part.ledger.early == whole.ledger.early == 1
    assert part.between().ledger.source_counters == part.ledger.source_counters


def test_rows_that_only_touch_a_part_are_not_in_it_unless_they_have_no_length(build, start_ns):
    build.kernel("before", 50, 50).kernel("at begin", 100, 0).kernel("in", 110, 10).kernel("over end", 190, 11)
    build.kernel("at end", 200, 0).kernel("after", 200, 30)
    recording = build.recording()
    assert set(recording.between(start_ns + 100, start_ns + 200).kernels.names()) == {
        "at begin", "in", "over end", "at end",
    }  # fmt: skip
    assert set(recording.between(start_ns + 200).kernels.names()) == {"over end", "at end", "after"}
    assert set(recording.between(None, start_ns + 100).kernels.names()) == {"before", "at begin"}


def test_a_part_of_some_rows_takes_what_launched_them_however_few_they_are(build, start_ns):
    for number in range(1, 101):
        build.launch(number, 1000 * number).kernel(f"k{number}", 1000 * number + 700, 100, correlation_id=number)
        build.annotation(f"op{number}", 1000 * number - 50, 600, 500 + number, number)
    recording = build.recording()
    nothing = {name: np.zeros(0, np.int64) for name in SCHEMA}
    part = recording.part_of_rows({**nothing, "kernels": np.array([3, 50])})
    assert part.annotations_of(part.kernels) == ["op4", "op51"]
    assert part.api_calls.names() == ["cudaLaunchKernel_v7000"] * 2
    assert part.external_correlations.correlation_id.tolist() == [4, 51]
    assert len(part.annotations) == 2
    many = recording.part_of_rows({**nothing, "kernels": np.arange(90)})
    assert many.annotations_of(many.kernels) == [f"op{number}" for number in range(1, 91)]
    rest = recording.part_of_rows({"kernels": np.array([3])})
    assert (len(rest.kernels), len(rest.api_calls), len(rest.annotations)) == (1, 200, 100)


def test_a_part_has_the_annotations_around_those_that_launched_it(build, start_ns):
    build.launch(1, 1200).kernel("gemm", 50_000, correlation_id=1)
    build.annotation("model", 1000, 2000, 1).annotation("layer", 1050, 1900, 2).annotation("conv", 1100, 900, 3, 1)
    build.annotation("loss", 1960, 100, 4).annotation("other thread", 1000, 2000, 5)
    build.rows["annotations"][-1]["thread_id"] = 12
    part = build.recording().between(start_ns + 50_000, start_ns + 60_000)
    assert part.annotations.names() == ["model", "layer", "conv"]
    assert [row["path"] for row in analysis.ops(part)] == ["model", "model/layer", "model/layer/conv"]


def test_a_part_that_was_saved_says_what_was_cut(build, start_ns, tmp_path):
    part = build.kernel("a", 1000).kernel("b", 5000).recording().between(end_ns=start_ns + 3000)
    part.save(tmp_path / "part.gpurec")
    again = Recording.load(tmp_path / "part.gpurec")
    assert again.kernels.names() == ["a"]
    assert again.ledger.source_counters["rows_cut"] == 1


@pytest.mark.parametrize("suffix", ["gpurec", "pb", "json", "xplane.pb", "pickle"])
def test_a_part_that_was_saved_has_the_rows_that_run_beyond_its_window(build, start_ns, tmp_path, suffix):
    build.launch(1, 200).kernel("over begin", 1000, 2000, correlation_id=1).kernel("in", 4000, 100)
    build.kernel("over end", 5000, 2000).kernel("behind", 9000).kernel("before the step", -500)
    whole = build.annotation("layer", 100, 800, 4, 1).recording()
    for window in ((2000, 6000), (100, 10_000), (150, 900), (7500, 8500)):  # a call alone, and nothing
        part = analysis.between(whole, *window)
        again = saved_and_read(part, tmp_path / f"part.{suffix}")
        assert again.kernels.names() == part.kernels.names()
        assert again.kernels.duration_ns.tolist() == part.kernels.duration_ns.tolist()
        assert again.annotations_of(again.kernels) == part.annotations_of(part.kernels)
        assert len(again.api_calls) == len(part.api_calls)
        assert again.clock.window_ns == part.clock.window_ns == window[1] - window[0]
        assert (again.ledger.early, again.ledger.late, again.ledger.nothing_recorded) == (1, 0, 0)
        assert again.ledger.launches_without_kernel == 0
        assert analysis.idle(again).to_json()["rows"] == analysis.idle(part).to_json()["rows"]


def test_open_ends_keep_everything(build, start_ns):
    whole = build.launch(1, 1000).kernel("a", 2000, correlation_id=1).recording()
    for part in (whole.between(), whole.between(start_ns), whole.between(None, start_ns + 10**6)):
        assert [len(getattr(part, name)) for name in SCHEMA] == [len(getattr(whole, name)) for name in SCHEMA]


def test_a_file_of_few_bytes_cannot_claim_columns_beyond_memory(build, tmp_path):
    full(build).save(tmp_path / "a.gpurec")

    def enlarge(name, data):
        return data.replace(b'"rows": 2', b'"rows": 999999999999') if name == "meta.json" else data

    rewritten(tmp_path / "a.gpurec", tmp_path / "b.gpurec", enlarge)
    with pytest.raises(collector.InvalidFileError, match="unpacks to more than"):
        Recording.load(tmp_path / "b.gpurec")


def test_a_part_keeps_what_is_stated_of_its_collectives(build, start_ns):
    for number, start in enumerate((0, 500)):
        stated = {"device_id": 0, "context_id": 1, "stream_id": 7, "correlation_id": number + 1}
        build.kernel("ncclDevKernel_AllReduce", start, 100, correlation_id=number + 1)
        build.raw("collectives", start_ns=start_ns + start, group_name_id=build.text("data"), **stated)
    part = build.recording().between(start_ns + 50, start_ns + 60)
    assert part.collectives.correlation_id.tolist() == part.kernels.correlation_id.tolist() == [1]


@pytest.mark.parametrize("steps", [[0], [1], [5, 300], [5, 5, 5, 1 << 20]])
def test_a_file_of_alike_steps_between_many_kernels_is_read_back(build, tmp_path, steps):
    """It takes a 250th of the bytes of its columns, or less."""
    capture = build.capture()
    rows = 700_000
    columns = {name: np.zeros(rows, values.dtype) for name, values in capture["tables"]["kernels"].items()}
    columns["start_ns"] = capture["clock"]["cupti_start_ns"] + np.resize(steps, rows).cumsum()
    columns["end_ns"] = columns["start_ns"] + 1
    capture["tables"]["kernels"] = columns
    recording = Recording.from_capture(capture)
    recording.save(tmp_path / "step.gpurec")
    assert (tmp_path / "step.gpurec").stat().st_size < sum(values.nbytes for values in columns.values()) // 250
    again = Recording.load(tmp_path / "step.gpurec")
    for name in columns:
        np.testing.assert_array_equal(again.kernels[name], recording.kernels[name])


def test_a_part_counts_its_own_launches_and_states_those_at_its_ends_as_cut(build, start_ns, tmp_path):
    build.launch(1, 1000).kernel("before", 2000, correlation_id=1)
    build.launch(2, 3000).kernel("after", 9000, correlation_id=2)
    build.launch(3, 8000).kernel("later", 9500, correlation_id=3)
    part = build.recording().between(None, start_ns + 5000)
    assert (len(part.kernels), part.ledger.losses()) == (1, [])
    assert (part.ledger.launches_seen, part.ledger.launches_matched, part.ledger.launches_cut) == (2, 1, 1)
    assert part.between().ledger == part.ledger == Recording.from_capture(part.to_capture()).ledger
    for suffix in ("gpurec", "pb", "pickle"):
        assert saved_and_read(part, tmp_path / f"part.{suffix}").ledger == part.ledger
    for suffix in ("json", "xplane.pb"):
        found = saved_and_read(part, tmp_path / f"part.{suffix}").ledger
        assert all(getattr(found, figure) == getattr(part.ledger, figure) for figure in LAUNCH_FIGURES)


def test_a_launch_without_kernel_is_a_loss_of_the_part_that_has_it(build, start_ns):
    build.launch(1, 1000).kernel("after the part", 9000, correlation_id=1)
    build.launch(2, 3000).kernel("in", 3500, correlation_id=2)
    build.launch(3, 20_000)
    whole = build.recording()
    assert whole.ledger.launches_without_kernel == 1
    for begin, end, lost, cut in ((0, 5000, 0, 1), (15_000, 30_000, 1, 0), (0, 30_000, 1, 0)):
        ledger = whole.between(start_ns + begin, start_ns + end).ledger
        assert (ledger.launches_without_kernel, ledger.launches_cut) == (lost, cut)


def test_kernels_of_unknown_launches_are_not_one_launch_that_is_cut(build, start_ns):
    build.launch(1, 1000).kernel("in", 2000, correlation_id=1)
    build.kernel("of an unknown launch", 3000, correlation_id=0).kernel("of another one", 4000, correlation_id=0)
    build.launch(2, 8000).kernel("later", 9500, correlation_id=2)
    capture = build.capture()
    parts = Part(start_ns + 500, 1, is_continued=False), Part(start_ns, 0, is_continued=True)
    for part in ({}, *({"part": each} for each in parts)):
        ledger = Recording.from_capture({**capture, **part}).ledger
        assert (ledger.kernels_without_launch, ledger.launches_cut) == (2, 0), part


def test_a_kernel_is_cut_if_its_call_was_before_those_of_the_part(build, start_ns):
    """Correlation ids are in the order of calls; of those the part has 12 and 20."""
    for correlation in (9, 9, 11):
        build.kernel("of an earlier call", 600, correlation_id=correlation)
    capture = build.capture() | {"part": Part(start_ns + 500, 1, is_continued=False, has_calls_before=True)}
    ledger = Recording.from_capture(capture).ledger
    assert (ledger.kernels_without_launch, ledger.launches_cut) == (0, 2)  # no call at all is in the part
    build.launch(12, 1000).launch(20, 2000).kernel("in", 3000, correlation_id=12).kernel("in", 4000, correlation_id=20)
    build.kernel("of a call that is missing", 5000, correlation_id=15)
    build.kernel("of another one", 6000, correlation_id=21)
    capture = build.capture() | {"part": Part(start_ns + 500, 1, is_continued=False)}
    ledger = Recording.from_capture(capture).ledger
    assert (ledger.kernels_without_launch, ledger.launches_cut) == (2, 2)


def test_a_part_of_a_part_counts_its_own_launches(build, start_ns, tmp_path):
    for number in range(1, 6):
        build.launch(number, 1000 * number).kernel("k", 1000 * number + 1200, 100, correlation_id=number)
    part = build.recording().between(start_ns, start_ns + 5100)
    assert (part.ledger.launches_seen, part.ledger.launches_matched, part.ledger.launches_cut) == (5, 3, 2)
    part.save(tmp_path / "part.gpurec")
    for each in (part, collector.load(tmp_path / "part.gpurec").recording):
        inner = each.between(start_ns + 2000, start_ns + 3100).ledger
        assert (inner.launches_seen, inner.launches_matched, inner.launches_cut) == (3, 1, 2)


@pytest.mark.parametrize("suffix", ["memory", "gpurec", "pb", "json", "xplane.pb", "pickle"])
def test_a_part_has_the_names_of_annotations_that_are_set_apart(build, start_ns, tmp_path, suffix):
    """They began before the step or end after it: launches have their names, but they are not rows of the part."""
    build.annotation("before", -500, 4000, 4, 1).annotation("after", 3500, 10**8, 5, 2)
    build.annotation("in", 4500, 900, 6, 3)
    build.raw("annotations", end_ns=start_ns + 90, name_id=build.text("of no time"), external_id=7)
    build.raw("external_correlations", correlation_id=4, external_id=7, external_kind=ANNOTATION_EXTERNAL_KIND)
    for number in range(1, 5):
        build.launch(number, 1000 * number + 1000).kernel(f"k{number}", 9000 + 100 * number, 50, correlation_id=number)
    whole = build.recording()
    names = ["before", "after", "in", "of no time"]
    assert whole.annotations_of(whole.kernels) == names
    part = whole.between(start_ns, start_ns + 20_000)
    found = part.between() if suffix == "memory" else saved_and_read(part, tmp_path / f"part.{suffix}")
    assert part.annotations_of(part.kernels) == found.annotations_of(found.kernels) == names
    assert part.annotations.names() == ["in"]
    assert (part.ledger.early, part.ledger.late, part.ledger.invalid_timestamps) == (1, 1, 1)
    assert found.ledger.losses() == part.ledger.losses() == whole.ledger.losses()
    few = whole.between(start_ns + 9150, start_ns + 9250)
    assert few.annotations_of(few.kernels) == ["after"]
    assert len(few.all_annotations) == 1


def saved_and_read(recording, path):
    """A recording that was written to a file, or pickled, and read again."""
    if path.suffix == ".pickle":
        return pickle.loads(pickle.dumps(recording))
    recording.save(path)
    return collector.load(path).recording


def test_a_file_keeps_the_figures_of_its_launches_and_a_part_has_those_of_the_part(build, tmp_path):
    recording = build.launch(1, 1000).kernel("sgemm", 5000, correlation_id=1).launch(2, 9000).recording()
    recording.save(tmp_path / "a.gpurec")
    with zipfile.ZipFile(tmp_path / "a.gpurec") as archive:
        figures = json.loads(archive.read("meta.json"))["launch_figures"]
    assert (figures["launches_seen"], figures["launches_matched"]) == (2, 1)

    def without_figures(name, data):
        return data.replace(b'"launch_figures"', b'"other_figures"') if name == "meta.json" else data

    rewritten(tmp_path / "a.gpurec", tmp_path / "b.gpurec", without_figures)
    for name in ("a", "b"):
        assert Recording.load(tmp_path / f"{name}.gpurec").ledger == recording.ledger
    part = recording.between(None, recording.kernels.end_ns[0])
    assert len(part.api_calls) == 2
    part.save(tmp_path / "part.gpurec")
    assert Recording.load(tmp_path / "part.gpurec").ledger.launches_seen == 1
