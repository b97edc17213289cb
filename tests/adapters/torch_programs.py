"""PyTorch programs with names from `collector.adapters`, on the CPU; their launches are made on the simulated GPU.

As a program it prints what each scenario saw: ``python torch_programs.py``.
"""

from __future__ import annotations

import copy
import gc
import io
import json
import pickle
import threading
import time
import warnings
import weakref
from contextlib import nullcontext, suppress
from typing import Any

import torch
from torch.nn.modules import module as modules

import collector
from collector import adapters, analysis
from collector.adapters import torch_modules
from collector.adapters.entered_calls import calls
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


def named() -> list[str]:
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
    """No hook is left, neither of the model nor of all modules."""
    net = Net()
    with adapters.annotate_modules(net), adapters.annotate_all_modules():
        pass
    with collector.trace() as step:
        net(torch.ones(2, 4)).sum().backward()
    hooks = [len(each._forward_hooks) + len(each._forward_pre_hooks) for each in net.modules()]
    of_all = [modules._global_forward_pre_hooks, modules._global_forward_hooks]
    return [sorted(set(names(step))), sum(hooks) + sum(map(len, of_all))]


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


class Interrupted(torch.nn.Module):
    """Its part is interrupted as by Ctrl-C, for which PyTorch calls no hook; ``is_caught``: it goes on itself."""

    def __init__(self, is_caught: bool) -> None:
        super().__init__()
        self.part, self.other = Block(), Block()
        self.is_caught, self.is_interrupted = is_caught, True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        handle = self.part.linear.register_forward_pre_hook(self.interrupt)
        try:
            self.part(x)
        except KeyboardInterrupt:
            if not self.is_caught:
                raise
        finally:
            handle.remove()
        return self.other(x)

    def interrupt(self, *_: object) -> None:
        if self.is_interrupted:
            raise KeyboardInterrupt


def interrupted() -> list[Any]:
    """Passes after an interrupted one: on the same line, in a function of their own, and inside a user's annotation."""
    net, found = Interrupted(is_caught=False), []
    adapters.annotate_modules(net)

    def step(depth: int) -> None:
        if depth:
            step(depth - 1)
        else:
            net(torch.ones(2, 4)).sum().backward()

    for depth in (0, 1, 5):
        with collector.trace() as traced:
            for net.is_interrupted in (True, False):
                with suppress(KeyboardInterrupt):
                    step(depth)
        found.append(names(traced))
    with collector.trace() as traced:
        for net.is_interrupted in (True, False, True):
            try:
                with collector.annotate("step"):
                    net(torch.ones(2, 4))
            except KeyboardInterrupt:
                gpu.launch("after")
    return [*found, names(traced), len(calls.entered)]


class FailingSGD(torch.optim.SGD):
    def step(self, closure: Any = None) -> None:
        raise RuntimeError("on purpose")


def failed_step() -> list[str]:
    """A pass after a step of an optimizer that raised, in and outside of a user's annotation."""
    net = Block()
    adapters.annotate_modules(net)
    optimizer = FailingSGD(net.parameters(), lr=0.1)
    with adapters.annotate_torch_steps(), collector.trace() as step:
        for annotation in (nullcontext(), collector.annotate("update")):
            with suppress(RuntimeError), annotation:
                optimizer.step()
            net(torch.ones(2, 4))
    return names(step)


def interrupted_inside() -> list[str]:
    """A module that goes on after its part was interrupted."""
    net = Interrupted(is_caught=True)
    adapters.annotate_modules(net)
    with collector.trace() as step:
        net(torch.ones(2, 4)).sum().backward()
    return names(step)


def filters() -> list[int]:
    """Filters of warnings that names add while there are any."""
    before = list(warnings.filters)
    with adapters.annotate_modules(Net()):
        pass
    first = adapters.annotate_modules(Net())
    with adapters.annotate_all_modules():
        during = len(warnings.filters) - len(before)
    still = len(warnings.filters) - len(before)
    with warnings.catch_warnings():
        warnings.resetwarnings()
        first.remove()  # a filter that is gone is no error
    first = adapters.annotate_modules(Net())
    first.remove()
    return [during, still, warnings.filters == before]


def two_traces() -> list[list[str]]:
    """A graph of the first trace whose backward pass runs in the second."""
    net = Net()
    adapters.annotate_modules(net)
    with collector.trace() as first:
        loss = net(torch.ones(2, 4)).sum()
    with collector.trace() as second:
        loss.backward()
    return [names(first), names(second)]


