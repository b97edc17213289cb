"""How long each view of a step of a million kernels takes, from the file to the text.

python benchmarks/profiler.py [--kernels N]

Prints seconds, and the time of copying the same file's bytes in memory once as a measure of the machine.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from collector.nodes import TextColumn, encode_nodes, text_column
from collector.profiler.api import Profiler
from collector.profiler.options import Options
from collector.protos import RunMetadata

KERNELS = ("sgemm", "relu", "layernorm", "softmax", "add", "dropout")
VIEWS = ("scope", "graph", "op")


def write_step(path: Path, kernels: int) -> None:
    """Writes a step of ``kernels`` kernels under 720 ops, on one stream."""
    random = np.random.default_rng(0)
    ops = [f"model/layer{layer}/op{number}" for layer in range(60) for number in range(12)]
    start = 1_700_000_000_000_000_000 + np.cumsum(random.integers(1500, 4000, kernels))
    duration = random.integers(800, 90_000, kernels)
    chosen = random.integers(0, len(ops), kernels), random.integers(0, len(KERNELS), kernels)
    micros = np.maximum(duration // 1000, 1)
    columns = {
        "node_name": text_column(lambda op, kernel: f"{ops[op]}:{KERNELS[kernel]}", *chosen),
        "timeline_label": TextColumn(["kernel regs:64 shm:0 grid:8,1,1 block:256,1,1"], np.zeros(kernels, np.int64)),
        "all_start_micros": start // 1000,
        "op_end_rel_micros": micros,
        "all_end_rel_micros": micros,
        "scheduled_micros": start // 1000 - 5,
        "thread_id": np.full(kernels, 7),
        "all_start_nanos": start,
        "op_end_rel_nanos": duration,
        "all_end_rel_nanos": duration,
    }
    nodes = encode_nodes(columns)
    metadata = RunMetadata()
    for device in ("/gpu:0/stream:all", "/gpu:0/stream:7"):
        metadata.step_stats.dev_stats.add(device=device).MergeFromString(nodes)
    path.write_bytes(metadata.SerializeToString())


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=1_000_000)
    kernels = parser.parse_args().kernels
    options = Options(order_by="micros", select=frozenset(("micros", "occurrence")))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "step.pb"
        write_step(path, kernels)
        data = path.read_bytes()
        begun = time.perf_counter()
        bytearray(data)
        print(f"{kernels} kernels, {len(data) / 1e6:.0f} MB; copying them once: {time.perf_counter() - begun:.3f} s")
        for view in VIEWS:
            begun = time.perf_counter()
            profiler = Profiler()
            profiler.add_recorded_step(0, path)
            profiler.reporter.ask(view, options)
            whole = time.perf_counter() - begun
            begun = time.perf_counter()
            profiler.reporter.ask(view, options.replace(max_depth=4))
            print(f"{view:<6} from the file {whole:.2f} s, next answer {(time.perf_counter() - begun) * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
