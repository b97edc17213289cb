"""Everything that needs a GPU, in one command: build, test, measure, record, and write a report.

    gpu_report.py [FOLDER]       on a machine with a GPU; logs and recordings go to FOLDER ($OUT, else out/gpu)
    gpu_report.py --simulated    tries every step out on the simulator

Needs no network where this Python has the build tools (scikit-build-core, pybind11, cmake, ninja) and what the tests
use (pytest, pytest-timeout, numpy, protobuf, rich, cuda-bindings), or where wheels of the missing ones lie in
$COLLECTOR_WHEELS or ./.whl. Nothing is installed into this Python. Otherwise pip fetches them into .venv-gpu.
Ends within nine minutes; the exit status says whether the build and all tests passed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "gpu"
SITE, WHEELS_SITE, RUN = BUILD / "site", BUILD / "wheels", BUILD / "run"
NEEDED = {
    "scikit_build_core": "scikit-build-core", "pybind11": "pybind11", "numpy": "numpy", "google.protobuf": "protobuf",
    "rich": "rich", "pytest": "pytest", "pytest_timeout": "pytest-timeout", "cuda.bindings": "cuda-python",
    "cmake": "cmake", "ninja": "ninja",
}  # fmt: skip
"""Module -> the distribution that has it."""
SECONDS = 525
"""For all steps together."""

DESCRIBE = """
import importlib.metadata as metadata, json
from collector import _native
found = _native.probe()
found["packages"] = {}
for name in ("torch", "triton", "cuda-bindings", "nvidia-cuda-cupti", "cupti-python", "numpy"):
    try:
        found["packages"][name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps(found, default=str))
"""

RECORD = """
import ctypes, sys
folder, gpu_tests, simulated = sys.argv[1:4]
sys.path.insert(0, gpu_tests)
if simulated == "1":
    import simulated_cuda
    simulated_cuda.install()
import collector
from cuda_program import CudaProgram
cuda = CudaProgram()
streams = [cuda.stream() for _ in range(3)]
x = cuda.allocate(4 << 20)
n = ctypes.c_int(1 << 20)
with cuda.pinned(4 << 20) as host:
    with collector.trace(strict=True) as step:
        for index in range(200):
            stream = streams[index % 3]
            with collector.annotate(f"layer{index % 4}"):
                cuda.copy_to_device(x, host, 4096 * (1 + index % 64), stream)
                with collector.annotate("scale"):
                    cuda.launch("scale", ctypes.c_void_p(x), ctypes.c_float(1), n, grid=(4096, 1, 1),
                                block=(256, 1, 1), stream=stream)
                cuda.fill(x, 0, 1 << 20, stream)
        with cuda.captured(streams[0]) as graphs:
            cuda.launch_empty(20, streams[0])
        for _ in range(10):
            cuda.launch_graph(graphs[0], streams[0])
step.save(folder + "/step.gpurec")
step.save(folder + "/step.pb")
print(step.summary())
"""

RECORD_TORCH = """
import sys
import torch
import collector
model = torch.nn.Sequential(*(layer for _ in range(4) for layer in (torch.nn.Linear(512, 512), torch.nn.ReLU()))).cuda()
optimizer = torch.optim.Adam(model.parameters())
x = torch.randn(256, 512)
def train_step():
    with collector.annotate("forward"):
        loss = model(x.pin_memory().to("cuda", non_blocking=True)).square().mean()
    with collector.annotate("backward"):
        loss.backward()
    with collector.annotate("optimizer"):
        optimizer.step()
        optimizer.zero_grad()
for _ in range(3):
    train_step()
torch.cuda.synchronize()
with collector.trace(sys.argv[1] + "/torch_step.gpurec", strict=True) as step:
    for _ in range(3):
        train_step()
