"""The demo's step, traced on a real GPU if there is one, else on the simulated one."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from collector.demo.cuda_demo_gpu import CudaDemoGpu
from collector.demo.demo_step import train_step
from collector.demo.simulated_demo_gpu import SimulatedDemoGpu
from collector.errors import UnavailableError
from collector.options import KINDS
from collector.sources import open_source
from collector.tracing.session import Session
from collector.tracing.trace import trace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from collector.demo.demo_step import DemoGpu


def run_demo(path: Path | None = None, *, simulate: bool = False) -> tuple[Session, str]:
    """Trace one step and write it to ``path``, if given; return the session and the name of the device.

    Raises:
        collector.CollectorError: the step could not be traced or written.
    """
    with _open_gpu(simulate=simulate) as gpu:
        train_step(gpu)  # the first run compiles, loads and warms up
        with trace(path, kinds=(*KINDS, "cuda_events"), strict=True) as step:
            train_step(gpu)
    return step, gpu.description


@contextlib.contextmanager
def _open_gpu(*, simulate: bool) -> Iterator[DemoGpu]:
    reason = "as requested" if simulate else _why_no_gpu()
    if not reason:
        try:
            gpu = CudaDemoGpu()
        except UnavailableError as error:
            reason = str(error)
        else:
            with contextlib.closing(gpu):
                yield gpu
            return
    with SimulatedDemoGpu(reason) as simulated:
        yield simulated


def _why_no_gpu() -> str:
    """The reason why this machine's GPU cannot be traced; empty if it can."""
    try:
        found = open_source("auto").probe()
    except UnavailableError as error:
        return error.cause
    return "" if found["available"] else str(found["cause"])
