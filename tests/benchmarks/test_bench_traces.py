"""benchmarks/_traces.py: its checks of trace files."""

from __future__ import annotations

import gzip
import json

import pytest


@pytest.fixture
def traces(root, load_module):
    return load_module(root / "benchmarks" / "_traces.py")


def written(tmp_path, *events):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": list(events)}))
    return path


def slice_at(ts, dur, name="k", tid=1, **more):
    return {"ph": "X", "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "cat": "kernel", **more}


def test_a_good_file_is_reported_to_be_good(traces, tmp_path):
    nested = [slice_at(0, 10), slice_at(1, 3), slice_at(4, 6), slice_at(10, 5)]
    path = written(tmp_path, {"ph": "M", "name": "process_name", "pid": 1}, *nested)
    assert traces.facts(path, "k") == (4, {"JSON": "yes", "overlap without nesting": "none", "out of order": "none"})


def test_slices_of_a_row_that_overlap_are_counted_and_of_two_rows_are_not(traces, tmp_path):
    crossing = [slice_at(0, 10), slice_at(5, 10), slice_at(12, 1)]
    other_row = slice_at(7, 10, tid=2)
    other_process = slice_at(7, 10, pid=2)
    _, facts = traces.facts(written(tmp_path, *crossing, other_row, other_process), "k")
    assert facts["overlap without nesting"] == "1 of 5 slices, 1 where the kernel is"
    _, facts = traces.facts(written(tmp_path, *crossing, slice_at(7, 10, "another", tid=2)), "another")
    assert facts["overlap without nesting"] == "1 of 4 slices, 0 where the kernel is"


@pytest.mark.parametrize(
    ("slices", "count"),
    [
        ([(0, 10), (0, 4), (4, 10)], 0),
        ([(0, 4), (0, 10)], 0),
        ([(0, 4), (3, 5), (4, 6)], 1),
        ([(0, 4), (3, 5), (3, 6)], 2),
        ([(0, 10), (2, 2), (2, 3), (10, 10)], 0),
        ([(5, 9), (0, 6)], 1),
        ([(0, 10), (1, 4), (3, 6)], 1),
    ],
)
def test_overlapping_without_nesting(traces, slices, count):
    assert traces.overlapping(slices) == count


def test_what_comes_after_one_that_begins_later_is_out_of_order(traces, tmp_path):
    assert traces.late([(1, 2), (5, 6), (3, 4), (4, 5), (5, 7)]) == 2
    _, facts = traces.facts(written(tmp_path, slice_at(5, 1), slice_at(1, 1), slice_at(0, 1, tid=2)), "k")
    assert facts["out of order"] == "1 of 3 slices, 1 where the kernel is"


def test_microseconds_since_the_epoch_lose_no_nanosecond(traces, tmp_path):
    # As doubles they would begin at .25 and .5, and the first would end within the second.
    path = tmp_path / "trace.json"
    events = [
        f'{{"ph":"X","name":"k","pid":1,"tid":1,"ts":1795265620277379.{at},"dur":0.300}}' for at in ("130", "430")
    ]
    path.write_text(f"[{', '.join(events)}]")
    count, facts = traces.facts(path, "k")
    assert (count, facts["overlap without nesting"]) == (2, "none")


def test_only_kernels_of_the_name_are_counted(traces, tmp_path):
    path = written(
        tmp_path,
        slice_at(0, 1, "empty_kernel"),
        slice_at(1, 1, "empty_kernel", cat=""),
        slice_at(1, 1, "empty_kernel", cat="Kernel"),
        slice_at(2, 1, "empty_kernel", cat="gpu_user_annotation"),
        slice_at(3, 1, "another"),
        {"ph": "s", "name": "empty_kernel", "cat": "kernel", "id": 1, "ts": 0},
    )
    assert traces.facts(path, "empty_kernel")[0] == 3


@pytest.mark.parametrize(
    ("file", "kernels", "overlap"),
    [
        pytest.param("kineto/v100_resnet50_early_format", 9538, "none", marks=pytest.mark.slow),
        ("torch_tutorial/h100_transformer_after", 48, "18 of 1201 slices, 0 where the kernel is"),
        ("proton/triton_example", 2, "none"),
    ],
)
def test_files_of_others_are_read(traces, shared, tmp_path, file, kernels, overlap):
    path = tmp_path / "trace.json"
    path.write_bytes(gzip.decompress((shared / "data" / "gpu_traces" / f"{file}.json.gz").read_bytes()))
    count, facts = traces.facts(path, "")
    assert (count, facts["JSON"], facts["overlap without nesting"]) == (kernels, "yes", overlap)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"traceEvents": [', "no: Expecting"),
        (b'{"traceEvents": [{"ph": "X", "ts": NaN}]}', "no: NaN is not a number of JSON"),
        (b'{"traceEvents": [{"name": "\xff"}]}', "no: 'utf-8'"),
        (b'{"traceEvents": [{"name": "a\nb"}]}', "no: Invalid control character"),
        (b"", "no: Expecting value"),
    ],
    ids=["cut", "NaN", "bytes", "newline", "empty"],
)
def test_what_is_no_json_is_reported_to_be_none(traces, tmp_path, content, message):
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    count, facts = traces.facts(path, "k")
    assert count == 0
    assert facts["JSON"].startswith(message)


def test_a_document_in_each_line_is_counted_and_is_no_document(traces, tmp_path):
    path = tmp_path / "trace.chrome_trace"
    path.write_text("".join(json.dumps({"traceEvents": [slice_at(0, 1, tid=tid)]}) + "\n" for tid in (1, 2)))
    count, facts = traces.facts(path, "k")
    assert count == 2
    assert facts["JSON"] == "no: 2 documents, one in each line"
