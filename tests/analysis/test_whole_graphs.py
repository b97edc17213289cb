"""Graphs that were recorded as a whole: their time is busy time, and what ran in them is not known."""

from __future__ import annotations

import pytest

from collector import analysis
from collector.analysis import concurrency, critical_path, devices, idle, idle_gaps, idle_ops, overlap, streams
from collector.analysis.idle import CAUSES
from collector.analysis.notebook_overview import overview_html
from collector.analysis.questions import QUESTIONS
from collector.analysis.summary import summarize
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource
from collector.recording.cupti_enums import DEGREE_CAPTURED
from collector.testing.plugin.figures import figures_of
from collector.web.report_data import step_data
from tests.support.captures import WINDOW_NS
from tests.support.captures import CaptureBuilder as Builder

COUNTED = (
    "2 launches of CUDA graphs were recorded as a whole: each counts as one activity, as the kernels, copies and "
    "memsets in it are not known."
)
NOT_COUNTED = (
    "2 launches of CUDA graphs were recorded as a whole: the kernels, copies and memsets in them are not counted."
)
OF_BUSY_TIME = {
    *("devices", "concurrency", "streams", "overlap", "idle", "idle_ops", "idle_gaps", "critical_path"),
    *("launches", "launch_delays", "queue", "steps"),
}
"""Questions that count a whole graph as an activity."""
OF_KERNELS = {"kernels", "ops", "copies", "occupancy", "tensor_cores"}
"""Questions that do not, because they are about the activities in it."""


@pytest.fixture
def with_graphs(build):
    """A step with a kernel of 1 µs beside a graph of 101 µs, a further graph of 100 µs, and the calls of both."""
    for number, (start, duration) in enumerate([(2_000, 101_000), (110_000, 100_000)], start=1):
        build.whole_graph(start, duration, correlation_id=number, name="decode")
        build.call("cuGraphLaunch", start - 1_500, correlation_id=number)
    return build.kernel("k", 50_000, 1_000)


@pytest.fixture
def crowded(build):
    """Graphs beside kernels, copies and each other on one device, one over the step's end; a device with a graph alone.

    ```text
    µs       10   20   30   40   50   60   70   80   90  100  110  120 … 990  1000  1020
    compute   ━━━━━━━━━━
    graphs         ━━━━━━━━━━━━━━━━━━━━                                   ━━━━━━━━━━
                                  ━━━━━━━━━━━━━━━
    nccl                                    ━━━━━━━━━━━━━━━
    copy                                              ━━━━━━━━━━
    memset                                                    ━━━━━━━
    ```
    """
    build.kernel("gemm", 10_000, 20_000)
    build.whole_graph(20_000, 40_000, stream_id=8).whole_graph(50_000, 30_000, stream_id=9)
    build.kernel("ncclDevKernel_AllReduce", 70_000, 30_000, stream_id=10)
    build.memcpy(90_000, 20_000).memset(105_000, 15_000)
    build.whole_graph(990_000, 30_000, stream_id=8).whole_graph(300_000, 100_000, device_id=1, context_id=2)
    build.clock["cupti_stop_ns"] += 50_000
    return analysis.between(build.recording(), 0, 1_000_000)


def test_graphs_are_busy_time_that_compute_hides_and_that_hides_the_rest(crowded):
    first, second = devices(crowded)
    expected = {
        "window_ns": 1_000_000,
        "busy_ns": 120_000,
        "idle_ns": 880_000,
        "busy_share": 0.12,
        "compute_ns": 20_000,
        "communication_ns": 30_000,
        "copy_ns": 20_000,
        "memset_ns": 15_000,
        "graph_ns": 60_000 + 10_000,
        "overlap_ns": 0,
        "exposed_graph_ns": 50_000 + 10_000,
        "exposed_communication_ns": 20_000,
        "exposed_copy_ns": 10_000,
        "exposed_memset_ns": 10_000,
        "mean_concurrency": 0.165,
        "max_concurrency": 2,
        "activities": 7,
    }
    assert first == {"device_id": 0, **expected}
    assert [second[name] for name in ("device_id", "busy_ns", "graph_ns", "exposed_graph_ns")] == [1, *[100_000] * 3]
    assert figures_of([crowded]).device_time_ns == 220_000


def test_the_span_of_a_device_begins_and_ends_with_its_graphs(crowded):
    assert devices(crowded, window="span")["window_ns"].tolist() == [1_010_000, 100_000]
    assert devices(crowded, window="span")["graph_ns"].tolist() == [90_000, 100_000]


