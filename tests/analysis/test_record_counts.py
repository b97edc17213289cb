"""The ledger as an answer."""

from __future__ import annotations

import pickle

import pytest

import collector
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


@pytest.fixture
def with_rows_apart(build):
    """Kernels of which one each is invalid, early and late, and an early copy."""
    build.launch(1, 100).kernel("k", 200, correlation_id=1).kernel("early", -500, 100).kernel("late", 999_900, 5000)
    build.raw("kernels", start_ns=5, end_ns=3).memcpy(-300, 50).kernel("later", 500_000, 100)
    return build.recording()


SUFFIXES = ("gpurec", "pb", "pbtxt")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_saved_part_has_the_counts_of_rows_that_the_whole_set_apart(with_rows_apart, tmp_path, suffix):
    clock = with_rows_apart.clock
    part = with_rows_apart.between(clock.cupti_start_ns, clock.cupti_start_ns + 1_000)
    told = [tuple(row.values()) for row in ledger(part)]
    assert ("kernels", 4, 1, 1, 1, 1) in told
    assert ("memcpys", 1, 0, 0, 1, 0) in told
    for _ in range(2):
        part.save(tmp_path / "part.gpurec")
        collector.load(tmp_path / "part.gpurec").save(tmp_path / f"part.{suffix}")
        part = collector.load(tmp_path / f"part.{suffix}").recording
        assert [tuple(row.values()) for row in ledger(part)] == told
        assert pickle.loads(pickle.dumps(part)).counts_apart("kernels") == (1, 1, 1)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_step_of_a_dataset_that_is_saved_has_the_counts_of_rows_that_were_set_apart(
    with_rows_apart, tmp_path, suffix
):
    pytest.importorskip("pyarrow")
    from collector.dataset import Dataset, DatasetWriter

    with DatasetWriter(tmp_path / "runs", run="a") as writer:
        writer.write(with_rows_apart)
    (stored,) = Dataset(tmp_path / "runs")
    told = [tuple(row.values()) for row in ledger(stored)]
    assert ("kernels", 5, 2, 1, 1, 1) in told
    stored.save(tmp_path / f"stored.{suffix}")
    found = collector.load(tmp_path / f"stored.{suffix}").recording
    assert [tuple(row.values()) for row in ledger(found)] == told
    assert found.ledger == stored.recording.ledger


@pytest.mark.medium
@pytest.mark.parametrize("name", ["hta/a100_alexnet.json.gz", "nsys_ai/h100_2gpu_1s.sqlite.gz"])
def test_recorded_traces_reconcile(load_trace, name):
    recording = load_trace(name).recording
    answer = ledger(recording)
    for row in answer:
        assert row["kept"] == getattr(recording.ledger, row["table"])
        assert row["seen"] == row["kept"] + row["invalid"] + row["early"] + row["late"]
