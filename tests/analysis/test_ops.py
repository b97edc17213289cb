"""GPU time by annotation."""

from __future__ import annotations

import pytest
from captures import WINDOW_NS

from collector.analysis import annotation_times, between, devices, ops
from collector.analysis.annotation_paths import NO_ANNOTATION


def rows_of(answer):
    return [
        (row["path"], row["depth"], row["activities"], row["self_activities"], row["self_ns"], row["total_ns"])
        for row in answer
    ]


def test_self_and_total_time_of_nested_annotations(build):
    build.environment["source"] = "native"
    for correlation, start, duration in ((1, 1000, 100), (2, 2000, 300), (3, 3000, 20), (4, 4000, 7)):
        build.launch(correlation, start - 900).kernel("k", start, duration, correlation_id=correlation)
    build.memcpy(5000, 50, correlation_id=5)
    build.annotation("step", 0, 9000, 70, 1).annotation("step/forward", 10, 3000, 71, 2, 5)
    build.annotation("step/forward/conv", 20, 100, 72, 3)
    answer = ops(build.recording())
    assert rows_of(answer) == [
        ("step", 0, 4, 1, 100, 470),
        ("step/forward", 1, 3, 2, 350, 370),
        ("step/forward/conv", 2, 1, 1, 20, 20),
        (NO_ANNOTATION, 0, 1, 1, 7, 7),
    ]
    assert answer.totals == {"self_activities": 5, "self_ns": 477}
    assert answer["share"].tolist() == pytest.approx([470 / 477, 370 / 477, 20 / 477, 7 / 477])
    assert [(row["runs"], row["host_ns"]) for row in answer][:2] == [(1, 9000), (1, 3000)]
    assert {table: rows.tolist() for table, rows in answer.evidence[1].items()} == {"kernels": [1, 2], "memcpys": [0]}


def test_an_outer_scope_that_only_a_path_names(build):
    build.launch(1, 100).kernel("k", 1000, 100, correlation_id=1).annotation("layer1/conv", 0, 900, 70, 1)
    assert rows_of(ops(build.recording())) == [("layer1", 0, 1, 0, 0, 100), ("layer1/conv", 1, 1, 1, 100, 100)]


def test_names_that_are_no_paths_lie_in_what_is_around_them(build):
    build.environment["source"] = "profiler"
    build.launch(1, 100).kernel("k", 1000, 100, correlation_id=1)
    build.launch(2, 600).kernel("k", 2000, 30, correlation_id=2)
    build.annotation("aten::linear", 0, 900, 70).annotation("aten::addmm", 50, 300, 71, 1)
    build.annotation("aten::addmm", 950, 10, 72, 2)
    assert [row[:1] + row[4:] for row in rows_of(ops(build.recording()))] == [
        ("aten::linear", 0, 100),
        ("aten::linear/aten::addmm", 100, 100),
        ("aten::addmm", 30, 30),
    ]


def test_ranges_of_ours_that_only_overlap_in_time_are_not_nested(build):
    build.environment["source"] = "native"
    build.kernel("k", 0, 5, correlation_id=1).kernel("k", 0, 3, correlation_id=2)
    build.annotation("a", 0, 900, 70, 1).annotation("b", 100, 300, 71, 2).annotation("idle", 0, 10, 72)
    assert ops(build.recording())["path"].tolist() == ["a", "b"]


def test_activities_of_graphs_are_in_the_annotations_of_the_launch_and_of_the_capture(build):
    build.environment["source"] = "native"
    build.annotation("model", 0, 10, 60).annotation("other", 20, 10, 61)
    build.annotation("train", 100, 50, 70, 1).annotation("eval", 200, 50, 71, 2)
    activities = [(100, 1, 60), (30, 1, 61), (7, 2, 60), (2, 2, 0), (1, 3, 60)]  # ns, launch, annotation of the capture
    for number, (duration, correlation, captured) in enumerate(activities, 1):
        build.kernel("k", 1000 * number, duration, correlation_id=correlation, captured_external_id=captured)
    assert rows_of(ops(build.recording())) == [
        ("train", 0, 2, 0, 0, 130),
        ("train/<captured_at>", 1, 2, 0, 0, 130),
        ("train/<captured_at>/model", 2, 1, 1, 100, 100),
        ("train/<captured_at>/other", 2, 1, 1, 30, 30),
        ("eval", 0, 2, 1, 2, 9),
        ("eval/<captured_at>", 1, 1, 0, 0, 7),
        ("eval/<captured_at>/model", 2, 1, 1, 7, 7),
        ("<captured_at>", 0, 1, 0, 0, 1),
        ("<captured_at>/model", 1, 1, 1, 1, 1),
    ]


