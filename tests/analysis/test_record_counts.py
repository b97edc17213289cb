"""The ledger as an answer."""

from __future__ import annotations

import pytest

from collector.analysis import ledger


def test_rows_of_each_table_reconcile(build):
    build.kernel("k", 100).kernel("early", -500, 100).kernel("late", 999_900, 5000).raw("kernels", start_ns=5, end_ns=3)
    build.memcpy(200).counters["records_dropped"] = 4
    recording = build.recording()
    answer = ledger(recording)
    assert [tuple(row.values()) for row in answer] == [("kernels", 4, 1, 1, 1, 1), ("memcpys", 1, 1, 0, 0, 0)]
    own = recording.ledger
    assert answer.totals == {
        "seen": 5,
        "kept": 2,
        "invalid": own.invalid_timestamps,
        "early": own.early,
        "late": own.late,
    }
    assert any("dropped 4 records" in loss for loss in answer.losses)


def test_every_figure_with_what_is_missing_because_of_it(build):
    build.counters.update(records_dropped=4, wraps_around=2)
    build.launch(1, 100).kernel("k", 1000, correlation_id=1).launch(2, 3000).kernel("orphan", 5000, correlation_id=9)
    found = {row["figure"]: row for row in ledger(build.recording(), by="figure")}
    assert found["records_dropped"]["value"] == 4
    assert "dropped 4 records" in found["records_dropped"]["loss"]
    assert (found["kernels"]["value"], found["kernels"]["loss"]) == (2, "")
    assert found["wraps_around"]["value"] == 2
    parts = ("launches_matched", "launches_failed", "launches_captured", "launches_without_kernel")
    assert sum(found[part]["value"] for part in parts if part in found) == found["launches_seen"]["value"] == 2


def test_what_could_not_be_read_of_a_file(load_trace):
    step = load_trace("broken_derived/truncated_mid_event.json.gz")
    unread = [row for row in ledger(step, by="figure") if row["figure"].startswith("unread: ")]
    assert all(row["loss"] for row in unread)
    with pytest.raises(ValueError, match="by table, figure"):
        ledger(step, by="loss")


@pytest.mark.parametrize("name", ["hta/a100_alexnet.json.gz", "nsys_ai/h100_2gpu_1s.sqlite.gz"])
def test_recorded_traces_reconcile(load_trace, name):
    recording = load_trace(name).recording
    answer = ledger(recording)
    for row in answer:
        assert row["kept"] == getattr(recording.ledger, row["table"])
        assert row["seen"] == row["kept"] + row["invalid"] + row["early"] + row["late"]
