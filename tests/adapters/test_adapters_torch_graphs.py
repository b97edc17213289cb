"""Names of CUDA graphs from PyTorch's hooks: those of a stand-in, and where it is installed those of PyTorch."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from programs import results_of

import collector
from collector import adapters
from collector.errors import UnavailableError
from collector.testing import SimulatedGpu
from collector.testing.simulator.simulated_graph import SimulatedGraph

pytestmark = pytest.mark.simulator


class Graph:
    """A graph whose name nobody asks for."""


class Graphs(ModuleType):
    """A stand-in for the module: its registries, and a graph that runs them as ``torch.cuda.CUDAGraph`` does."""

    def __init__(self) -> None:
        super().__init__("torch.cuda.graphs")
        self.hooks: dict[str, list[Any]] = {"capture_start": [], "instantiate": []}
        for when in self.hooks:
            setattr(self, f"register_graph_{when}_hook", lambda hook, when=when: self._register(when, hook))

    def _register(self, when: str, hook: Any) -> SimpleNamespace:
        self.hooks[when].append(hook)
        return SimpleNamespace(remove=lambda: self.hooks[when].remove(hook))

    def run(self, when: str, graph: Any) -> None:
        for hook in self.hooks[when]:
            hook(graph)

    def capture(self, gpu: SimulatedGpu, graph: Any) -> SimulatedGraph:
        with gpu.capture() as captured:
            self.run("capture_start", graph)
            gpu.launch("gemm")
        executable = captured.instantiate()
        self.run("instantiate", graph)
        return executable


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> Graphs:
    found = Graphs()
    torch, cuda = ModuleType("torch"), ModuleType("torch.cuda")
    cuda.graphs = found  # type: ignore[attr-defined]
    for module in (torch, cuda, found):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(found.__dict__, "__name__", "torch.cuda.graphs")
    return found


def names(step: collector.Session) -> list[str]:
    return step.recording.graph_launches.names()


def test_a_function_names_graphs(graphs: Graphs) -> None:
    hooks = adapters.name_torch_graphs(lambda graph: f"batch of {graph}")
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        with collector.annotate("not this"):
            first = graphs.capture(gpu, 8)
        second = graphs.capture(gpu, 16)
        for executable in (first, second, first):
            executable.launch()
    hooks.remove()
    assert names(step) == ["batch of 8", "batch of 16", "batch of 8"]
    assert not any(graphs.hooks.values())


def test_the_default_name_is_the_function_that_captures(graphs: Graphs) -> None:
    def capture_decoder(gpu: SimulatedGpu) -> SimulatedGraph:
        return graphs.capture(gpu, Graph())

    with SimulatedGpu() as gpu, adapters.name_torch_graphs(), collector.trace(strict=True) as step:
        capture_decoder(gpu).launch()
    (name,) = names(step)
    assert name.startswith("run (test_adapters_torch_graphs.py:")  # the stand-in's frames are this file's


def test_a_graph_of_another_library_is_not_named(graphs: Graphs) -> None:
    with SimulatedGpu() as gpu, adapters.name_torch_graphs(lambda _: "torch's"):
        with collector.trace(strict=True) as step:
            with gpu.capture() as captured:
                gpu.launch("gemm")
            other = captured.instantiate()
        # What PyTorch instantiates while nothing is traced has no id that is known.
        graphs.capture(gpu, Graph())
        with collector.trace(strict=True) as step:
            other.launch()
            graphs.capture(gpu, Graph()).launch()
    assert names(step) == ["", "torch's"]


def test_an_older_pytorch_is_reported(graphs: Graphs) -> None:
    del graphs.register_graph_instantiate_hook
    with pytest.raises(UnavailableError, match="this PyTorch has no hooks of CUDA graphs"):
        adapters.name_torch_graphs()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("torch") is None, reason="NO GRAPH OF PYTORCH WAS NAMED: it is not installed")
def test_captures_instantiations_and_replays_of_pytorch_itself() -> None:
    seen = results_of(str(Path(__file__).with_name("torch_graph_programs.py")))
    if not seen:
        pytest.skip("NO GRAPH OF PYTORCH WAS NAMED: this version has no hooks of graphs")
    first, instantiated_at_its_replay = seen["captured_by_a_function"]
    assert first == instantiated_at_its_replay
    assert first.startswith("capture_decoder (torch_graph_programs.py:")
    assert seen["named_by_a_function"] == [["batch of 8", "batch of 16", "warm up", "batch of 8"], 0]
    assert seen["a_name_that_raises"] == [["decode"], 1]