@pytest.mark.parametrize("source", ["native", "chrome"])
def test_runs_are_those_of_annotations_of_the_step(build, source):
    """As `annotation_times` counts them, and as in a part of the step that is all of it."""
    build.environment["source"] = source
    build.annotation("before", -50, 90, 1, 1).kernel("a", 10, 20, correlation_id=1)
    build.annotation("inside", 100, 90, 2, 2).kernel("b", 110, 20, correlation_id=2)
    build.annotation("beyond", WINDOW_NS - 50, 90, 3, 3).kernel("c", WINDOW_NS - 20, 10, correlation_id=3)
    recording = build.recording()
    answer = ops(recording)
    assert {row["path"]: (row["runs"], row["host_ns"], row["activities"]) for row in answer} == {
        "before": (0, 0, 1),
        "inside": (1, 90, 1),
        "beyond": (0, 0, 1),
    }
    times = annotation_times(recording)
    assert [(row["name"], row["count"], row["total_ns"]) for row in times] == [("inside", 1, 90)]
    assert answer.to_json()["rows"] == ops(between(recording, 0, WINDOW_NS)).to_json()["rows"]


def test_work_without_any_annotation(example):
    assert rows_of(ops(example)) == [(NO_ANNOTATION, 0, 8, 8, 810, 810)]


def test_names_of_strangers(build):
    names = ['a"b', "c\nd", "e\0f", "/", "", "//g", "h/", NO_ANNOTATION]
    for number, name in enumerate(names, 1):
        build.launch(number, 1000 * number).kernel("k", 1000 * number + 600, 10, correlation_id=number)
        build.annotation(name, 1000 * number, 500, 70 + number, number)
    answer = ops(build.recording())
    assert answer.totals == {"self_activities": 8, "self_ns": 80}
    assert set(answer["path"]) == {'a"b', "c\nd", "e\0f", "/", "//g", "h", "h/", NO_ANNOTATION}
    assert "\0" not in answer.text()


def test_several_steps(example, build):
    build.kernel("k", 0, 5)
    answer = ops([example, build.recording()])
    assert (answer["step"].tolist(), answer["self_ns"].tolist()) == ([0, 1], [810, 815])


@pytest.mark.medium
@pytest.mark.parametrize(
    "name",
    [
        "hta/a100_rank0of2_nccl_metadata.json.gz",
        "hta/v100_rank1of2_diff_test_graphs.json.gz",
        "torch_tutorial/h100_transformer_before.json.gz",
        "nsys_ai/mfu_2gpu_before.sqlite.gz",
    ],
)
def test_self_times_of_recorded_traces_add_up_to_all_gpu_time(load_trace, name):
    step = load_trace(name)
    recording = step.recording
    spent = sum(int(table.duration_ns.sum()) for table in (recording.kernels, recording.memcpys, recording.memsets))
    answer = ops(step)
    assert answer.totals["self_ns"] == spent
    assert answer.totals["self_activities"] == devices(step).totals["activities"]
    assert len(answer) > 3


@pytest.mark.medium
def test_work_in_ranges_of_an_export_of_nsight_systems(load_trace):
    answer = ops(load_trace("nsys_ai/mfu_2gpu_after.sqlite.gz"))
    without = next(row for row in answer if row["path"] == NO_ANNOTATION)
    assert answer.totals["self_activities"] - without["activities"] == 4717


@pytest.mark.medium
def test_trees_add_up_whatever_lies_in_what(build):
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies
    ranges = st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "a/b", "c/d/e"]),
            st.integers(0, 50),
            st.integers(0, 50),
            st.lists(st.integers(1, 12), max_size=3),
        ),
        max_size=10,
    )
    kernels = st.lists(st.tuples(st.integers(0, 900), st.integers(1, 90), st.integers(0, 12)), max_size=12)

    @hypothesis.given(ranges, kernels, st.sampled_from(["native", "profiler"]))
    def check(ranges, kernels, source):
        made = type(build)()
        made.environment["source"] = source
        for external, (name, start, duration, launched) in enumerate(ranges, 1):
            made.annotation(name, start * 10, duration * 10, external, *launched)
        for start, duration, correlation in kernels:
            made.kernel("k", start, duration, correlation_id=correlation)
        recording = made.recording()
        answer = ops(recording)
        assert answer.totals == {
            "self_activities": len(kernels),
            "self_ns": sum(duration for _, duration, _ in kernels),
        }
        rows = list(answer)
        assert sum(row["total_ns"] for row in rows if row["depth"] == 0) == answer.totals["self_ns"]
        for place, row in enumerate(rows):
            children = 0
            for other in rows[place + 1 :]:
                if other["depth"] <= row["depth"]:
                    break
                children += other["total_ns"] if other["depth"] == row["depth"] + 1 else 0
            assert row["self_ns"] + children == row["total_ns"]
            assert sum(map(len, answer.evidence[place].values())) == row["activities"]
        for rows_of_table in made.rows.values():
            rows_of_table.reverse()
        if source == "native":  # of ranges with the same times only their order tells which lies in which
            assert ops(made.recording()).to_json()["rows"] == answer.to_json()["rows"]

    check()
