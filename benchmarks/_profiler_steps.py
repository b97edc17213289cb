"""The inputs of the profiler's benchmark: recorded steps of many kernels, and a TensorFlow graph with its step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from collector.protos import DataType, DeviceStepStats, GraphDef, OpLogProto, RunMetadata

KERNELS = ("sgemm", "relu", "layernorm", "softmax", "add", "dropout")
LAYERS, OPS_OF_LAYER, ROUNDS = 60, 12, 20
OPS = [f"model/layer{layer}/op{number}" for layer in range(LAYERS) for number in range(OPS_OF_LAYER)]
COPY_EVERY, COPY_SIZES = 50, 40
BASE_NS = 1_700_000_000_000_000_000
LAUNCH_NS = 5_000
"""From the start of one launch to the next."""
NODES_AT_ONCE = 10_000
"""The number of nodes per message; larger messages would take much memory."""


def write_kernels(path: Path, kernels: int) -> None:
    """Writes ``kernels`` kernels of 720 ops in turn, with a copy after every 50th, on one stream, and nothing else."""
    metadata = RunMetadata()
    _add_accelerator(metadata, kernels)
    path.write_bytes(metadata.SerializeToString())


def write_recorded(path: Path, kernels: int) -> None:
    """Writes the same with the other data of a recording: every launch, every op's run, every op's Python stack."""
    metadata = RunMetadata()
    _add_accelerator(metadata, kernels)
    _add_host(metadata, kernels)
    frames = metadata.provenance.frames
    for line in range(8):
        frames.add(file="/src/train.py", line=10 + line, function=f"step_{line}", first_line=10)
    for layer in range(LAYERS):
        frames.add(file="/src/model.py", line=100 + layer, function="forward", first_line=90)
    for number in range(OPS_OF_LAYER):
        frames.add(file="/src/ops.py", line=20 + number, function=f"op_{number}", first_line=20)
    for place, op in enumerate(OPS):
        layer, number = divmod(place, OPS_OF_LAYER)
        stack = [*range(8), 8 + layer, 8 + LAYERS + number]
        metadata.provenance.annotations.add(path=op, op=f"Op{number}", flops=10**9, runs=ROUNDS, stack=stack)
    path.write_bytes(metadata.SerializeToString())


def _runs(kernels: int) -> np.ndarray:
    """The op's run that each kernel belongs to: all ops in turn, round after round."""
    return np.arange(kernels) * (len(OPS) * ROUNDS) // kernels


def _launches(kernels: int) -> np.ndarray:
    return BASE_NS + np.arange(kernels, dtype=np.int64) * LAUNCH_NS


def _nodes(columns: dict[str, Any]) -> bytes:
    """The wire bytes of ``DeviceStepStats.node_stats``, from columns by the names of their fields."""
    rows = zip(*(column if isinstance(column, list) else column.tolist() for column in columns.values()), strict=True)
    device, parts = DeviceStepStats(), []
    for row in rows:
        device.node_stats.add(**dict(zip(columns, row, strict=True)))
        if len(device.node_stats) == NODES_AT_ONCE:
            parts.append(device.SerializeToString())
            device.Clear()
    return b"".join(parts) + device.SerializeToString()


