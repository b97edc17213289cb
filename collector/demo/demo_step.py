"""The step that `collector demo` traces, which resembles a training step.

The step is written once, against `DemoGpu`, and runs on a real GPU or on the simulated one.
"""

from __future__ import annotations

from typing import Protocol

from collector.tracing.annotate import annotate

STREAMS = ("compute", "copy", "optimizer")
"""The streams of the step."""
BUFFERS = {"batch": 16 << 20, "activations": 64 << 20, "weights": 32 << 20, "gradients": 32 << 20, "loss": 4096}
"""Device memory of the step, in bytes."""
KERNELS = ("convolve", "relu", "softmax_loss", "convolve_gradient", "relu_gradient", "sgd_momentum")
"""The kernels of the step. Each works on one buffer of floats."""
LAYERS = ("layer1", "layer2", "layer3")


class DemoGpu(Protocol):
    """The GPU interface that the step uses. ``buffer`` is a name in `BUFFERS`, ``stream`` one in `STREAMS`."""

    description: str
    """The device that runs the step, for display: its name, or that it is simulated."""

    def launch(self, kernel: str, buffer: str, *, passes: int, stream: str) -> None:
        """Run a kernel that passes ``passes`` times over a buffer."""

    def upload(self, buffer: str, *, stream: str) -> None:
        """Copy the whole buffer from pinned host memory."""

    def download(self, buffer: str, *, stream: str) -> None:
        """Copy the whole buffer to pinned host memory."""

    def clear(self, buffer: str, *, stream: str) -> None:
        """Fill the buffer with zeros."""

    def wait(self, stream: str, *, after: str) -> None:
        """Let later work on ``stream`` wait for the current work of stream ``after``."""

    def synchronize(self) -> None:
        """Wait for the device."""


def train_step(gpu: DemoGpu) -> None:
    """Launch one step: input, forward, loss, backward with the optimizer in parallel, the next input in advance."""
    with annotate("input"):
        gpu.upload("batch", stream="copy")
    with annotate("zero_gradients"):
        gpu.clear("gradients", stream="compute")
    gpu.wait("compute", after="copy")
    with annotate("forward"):
        for depth, layer in enumerate(LAYERS, 1):
            with annotate(layer):
                with annotate("conv"):
                    gpu.launch("convolve", "activations", passes=3 * depth, stream="compute")
                with annotate("relu"):
                    gpu.launch("relu", "activations", passes=1, stream="compute")
        with annotate("loss"):
            gpu.launch("softmax_loss", "loss", passes=1, stream="compute")
            gpu.download("loss", stream="compute")
    with annotate("next_input"):
        gpu.upload("batch", stream="copy")
    for depth, layer in reversed(list(enumerate(LAYERS, 1))):
        with annotate(f"backward/{layer}"):
            with annotate("relu"):
                gpu.launch("relu_gradient", "activations", passes=1, stream="compute")
            with annotate("conv"):
                gpu.launch("convolve_gradient", "gradients", passes=6 * depth, stream="compute")
        gpu.wait("optimizer", after="compute")
        with annotate(f"optimizer/{layer}"):
            gpu.launch("sgd_momentum", "weights", passes=2, stream="optimizer")
    gpu.synchronize()
