"""What this card can do at most, measured on it once: the roof that achieved rates are held against."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from collector.errors import OutputError
from collector.files import atomic_write

if TYPE_CHECKING:
    from collector.bench.gpu import Gpu


@dataclass(frozen=True)
class Ceilings:
    """The best rates seen on a card."""

    bytes_per_s: float
    """Read and written by a device-to-device copy, both counted."""
    flop_per_s: float | None
    """By a large matrix product in bfloat16; None where no library is there to make one."""
    measured_with: str


@runtime_checkable
class MeasuresCeilings(Protocol):
    """A GPU that can be driven to its limits."""

    def measure_ceilings(self) -> Ceilings:
        """Copy and multiply at full rate, and say how fast that went."""


def ceilings(gpu: Gpu) -> Ceilings | None:
    """Return the card's ceilings, from the cache if they were measured before; None where they cannot be measured."""
    if not isinstance(gpu, MeasuresCeilings):
        return None
    if gpu.simulated:
        return gpu.measure_ceilings()
    file = _cache_file(gpu.uuid)
    with contextlib.suppress(OSError, ValueError, TypeError):
        known = Ceilings(**json.loads(file.read_text(encoding="utf-8")))
        if known.flop_per_s is not None or "torch" not in sys.modules:  # else it can be measured now
            return known
    found = gpu.measure_ceilings()
    with contextlib.suppress(OSError, OutputError):  # measured again next time
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(file) as out:
            out.write(json.dumps(asdict(found)).encode())
    return found


def matrix_product_rate(gpu: Gpu, size: int = 8192, repeats: int = 10) -> tuple[float | None, str]:
    """Return FLOP/s of a bfloat16 product of two ``size`` x ``size`` matrices, and with what; best of ``repeats``."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return None, "no matrix library loaded"
    a = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
    out = torch.empty(size, size, device="cuda", dtype=torch.bfloat16)
    best = min(gpu.event_ns(lambda: torch.matmul(a, b, out=out)) for _ in range(repeats + 3))
    return 2.0 * size**3 / best * 1e9, f"torch {torch.__version__}"


def _cache_file(uuid: str) -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "cupti-collector" / f"ceilings-{uuid}.json"
