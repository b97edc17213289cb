"""`ProfilerHook` adds the steps that it traces to a dataset, with the events of their timelines."""

from __future__ import annotations

import pytest
from captures import FakeSource

import collector
from collector.profiler.hook import ProfilerHook

pytest.importorskip("pyarrow")

from collector.dataset import Dataset


@pytest.mark.medium
def test_traced_steps_are_in_the_dataset_with_their_events(example, tmp_path, monkeypatch):
    monkeypatch.setenv("COLLECTOR_RUN", "a")
    hook = ProfilerHook(
        save_steps=2,
        output_dir=tmp_path / "timelines",
        output=tmp_path / "runs",
        open_trace=lambda: collector.trace(source=FakeSource(example.to_capture())),
    )
    with hook:
        for step in range(1, 6):
            hook.after_step(step)
    dataset = Dataset(tmp_path / "runs")
    assert [key.step for key in dataset.keys] == [2, 4]
    assert dataset.table("kernels", step=4).num_rows == len(example.kernels)
    events = dataset.table("trace_events", step=4)
    assert events.column_names[3:] == ["index", "name", "ph", "cat", "pid", "tid", "ts", "dur", "arg_name", "arg_op"]
    assert {"A", "B", "D"} <= set(events["arg_op"].to_pylist())


def test_a_dataset_that_cannot_be_written_does_not_end_the_program(example, tmp_path, caplog):
    (tmp_path / "runs").write_text("a file")
    hook = ProfilerHook(
        save_steps=1,
        output_dir=tmp_path,
        output=tmp_path / "runs",
        open_trace=lambda: collector.trace(source=FakeSource(example.to_capture())),
    )
    with hook:
        hook.after_step(1)
        assert hook.after_step(2) == tmp_path / "timeline-2.json"
    assert "step 2 is not in the dataset" in caplog.text
