"""Host time in annotations."""

from __future__ import annotations

import pytest

from collector.analysis import annotation_times


def test_times_of_the_host(build):
    build.environment["source"] = "profiler"
    build.annotation("outer", 0, 1000, 1).annotation("inner", 100, 50, 2).annotation("inner", 200, 70, 3)
    build.annotation("inner", 2000, 10, 4).annotation("early", -500, 100, 5)
    rows = [tuple(row.values()) for row in annotation_times(build.recording())]
    assert rows == [("outer", 1, 1000, 1000, 1000, 1000), ("inner", 3, 130, 10, 50, 70)]
    by_path = annotation_times(build.recording(), by="path")
    assert {row["path"]: row["total_ns"] for row in by_path} == {"outer": 1000, "outer/inner": 120, "inner": 10}
    assert by_path.evidence[1]["annotations"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="counted by name, path"):
        annotation_times(build.recording(), by="thread")


def test_annotations_without_length_have_those_around_them_in_their_path(build):
    build.environment["source"] = "profiler"
    build.annotation("outer", 100, 900, 1).annotation("inner", 200, 100, 2)
    build.annotation("moment", 250, 0, 3).annotation("moment", 250, 0, 4).annotation("moment", 600, 0, 5)
    build.annotation("moment", 50, 0, 6).annotation("moment", 1500, 0, 7).annotation("at once", 100, 0, 8)
    build.annotation("other thread", 600, 0, 9)
    build.rows["annotations"][-1]["thread_id"] = 12
    answer = annotation_times(build.recording(), by="path")
    assert {row["path"]: row["count"] for row in answer} == {
        "outer": 1,
        "outer/inner": 1,
        "outer/inner/moment": 2,
        "outer/moment": 1,
        "moment": 2,
        "outer/at once": 1,
        "other thread": 1,
    }


@pytest.mark.medium
def test_ranges_of_an_export_of_nsight_systems(load_trace):
    step = load_trace("nsys_ai/mfu_2gpu_after.sqlite.gz")
    for by in ("name", "path"):
        answer = annotation_times(step, by=by)
        assert answer.totals["count"] == len(step.recording.annotations)
        assert answer.totals["total_ns"] == int(step.recording.annotations.duration_ns.sum())
