"""PyTorch programs with names from `collector.adapters`, on the CPU; their launches are made on the simulated GPU.

As a program it prints what each scenario saw: ``python torch_programs.py``.
"""

from __future__ import annotations

import copy
import json
import pickle
import time
import warnings
from typing import Any

import torch

import collector
from collector import adapters, analysis
from collector.recording.counter_rows import counters_over_time
from collector.testing import SimulatedGpu

gpu: SimulatedGpu


class Launch(torch.autograd.Function):
    """An op with a kernel of its own in both directions."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
        gpu.launch("forward")
        return x * 2

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
        gpu.launch("backward")
        return gradient * 2


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, fail: bool = False) -> torch.Tensor:
        y = Launch.apply(self.linear(x))
        if fail:
            raise RuntimeError("on purpose")
        return y


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Block()
        self.layers = torch.nn.ModuleList([Block(), Block()])

    def forward(self, x: torch.Tensor, fail: bool = False) -> torch.Tensor:
        x = self.first(x)
        for layer in self.layers:
            x = layer(x, fail)
        return Launch.apply(x)


def names(step: collector.Session) -> list[str]:
    """Annotation path and kernel of each kernel in the order of time."""
    devices = [device for device in step.step_stats.dev_stats if device.device.endswith("/stream:all")]
    nodes = sorted((node for device in devices for node in device.node_stats), key=lambda node: node.all_start_micros)
    return [node.node_name for node in nodes]


def modules() -> list[str]:
    """Forward and backward."""
    net = Net()
    adapters.annotate_modules(net)
    with collector.trace() as step:
        net(torch.ones(2, 4)).sum().backward()
    return names(step)


def inside_an_annotation() -> list[str]:
    """Another name for the model, inside the program's own annotations, without the backward pass."""
    net = Net()
    adapters.annotate_modules(net, name="net", backward=False)
    with collector.trace() as step, collector.annotate("step"):
        net(torch.ones(2, 4)).sum().backward()
    return names(step)


def all_modules() -> list[Any]:
    """Two models and a copy, from their first call on, one of which has names already."""
    first, second = Net(), Block()
    adapters.annotate_modules(second, name="second")
    with adapters.annotate_all_modules():
        with collector.trace() as step:
            first(torch.ones(2, 4)).sum().backward()
            second(torch.ones(2, 4))
        with collector.trace() as again:
            copy.deepcopy(first)(torch.ones(2, 4))
    hooks = [len(each._forward_hooks) + len(each._forward_pre_hooks) for each in first.modules()]
    return [names(step), names(again), sum(hooks)]


def removed() -> list[Any]:
    """No hook is left."""
    net = Net()
    with adapters.annotate_modules(net):
        pass
    with collector.trace() as step:
        net(torch.ones(2, 4)).sum().backward()
    hooks = [len(each._forward_hooks) + len(each._forward_pre_hooks) for each in net.modules()]
    return [sorted(set(names(step))), sum(hooks)]


def failing() -> list[str]:
    """A module that raises is left, and the next pass has its own names."""
    net = Net()
    adapters.annotate_modules(net)
    with collector.trace() as step:
        try:
            net(torch.ones(2, 4), fail=True)
        except RuntimeError:
            gpu.launch("after")
        net(torch.ones(2, 4))
    return names(step)


def two_traces() -> list[list[str]]:
    """A graph of the first trace whose backward pass runs in the second."""
    net = Net()
    adapters.annotate_modules(net)
    with collector.trace() as first:
        loss = net(torch.ones(2, 4)).sum()
    with collector.trace() as second:
        loss.backward()
    return [names(first), names(second)]


def copied() -> list[str]:
    """A copy and a pickled model have the names, too."""
    net = Net()
    adapters.annotate_modules(net)
    with collector.trace() as step:
        copy.deepcopy(net).first(torch.ones(2, 4))
        pickle.loads(pickle.dumps(net)).first(torch.ones(2, 4))
    return names(step)


def compiled() -> list[list[str]]:
    """The calls of each compiled graph: without hooks, and with hooks both traced and not."""
    graphs = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append([str(node.target) for node in graph.graph.nodes if node.op.startswith("call_")])
        return graph.forward

    class Plain(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x).relu()

    net = Plain()
    torch.compile(net, backend=backend)(torch.ones(2, 4))
    adapters.annotate_modules(net)
    torch._dynamo.reset()
    run = torch.compile(net, backend=backend)
    with collector.trace():
        run(torch.ones(2, 4))
    run(torch.ones(2, 4))
    return graphs