print(step.summary())
"""


@dataclass
class Report:
    """What is done, in order, and what came of it."""

    folder: Path
    environment: dict[str, str]
    python: str
    simulated: bool
    started: float = field(default_factory=time.monotonic)
    failed: list[str] = field(default_factory=list)
    sections: list[tuple[str, str]] = field(default_factory=list)

    def left(self) -> float:
        """Return the seconds that are left for all that is still to do."""
        return SECONDS - (time.monotonic() - self.started)

    def run(self, title: str, command: list[str], seconds: float, *, required: bool = True) -> str:
        """Run a step in ``RUN``; print and return its output. A failure is remembered, and the next step runs."""
        limit = max(1.0, min(seconds, self.left()))
        print(f"== {title} (at most {limit:.0f} s)", flush=True)
        before = time.monotonic()
        process = subprocess.Popen(
            command, cwd=RUN, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            printed, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with the processes it started
            printed, _ = process.communicate()
        output, status = printed.decode(errors="replace"), process.returncode
        print(output, flush=True)
        print(f"== {title}: {'done' if status == 0 else f'exit status {status}'} in {time.monotonic() - before:.0f} s")
        if status != 0 and required:
            self.failed.append(title)
        return output


def importable(module: str) -> bool:
    """Whether this Python, with what is on PYTHONPATH, has the module."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def prepare() -> str:
    """Return the Python that has all that is needed, together with the wheels unpacked into ``WHEELS_SITE``.

    Raises:
        SystemExit: something is missing and cannot be had.
    """
    wheels = sorted(Path(os.environ.get("COLLECTOR_WHEELS") or ROOT / ".whl").glob("*.whl"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check"]
    if wheels:
        offline = ["--no-index", "--no-deps", "--no-compile", "--upgrade", "--target", str(WHEELS_SITE)]
        subprocess.run([*pip, *offline, *map(str, wheels)], check=True)
        sys.path.insert(0, str(WHEELS_SITE))
        importlib.invalidate_caches()
    missing = [distribution for module, distribution in NEEDED.items() if not importable(module)]
    if not missing:
        return sys.executable
    print(f"missing here: {', '.join(missing)}; fetching them into .venv-gpu", flush=True)
    python = ROOT / ".venv-gpu" / "bin" / "python"
    try:
        if not python.exists():
            subprocess.run(
                [sys.executable, "-m", "venv", "--system-site-packages", str(python.parent.parent)], check=True
            )
        fetch = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*fetch, *NEEDED.values(), "nvidia-cuda-cupti", "nvidia-cuda-nvrtc"], check=True)
    except subprocess.CalledProcessError as error:
        raise SystemExit(
            f"cannot fetch {', '.join(missing)}: put their wheels into {ROOT / '.whl'}, or name their folder in "
            "COLLECTOR_WHEELS"
        ) from error
    return str(python)


def build(report: Report) -> bool:
    """Build the package into ``SITE``; returns whether that went well."""
    shutil.rmtree(SITE, ignore_errors=True)
    command = [
        report.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps",
        "--no-build-isolation", f"-Cbuild-dir={BUILD / 'cmake'}", "-Ccmake.define.COLLECTOR_TEST_SUPPORT=ON",
        "--target", str(SITE), str(ROOT),
    ]  # fmt: skip
    report.run("build", command, 240)
    return not report.failed


def test(report: Report) -> None:
    """Run tests/gpu, where a missing GPU is an error."""
    # Other plugins and other packages' warnings are not what is tested here.
    report.environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    command = [
        report.python, "-m", "pytest", "-p", "pytest_timeout", "-p", "collector.testing.plugin",
        "-p", "no:cacheprovider", "-W", "default",
        "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "--durations=10", "--tb=short", "-v",
        str(ROOT / "tests" / "gpu"),
    ]  # fmt: skip
    output = report.run("GPU tests", command, 270)
    (report.folder / "tests.log").write_text(output)
    lines = output.splitlines()
    told = [line for line in lines if re.match(r"(FAILED|ERROR|SKIPPED) ", line)]
    last = next(
        (line for line in reversed(lines) if re.search(r"\d+ (passed|failed|error|skipped)", line)), "did not end"
    )
    report.sections.append(("Tests", "\n".join([last.strip("= "), "", *(f"- {line}" for line in told)])))


def measure(report: Report) -> None:
    """Run the two benchmarks."""
    benchmarks = ROOT / "benchmarks"
    decode = [report.python, str(benchmarks / "decode.py"), "--json", str(report.folder / "decode.json")]
    overhead = [report.python, str(benchmarks / "overhead.py"), "--json", str(report.folder / "overhead.json")]
    if report.simulated:
        decode += ["--repeats", "3", "--launches", "20000"]
        overhead += ["--simulated", "--launches", "2000", "--rounds", "1"]
    report.sections.append(("Decoding and callbacks", report.run("decode", decode, 60)))
    seconds = max(20.0, report.left() - 70)
    overhead += ["--seconds", str(int(seconds * 0.6))]
    report.sections.append(("What tracing costs", report.run("overhead", overhead, seconds)))


