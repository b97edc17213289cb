"""Frameworks on a GPU: the names that adapters and NVTX give their kernels, and counts that others confirm.

Each runs in a process of its own; one that is not installed is skipped.
"""

import importlib.util
import json
import re
from collections import Counter

import pytest
from long_kernel import assert_agreement
from timed_programs import COMPILING_SECONDS, PROGRAM_SECONDS

pytestmark = pytest.mark.usefixtures("real_gpu")


def needs(*packages):
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    return pytest.mark.skipif(bool(missing), reason=f"NOT TRIED: {', '.join(missing)} is not installed")


@pytest.fixture
def result_of(run_program, tmp_path, monkeypatch):
    """Runs a program from a file, as compilers of kernels read it; its last line is its result as JSON."""
    monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no pool of processes for two kernels
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

    def run(text, seconds=PROGRAM_SECONDS):
        (tmp_path / "framework_program.py").write_text(text)
        start = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport framework_program\n"
        printed = run_program(start, seconds=seconds)
        return json.loads(printed.splitlines()[-1])

    return run


TORCH = """
import json, warnings
warnings.simplefilter("ignore")
from collections import Counter
import collector
from collector import adapters
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(256, 256)
        self.layers = nn.ModuleList([nn.Linear(256, 256), nn.Linear(256, 256)])
    def forward(self, x):
        x = self.first(x).relu()
        for layer in self.layers:
            x = layer(x).relu()
        return x

torch.manual_seed(0)
net, x = Net().cuda(), torch.randn(64, 256, device="cuda")

def names(step):
    return Counter(step.recording.annotations_of(step.recording.kernels))
"""


@needs("torch")
def test_modules_name_the_kernels_of_both_passes(result_of):
    names, losses, without = result_of(
        TORCH
        + """
adapters.annotate_modules(net)
net(x).sum().backward()
with collector.trace(strict=True) as step:
    net(x).sum().backward()
    torch.cuda.synchronize()
print(json.dumps([names(step), step.ledger.losses(), step.ledger.launches_without_kernel]))
"""
    )
    modules = {"Net/first", "Net/layers/0", "Net/layers/1"}
    assert modules | {f"{module}/backward" for module in modules} <= names.keys(), names
    assert (losses, without) == ([], 0)


@needs("torch", "triton")
def test_a_compiled_module_with_cuda_graphs_has_its_name_at_every_kernel(result_of, show):
    found = result_of(
        TORCH
        + """
from collector.recording.cupti_enums import GRAPH_DEGREES
compiled = torch.compile(net, mode="reduce-overhead")
adapters.annotate_modules(compiled, name="net")
with torch.no_grad():
    compiled(x)  # is compiled
    torch.cuda.synchronize()
    with collector.trace(strict=True) as step:
        for _ in range(8):  # captures, then replays
            compiled(x)
        torch.cuda.synchronize()
kernels, launches = step.recording.kernels, step.recording.graph_launches
rows = zip(kernels.graph_id.tolist(), kernels.graph_degree.tolist(), kernels.annotations(), kernels.names())
print(json.dumps({
    "kernels": [[graph != 0, GRAPH_DEGREES[degree], path, name] for graph, degree, path, name in rows],
    "nodes": launches.num_nodes.tolist(), "losses": step.ledger.record_losses(),
}))
""",
        COMPILING_SECONDS,
    )
    kernels = [tuple(kernel) for kernel in found["kernels"]]
    for (_, degree, path, name), count in Counter(kernels).items():
        show(f"{count:3} kernels, {degree or 'no graph'}: {path}: {name}")
    assert {path for _, _, path, _ in kernels} <= {"net", "net/<captured_at>/net"}
    assert all(("<captured_at>" in path) == (degree == "captured") for _, degree, path, _ in kernels)
    in_graphs = sum(is_in_graph for is_in_graph, *_ in kernels)
    assert len(found["nodes"]) >= 6  # the first calls warm up and capture
    assert 0 < in_graphs <= sum(found["nodes"])  # copies and sets are nodes, too
    assert found["losses"] == []


