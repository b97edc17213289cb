"""The design of a run: rounds, order, cache, clock, precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from collector.checked_arguments import real_number, whole_number

Clock = Literal["cupti", "wall", "cpu", "returned"]
"""cupti: time in which the call's own activities ran on the GPU. wall: host time until the GPU is idle again. cpu:
processor time of this process until then, over all its threads, which is less affected by other programs on the
machine. returned: the ns that the call itself returns."""
Cache = Literal["cold", "hot"]
"""cold: the L2 cache is emptied before every call. hot: the call is made once, untimed, right before."""


@dataclass(frozen=True)
class Design:
    """The design of a run; checked, and written into the report."""

    clock: Clock = "cupti"
    cache: Cache = "cold"
    graph_calls: int = 0
    """Capture this many calls in a CUDA graph and replay it; 0: make each call separately."""
    precision: float = 0.005
    """Stop when half the width of every ratio's interval is at most this share of the ratio."""
    min_rounds: int = 30
    max_rounds: int = 2000
    max_seconds: float = 30.0
    max_warm_up_rounds: int = 150
    seed: int = 0
    same_within: float = 0.01
    """A ratio whose whole interval lies within 1 plus or minus this counts as the same."""

    def __post_init__(self) -> None:
        """Raise ValueError for impossible values, and TypeError for values that are no numbers."""
        for name in ("graph_calls", "min_rounds", "max_rounds", "max_warm_up_rounds", "seed"):
            whole_number(name, getattr(self, name))
        for name in ("precision", "max_seconds", "same_within"):
            real_number(name, getattr(self, name))
        if self.clock not in ("cupti", "wall", "cpu", "returned"):
            raise ValueError(f"clock is cupti, wall, cpu or returned, not {self.clock!r}")
        if self.cache not in ("cold", "hot"):
            raise ValueError(f"cache is cold or hot, not {self.cache!r}")
        if not 0 < self.precision < 1:
            raise ValueError("precision is a share between 0 and 1")
        if not 0 <= self.same_within < 1:
            raise ValueError("same_within is a share between 0 and 1")
        if not 6 <= self.min_rounds <= self.max_rounds:
            raise ValueError("min_rounds is at least 6, which an interval needs, and at most max_rounds")
        if not self.max_seconds > 0:
            raise ValueError("max_seconds must be positive")
        if self.graph_calls < 0:
            raise ValueError("graph_calls cannot be negative")
        if self.graph_calls and self.clock != "cupti":
            raise ValueError("a graph is timed by its activities on the GPU: graph_calls needs clock='cupti'")
