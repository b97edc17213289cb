"""Annotations in PyTorch programs on a GPU, in backward passes and under torch.compile."""

import importlib.util

import pytest

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"),
    pytest.mark.usefixtures("real_gpu"),
]

PROGRAM = """
import warnings
warnings.simplefilter("ignore")
import torch
import collector

if not torch.cuda.is_available():
    raise SystemExit("PyTorch sees no GPU")
x = torch.randn(256, 256, device="cuda", requires_grad=True)

def names(step):
    return " ".join(sorted({name or "-" for name in step.recording.annotations_of(step.recording.kernels)}))
"""


def test_backward_carries_the_callers_names_on_the_callers_thread(run_program):
    printed = run_program(
        PROGRAM
        + """
def train():
    with collector.annotate("forward"):
        loss = (x @ x).relu().sum()
    with collector.annotate("backward"):
        loss.backward()

train()
with collector.trace(strict=True) as step, torch.autograd.set_multithreading_enabled(False):
    train()
print(names(step))
"""
    )
    assert printed.split() == ["backward", "forward"]


def test_what_is_compiled_has_the_names_of_its_call(run_program):
    printed = run_program(
        PROGRAM
        + """
@collector.annotate("decorated")
def model(x):
    with collector.annotate("inside"):
        return (x @ x).relu()

compiled = torch.compile(model, backend="eager")
compiled(x)
with collector.trace(strict=True) as first, collector.annotate("outside"):
    compiled(x)
with collector.trace(strict=True) as second, collector.annotate("outside"):
    compiled(x)
    model(x)
print(names(first), "|", names(second), "|", first.ledger.launches_seen > 0)
"""
    )
    assert printed.strip() == "outside | outside outside/decorated/inside | True"
