"""Programs whose recordings from real GPUs are kept in tests/data/gpu, with what each program knows of its own work.

    recorded_programs.py NAME FOLDER            writes NAME.gpurec, NAME.pb and NAME.json (the facts) into FOLDER
    recorded_programs.py NAME FOLDER --simulated    the programs of `SIMULATED`, on the simulator

A program of cuda-python or CuPy counts what it asks for. Of a step of PyTorch, whose kernels the caller cannot count,
PyTorch's own profiler is the witness: it records one further step after ours.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

LAYERS, TURNS, GRAPH_NODES, GRAPH_LAUNCHES = 4, 200, 20, 10
ELEMENTS, FILLED_BYTES = 1 << 20, 1 << 20


@dataclass
class Facts:
    """What the program knows of its step."""

    witness: str
    """Who counted: "the program", or another profiler."""
    kernels: int = 0
    memcpys: int = 0
    memsets: int = 0
    kernels_by_name: dict[str, int] = field(default_factory=dict)
    """A part of a kernel's name that no other kernel's name has -> count."""
    copied_bytes: dict[str, int] = field(default_factory=dict)
    """Direction -> bytes."""
    filled_bytes: int = 0
    annotations: dict[str, int] = field(default_factory=dict)
    """Path -> activities of the GPU with this name, at the launch or, for nodes of graphs, at the capture."""
    graphs: int = 0
    """Launches of graphs."""
    streams: int = 0
    """Streams with work; 0 if the program does not know them."""
    stream_names: list[str] = field(default_factory=list)
    packages: dict[str, str] = field(default_factory=dict)


Recorded = tuple[Any, Facts]
"""The ended step and the facts."""


def cuda_step() -> Recorded:
    """Kernels, copies and sets on three streams, and a graph; everything through cuda-python."""
    from cuda_program import CudaProgram

    import collector

    cuda = CudaProgram()
    streams = [cuda.stream() for _ in range(3)]
    x, count = cuda.allocate(4 * ELEMENTS), ctypes.c_int(ELEMENTS)
    facts = Facts("the program", streams=3)
    copied: Counter[str] = Counter()
    names: Counter[str] = Counter()
    with cuda.pinned(4 * ELEMENTS) as host, collector.trace(strict=True) as step:
        for turn in range(TURNS):
            stream, layer, num_bytes = streams[turn % 3], f"layer{turn % LAYERS}", 4096 * (1 + turn % 64)
            with collector.annotate(layer):
                cuda.copy_to_device(x, host, num_bytes, stream)
                with collector.annotate("scale"):
                    cuda.launch("scale", ctypes.c_void_p(x), ctypes.c_float(1), count, grid=(ELEMENTS // 256, 1, 1),
                                block=(256, 1, 1), stream=stream)  # fmt: skip
                cuda.fill(x, 0, FILLED_BYTES, stream)
            copied["HtoD"] += num_bytes
            names += Counter({layer: 2, f"{layer}/scale": 1})
        with collector.annotate("captured"), cuda.captured(streams[0]) as graphs:
            cuda.launch_empty(GRAPH_NODES, streams[0])
        for _ in range(GRAPH_LAUNCHES):
            cuda.launch_graph(graphs[0], streams[0])
    in_graphs = GRAPH_NODES * GRAPH_LAUNCHES
    facts.copied_bytes, facts.annotations = dict(copied), {**names, "<captured_at>/captured": in_graphs}
    facts.kernels_by_name = {"scale": TURNS, "empty_kernel": in_graphs}
    facts.kernels, facts.memcpys, facts.memsets, facts.graphs = TURNS + in_graphs, TURNS, TURNS, GRAPH_LAUNCHES
    facts.filled_bytes = TURNS * FILLED_BYTES
    return step, facts


def nvtx_step() -> Recorded:
    """Kernels inside NVTX ranges of two domains, nested in annotations, on two streams with names."""
    from cuda_program import CudaProgram
    from nvtx_copy import NvtxCopy, attributes

    import collector
    from collector.runtime.extension import capture_library

    cuda = CudaProgram()
    streams = {name: cuda.stream() for name in ("compute", "prefetch")}
    nvtx = NvtxCopy(str(capture_library()))
    domain = nvtx.DomainCreateA(b"loader")
    facts = Facts("the program", streams=2, stream_names=sorted(streams))
    names: Counter[str] = Counter()
    with collector.trace(strict=True, nvtx=True) as step:
        for name, stream in streams.items():
            nvtx.NameCuStreamA(int(stream), name.encode())
        for turn in range(50):
            nvtx.RangePushA(b"step")
            cuda.launch_empty(1, streams["compute"])
            with collector.annotate(f"layer{turn % LAYERS}"):
                nvtx.RangePushEx(attributes(b"conv", category=7, color_type=1, color=0xFF00FF00))
                cuda.launch_empty(2, streams["compute"])
                nvtx.RangePop()
            nvtx.DomainRangePushEx(domain, attributes("batch é"))
            cuda.launch_empty(1, streams["prefetch"])
            nvtx.DomainRangePop(domain)
            nvtx.RangePop()
            names += Counter({"step": 1, f"step/layer{turn % LAYERS}/conv": 2, "step/batch é": 1})
    facts.annotations, facts.kernels = dict(names), names.total()
    facts.kernels_by_name = {"empty_kernel": facts.kernels}
    return step, facts


def cupy_step() -> Recorded:
    """Raw kernels, a copy each way and CuPy's own ranges."""
    import cupy
    from cupyx.profiler import time_range

    import collector

    collector.nvtx.arm()
    kernel = cupy.RawKernel('extern "C" __global__ void add_one(float* x) { x[threadIdx.x] += 1; }', "add_one")
    x = cupy.zeros(256, dtype=cupy.float32)
    kernel((1,), (256,), (x,))
    host = x.get()
    cupy.cuda.Device().synchronize()
    with collector.trace(strict=True, nvtx=True) as step:
        with time_range("load"):
            x.set(host)
        for _ in range(30):
            with time_range("add"):
                kernel((1,), (256,), (x,))
        with collector.annotate("read"):
            x.get()
    facts = Facts("the program", kernels=30, memcpys=2, kernels_by_name={"add_one": 30})
    facts.copied_bytes = {"HtoD": 1024, "DtoH": 1024}
    facts.annotations = {"load": 1, "add": 30, "read": 1}
    facts.packages = {"cupy": cupy.__version__}
    return step, facts


