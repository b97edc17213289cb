"""For tests of programs that trace: a simulated GPU.

>>> from collector.testing import SimulatedGpu
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collector.testing.simulator.simulated_gpu import SimulatedGpu

__all__ = ["SimulatedGpu"]


def __getattr__(name: str) -> Any:
    if name == "SimulatedGpu":
        from collector.testing.simulator.simulated_gpu import SimulatedGpu

        return SimulatedGpu
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
