"""Devices and their limits, recorded from the simulated CUPTI in every version's layout."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_tables import assert_equal, assert_kept, journal_with

import collector
from collector.options import KINDS
from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator

KINDS_WITH_DEVICES = (*KINDS, "devices")


@pytest.mark.medium
@pytest.mark.parametrize("cuda", ["12.0", "12.2", "12.9", "13.0", "13.2", "13.5"])
def test_every_device_is_recorded_with_its_limits(cuda: str, tmp_path: Path) -> None:
    version = tuple(map(int, cuda.split(".")))
    with SimulatedGpu(cuda=cuda, devices=2, name="Some GPU") as gpu:
        with collector.trace(kinds=KINDS_WITH_DEVICES, journal=tmp_path / "step.journal", strict=True) as step:
            gpu.launch("kernel", device=1)
            gpu.advance(1_000_000)  # the kernels end: CUPTI keeps a buffer until then
            journal = journal_with(tmp_path / "step.journal", "devices", 2, tmp_path / "copy.journal")
        assert gpu.misuse() == {}
    devices = step.recording.devices
    assert devices.device_id.tolist() == [0, 1]
    assert devices.names() == ["Some GPU", "Some GPU"]
    assert set(devices.num_multiprocessors.tolist()) == {132}
    assert set(zip(devices.compute_major.tolist(), devices.compute_minor.tolist(), strict=True)) == {(9, 0)}
    assert set(devices.core_clock_khz.tolist()) == {1_980_000}
    assert set(devices.memory_kilobytes_per_s.tolist()) == {3_350_000_000}
    assert set(devices.max_threads_per_block.tolist()) == {1024}
    assert set(devices.max_registers_per_multiprocessor.tolist()) == {65536}
    assert set(devices.num_tpcs.tolist()) == {66 if version >= (13, 2) else 0}
    assert (devices.memory_bytes > 1 << 32).all()
    assert step.ledger.complete
    assert_equal(journal.devices, devices)
    assert_kept(step.recording, "devices", tmp_path)


def test_the_next_step_has_them_again() -> None:
    with SimulatedGpu(devices=2) as gpu:
        for _ in range(2):
            with collector.trace(kinds=KINDS_WITH_DEVICES, strict=True) as step:
                gpu.launch("kernel")
            assert len(step.recording.devices) == 2


def test_they_are_recorded_only_where_they_are_named() -> None:
    with SimulatedGpu() as gpu:
        with collector.trace(strict=True) as step:
            gpu.launch("kernel")
        assert 8 not in gpu.statistics().records
    assert len(step.recording.devices) == 0
