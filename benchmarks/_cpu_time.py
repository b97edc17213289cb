"""The CPU time of a call in this process, which other load on the machine changes little."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable


def cpu_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """CPU seconds of one call, the median; garbage of earlier calls is collected before each."""
    spent = []
    for _ in range(repeats):
        gc.collect()
        begin = time.process_time()
        work()
        spent.append(time.process_time() - begin)
    return statistics.median(spent)
