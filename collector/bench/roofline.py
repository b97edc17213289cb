"""The highest rates of this card, measured once: the ceilings with which achieved rates are compared."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from collector.bench.environment import loaded_torch
from collector.errors import OutputError
from collector.files.atomic_files import atomic_write
from collector.runtime.child_interpreters import python_command, python_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.bench.gpu import Gpu


_SIZE = 8192
_PRODUCT_SECONDS = 120
_NO_LIBRARY = "no matrix library installed"


@dataclass(frozen=True)
class Ceilings:
    """The highest rates measured on a card."""

    bytes_per_s: float
    """Read and written by a device-to-device copy, both counted."""
    flop_per_s: float | None
    """By a large matrix product in bfloat16; None if there is no library for one."""
    measured_with: str


@runtime_checkable
class MeasuresCeilings(Protocol):
    """A GPU that can be driven to its limits."""

    def measure_ceilings(self) -> Ceilings:
        """Copy and multiply at full rate, and return the rates."""


def ceilings(gpu: Gpu) -> Ceilings | None:
    """Return the card's ceilings, from the cache if they were measured before; None if they cannot be measured.

    Raises:
        Exception: any error of the measurement, for example lack of memory.
    """
    if not isinstance(gpu, MeasuresCeilings):
        return None
    if gpu.simulated:
        return gpu.measure_ceilings()
    file = _cache_file(gpu.uuid)
    with contextlib.suppress(OSError, ValueError, TypeError):
        known = Ceilings(**json.loads(file.read_text(encoding="utf-8")))
        can_be_measured_now = loaded_torch() is not None or (known.measured_with == _NO_LIBRARY and _torch_installed())
        if known.flop_per_s is not None or not can_be_measured_now:
            return known
    found = gpu.measure_ceilings()
    with contextlib.suppress(OSError, OutputError):  # measured again next time
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(file) as out:
            out.write(json.dumps(asdict(found)).encode())
    return found


def matrix_product_rate(gpu: Gpu, size: int = _SIZE, repeats: int = 10) -> tuple[float | None, str]:
    """Return FLOP/s of a bfloat16 product of two ``size`` x ``size`` matrices, and the library; best of ``repeats``.

    If torch is installed but not loaded, another process runs it, because loading it would change this program.
    """
    torch = loaded_torch()
    if torch is not None:
        return _product_rate(torch, lambda call: gpu.event_ns(call), size, repeats)
    if "torch" in sys.modules:  # and torch was built without CUDA
        return None, "no matrix library loaded"
    if not _torch_installed():
        return None, _NO_LIBRARY
    program = f"from {__name__} import main; main(*sys.argv[1:])"
    command = python_command(program, gpu.uuid, str(size), str(repeats))
    try:
        done = subprocess.run(
            command,
            env=os.environ | {"PYTHONPATH": python_path()},
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_PRODUCT_SECONDS,
            check=True,
        )
        rate, library = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        trouble = (getattr(error, "stderr", None) or "").strip().splitlines() or [str(error)]
        return None, f"torch cannot multiply here: {trouble[-1]}"
    return float(rate), str(library)


def _torch_installed() -> bool:
    return importlib.util.find_spec("torch") is not None


def _product_rate(
    torch: Any, event_ns: Callable[[Callable[[], Any]], float], size: int, repeats: int
) -> tuple[float, str]:
    a = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
    out = torch.empty(size, size, device="cuda", dtype=torch.bfloat16)
    best = min(event_ns(lambda: torch.matmul(a, b, out=out)) for _ in range(repeats + 3))
    return 2.0 * size**3 / best * 1e9, f"torch {torch.__version__}"


def _torch_event_ns(torch: Any) -> Callable[[Callable[[], Any]], float]:
    def event_ns(call: Callable[[], Any]) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e6

    return event_ns


def _cache_file(uuid: str) -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "cupti-collector" / f"ceilings-{uuid}.json"


def main(uuid: str, size: str, repeats: str) -> None:
    """Print the rate of a matrix product on the card with this uuid; runs in a separate process."""
    os.environ["CUDA_VISIBLE_DEVICES"] = uuid
    import torch

    print(json.dumps(_product_rate(torch, _torch_event_ns(torch), int(size), int(repeats))))