@torch.library.custom_op("adapters::launch", mutates_args=())
def launch_compiled(x: torch.Tensor) -> torch.Tensor:
    """An operator that remains one in compiled code."""
    gpu.launch("compiled")
    return x * 2


@launch_compiled.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


class Compiled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return launch_compiled(self.linear(x))


def compiled_names() -> list[list[str]]:
    """A compiled model as a whole, in the call that compiles it and in the next one: named, renamed, as any model."""
    found = []
    for name in (None, "net"):
        run = torch.compile(Compiled(), backend="eager")
        with torch.no_grad(), adapters.annotate_modules(run, name=name), collector.trace() as step:
            run(torch.ones(2, 4))
            run(torch.ones(2, 4))
        found.append(names(step))
    with warnings.catch_warnings(), adapters.annotate_all_modules():
        warnings.filterwarnings("ignore", "Using `torch.compile", UserWarning)
        run = torch.compile(Compiled(), backend="eager")
        with torch.no_grad(), collector.trace() as step:
            run(torch.ones(2, 4))
            run(torch.ones(2, 4))
    return [*found, names(step)]


def training() -> list[Any]:
    """An optimizer and a data loader."""
    net = Block()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(torch.ones(4, 4), batch_size=2)
    before = type(iter(loader)).__next__
    with adapters.annotate_torch_steps() as hooks, collector.trace() as step:
        for batch in loader:
            net(batch).sum().backward()
            optimizer.step()
        hooks.remove()
        optimizer.step()
    annotations = step.recording.annotations
    paths = [step.recording.strings[each] for each in annotations.name_id.tolist()]
    return [paths, type(iter(loader)).__next__ is before]


def ops() -> Any:
    """PyTorch's own ranges of ops, through NVTX; a build without CUDA says why there are none."""
    torch.cuda.synchronize = lambda *_: None  # the only call of it that needs a device
    block = Block()
    try:
        with adapters.annotate_torch_ops(), collector.trace() as step:
            block(torch.ones(2, 4)).sum().backward()
    except collector.CollectorError as error:
        return str(error)
    table = step.recording.annotations
    (addmm,) = (row for row in table if row.name.endswith("aten::addmm"))
    links = [[row["path"], row["node"], row["runs"]] for row in analysis.backward(step)]
    times = [[row["forward_activities"], row["backward_activities"]] for row in analysis.backward(step)]
    return {
        "names": names(step),
        "addmm": [table.text(addmm.shapes_text_id), addmm.op_sequence],
        "links": sorted(links),
        "times": times,
    }


def memory() -> Any:
    """PyTorch's own functions of the history, above stand-ins for those in C++."""
    asked, entries = [], []
    blocks = [{"state": "active_allocated", "requested_size": 100}]
    torch._C._cuda_record_memory_history = lambda *options: asked.append(options[:4])
    torch._C._cuda_memorySnapshot = lambda _: {
        "segments": [{"device": 0, "total_size": 2 << 20, "blocks": list(blocks)}],
        "device_traces": [list(entries)],
    }
    torch.cuda.is_initialized = lambda: True
    with adapters.record_torch_memory(max_entries=1000), collector.trace() as step:
        gpu.launch("gemm")
        blocks.append({"state": "active_allocated", "requested_size": 28})
        entries.append({"action": "alloc", "time_us": time.time_ns() // 1000, "size": 28})
        gpu.launch("gemm")
    series = {name: held.tolist() for (_, name, _), _, held in counters_over_time(step.recording)}
    return [series, asked]


SCENARIOS = (
    modules, inside_an_annotation, all_modules, removed, failing, two_traces, copied, compiled, compiled_names,
    training, ops, memory,
)  # fmt: skip

if __name__ == "__main__":
    warnings.simplefilter("error", collector.CollectorWarning)
    found = {}
    with SimulatedGpu(real_time=True) as gpu:
        for scenario in SCENARIOS:
            found[scenario.__name__] = scenario()
    print(json.dumps(found))