def record(report: Report) -> None:
    """Save small recordings of known programs."""
    folder, gpu_tests = str(report.folder), str(ROOT / "tests" / "gpu")
    text = report.run(
        "recording", [report.python, "-c", RECORD, folder, gpu_tests, "01"[report.simulated]], 40
    )  # fmt: skip
    report.sections.append(("A recorded step", f"```\n{text.strip()}\n```"))
    demo = ["-c", "import sys; from collector.cli import main; sys.exit(main(sys.argv[1:]))", "demo", "-o"]
    report.run("demo", [report.python, *demo, str(report.folder / "demo.json")], 60)
    if not report.simulated and importable("torch"):
        torch_step = [report.python, "-c", RECORD_TORCH, folder]
        text = report.run("PyTorch step", torch_step, 60, required=False)
        report.sections.append(("Three steps of a small PyTorch model", f"```\n{text.strip()}\n```"))


def machine(report: Report) -> tuple[str, str]:
    """Return the card's name and a table of the machine."""
    found = {}
    text = report.run("describe", [report.python, "-c", DESCRIBE], 30, required=not report.simulated)
    for line in text.splitlines():
        if line.startswith("{"):
            found = json.loads(line)
    card = next(
        (device["name"] for device in found.get("devices", [])), "Simulated GPU" if report.simulated else "no GPU"
    )
    commit = ""
    with contextlib.suppress(OSError):
        asked = ["git", "rev-parse", "--short", "HEAD"]
        commit = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    rows = {
        "card": card,
        "driver": found.get("driver_version", "none"),
        "libcupti": Path(str(found.get("cupti_path", "none"))).name,
        "CUPTI API version": found.get("cupti_api_version", ""),
        "CUDA version of it": found.get("cuda_version", ""),
        "strides": ", ".join(f"{kind} {size}" for kind, size in found.get("strides", {}).items()),
        "features": ", ".join(name for name, has in found.get("features", {}).items() if has),
        "packages": ", ".join(f"{name} {version}" for name, version in found.get("packages", {}).items()),
        "Python": platform.python_version(),
        "kernel": platform.release(),
        "processors": os.cpu_count(),
        "commit": commit or "unknown",
    }
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items() if value != "")
    return card, f"| | |\n| --- | --- |\n{table}"


def write(report: Report, card: str, table: str) -> Path:
    """Write the report into the folder and, from a real GPU, into benchmarks/results; returns where."""
    took = time.monotonic() - report.started
    verdict = f"Failed: {', '.join(report.failed)}." if report.failed else "Everything passed."
    head = f"# {card}\n\nMade by `make gpu` in {took:.0f} s. {verdict}\n\n{table}\n"
    text = head + "".join(f"\n## {title}\n\n{body.strip()}\n" for title, body in report.sections)
    path = report.folder / "report.md"
    path.write_text(text)
    if not report.simulated and card != "no GPU":
        results = ROOT / "benchmarks" / "results"
        results.mkdir(exist_ok=True)
        path = results / (re.sub(r"[^A-Za-z0-9]+", "-", card).strip("-").lower() + ".md")
        path.write_text(text)
    return path


def main() -> int:
    """Do everything; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path(os.environ.get("OUT") or ROOT / "out" / "gpu"))
    parser.add_argument("--simulated", action="store_true", help="try every step out on the simulator")
    options = parser.parse_args()
    folder = options.folder.resolve()
    for made in (folder, BUILD, RUN):
        made.mkdir(parents=True, exist_ok=True)
    environment = dict(os.environ)
    python = prepare()
    paths = [
        str(SITE),
        *([str(WHEELS_SITE)] if WHEELS_SITE.is_dir() else []),
        *filter(None, [os.environ.get("PYTHONPATH")]),
    ]
    environment |= {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
    environment["COLLECTOR_GPU_TESTS_SIMULATED" if options.simulated else "COLLECTOR_REQUIRE_GPU"] = "1"
    report = Report(folder, environment, python, options.simulated)
    card, table = "no GPU", ""
    if build(report):
        card, table = machine(report)
        test(report)
        record(report)
        measure(report)
    print(f"\nWrote {write(report, card, table)}; more is in {folder}")
    print(f"Failed: {', '.join(report.failed)}" if report.failed else "Everything passed")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
