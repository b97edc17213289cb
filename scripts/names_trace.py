"""Trace a training loop of PyTorch whose names come from one added line, for a picture.

The ops run on the CPU; each linear layer launches kernels on the simulated GPU in both directions.

    names_trace.py OUT.json
"""

from __future__ import annotations

import sys
from typing import Any

import torch

import collector
from collector import adapters
from collector.testing import SimulatedGpu


class Multiply(torch.autograd.Function):
    """A product with kernels of its own."""

    @staticmethod
    def forward(context: Any, gpu: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Launch one kernel."""
        context.gpu = gpu
        context.save_for_backward(x, weight)
        gpu.launch("gemm_forward", duration_ns=8_000)
        return x @ weight

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> Any:
        """Launch two kernels."""
        x, weight = context.saved_tensors
        context.gpu.launch("gemm_backward_input", duration_ns=8_000)
        context.gpu.launch("gemm_backward_weight", duration_ns=8_000)
        return None, gradient @ weight.T, x.T @ gradient


class Layer(torch.nn.Module):
    """A linear layer on the simulated GPU."""

    def __init__(self, gpu: Any) -> None:
        super().__init__()
        self.gpu = gpu
        self.weight = torch.nn.Parameter(torch.randn(16, 16) / 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Multiply by the weight."""
        return Multiply.apply(self.gpu, x, self.weight).relu()


class Net(torch.nn.Module):
    """Two layers and a head."""

    def __init__(self, gpu: Any) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer(gpu), Layer(gpu)])
        self.head = Layer(gpu)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run the layers, then the head."""
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def main(path: str) -> None:
    """Train for three steps and trace the last one."""
    with SimulatedGpu() as gpu:
        net = Net(gpu)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        adapters.annotate_modules(net)
        for step in range(3):
            with collector.trace(path if step == 2 else None):
                loss = net(torch.ones(4, 16)).square().mean()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()


if __name__ == "__main__":
    main(sys.argv[1])