@needs("torch")
def test_ops_of_emit_nvtx_have_shapes_and_their_backward_passes(result_of):
    found = result_of(
        TORCH
        + """
with adapters.annotate_torch_ops():
    net(x).sum().backward()
    with collector.trace(strict=True) as step:
        net(x).sum().backward()
        torch.cuda.synchronize()
table = step.recording.all_annotations
print(json.dumps({
    "names": names(step),
    "shapes": [table.text(row.shapes_text_id) for row in table if row.name.endswith("aten::addmm")],
    "links": [[row["path"], row["node"], row["runs"], row["forward_activities"], row["backward_activities"],
               row["forward_ns"], row["backward_ns"]] for row in collector.analysis.backward(step)],
    "losses": step.ledger.losses(),
}))
"""
    )
    assert found["losses"] == []
    assert found["names"]["aten::linear/aten::addmm"] >= 3, found["names"]
    assert len(found["shapes"]) == 3
    assert all(shapes.startswith("[[256], [64, 256], [256, 256]") for shapes in found["shapes"]), found["shapes"]
    links = {node: figures for _, node, *figures in found["links"]}
    paths = {node: path for path, node, *_ in found["links"]}
    assert paths["AddmmBackward0"] == "aten::linear/aten::addmm"
    runs, forward, backward, forward_ns, backward_ns = links["AddmmBackward0"]
    assert runs == 3
    assert forward >= 3
    assert backward >= 3
    assert forward_ns > 0
    assert backward_ns > 0
    assert paths["ReluBackward0"].startswith("aten::relu")
    assert links["ReluBackward0"][0] == 3


@needs("torch")
def test_kineto_counts_the_same_kernels_with_the_same_grids_and_blocks(result_of, show):
    """The names differ in how they are written: the functions' own, without namespaces and arguments, are compared.

    Kineto may lose a few kernels. What it has, we have; and its clock does not become that of our records.
    """
    theirs, ours, losses, (durations, lost) = result_of(
        TORCH
        + """
from torch.profiler import ProfilerActivity, profile
import long_kernel
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

def train():
    optimizer.zero_grad()
    net(x).sum().backward()
    optimizer.step()
    torch.cuda.synchronize()

for _ in range(3):
    train()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
    train()
with collector.trace(strict=True) as step:
    train()
path = __file__ + ".json"
profiler.export_chrome_trace(path)
with open(path) as file:
    events = [event for event in json.load(file)["traceEvents"] if event.get("cat") == "kernel"]
theirs = [[event["name"], event["args"]["grid"], event["args"]["block"]] for event in events]
kernels = step.recording.kernels
shapes = zip(*(kernels[f"{what}_{axis}"].tolist() for what in ("grid", "block") for axis in "xyz"))
ours = [[name, list(shape[:3]), list(shape[3:])] for name, shape in zip(kernels.names(), shapes)]
print(json.dumps([theirs, ours, step.ledger.losses(), long_kernel.durations_ms()]))
"""
    )
    assert len(ours) > 10
    assert losses == []

    def counted(kernels):
        return Counter((function_of(name), tuple(grid), tuple(block)) for name, grid, block in kernels)

    assert counted(theirs) - counted(ours) == Counter()
    missing = counted(ours) - counted(theirs)
    if missing:
        show(f"torch.profiler has {len(theirs)} of {len(ours)} kernels, and lacks {dict(missing)}")
    assert missing.total() <= 0.05 * len(ours)
    show(f"after torch.profiler: {assert_agreement(durations, lost)}")


def function_of(name):
    """The name of a function without its return type, namespaces, template and other arguments."""
    name = name.replace("(anonymous namespace)", "anonymous")
    return re.split(r"[<(]", name.removeprefix("void "), maxsplit=1)[0].rpartition("::")[2]


