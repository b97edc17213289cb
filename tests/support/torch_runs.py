"""Torch programs that are traced on the CPU; their launches are made on the simulated GPU.

Run as a program it prints the results of each scenario: `python torch_runs.py torch-first|collector-first FOLDER`.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import io
import json
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

if __name__ == "__main__" and sys.argv[1] == "collector-first":
    importlib.import_module("collector.testing")

import torch
from keras_runs import kernels_of
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

import collector
from collector.profiler import ProfileContext, ProfilerHook, adapters
from collector.testing import SimulatedGpu

gpu: SimulatedGpu


@torch.library.custom_op("collector_runs::launch", mutates_args=())
def launch(x: torch.Tensor) -> torch.Tensor:
    """An operator with its own kernel, like a CUDA extension."""
    gpu.launch("fused")
    return x * 2


@launch.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def _backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
    with collector.annotate("gradient"):
        gpu.launch("fused_backward")
    return gradient * 2


launch.register_autograd(_backward)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    @collector.annotate("net")
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with collector.annotate("note", flops=3):
            return launch(self.linear(x))


class Keeping(Net):
    """Its annotation is one of its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = collector.annotate("kept", flops=3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with self.kept:
            return super().forward(x)


def nodes(step: collector.Session) -> list[str]:
    """Annotation path and kernel of each kernel."""
    devices = [device for device in step.step_stats.dev_stats if device.device.endswith("/stream:all")]
    return [node.node_name for device in devices for node in device.node_stats]


def _train(net: Net) -> None:
    loss = net(torch.ones(2, 4)).sum()
    with collector.annotate("backward"):
        loss.backward()


TRAINED = ["net/note:fused", "backward/gradient:fused_backward"]


def beside_torchs_profiler(folder: Path) -> Any:
    net, seen = Net(), []
    for _ in range(2):
        with collector.trace(strict=True) as step, profile(activities=[ProfilerActivity.CPU]) as prof:
            _train(net)
        seen.append([nodes(step) == TRAINED, len(prof.events()) > 5, step.ledger.losses()])
        with profile(activities=[ProfilerActivity.CPU]) as prof, collector.trace(strict=True) as step:
            _train(net)
        seen.append([nodes(step) == TRAINED, len(prof.events()) > 5, step.ledger.losses()])
    return seen


def backward_recomputes_and_threads(folder: Path) -> Any:
    net, found = Net(), {}
    for is_reentrant in (True, False):
        x = torch.ones(2, 4, requires_grad=True)
        with collector.trace() as step, collector.annotate("all"):
            checkpoint(net, x, use_reentrant=is_reentrant).sum().backward()
        found[f"reentrant={is_reentrant}"] = nodes(step)

    def work(number: int) -> None:
        with collector.annotate(f"thread{number}"):
            _train(Net())

    with collector.trace() as step:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return found | {"threads": sorted(nodes(step))}


def modules_are_copied_and_saved(folder: Path) -> Any:
    net, file = Keeping(), io.BytesIO()
    torch.save(net, file)
    file.seek(0)
    with collector.trace() as step:
        for each in (net, copy.deepcopy(net), torch.load(file, weights_only=False)):
            each(torch.ones(2, 4))
    return nodes(step)


def compiled(folder: Path) -> Any:
    """Traced and untraced, the compiled program is the same, and the second trace compiles nothing."""
    net, x = Net(), torch.ones(2, 4)
    graphs = []

    def counting(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    function = torch.compile(net, backend=counting)
    results = [function(x)]
    compilations = []
    for _ in range(12):
        with collector.trace() as step, collector.annotate("outside"):
            results.append(function(x))
        compilations.append(len(graphs))
    results.append(function(x))
    same = all(torch.equal(result, net(x)) for result in results)
    return nodes(step), same, len(graphs) - compilations[0], len(graphs)


def traced_within_what_is_compiled(folder: Path) -> Any:
    session = collector.trace()

    @session
    def decorated(x: torch.Tensor) -> torch.Tensor:
        return launch(x) + 1

    def inside(x: torch.Tensor) -> tuple[torch.Tensor, collector.Session]:
        with collector.trace() as step, collector.annotate("there"):
            y = launch(x)
        return y, step

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.compile(decorated, backend="eager")(torch.ones(2))
        _, step = torch.compile(inside, backend="eager")(torch.ones(2))
    return session.kernels.names(), step.kernels.names()


def a_compiled_optimizer_tells_the_hook(folder: Path) -> Any:
    linear = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(linear.parameters(), lr=0.1)
    step = torch.compile(optimizer.step, backend="eager")
    with ProfilerHook(save_steps=2, output_dir=folder) as hook:
        adapters.on_optimizer(optimizer, hook)
        for _ in range(5):
            linear(torch.ones(2)).sum().backward()
            gpu.launch("train")
            step()
    return kernels_of(folder)


def an_optimizer_tells_the_hook(folder: Path) -> Any:
    linear = torch.nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(linear.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    with ProfilerHook(save_steps=2, output_dir=folder) as hook:
        handle = adapters.on_optimizer(optimizer, hook)
        for number in range(8):
            if number == 6:
                handle.remove()
            linear(torch.ones(2)).sum().backward()
            gpu.launch("train")
            optimizer.step()
            scheduler.step()
            copy.deepcopy(optimizer)
            optimizer.zero_grad()
    return kernels_of(folder)


class Numbers(Dataset):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> float:
        with collector.annotate("load"):
            return float(index)


class Traces(Dataset):
    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with collector.trace() as step:
                pass
        return str(step.unavailable)


def loops_over_a_loader(folder: Path) -> Any:
    """Workers are forked, and continue, while the trace is open."""
    loader = DataLoader(Numbers(), batch_size=2, num_workers=2, multiprocessing_context="fork")
    with ProfilerHook(save_steps=2, output_dir=folder) as hook:
        for _ in adapters.after_each(loader, hook):
            gpu.launch("train")
        for _ in adapters.after_each(loader, hook, first_step=5):
            gpu.launch("train")
    with ProfileContext(folder, trace_steps=[1, 6], dump_steps=[6]) as context:
        for _ in range(2):
            for _ in adapters.steps(loader, context):
                gpu.launch("train")
    return kernels_of(folder), sorted(context._traced), (folder / "profile_6").exists()


def workers(folder: Path) -> Any:
    found = {}
    for method in ("fork", "spawn"):
        loader = DataLoader(Numbers(), batch_size=2, num_workers=1, multiprocessing_context=method)
        with collector.trace() as step:
            batches = 0
            for _ in loader:
                with collector.annotate("step"):
                    gpu.launch("train")
                    batches += 1
            tracing = DataLoader(Traces(), num_workers=1, multiprocessing_context=method)
            message = [text for (text,) in tracing]
        found[method] = [batches, nodes(step), message]
    return found


def what_is_called_of_torch_exists(folder: Path) -> Any:
    """Also for functions that cannot be called without CUDA: they accept our arguments. Returns those that do not."""
    cuda, profiler, anything = torch.cuda, torch.autograd.profiler, object()
    calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
        (cuda.is_available, (), {}),
        (cuda.is_initialized, (), {}),
        (cuda.device_count, (), {}),
        (cuda.memory_allocated, (0,), {}),
        (cuda.memory_snapshot, (), {}),
        (cuda.empty_cache, (), {}),
        (cuda.synchronize, (), {}),
        (cuda.CUDAGraph, (), {}),
        (cuda.CUDAGraph.replay, (anything,), {}),
        (cuda.graph, (anything,), {}),
        (torch.compiler.is_dynamo_compiling, (), {}),
        (torch._dynamo.disable, (anything,), {}),
        (torch.optim.Optimizer.register_step_post_hook, (anything, anything), {}),
    ]
    wrong = []
    for function, arguments, keywords in calls:
        try:
            inspect.signature(function).bind(*arguments, **keywords)
        except (TypeError, ValueError) as error:
            wrong.append(f"{function.__qualname__}: {error}")
    if profiler._is_profiler_enabled is not False:
        wrong.append("_is_profiler_enabled")
    return wrong


SCENARIOS = [
    beside_torchs_profiler,
    backward_recomputes_and_threads,
    modules_are_copied_and_saved,
    compiled,
    traced_within_what_is_compiled,
    a_compiled_optimizer_tells_the_hook,
    an_optimizer_tells_the_hook,
    loops_over_a_loader,
    workers,
    what_is_called_of_torch_exists,
]


def main(folder: Path) -> None:
    global gpu
    results = {}
    with SimulatedGpu() as gpu:
        for scenario in SCENARIOS:
            results[scenario.__name__] = scenario(folder / scenario.__name__)
        results["misuse"] = gpu.misuse()
    print(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[2]))