def test_the_rows_of_graphs_are_evidence(crowded):
    first, second = devices(crowded).evidence
    assert {table: rows.tolist() for table, rows in first.items()} == {
        "kernels": [0, 1],
        "memcpys": [0],
        "memsets": [0],
        "graph_launches": [0, 1, 3],
    }
    assert {table: rows.tolist() for table, rows in second.items()} == {"graph_launches": [2]}


def test_graphs_run_at_once_with_each_other_and_with_kernels(crowded):
    found = [(row["running"], row["duration_ns"]) for row in concurrency(crowded) if row["device_id"] == 0]
    assert found == [(0, 880_000), (1, 75_000), (2, 45_000)]


def test_a_graph_runs_on_the_stream_of_its_launch(crowded):
    found = {
        (row["device_id"], row["stream_id"]): (row["activities"], row["total_ns"], row["busy_ns"], row["alone_ns"])
        for row in streams(crowded)
    }
    assert found == {
        (0, 7): (3, 55_000, 50_000, 30_000),
        (0, 8): (2, 70_000, 50_000, 30_000),  # the second one runs beyond the end of the step
        (0, 9): (1, 30_000, 30_000, 10_000),
        (0, 10): (1, 30_000, 30_000, 10_000),
        (1, 7): (1, 100_000, 100_000, 100_000),
    }
    assert figures_of([crowded]).streams == 5
    assert figures_of([crowded]).devices == 2


def test_graphs_hide_communication_and_copies(crowded):
    row, _ = overlap(crowded)
    assert (row["graph_ns"], row["exposed_graph_ns"]) == (70_000, 60_000)
    assert (row["exposed_communication_ns"], row["hidden_communication"]) == (20_000, pytest.approx(1 / 3))
    assert (row["exposed_copy_ns"], row["hidden_copy"]) == (10_000, 0.5)
    assert (row["compute_communication_ns"], row["compute_copy_ns"]) == (0, 0)
    (stream,) = overlap(crowded, by="stream")
    assert (stream["stream_id"], stream["communication_ns"], stream["hidden_ns"]) == (10, 30_000, 10_000)
    assert (stream["exposed_ns"], stream["exposed_alone_ns"]) == (20_000, 20_000)


@pytest.fixture
def launched(build):
    """Kernels and graphs by turns, each with a gap before it of another cause."""
    build.call("cudaLaunchKernel", 0, correlation_id=1).kernel("first", 1_000, 9_000, correlation_id=1)
    build.call("cudaGraphLaunch", 5_000, correlation_id=2).whole_graph(11_000, 39_000, correlation_id=2)
    build.call("cudaDeviceSynchronize", 40_000, 15_000)
    build.call("cudaGraphLaunch", 60_000, correlation_id=3)
    build.whole_graph(62_000, 28_000, correlation_id=3, graph_id=7, name="decode")
    build.annotation("generate", 59_000, 2_000, 1, 3)
    build.call("cudaLaunchKernel", 70_000, correlation_id=4).kernel("second", 100_000, 10_000, correlation_id=4)
    return build.whole_graph(130_000, 20_000)


def test_a_graph_ends_a_gap_and_begins_one(launched):
    rows = [
        (row["start_ns"], row["end_ns"], {cause: row[f"{cause}_ns"] for cause in CAUSES if row[f"{cause}_ns"]})
        for row in sorted(idle_gaps(launched.recording()), key=lambda row: row["start_ns"])
    ]
    assert rows == [
        (0, 1_000, {"launch_latency": 1_000}),
        (10_000, 11_000, {"kernel_gap": 1_000}),
        (50_000, 62_000, {"synchronize": 5_000, "host": 5_000, "launch_latency": 2_000}),
        (90_000, 100_000, {"dependency": 10_000}),
        (110_000, 130_000, {"no_launch": 20_000}),
        (150_000, 1_000_000, {"tail": 850_000}),
    ]
    (row,) = idle(launched.recording())
    assert (row["idle_ns"], row["gaps"]) == (894_000, 6)
    evidence = idle_gaps(launched.recording()).evidence
    assert [{table: rows.tolist() for table, rows in each.items()} for each in evidence] == [
        {},
        {"graph_launches": [2]},
        {"graph_launches": [1]},
        {"kernels": [1]},
        {"kernels": [0]},
        {"graph_launches": [0]},
    ]


def test_a_gap_belongs_to_the_annotation_of_the_graph_that_ended_it(launched):
    assert {row["path"]: row["idle_ns"] for row in idle_ops(launched.recording())}["generate"] == 12_000