def untouched() -> list[Any]:
    """What a named model has that it had not before, what its pickle says of us, and the names of copies."""
    net = Net()
    before = [dict(vars(each)) for each in net.modules()]
    adapters.annotate_modules(net)
    with collector.trace() as step:
        net.first(torch.ones(2, 4))
        copy.deepcopy(net).first(torch.ones(2, 4))
        pickle.loads(pickle.dumps(net)).first(torch.ones(2, 4))
    is_as_before = [dict(vars(each)) for each in net.modules()] == before
    return [is_as_before, b"collector" in pickle.dumps(net), names(step)]


def replica_of(model: torch.nn.Module) -> torch.nn.Module:
    """What `torch.nn.DataParallel` makes of a model for one more GPU at each call; its own function needs such GPUs."""
    replicas = {module: module._replicate_for_data_parallel() for module in model.modules()}
    for module, replica in replicas.items():
        for name, part in module._modules.items():
            replica._modules[name] = None if part is None else replicas[part]
        for name, parameter in module._parameters.items():
            object.__setattr__(replica, name, parameter)
    return replicas[model]


def replicated() -> list[Any]:
    """Replicas of a model in threads of their own, and how many more originals are known after it is dropped."""
    gc.collect()
    found, before = [], len(torch_modules._originals)
    for give in (adapters.annotate_modules, lambda _: adapters.annotate_all_modules()):
        net = Net()
        with give(net), collector.trace() as step:
            net(torch.ones(2, 4))
            for _ in range(2):
                thread = threading.Thread(target=replica_of(net), args=(torch.ones(2, 4),))
                thread.start()
                thread.join()
        found.append(names(step))
        del net, thread
    gc.collect()
    return [*found, len(torch_modules._originals) - before]


def renamed() -> list[list[str]]:
    """A part that is named for itself, in a model with a name and in one among all; then without its own name."""
    found = []
    for of_model in (adapters.annotate_modules, lambda _: adapters.annotate_all_modules()):
        net = Net()
        with of_model(net):
            with adapters.annotate_modules(net.first, name="part"), collector.trace() as step:
                net(torch.ones(2, 4)).sum().backward()
            with collector.trace() as again:
                net(torch.ones(2, 4))
        found.append([names(step)[0], names(step)[-1], names(again)[0]])
    return found


def part_first() -> list[str]:
    """A part that is called before the model of which it is a part."""
    net = Net()
    with adapters.annotate_all_modules(), collector.trace() as step:
        net.first(torch.ones(2, 4))
        net(torch.ones(2, 4))
    return names(step)


def forgotten() -> list[Any]:
    """A new module in each of some steps: whether the last one lives on, and how many have names."""
    known = []
    with adapters.annotate_all_modules(), collector.trace():
        for _ in range(3):
            module = torch.nn.ReLU()
            module(torch.ones(2, 4))
            known.append(len(torch_modules._given))
    alive = weakref.ref(module)
    del module
    gc.collect()
    return [alive() is None, len(torch_modules._given) - known[0]]


class Odd(torch.nn.Module):
    """A module that cannot be a key."""

    __hash__ = None  # type: ignore[assignment]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Launch.apply(x)


class OddOutput(list[Any]):
    """An output that cannot be looked through."""

    def __iter__(self) -> Any:
        raise RuntimeError("not to be asked")


torch.utils._pytree.register_pytree_node(OddOutput, lambda output: (list(iter(output)), None), OddOutput)