def _torch_model() -> tuple[Any, Any]:
    import torch

    torch.manual_seed(1)
    parts = (part for _ in range(LAYERS) for part in (torch.nn.Linear(512, 512), torch.nn.ReLU()))
    return torch.nn.Sequential(*parts).cuda(), torch.randn(256, 512)


def _with_kineto(step: Any, body: Callable[[], None]) -> Recorded:
    """The facts of ``body`` by PyTorch's profiler, which runs after the step."""
    import torch
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        body()
        torch.cuda.synchronize()
    events = profiler.profiler.kineto_results.events()
    names = [event.name() for event in events if event.device_type() == DeviceType.CUDA and event.duration_ns() > 0]
    copies, sets = (sum(name.startswith(each) for name in names) for each in ("Memcpy", "Memset"))
    facts = Facts("torch.profiler", kernels=len(names) - copies - sets, memcpys=copies, memsets=sets)
    facts.packages = {"torch": torch.__version__}
    return step, facts


def torch_step() -> Recorded:
    """Three steps of training, with the names of modules, of their backward passes and of the optimizer."""
    import torch

    import collector

    model, x = _torch_model()
    optimizer = torch.optim.Adam(model.parameters())

    def train() -> None:
        for _ in range(3):
            with collector.annotate("load"):
                batch = x.pin_memory().to("cuda", non_blocking=True)
            model(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()

    with collector.adapters.annotate_modules(model), collector.adapters.annotate_torch_steps():
        train()
        torch.cuda.synchronize()
        with collector.trace(strict=True) as step:
            train()
    recorded = _with_kineto(step, train)
    recorded[1].annotations = {"load": 3}
    return recorded


def compiled_step() -> Recorded:
    """Three steps of an inference that torch.compile turned into CUDA graphs."""
    import torch

    import collector

    model, x = _torch_model()
    x = x.cuda()
    compiled = torch.compile(model, mode="reduce-overhead")

    def infer() -> None:
        with torch.no_grad():
            for _ in range(3):
                with collector.annotate("infer"):
                    compiled(x)

    # In one session: libcupti before 13.1.1 may give graphs wrong correlation ids in those after the first.
    with collector.trace(strict=True, schedule=collector.schedule(warmup=1, active=1, repeat=1)) as step:
        for _ in range(3):  # the graphs are captured here
            infer()
        torch.cuda.synchronize()
        step.step()
        infer()
        torch.cuda.synchronize()
    return _with_kineto(step, infer)


PROGRAMS: dict[str, Callable[[], Recorded]] = {
    "cuda_step": cuda_step,
    "nvtx_step": nvtx_step,
    "cupy_step": cupy_step,
    "torch_step": torch_step,
    "compiled_step": compiled_step,
}
NEEDS = {"cupy_step": "cupy", "torch_step": "torch", "compiled_step": "torch"}
"""Program -> the module without which it cannot run."""
SIMULATED = ("cuda_step", "nvtx_step")
"""The programs that the simulator can run."""


def main() -> None:
    """Run one program and write its files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=PROGRAMS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--simulated", action="store_true")
    options = parser.parse_args()
    if options.simulated:
        import simulated_cuda

        simulated_cuda.install()
    step, facts = PROGRAMS[options.name]()
    options.folder.mkdir(parents=True, exist_ok=True)
    for suffix in ("gpurec", "pb"):
        step.save(options.folder / f"{options.name}.{suffix}")
    (options.folder / f"{options.name}.json").write_text(json.dumps(asdict(facts), indent=1) + "\n")
    print(step.summary())


if __name__ == "__main__":
    main()