def test_the_critical_path_goes_through_graphs(launched):
    launched.rows["graph_launches"].pop()
    found = [
        (row["kind"], row["name"], row["op"], row["stream_id"], row["duration_ns"])
        for row in critical_path(launched.recording(), by="segment")
    ]
    assert found == [
        ("launch_latency", "first", "", 7, 1_000),
        ("compute", "first", "", 7, 9_000),
        ("kernel_gap", "graph 6", "", 7, 1_000),
        ("graph", "graph 6", "", 7, 39_000),
        ("synchronize", "cudaDeviceSynchronize", "", -1, 5_000),
        ("host", "cudaGraphLaunch", "generate", -1, 5_000),
        ("launch_latency", "decode (graph 7)", "generate", 7, 2_000),
        ("graph", "decode (graph 7)", "generate", 7, 28_000),
        ("dependency", "second", "", 7, 10_000),
        ("compute", "second", "", 7, 10_000),
    ]
    answer = critical_path(launched.recording(), by="kind")
    graphs = next(place for place, row in enumerate(answer) if row["kind"] == "graph")
    assert {table: rows.tolist() for table, rows in answer.evidence[graphs].items()} == {"graph_launches": [0, 1]}


def test_a_graph_waits_from_its_call_to_its_start(launched):
    rows = {row["api"]: row for row in analysis.launches(launched.recording())}
    assert (rows["cudaGraphLaunch"]["calls"], rows["cudaGraphLaunch"]["activities"]) == (2, 2)
    assert (rows["cudaGraphLaunch"]["min_delay_ns"], rows["cudaGraphLaunch"]["max_delay_ns"]) == (2_000, 6_000)
    delays = analysis.launch_delays(launched.recording())
    assert [(row["table"], row["row"], row["delay_ns"]) for row in delays] == [
        ("kernels", 0, 1_000),
        ("graph_launches", 0, 6_000),
        ("graph_launches", 1, 2_000),
        ("kernels", 1, 30_000),
    ]
    (queue,) = analysis.queue(launched.recording())
    assert (queue["activities"], queue["window_ns"], queue["empty_ns"], queue["max_depth"]) == (4, 100_000, 61_000, 1)
    assert "1 activity without a recorded call" in " ".join(analysis.queue(launched.recording()).losses)


@pytest.mark.parametrize("question", ["launches", "launch_delays", "queue"])
def test_graphs_without_a_recorded_call_are_why_an_answer_is_empty(build, question):
    answer = QUESTIONS[question].ask(build.whole_graph(10).recording())
    assert "No call that launched them is in the recording." in answer.notes


def test_steps_count_their_graphs_and_name_the_graph_that_explains_an_outlier(build):
    for number, length in enumerate([20_000, 20_000, 21_000, 60_000, 20_000, 22_000]):
        start = 100_000 * number
        build.annotation(f"step {number}", start, length + 3_000, number + 1)
        build.call("cudaGraphLaunch", start + 500, correlation_id=number + 1)
        build.whole_graph(start + 2_000, length, correlation_id=number + 1, name="decode")
    rows = list(analysis.steps(build.recording()))
    assert [row["busy_ns"] for row in rows] == [20_000, 20_000, 21_000, 60_000, 20_000, 22_000]
    assert [row["activities"] for row in rows] == [1] * 6
    assert [(row["verdict"], row["op"], row["op_excess_ns"]) for row in rows][3] == (
        "outlier",
        "decode (graph 6)",
        39_000,
    )


def test_a_change_of_the_time_of_graphs_is_not_one_of_idle_time(with_graphs):
    other = Builder().kernel("k", 50_000, 1_000).recording()
    rows = {row["part"]: row["change_ns"] for row in analysis.compare(other, with_graphs.recording(), by="time")}
    assert rows["exposed graphs"] == 200_000
    assert sum(rows.values()) == 0
    assert "compute" in rows
    assert rows["compute"] == 0


def test_a_device_with_graphs_alone_is_one_that_steps_can_find_idle(build):
    for number in range(2):
        build.annotation(f"step {number}", 100_000 * number, 100_000, number + 1)
    recording = build.whole_graph(10_000, 50_000).recording()
    rows = {row["part"]: row["now_ns"] for row in analysis.compare(recording, recording, by="time")}
    assert rows == {"exposed graphs": 25_000, "idle: no launch": 5_000, "idle: tail": 20_000 + 50_000}


def test_only_the_time_within_a_part_counts(with_graphs):
    (row,) = devices(analysis.between(with_graphs.recording(), 100_000, 120_000))
    assert (row["busy_ns"], row["graph_ns"], row["activities"]) == (13_000, 13_000, 2)


@pytest.mark.medium
def test_every_answer_about_activities_says_what_it_does_not_know(with_graphs):
    notes = {name: each.ask(with_graphs.recording()).notes for name, each in QUESTIONS.items() if not each.of_ranks}
    stated = {text: {name for name, own in notes.items() if text in own} for text in (COUNTED, NOT_COUNTED)}
    assert stated == {COUNTED: OF_BUSY_TIME, NOT_COUNTED: OF_KERNELS}, "add a question to one of the two sets"