class Returns(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> OddOutput:
        return OddOutput([Launch.apply(x)])


def odd() -> list[str]:
    """Modules of whose classes our hooks get errors."""
    with adapters.annotate_all_modules(), collector.trace() as step:
        Odd()(torch.ones(2, 4))
        Returns()(torch.ones(2, 4, requires_grad=True))
        Block()(torch.ones(2, 4))
    return names(step)


class Scripted(torch.nn.Module):
    """A model with a module of TorchScript."""

    def __init__(self) -> None:
        super().__init__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # TorchScript is deprecated
            self.inner = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Launch.apply(self.inner(x))


def scripted() -> list[Any]:
    """Modules of TorchScript: named, in a model, and made of named models by both ways."""
    x = torch.ones(2, 4)
    with adapters.annotate_all_modules(), collector.trace() as step, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        buffer = io.BytesIO()
        torch.jit.save(Scripted().inner, buffer)
        buffer.seek(0)
        torch.jit.load(buffer)(x)
        Scripted()(x)
    paths = [step.recording.strings[each] for each in step.recording.annotations.name_id.tolist()]
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    model = Scripted()
    with adapters.annotate_modules(net), adapters.annotate_modules(model, name="model"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with collector.trace() as named:
            model(x)
            net(x)
            same = [torch.equal(made(x), net(x)) for made in (torch.jit.script(net), torch.jit.trace(net, x))]
    return [paths, names(named), same]


def compiled() -> list[list[str]]:
    """The calls of each compiled graph of a model, and of a function that calls it.

    Without hooks, then for each adapter with hooks both traced and not, followed by the warnings.
    """
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

    def function(x: torch.Tensor) -> torch.Tensor:
        return net(x) * 2

    for call in (net, function):
        torch._dynamo.reset()
        torch.compile(call, backend=backend, fullgraph=True)(torch.ones(2, 4))
        for names_of in (adapters.annotate_modules, lambda _: adapters.annotate_all_modules()):
            torch._dynamo.reset()
            with names_of(net), warnings.catch_warnings(record=True) as given:
                run = torch.compile(call, backend=backend, fullgraph=True)
                with collector.trace():
                    run(torch.ones(2, 4))
                run(torch.ones(2, 4))
            graphs.append([str(each.message) for each in given])
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
    with adapters.annotate_all_modules():
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
    return [paths_of(step), type(iter(loader)).__next__ is before]


def paths_of(step: collector.Session) -> list[str]:
    """The path of each annotation in the order of time."""
    return [step.recording.strings[each] for each in step.recording.annotations.name_id.tolist()]


def training_named_twice() -> list[Any]:
    """Hooks of a program and of a library; with both, with those of the library, with none, then another wrapper."""
    net = Block()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(torch.ones(2, 4), batch_size=2)
    iterators = torch.utils.data.dataloader._BaseDataLoaderIter
    before = iterators.__next__
    found: list[Any] = []

    def train() -> None:
        with collector.trace() as step:
            for batch in loader:
                net(batch).sum().backward()
                optimizer.step()
        found.append(paths_of(step))

    of_program, of_library = adapters.annotate_torch_steps(), adapters.annotate_torch_steps()
    train()
    of_program.remove()
    of_program.remove()
    train()
    of_library.remove()
    train()
    found.append(iterators.__next__ is before)
    with adapters.annotate_torch_steps():
        named = iterators.__next__
        iterators.__next__ = lambda self: named(self)  # of a tool that came later
    train()
    with adapters.annotate_torch_steps():
        train()
    iterators.__next__ = before
    return found


def failing_steps() -> list[Any]:
    """Steps that raise: the next batch, the next step and the end of the hooks end their names."""
    parameter = torch.nn.Parameter(torch.ones(1))
    parameter.grad = torch.ones(1)
    optimizer, other = torch.optim.SGD([parameter], lr=0.1), torch.optim.Adam([parameter])
    loader = torch.utils.data.DataLoader(torch.ones(1, 1))

    def closure() -> float:
        raise RuntimeError("out of memory")

    def fail() -> None:
        with suppress(RuntimeError):
            optimizer.step(closure)

    def step_inside() -> float:
        other.step(lambda: gpu.launch("inner") or 0.0)
        next(iter(loader))
        gpu.launch("outer")
        return 0.0

    hooks = adapters.annotate_torch_steps()
    with collector.trace() as step:
        fail()
        next(iter(loader))
        gpu.launch("after_batch")
        fail()
        other.step(lambda: gpu.launch("other") or 0.0)
        gpu.launch("after_step")
        fail()
        hooks.remove()
        gpu.launch("after_hooks")
    with adapters.annotate_torch_steps(), collector.trace() as nested:
        optimizer.step(step_inside)
    return [names(step), paths_of(step), names(nested)]


def compiled_step() -> list[Any]:
    """A step of an optimizer that is compiled: the number of graphs without hooks and with them, traced."""
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    counts = []
    for hooks in (nullcontext(), adapters.annotate_torch_steps()):
        torch._dynamo.reset()
        graphs: list[Any] = []
        run = torch.compile(optimizer.step, backend=lambda graph, _, graphs=graphs: graphs.append(graph) or graph)
        parameter.grad = torch.ones(1)
        with hooks, collector.trace():
            run()
            run()
        counts.append(len(graphs))
    return counts


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
    filters, removed, named, inside_an_annotation, all_modules, failing, interrupted, interrupted_inside, failed_step,
    two_traces, untouched, replicated, renamed, part_first, forgotten, odd, scripted, compiled, compiled_names,
    training, training_named_twice, failing_steps, compiled_step, ops, memory,
)  # fmt: skip

if __name__ == "__main__":
    warnings.simplefilter("error", collector.CollectorWarning)
    found = {}
    with SimulatedGpu(real_time=True) as gpu:
        for scenario in SCENARIOS:
            found[scenario.__name__] = scenario()
    print(json.dumps(found))