@needs("torch", "triton")
def test_launches_of_triton_have_their_kernels_names_flops_and_bytes(result_of):
    found = result_of(
        """
import json
from collections import Counter
import collector
from collector import adapters
import torch, triton
import triton.language as tl

def metadata(grid, kernel, arguments):
    count = arguments["count"]
    return {"name": f"add_{count}", "flops": count, "bytes": 12 * count}

@triton.jit(launch_metadata=metadata)
def add_kernel(x, y, out, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    tl.store(out + offsets, tl.load(x + offsets, mask=inside) + tl.load(y + offsets, mask=inside), mask=inside)

def add(count):
    add_kernel[(triton.cdiv(count, 256),)](x, y, out, count, BLOCK=256)

x, y = torch.ones(4096, device="cuda"), torch.ones(4096, device="cuda")
out = torch.empty_like(x)
with adapters.annotate_triton_launches():
    add(4096)
    torch.cuda.synchronize()
    with collector.trace(strict=True) as step:
        with collector.annotate("step"):
            for _ in range(10):
                add(4096)
        for _ in range(5):
            add(1000)
        torch.cuda.synchronize()
assert bool((out == 2).all())
kernels = step.recording.kernels
rows = Counter(zip(kernels.names(), kernels.annotations(), kernels.grid_x.tolist()))
details = sorted({(each.flops, each.num_bytes) for each in step.recording.details})
print(json.dumps([[[*key, count] for key, count in sorted(rows.items())], details, step.ledger.losses()]))
"""
    )
    assert found == [
        [["add_kernel", "add_1000", 4, 5], ["add_kernel", "step/add_4096", 16, 10]],
        [[1000, 12000], [4096, 49152]],
        [],
    ]


@needs("jax")
def test_a_function_of_jax_has_the_same_kernels_in_each_call(result_of, show):
    found = result_of(
        """
import json
from collections import Counter
import collector
collector.nvtx.arm()
import jax, jax.numpy as jnp

if jax.default_backend() != "gpu":
    raise SystemExit(f"JAX runs on {jax.default_backend()}")
step_function = jax.jit(lambda x: jnp.tanh(x @ x).sum(axis=0))
x = jnp.ones((256, 256))
for _ in range(3):
    step_function(x).block_until_ready()
with collector.trace(strict=True) as step:
    for _ in range(10):
        step_function(x).block_until_ready()
ledger, kernels = step.ledger, step.recording.kernels
losses = {name: line for name, line in ledger.explained_losses() if line in ledger.record_losses()}
print(json.dumps([Counter(kernels.names()), Counter(kernels.annotations()), ledger.launches_seen,
                  ledger.launches_matched, losses]))
"""
    )
    names, annotations, launches, matched, losses = found
    show(f"JAX: {names}, named {annotations}, losses: {losses}")
    assert names
    assert all(count % 10 == 0 for count in names.values()), names
    assert launches == matched > 0
    assert losses.keys() <= {"late"}  # calls of JAX's other threads that ended after the step


@needs("cupy")
def test_time_ranges_of_cupy_name_its_kernels(result_of):
    found = result_of(
        """
import json
from collections import Counter
import collector
collector.nvtx.arm()
import cupy
from cupyx.profiler import time_range

x = cupy.ones(4096, dtype=cupy.float32)
kernel = cupy.RawKernel('extern "C" __global__ void fill(float* x) { x[threadIdx.x] = 1.0f; }', "fill")

def launch(count):
    for _ in range(count):
        kernel((1,), (256,), (x,))

launch(1)
cupy.cuda.Device().synchronize()
with collector.trace(strict=True) as step:
    with time_range("outer"):
        launch(10)
        with collector.annotate("inner"):
            launch(5)
    launch(3)
    cupy.cuda.Device().synchronize()
kernels = step.recording.kernels
print(json.dumps([Counter(kernels.names()), Counter(kernels.annotations()), step.ledger.losses()]))
"""
    )
    assert found == [{"fill": 18}, {"outer": 10, "outer/inner": 5, "": 3}, []]
