"""Trace a training loop of PyTorch, or a fit of Keras, whose names come from one added line, for a picture.

The ops run on the CPU; each linear layer launches kernels on the simulated GPU.

    names_trace.py torch|keras OUT.json
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
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


def train(path: str) -> None:
    """Train a PyTorch model for three steps and trace the last one."""
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


def fit(path: str) -> None:
    """Fit a Keras model and trace the second epoch."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    with SimulatedGpu() as gpu:

        class Linear(keras.layers.Dense):  # type: ignore[misc]
            """A dense layer on the simulated GPU."""

            def call(self, x: Any) -> Any:
                """Launch one kernel."""
                gpu.launch("gemm_forward", duration_ns=8_000)
                return super().call(x)

        encoder = keras.Sequential([Linear(16, name="first"), Linear(16, name="second")], name="encoder")
        model = keras.Sequential([keras.Input((16,)), encoder, Linear(1, name="head")])
        model.compile(optimizer="sgd", loss="mse", run_eagerly=True)
        data, labels = np.ones((8, 16), "float32"), np.ones((8, 1), "float32")
        for epoch in range(2):
            with collector.trace(path if epoch == 1 else None):
                model.fit(data, labels, batch_size=4, verbose=0, callbacks=[adapters.keras_names()])


if __name__ == "__main__":
    {"torch": train, "keras": fit}[sys.argv[1]](sys.argv[2])
