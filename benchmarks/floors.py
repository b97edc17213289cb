"""What a CUPTI client that throws its records away adds to a launch, with one setting changed at a time.

The floor of the other benchmarks records kernels, in buffers of 4 MB that it has zeroed and of which each thread has
its own. Here it also zeroes none (CUPTI does then), has one buffer for all threads, lets CUPTI take its times from the
processor's counter, or records calls as well. Launches of one program differ by half from process to process on a
virtual machine, so that each process also reports the median launch before the client began, and what was added to it.
Each setting runs in a separate process, alternating in random order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _collectors import ALL_KINDS, KERNELS, ONE_BUFFER, PROCESSOR_TIME, UNZEROED, Collector, Floor
from _program import Program, main
from overhead import ADDED, THREADS, added_to

FIGURES = {
    "a launch": "ns", "a launch, median": "ns", ADDED: "ns", f"a launch from {THREADS} threads": "ns",
}  # fmt: skip
FLOORS = {
    "none": Collector,
    "kernels": lambda: Floor(*KERNELS),
    "kernels, not zeroed": lambda: Floor(*KERNELS, settings=UNZEROED),
    "kernels, one buffer": lambda: Floor(*KERNELS, settings=ONE_BUFFER),
    "kernels, processor's time": lambda: Floor(*KERNELS, settings=PROCESSOR_TIME),
    "all": lambda: Floor(*ALL_KINDS),
}


def measure(collector: Collector, program: Program, launches: int) -> dict[str, Any]:
    """Time launches from one thread, before the client begins and while it records, and from several."""
    before = float(np.median(program.launch(max(launches // 2, 100))))
    collector.start(program)
    took = program.launch(launches)
    together = program.launch_from_threads(THREADS, max(launches // 8, 10))
    collector.stop()
    median = float(np.median(took))
    values = float(took.mean()), median, added_to(before, median, collector), together
    return dict(zip(FIGURES, values, strict=True)) | {f"{ADDED}: before, ns": before}


if __name__ == "__main__":
    main(__file__, __doc__, FIGURES, measure, FLOORS, launches=50_000, rounds=8)
