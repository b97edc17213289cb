"""Benchmarks of real PyTorch functions, on the CPU with the clocks of the host; each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest

pytest.importorskip("scipy")
if find_spec("torch") is None:
    pytest.skip("NO PYTORCH FUNCTION WAS BENCHMARKED: torch is not installed", allow_module_level=True)
pytestmark = pytest.mark.slow

COMPARED = """
import json, torch
from collector import bench

torch.set_num_threads(1)
a, b = torch.rand(64, 64, requires_grad=True), torch.rand(64, 64)
arms = {
    "product": lambda: {"y": a @ b, "parts": (a.sum(0), a > 0.5)},
    "sum": lambda: {"parts": (a.sum(0), a > 0.5), "y": (a[:, :, None] * b[None]).sum(1)},
    "bfloat16": lambda: {"y": (a.bfloat16() @ b.bfloat16()), "parts": (a.sum(0), a > 0.5)},
    "wrong": lambda: {"y": a @ b.T, "parts": (a.sum(0), a > 0.5)},
    "misnamed": lambda: {"x": a @ b, "parts": (a.sum(0), a > 0.5)},
}
report = bench.compare(
    arms, clock=CLOCK, check=bench.allclose(rtol=0.02), flops=2 * 64**3, min_rounds=10, max_rounds=20, max_seconds=5
)
found = report.comparison
print(json.dumps({"arms": list(found.arms), "failures": found.failures, "text": str(report),
                  "libraries": report.environment["libraries"], "torch": torch.__version__}))
"""

CHECKED = """
import json, torch
from collector.bench.checks import allclose

x = torch.rand(4, 5, dtype=torch.float64)
z = torch.complex(x, x)
same = {
    "conjugate": (z.conj(), z.resolve_conj().conj().clone()),
    "negative": (z.conj().imag, -x),
    "sparse": (x.to_sparse(), x),
    "rows": (x.to_sparse_csr(), x),
    "half": (x.half(), x),
    "float8": (x.to(torch.float8_e4m3fn), x.to(torch.float8_e4m3fn).double()),
    "complex half": (z.to(torch.complex32), z),
    "quantized": (torch.quantize_per_tensor(x.float(), 1 / 255, 0, torch.quint8), x),
    "whole numbers": (torch.arange(3), torch.tensor([0.0, 1.0, 2.0])),
    "truth": (x > 2, torch.zeros(4, 5)),
    "graph": ((x.clone().requires_grad_() * 2), x * 2),
    "parameter": (torch.nn.Parameter(x), x),
    "strided": (x.T, x.T.contiguous()),
    "none": (torch.empty(0, 3), torch.empty(0, 3)),
    "scalar": (x.sum(), float(x.sum())),
}
print(json.dumps({name: allclose(0.02, 5e-3)(b, a) for name, (a, b) in same.items()}))
"""


def _run(program: str, warnings: str = "error") -> dict[str, Any]:
    command = [sys.executable, "-W", warnings, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("clock", ["wall", "cpu"])
def test_tensors_in_tuples_and_mappings_are_held_against_each_other(clock):
    found = _run(COMPARED.replace("CLOCK", repr(clock)))
    assert found["arms"] == ["product", "sum", "bfloat16"]
    assert "result y: " in found["failures"]["wrong"]
    assert "values differ" in found["failures"]["wrong"]
    assert "results parts.0, parts.1, x instead of parts.0, parts.1, y" in found["failures"]["misnamed"]
    assert found["libraries"]["torch"] == found["torch"]


def test_tensors_of_every_kind_can_be_checked():
    found = _run(CHECKED, warnings="ignore")  # torch calls half of these experimental
    assert found == dict.fromkeys(found)
