"""A simulated data-parallel step of several ranks, the purpose of `collector merge`.

Each rank computes on one stream, reduces its gradients over all ranks on a second while the next layer computes, and
copies on a third. A collective ends on all ranks at the same time, for which the early ranks wait.
"""

from __future__ import annotations

from pathlib import Path

import collector
from collector.testing import SimulatedGpu

COMPUTE, COPY, REDUCE = 7, 13, 20
LAYERS = 3


def trace_ranks(folder: Path, ranks: int) -> list[Path]:
    """Trace a step of each rank into a separate file in `folder`; returns the files by rank.

    The ranks run one after the other, so their clocks disagree: merge them with ``clock_offsets="estimate"``.
    """
    paths = [folder / f"rank{rank}.pb" for rank in range(ranks)]
    for rank, path in enumerate(paths):
        with SimulatedGpu() as gpu, collector.trace(path, rank=rank, strict=True):
            _train_step(gpu, [(rank * 3 + layer * 5) % ranks * 1_000 for layer in range(LAYERS)])
    return paths


def _train_step(gpu: SimulatedGpu, late_ns: list[int]) -> None:
    """`late_ns`: how much longer than the fastest rank this one computes, by layer."""
    with collector.annotate("input"):
        gpu.memcpy("HtoD", 1 << 20, stream=COPY, src="pinned")
    gpu.wait_event(gpu.record_event(stream=COPY), stream=COMPUTE)
    for layer in range(LAYERS):
        with collector.annotate(f"forward/layer{layer}"):
            gpu.launch("_ZN6linear7forwardIfEEvPT_", stream=COMPUTE, duration_ns=30_000, grid=(64, 1, 1))
    behind_ns = 0
    for layer in reversed(range(LAYERS)):
        behind_ns += late_ns[layer]
        with collector.annotate(f"backward/layer{layer}"):
            duration_ns = 60_000 + late_ns[layer]
            gpu.launch("_ZN6linear8backwardIfEEvPT_", stream=COMPUTE, duration_ns=duration_ns, grid=(64, 1, 1))
        gpu.wait_event(gpu.record_event(stream=COMPUTE), stream=REDUCE)
        with collector.annotate(f"gradients/layer{layer}"):
            name, duration_ns = "_Z40ncclDevKernel_AllReduce_Sum_f32_RING_LLv", 50_000 - behind_ns
            gpu.launch(name, stream=REDUCE, duration_ns=duration_ns, grid=(24, 1, 1))
    with collector.annotate("loss"):
        gpu.memcpy("DtoH", 4096, stream=COPY, dst="pinned")
    gpu.synchronize()