def _times(start: np.ndarray, duration: np.ndarray) -> dict[str, np.ndarray]:
    micros = np.maximum(duration // 1000, 1)
    return {
        "all_start_micros": start // 1000,
        "op_end_rel_micros": micros,
        "all_end_rel_micros": micros,
        "all_start_nanos": start,
        "op_end_rel_nanos": duration,
        "all_end_rel_nanos": duration,
    }


def _add_accelerator(metadata: RunMetadata, kernels: int) -> None:
    random = np.random.default_rng(0)
    rows = np.arange(kernels)
    op, kernel = _runs(kernels) % len(OPS), random.integers(0, len(KERNELS), kernels)
    copied = np.where(rows % COPY_EVERY == 0, 1 + rows // COPY_EVERY % COPY_SIZES, 0)
    scheduled = _launches(kernels)

    def name(op: int, kernel: int, copied: int) -> str:
        return f"{OPS[op]}:{'MEMCPYHtoD' if copied else KERNELS[kernel]}"

    def label(copied: int) -> str:
        if copied:
            return f"MEMCPYHtoD {4096 * copied} bytes (Pageable to Device)"
        return "kernel regs:64 shm:0 grid:8,1,1 block:256,1,1"

    nodes = _nodes(
        {
            "node_name": list(map(name, op.tolist(), kernel.tolist(), copied.tolist())),
            "timeline_label": list(map(label, copied.tolist())),
            "scheduled_micros": scheduled // 1000,
            "scheduled_nanos": scheduled,
            "thread_id": np.full(kernels, 7),
            **_times(scheduled + 20_000, random.integers(800, LAUNCH_NS, kernels)),
        }
    )
    for device in ("/gpu:0/stream:all", "/gpu:0/stream:7"):
        metadata.step_stats.dev_stats.add(device=device).MergeFromString(nodes)


def _add_host(metadata: RunMetadata, kernels: int) -> None:
    """The launches, the annotations of the ops around them, and the annotations of the layers around these."""
    launches, runs = _launches(kernels), _runs(kernels)
    firsts = launches[np.searchsorted(runs, np.arange(len(OPS) * ROUNDS))]
    ends = np.append(firsts[1:], launches[-1] + LAUNCH_NS) - 500
    op_runs, layer_runs = np.arange(len(firsts)), np.arange(len(firsts) // OPS_OF_LAYER)
    layers = [op.rpartition("/")[0] for op in OPS[::OPS_OF_LAYER]]
    names = [layers[run % LAYERS] for run in layer_runs.tolist()] + [OPS[run % len(OPS)] for run in op_runs.tolist()]
    names += ["cudaLaunchKernel" if place % COPY_EVERY else "cudaMemcpyAsync" for place in range(kernels)]
    start = np.concatenate([firsts[::OPS_OF_LAYER] - 1000, firsts - 500, launches])
    end = np.concatenate([ends[OPS_OF_LAYER - 1 :: OPS_OF_LAYER] + 200, ends, launches + 2500])
    order = np.lexsort((-end, start))
    ordered = [names[place] for place in order.tolist()]
    nodes = _nodes(
        {
            "node_name": ordered,
            "timeline_label": [f"{name} = {name.rpartition('/')[2]}()" for name in ordered],
            "thread_id": np.full(len(start), 7),
            **_times(start[order], (end - start)[order]),
        }
    )
    metadata.step_stats.dev_stats.add(device="/cpu:0").MergeFromString(nodes)


def tensorflow_model(nodes: int) -> tuple[bytes, bytes, bytes]:
    """A GraphDef of about ``nodes`` nodes, a RunMetadata of a step of it, and an op log with a stack for each node.

    There are 500 parallel blocks of 20 consecutive ops: the greatest depth that TensorFlow's own profiler supports.
    """
    graph, metadata, log = GraphDef(), RunMetadata(), OpLogProto()
    task = "/job:localhost/replica:0/task:0/device:GPU:0"
    host = metadata.step_stats.dev_stats.add(device=task)
    stream = metadata.step_stats.dev_stats.add(device=f"{task}/stream:all")
    for id_, text in enumerate(("none", "/src/train.py", "train", "/src/model.py", "forward", "/src/ops.py")):
        log.id_to_string[id_] = text
    graph.node.add(name="input", op="Placeholder").attr["dtype"].type = DataType.Value("DT_FLOAT")
    for place in range(nodes):
        block, number = divmod(place, 20)
        name = f"model/block{block}/op{number}"
        op, arity = (("MatMul", 2), ("AddV2", 2), ("Relu", 1))[place % 3]
        source = f"model/block{block}/op{number - 1}" if number else "input"
        node = graph.node.add(name=name, op=op, input=[source] * arity)
        node.attr["T"].type = DataType.Value("DT_FLOAT")
        at = BASE_NS // 1000 + 30 * place
        for device, recorded, duration in ((host, name, 10), (stream, f"{name}:kernel", 25)):
            device.node_stats.add(
                node_name=recorded,
                timeline_label=f"{name} = {op}({', '.join(node.input)})",
                all_start_micros=at,
                op_end_rel_micros=duration,
                all_end_rel_micros=duration,
            )
        host.node_stats[-1].memory.add(
            allocator_name="GPU_0_bfc", total_bytes=4096, peak_bytes=4096, live_bytes=1024, allocator_bytes_in_use=4096
        )
        entry = log.log_entries.add(name=name, float_ops=1000)
        for file, line, function in ((1, 10, 2), (3, 100 + block, 4), (5, 20 + number, 4)):
            entry.code_def.traces.add(file_id=file, lineno=line, function_id=function, func_start_line=1)
    return graph.SerializeToString(), metadata.SerializeToString(), log.SerializeToString()