def test_questions_about_kernels_and_copies_do_not_count_graphs(with_graphs):
    recording, without = with_graphs.recording(), Builder().kernel("k", 50_000, 1_000).recording()
    for name in OF_KERNELS:
        assert QUESTIONS[name].ask(recording).to_json()["rows"] == QUESTIONS[name].ask(without).to_json()["rows"]


def test_the_note_reaches_every_form_of_an_answer(with_graphs):
    answer = idle(with_graphs.recording())
    assert COUNTED in " ".join(str(answer).split())
    assert answer.to_json()["notes"] == [COUNTED]
    assert COUNTED in answer._repr_html_()


def test_one_note_is_about_all_steps(with_graphs):
    recording = with_graphs.recording()
    (note,) = devices([recording, recording]).notes
    assert "4 launches of CUDA graphs" in note


def test_a_comparison_says_of_which_side_graphs_are_not_known(with_graphs):
    other = Builder().kernel("k", 50_000, 1_000).recording()
    for by, note in (("idle", COUNTED), ("kernel", NOT_COUNTED)):
        answer = analysis.compare(other, with_graphs.recording(), by=by)
        assert f"now: {note}" in answer.notes
        assert not any(each.startswith("before:") for each in answer.notes)


def test_launches_of_graphs_whose_nodes_were_recorded_are_counted_by_these(build):
    build.kernel("k", 50_000, 1_000, graph_id=6)
    build.whole_graph(50_000, 100_000, graph_degree=DEGREE_CAPTURED, num_nodes=1)
    (row,) = devices(build.recording())
    assert (row["busy_ns"], row["graph_ns"], row["activities"]) == (1_000, 0, 1)
    assert devices(build.recording()).notes == ()
    assert len(streams(build.recording())) == 1


def test_the_summary_says_it(with_graphs, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    text = summarize(with_graphs.recording(), color=False)
    assert NOT_COUNTED in text
    assert "20.1%" in text
    assert "no activity of theirs" not in text


def test_a_notebook_says_it(with_graphs):
    text = overview_html(with_graphs.recording())
    assert NOT_COUNTED in text
    assert "20.1%" in text
    only_graphs = overview_html(Builder().whole_graph(0, 500_000).recording())
    assert "50.0%" in only_graphs


@pytest.mark.parametrize("has_work", [True, False])
def test_the_page_says_it_beside_the_share_of_busy_time(build, has_work):
    build.whole_graph(2_000, 90_000)
    if has_work:
        build.kernel("k", 500_000, 10_000)
    found = step_data(Step(RecordingSource(build.recording())), "step.gpurec").described
    assert f"busy {'10.0' if has_work else '9.0'}%" in found["verdict"]
    assert "the kernels, copies and memsets in them are not counted" in found["verdict"]


def test_the_page_draws_graphs_on_their_device_and_stream(crowded):
    lanes = step_data(Step(RecordingSource(crowded)), "step.gpurec").lanes
    drawn = {lane.name: lane for lane in lanes.lanes}
    assert (drawn["GPU 1 stream 7"].starts - crowded.clock.cupti_start_ns).tolist() == [300_000]
    assert lanes.names[drawn["GPU 1 stream 7"].names[0]] == "graph 6"
    assert len(drawn["GPU 0"].starts) == 7
    assert len(drawn["GPU 0 stream 8"].starts) == 2


@pytest.mark.medium
def test_the_time_is_that_of_counting_each_nanosecond():
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies
    rows = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20), st.integers(0, 1)), max_size=6)

    @hypothesis.given(rows, rows, rows)
    def check(graphs, kernels, collectives):
        build = Builder()
        for start, duration, device in graphs:
            build.whole_graph(start, duration, device_id=device)
        for name, drawn in (("k", kernels), ("ncclKernel", collectives)):
            for start, duration, device in drawn:
                build.kernel(name, start, duration, device_id=device)
        recording = build.recording()
        ran, computed, communicated = (
            {(device, moment) for start, duration, device in each for moment in range(start, start + duration)}
            for each in (graphs, kernels, collectives)
        )
        answer = devices(recording)
        found = {name: int(answer[name].sum()) for name in ("graph_ns", "exposed_graph_ns", "exposed_communication_ns")}
        assert found == {
            "graph_ns": len(ran),
            "exposed_graph_ns": len(ran - computed),
            "exposed_communication_ns": len(communicated - computed - ran),
        }
        assert answer.totals["idle_ns"] == len(answer) * WINDOW_NS - len(ran | computed | communicated)
        assert idle(recording).totals["idle_ns"] == answer.totals["idle_ns"]

    check()
