"""The soak: a short one passes, and each thing that it looks for fails it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import collector
from collector.recording.recording import Recording
from collector.testing import SimulatedGpu

pytestmark = [pytest.mark.simulator, pytest.mark.slow]

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "soak.py"


@pytest.fixture(scope="module")
def soak():
    spec = importlib.util.spec_from_file_location("soak", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["soak"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["soak"]


@pytest.mark.timeout(120)
def test_a_short_soak():
    done = subprocess.run([sys.executable, SCRIPT, "--seconds", "3"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert ", none missing; " in done.stdout


def recorded(numbers) -> Recording:
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        for number in numbers:
            gpu.launch("numbered", grid=(number, 1, 1))
    return step.recording


def test_every_launch_is_in_a_recording_once(soak):
    assert soak.check(recorded(range(7, 17))) == 10
    for numbers in ([1, 2, 4], [1, 2, 2, 3]):
        with pytest.raises(SystemExit, match="missing, after"):
            soak.check(recorded(numbers))
        assert len(recorded(numbers).kernels) == len(numbers)


def test_only_the_ends_of_an_attached_recording_may_be_ragged(soak):
    recording = recorded([*range(300), *range(301, 600)])
    with pytest.raises(SystemExit, match=r"missing, after \[299\]"):
        soak.check(recording, is_attached=True)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("memory_bytes", "memory has grown by 50"),
        ("descriptors", "descriptors: 5 have become"),
        ("threads", "threads: 7 have become"),
        ("disk_bytes", "the ring took 50"),
    ],
)
def test_growth_is_found(soak, field, text):
    flat = soak.Sample(60_000_000, 5, 7, 4_000_000)
    soak.check_flat([flat] * 16, 4 << 20)
    grown = replace(flat, **{field: getattr(flat, field) + 50_000_000})
    with pytest.raises(SystemExit, match=text.replace("50", r"5\d") if field == "disk_bytes" else text):
        soak.check_flat([flat] * 12 + [grown] * 4, 4 << 20)
    with pytest.raises(SystemExit, match="only 3 samples"):
        soak.check_flat([flat] * 3, 4 << 20)
