"""A program that is killed inside a traced step: `killed_program.py JOURNAL KERNELS`."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import collector
from collector.testing import SimulatedGpu


def main() -> None:
    journal, kernels = Path(sys.argv[1]), int(sys.argv[2])
    with SimulatedGpu() as gpu, collector.trace(journal=journal):
        for number in range(kernels):
            with collector.annotate(f"step{number % 3}/op", flops=10, op="MatMul"):
                gpu.launch(f"kernel{number % 5}", stream=7 + number % 2, duration_ns=1000)
        gpu.synchronize()
        while len(collector.load(journal).recording.kernels) < kernels:  # the test's own time limit ends this
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)


main()
