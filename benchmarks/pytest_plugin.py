"""The cost of the pytest plugin: installed but unused, and with ``--gpu-trace`` on tests without GPU work.

Claims: a run that does not use the plugin starts at most 5 ms later than one without it and imports neither numpy nor
the native module; with ``--gpu-trace`` a test without GPU work costs at most 1 ms more. If a test is judged by its
memory operations, recording them costs less than recording the calls that make them. A loop of 2,000,000 iterations of
plain Python takes at most 1.3 times as long in a test with a limit.

Whole pytest runs alternate: without the plugin (``-p no:collector``), with it, and tracing on the simulated GPU.
Start-up is a run of one empty test, and the cost per test is the difference between a run of many and of few; all
figures are processor time, the minimum of several rounds. The plugin's own import is also timed in a separate process.
The cost of recording is the difference between traces of allocations on the simulator, including the simulator's own
work per record.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

FEW, MANY = 1, 1001
KINDS = {
    "without": ["-p", "no:collector"],
    "installed": [],
    "tracing": ["--gpu-trace", "--gpu-simulate"],
}
IMPORT = """
import importlib.metadata, json, sys, time
import pytest
before = set(sys.modules)
start = time.process_time()
(point,) = importlib.metadata.entry_points(group="pytest11", name="collector")
found = time.process_time()
point.load()
loaded = time.process_time()
print(json.dumps({"ms": 1000 * (loaded - found), "modules": sorted(set(sys.modules) - before)}))
"""

LOOPS = """
import json, time
import pytest

def adds(a, b):
    return a + b

def plain():
    total = 0
    for i in range(2_000_000):
        total += i * i

def calls():
    total = 0
    for i in range(2_000_000):
        total = adds(total, i)

def operators():
    i, kept = 0, []
    while i < 2_000_000:
        i += 1
        kept.append(i)
        if i % 3:
            kept.pop()

LOOPS = (plain, calls, operators)
spent = {}

def run(kind):
    for loop in LOOPS:
        start = time.process_time()
        loop()
        spent.setdefault(loop.__name__, {}).setdefault(kind, []).append(time.process_time() - start)

@pytest.mark.parametrize("n", range(5))
def test_free(n, simulated_gpu):
    run("free")

@pytest.mark.parametrize("n", range(5))
@pytest.mark.gpu_limits(kernels=1)
def test_limited(n, simulated_gpu):
    run("limited")

def test_result():
    ratios = {name: min(times["limited"]) / min(times["free"]) for name, times in spent.items()}
    with open("loops.json", "w") as file:
        json.dump(ratios, file)
"""

ALLOCATIONS = 20_000
RECORD = f"""
import json, time
import collector
from collector.options import KINDS
from collector.testing import SimulatedGpu

CALLS = ("runtime_api", "driver_api")
spent = {{}}
with SimulatedGpu() as gpu:
    for _ in range(4):
        for name, kinds in (("nothing", ("kernels",)), ("calls", CALLS), ("both", (*CALLS, "memory_operations"))):
            start = time.process_time()
            with collector.trace(strict=True, kinds=kinds) as step:
                for _ in range({ALLOCATIONS} // 2):
                    gpu.free(gpu.malloc(512))
            spent.setdefault(name, []).append(1e6 * (time.process_time() - start) / {ALLOCATIONS})
            assert len(step.recording.memory_operations) == ({ALLOCATIONS} if name == "both" else 0)
print(json.dumps({{name: min(times) for name, times in spent.items()}}))
"""


def environment(folder: Path) -> dict[str, str]:
    """This environment, with bytecode kept in ``folder``: installed packages have bytecode, this checkout may not."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


def processor_s(arguments: list[str], folder: Path) -> float:
    """Processor time of one pytest run, in s."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(rounds: int) -> dict[str, object]:
    """Every figure, in ms."""
    spent: dict[tuple[str, int], list[float]] = {(kind, count): [] for kind in KINDS for count in (FEW, MANY)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for count in (FEW, MANY):
            source = f"import pytest\n@pytest.mark.parametrize('n', range({count}))\ndef test_nothing(n): pass\n"
            (folder / f"test_{count}.py").write_text(source)
        for _ in range(rounds):
            for kind, count in spent:
                spent[kind, count].append(processor_s([*KINDS[kind], f"test_{count}.py"], folder))
        (folder / "test_loops.py").write_text(LOOPS)
        processor_s(["--gpu-simulate", "test_loops.py"], folder)
        loops = json.loads((folder / "loops.json").read_text())
        program = [sys.executable, "-c", IMPORT]
        runs = [
            subprocess.run(program, cwd=folder, env=environment(folder), capture_output=True, check=True)
            for _ in range(rounds)
        ]
        imports = [json.loads(run.stdout) for run in runs]
        program = [sys.executable, "-c", RECORD]
        record = json.loads(
            subprocess.run(program, cwd=folder, env=environment(folder), capture_output=True, check=True).stdout
        )
    middle = {key: 1000 * min(values) for key, values in spent.items()}
    per_test = {kind: (middle[kind, MANY] - middle[kind, FEW]) / (MANY - FEW) for kind in KINDS}
    return {
        "startup_without_ms": middle["without", FEW],
        "startup_more_when_installed_ms": middle["installed", FEW] - middle["without", FEW],
        "import_ms": min(each["ms"] for each in imports),
        "imported": [
            name for name in imports[0]["modules"] if name.partition(".")[0] in ("collector", "numpy", "rich")
        ],
        "per_test_without_ms": per_test["without"],
        "per_test_more_when_installed_ms": per_test["installed"] - per_test["without"],
        "per_test_more_when_tracing_ms": per_test["tracing"] - per_test["without"],
        "per_operation_us": record["nothing"],
        "per_operation_more_with_its_calls_us": record["calls"] - record["nothing"],
        "per_operation_more_with_its_record_us": record["both"] - record["calls"],
        **{f"loop_{name}_limited_to_free": ratio for name, ratio in loops.items()},
        "processors": os.cpu_count(),
        "rounds": rounds,
    }


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    figures = measure(arguments.rounds)
    if arguments.json:
        print(json.dumps(figures, indent=1))
        return
    for name, value in figures.items():
        print(f"{name:38} {value:.3f}" if isinstance(value, float) else f"{name:38} {value}")


if __name__ == "__main__":
    main()
