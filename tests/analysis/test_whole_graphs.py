"""Graphs that were recorded as a whole: what their launches mean for figures that do not count their work."""

from __future__ import annotations

import pytest

from collector import analysis
from collector.analysis import devices, idle
from collector.analysis.notebook_overview import overview_html
from collector.analysis.questions import QUESTIONS
from collector.analysis.summary import summarize
from collector.analysis.whole_graphs import whole_graphs
from collector.formats.step import RecordingSource, Step
from collector.recording.cupti_enums import DEGREE_CAPTURED, DEGREE_WHOLE_GRAPH
from collector.web.report_data import step_data
from tests.support.captures import START_NS, WINDOW_NS
from tests.support.captures import CaptureBuilder as Builder

NOTE = (
    "2 launches of CUDA graphs were recorded as a whole: the kernels, copies and memsets in them are not counted, and "
    "200 µs in which only graphs ran count as idle."
)


def add_graph(build, start, duration, degree=DEGREE_WHOLE_GRAPH, device=0, **values):
    times = {"start_ns": START_NS + start, "end_ns": START_NS + start + duration}
    return build.raw("graph_launches", graph_degree=degree, graph_id=6, device_id=device, **times, **values)


@pytest.fixture
def with_graphs(build):
    """A step with a kernel of 1 µs in a graph of 101 µs, a further graph of 100 µs, and the calls of both."""
    for number, (start, duration) in enumerate([(2_000, 101_000), (110_000, 100_000)], start=1):
        add_graph(build, start, duration, correlation_id=number)
        build.call("cuGraphLaunch", start - 1_500, correlation_id=number)
    return build.kernel("k", 50_000, 1_000)


def test_every_answer_about_activities_says_what_it_does_not_count(with_graphs):
    recording = with_graphs.recording()
    told = {name: NOTE in each.ask(recording).notes for name, each in QUESTIONS.items() if not each.of_ranks}
    assert {"devices", "idle", "idle_ops", "idle_gaps", "concurrency", "overlap", "streams", "kernels"} <= {
        name for name, is_told in told.items() if is_told
    }
    assert not any(told[name] for name in ("graphs", "calls", "ledger", "memory", "annotation_times"))


def test_the_note_reaches_every_form_of_an_answer(with_graphs):
    answer = idle(with_graphs.recording())
    assert " ".join(NOTE.split()) in " ".join(str(answer).split())
    assert answer.to_json()["notes"] == [NOTE]
    assert NOTE in answer._repr_html_()


def test_one_note_tells_of_all_steps(with_graphs, build):
    recording = with_graphs.recording()
    assert len(devices([recording, recording]).notes) == 1
    assert "4 launches of CUDA graphs" in devices([recording, recording]).notes[0]


def test_a_comparison_says_of_which_side_graphs_are_not_counted(with_graphs):
    other = Builder().kernel("k", 50_000, 1_000).recording()
    answer = analysis.compare(other, with_graphs.recording(), by="idle")
    assert f"now: {NOTE}" in answer.notes
    assert not any(note.startswith("before:") for note in answer.notes)


def test_launches_of_graphs_whose_nodes_were_recorded_are_counted_by_these(build):
    recording = add_graph(build.kernel("k", 50_000, 1_000), 50_000, 1_000, DEGREE_CAPTURED).recording()
    assert whole_graphs([recording]) == ""
    assert devices(recording).notes == ()


def test_work_beside_graphs_is_no_idle_time(build):
    recording = add_graph(build.kernel("k", 1_000, 5_000), 2_000, 3_000).recording()
    assert whole_graphs([recording]) == (
        "1 launch of CUDA graphs was recorded as a whole: the kernels, copies and memsets in them are not counted."
    )


def test_only_the_time_within_a_part_counts(with_graphs):
    part = analysis.between(with_graphs.recording(), 100_000, 120_000)
    assert "and 13 µs in which only graphs ran" in devices(part).notes[0]


def test_the_summary_says_it(with_graphs, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    text = summarize(with_graphs.recording(), color=False)
    assert NOTE in text
    assert "no activity of theirs" not in text


def test_a_notebook_says_it(with_graphs):
    assert NOTE in overview_html(with_graphs.recording())


@pytest.mark.parametrize("has_work", [True, False])
def test_the_page_says_it_beside_the_share_of_busy_time(build, has_work):
    add_graph(build, 2_000, 9_000)
    if has_work:
        build.kernel("k", 50_000, 1_000)
    found = step_data(Step(RecordingSource(build.recording())), "step.gpurec").described
    assert "9 µs in which only graphs ran count as idle" in found["verdict"]
    assert ("No GPU did anything" in found["verdict"]) is False


def test_the_time_is_that_of_counting_each_nanosecond():
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies
    rows = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20), st.integers(0, 1)), max_size=6)

    @hypothesis.given(rows, rows)
    def check(graphs, kernels):
        build = Builder()
        for start, duration, device in graphs:
            add_graph(build, start, duration, device=device)
        for start, duration, device in kernels:
            build.kernel("k", start, duration, device_id=device)
        recording = build.recording()
        busy, ran = (
            {(device, moment) for start, duration, device in each for moment in range(start, start + duration)}
            for each in (kernels, graphs)
        )
        note = whole_graphs([recording])
        assert bool(note) == bool(graphs)
        only = len(ran - busy)
        assert (f"and {only} ns in which" in note) == bool(only)
        assert devices(recording).totals["idle_ns"] == len(devices(recording)) * WINDOW_NS - len(busy)

    check()
