"""For tests of programs that trace: a simulated GPU.

>>> from collector.testing import SimulatedGpu
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.runtime.names_on_demand import names_on_demand

if TYPE_CHECKING:
    from collector.testing.simulator.simulated_gpu import SimulatedGpu

__all__ = ["SimulatedGpu"]

__getattr__, __dir__ = names_on_demand(__name__, {"SimulatedGpu": "collector.testing.simulator.simulated_gpu"})
