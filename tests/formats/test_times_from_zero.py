"""Files whose times count from 0, or from a later moment than their first start: 0 is a time like any other."""

from __future__ import annotations

import json

import pytest

import collector
from collector.errors import InvalidFileError
from collector.protos import DeviceStepStats, NodeExecStats, RunMetadata, StepStats


def kernels(start_us, count=3):
    return [
        {"ph": "X", "cat": "kernel", "name": f"k{place}", "ts": start_us + 10 * place, "dur": 5, "pid": 0, "tid": 7,
         "args": {"device": 0, "stream": 7, "correlation": place + 1}}
        for place in range(count)
    ]  # fmt: skip


@pytest.fixture
def trace(tmp_path):
    """Writes a trace of a rank as PyTorch does."""

    def write(name, events, rank=0):
        text = json.dumps({"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events})
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


@pytest.mark.parametrize("suffix", [".json", ".xplane.pb", ".pb"])
def test_a_file_whose_first_start_is_0_keeps_all_its_work(trace, tmp_path, suffix):
    collector.load(trace("step.json", kernels(0))).save(tmp_path / f"converted{suffix}")
    step = collector.load(tmp_path / f"converted{suffix}")
    times = step.kernels.start_ns + step.recording.clock.offset_ns
    assert (times.tolist(), step.kernels.duration_ns.tolist()) == ([0, 10_000, 20_000], [5000] * 3)
    assert not step.ledger.unread


@pytest.mark.parametrize("start_us", [-15, 0])
@pytest.mark.parametrize("suffix", [".json", ".xplane.pb"])
def test_a_rank_whose_first_start_is_0_is_merged(trace, tmp_path, suffix, start_us):
    paths = [trace(f"rank{rank}.json", rank=rank, events=kernels(start_us + 5 * rank)) for rank in range(2)]
    report = collector.merge(paths, tmp_path / f"all{suffix}")
    assert [(each.rank, each.slices, each.start_ns) for each in report.inputs] == [
        (0, 3, 1000 * start_us),
        (1, 3, 1000 * start_us + 5000),
    ]
    assert len(collector.load(tmp_path / f"all{suffix}").kernels) == 6


def test_a_step_without_any_time_cannot_be_merged(tmp_path):
    step = StepStats(dev_stats=[DeviceStepStats(device="/cpu:0", node_stats=[NodeExecStats(node_name="op")])])
    (tmp_path / "a.pb").write_bytes(RunMetadata(step_stats=step).SerializeToString())
    with pytest.raises(InvalidFileError, match="nothing in it has a time"):
        collector.merge([tmp_path / "a.pb"], tmp_path / "all.json")
