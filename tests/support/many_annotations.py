"""A step with more annotations than a page takes, of which the last one has most of the GPU time right under it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from captures import START_NS

if TYPE_CHECKING:
    from captures import CaptureBuilder

STEPS, OPS = 60, 100
VALIDATE_NS = 200_000
OP_NS = 50


def many_annotations(build: CaptureBuilder) -> CaptureBuilder:
    """Adds ``train/ProfilerStep#N/opM``, each with a kernel of 50 ns, and ``validate`` with one of 200 µs.

    These are 1 + 60 + 6,000 + 1 paths with 500 µs of GPU time. ``op0`` of each step has a second kernel, of 1 ns.
    """
    count = STEPS * OPS
    build.environment["source"] = "kineto"
    build.annotation("train", 0, 100 * count, 10_000)
    for step in range(STEPS):
        build.annotation(f"ProfilerStep#{step}", 100 * OPS * step, 100 * OPS - 1, 10_001 + step)
    for number in range(count):
        start, ids = 100 * number + 5, [number + 1, count + 2 + number][: 1 + (number % OPS == 0)]
        build.annotation(f"op{number % OPS}", start, 80, number + 1, *ids)
        for place, correlation in enumerate(ids):
            build.call("cudaLaunchKernel_v7000", start + 5 + 10 * place, 5, correlation_id=correlation)
            build.kernel("gemm", start + 30 + 52 * place, 1 if place else OP_NS, correlation_id=correlation)
    build.annotation("validate", 100 * count + 1000, 300_000, 20_000, count + 1)
    build.call("cudaLaunchKernel_v7000", 100 * count + 2000, 5, correlation_id=count + 1)
    build.kernel("norm", 100 * count + 3000, VALIDATE_NS, correlation_id=count + 1)
    assert build.clock["cupti_stop_ns"] - START_NS > 100 * count + 301_000
    return build
