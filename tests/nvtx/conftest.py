"""A program with a copy of NVTX, and its GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from collector import _native
from collector.testing import SimulatedGpu
from tests.support.nvtx_copy import NvtxCopy


@pytest.fixture(scope="module")
def nvtx() -> NvtxCopy:
    """A copy of NVTX that calls our handler."""
    copy = NvtxCopy(_native.capture_library())
    assert copy.initialised == 1
    return copy


@pytest.fixture
def gpu() -> Iterator[SimulatedGpu]:
    """A simulated GPU which the test must not have misused."""
    with SimulatedGpu() as simulated:
        yield simulated
        assert simulated.misuse() == {}
