"""CUDA graphs of PyTorch with names from `collector.adapters`, on the CPU.

The classes ``CUDAGraph`` and ``graph`` and their hooks are PyTorch's own. Only the class in C++ beneath them, which
needs a driver, is replaced by the simulated GPU, and so are the functions that wait and free memory before a capture.

As a program it prints what each scenario saw: ``python torch_graph_programs.py``.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import warnings
from typing import Any

import torch

import collector
from collector import adapters
from collector.testing import SimulatedGpu

gpu: SimulatedGpu


class DeviceGraph:
    """The methods of ``torch._C._CUDAGraph`` that a capture, an instantiation and a replay call."""

    def __new__(cls, keep_graph: bool = False) -> Any:
        return super().__new__(cls)

    def __init__(self, keep_graph: bool = False) -> None:
        self._has_graph_exec = False

    def capture_begin(self, **options: Any) -> None:
        self._capture = gpu.capture()
        self._captured = self._capture.__enter__()

    def capture_end_pre(self) -> None:
        self._capture.__exit__(None, None, None)

    def instantiate(self) -> None:
        self._executable = self._captured.instantiate()
        self._has_graph_exec = True

    def capture_end_post(self) -> None:
        pass

    def replay(self) -> None:
        self._executable.launch()


def real_graphs() -> Any:
    """The module ``torch.cuda.graphs`` above the replaced class."""
    from torch.cuda import graphs

    torch._C._CUDAGraph = DeviceGraph
    torch._C._host_emptyCache = lambda: None
    torch.cuda.synchronize = torch.cuda.empty_cache = torch.cuda.current_stream = lambda: None
    torch.cuda.stream = lambda stream: contextlib.nullcontext()
    return importlib.reload(graphs)


def names(step: collector.Session) -> list[str]:
    return step.recording.graph_launches.names()


def captured_by_a_function(graphs: Any) -> list[str]:
    """The default name: the function around the with block."""

    def capture_decoder(keep: bool) -> Any:
        graph = graphs.CUDAGraph(keep_graph=keep)
        with graphs.graph(graph, stream=object()):
            gpu.launch("gemm")
        return graph

    with adapters.name_torch_graphs(), collector.trace(strict=True) as step:
        capture_decoder(False).replay()
        capture_decoder(True).replay()
    return names(step)


def named_by_a_function(graphs: Any) -> list[Any]:
    """Names of our own, until the hooks are removed."""
    sizes = {}

    def capture(size: int) -> Any:
        graph = graphs.CUDAGraph()
        sizes[graph] = size
        with collector.annotate("warm up"), graphs.graph(graph, stream=object()):
            gpu.launch("gemm")
        return graph

    with collector.trace(strict=True) as step:
        with adapters.name_torch_graphs(lambda graph: f"batch of {sizes[graph]}"):
            found = [capture(8), capture(16)]
        found.append(capture(32))
        for graph in (*found, found[0]):
            graph.replay()
    return [names(step), len(graphs._global_instantiate_hooks) + len(graphs._global_capture_start_hooks)]


def a_name_that_raises(graphs: Any) -> list[Any]:
    """PyTorch ignores what a hook raises; the capture goes on without a name."""
    graph = graphs.CUDAGraph()
    with adapters.name_torch_graphs(lambda graph: 1 / 0), collector.trace(strict=True) as step:
        with collector.annotate("decode"), graphs.graph(graph, stream=object()):
            gpu.launch("gemm")
        graph.replay()
    return [names(step), len(step.recording.kernels)]


SCENARIOS = (captured_by_a_function, named_by_a_function, a_name_that_raises)

if __name__ == "__main__":
    warnings.simplefilter("error", collector.CollectorWarning)
    graphs = real_graphs()
    has_hooks = hasattr(graphs, "register_graph_instantiate_hook")
    found = {}
    with SimulatedGpu() as gpu:
        for scenario in SCENARIOS if has_hooks else ():
            found[scenario.__name__] = scenario(graphs)
    print(json.dumps(found))
