"""Kernels have the priority that they were launched with, where the version of CUPTI records it."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_tables import assert_kept

import collector
from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator


@pytest.mark.parametrize("cuda", ["12.0", "12.8", "13.0", "13.1", "13.5"])
def test_kernels_have_the_priority_of_their_stream(cuda: str, tmp_path: Path) -> None:
    has_priorities = tuple(map(int, cuda.split("."))) >= (13, 1)
    with SimulatedGpu(cuda=cuda) as gpu, collector.trace(strict=True) as step:
        gpu.launch("on_the_default_stream", stream=7)
        gpu.launch("on_another_stream", stream=9)
        gpu.synchronize()
    priorities = dict(zip(step.recording.kernels.names(), step.recording.kernels.priority.tolist(), strict=True))
    assert priorities == {"on_the_default_stream": 0, "on_another_stream": -1 if has_priorities else 0}
    assert_kept(step.recording, "kernels", tmp_path)
