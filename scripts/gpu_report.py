"""Everything that needs a GPU, in one command: build, test, measure, record, and write a report.

    gpu_report.py [FOLDER]              on a machine with a GPU; logs and recordings go to FOLDER ($OUT, else out/gpu)
    gpu_report.py --steps harness,memory    only these, with the package as it was built; they join the earlier report
    gpu_report.py --call first          what comes first on a machine that is lent for minutes; then --call second
    gpu_report.py --pack gpu.tgz        and puts everything that is worth keeping into one archive
    gpu_report.py --simulated           tries every step out on the simulator

Steps run in the order of their importance, each within its own time limit. The report and the archive are written after
each, so that a call that is killed leaves both. The report lists the steps for which no time was left.

Needs no network if this Python has the build tools (scikit-build-core, pybind11, cmake, ninja) and the packages for the
tests (pytest, pytest-timeout, numpy, protobuf, rich, rich-argparse, cuda-bindings), or if wheels of the missing ones
are in $COLLECTOR_WHEELS or ./.whl. Nothing is installed into this Python. Otherwise pip installs them into .venv-gpu.
Ends within nine minutes (--seconds); the exit status says whether all steps passed.

Further libcuptis, to be tried under this driver, are taken from ./.libcupti. One of them replaces a libcupti with known
defects.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "gpu"
SITE, WHEELS_SITE, RUN = BUILD / "site", BUILD / "wheels", BUILD / "run"
CARD = ROOT / "scripts" / "card"
sys.path[:0] = [str(ROOT / "tests" / "gpu"), str(CARD)]

import gpu_tests  # noqa: E402
import recorded_programs  # noqa: E402
from carried_libraries import carried_versions  # noqa: E402
from gpu_tests import GPU_TESTS, Module, Outcomes  # noqa: E402

NEEDED = {
    "scikit_build_core": "scikit-build-core", "pybind11": "pybind11", "numpy": "numpy", "google.protobuf": "protobuf",
    "rich": "rich", "rich_argparse": "rich-argparse", "pytest": "pytest", "pytest_timeout": "pytest-timeout",
    "cuda.bindings": "cuda-python", "cmake": "cmake", "ninja": "ninja",
}  # fmt: skip
"""Module -> the distribution that contains it."""
SECONDS = 525
"""The time limit of all steps together."""
RECORDINGS = "recordings"
"""The folder of the recorded programs, in the report's folder."""
WORTHWHILE = 10
"""The minimum seconds left to begin a step."""
PROGRAM_SECONDS, FRAMEWORK_SECONDS = 30, 60
"""The time limits of a recorded program, and of one that uses a framework."""

DEFECTIVE = {130000: "it deadlocks and miscounts graphs"}
"""Version by cuptiGetVersion -> why another libcupti is used if one is carried. 130000 is 13.0.48."""
REPLACEMENT = 130001
"""The least version that replaces a defective one: 13.0.85."""
GRAPH_IDS_MENDED = 130101
"""From this version on, 13.1 Update 1, graphs have the right correlation ids in every session."""

DESCRIBE = """
import importlib.metadata as metadata, json
from collector.sources.native import NativeSource
found = NativeSource().probe()
found["packages"] = {}
for name in ("torch", "triton", "cuda-bindings", "nvidia-cuda-cupti", "cupti-python", "numpy"):
    try:
        found["packages"][name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps(found, default=str))
"""

LIST_PACKAGES = """
import importlib.metadata as metadata, importlib.util, json, sys
distributions = metadata.packages_distributions()
found = {}
for module in sys.argv[1:]:
    try:
        there = importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        there = False
    names = distributions.get(module.partition(".")[0], [])
    versions = sorted({f"{name} {metadata.version(name)}" for name in names if name != "cuda-core"})
    found[module] = (", ".join(versions) or "there") if there else ""
print(json.dumps(found))
"""
PACKAGES = {
    "cuda.bindings": ("cuda-bindings", "every test"),
    "rich_argparse": ("rich-argparse", "the command `collector`: the tests of run, attach and NVTX, and the demo"),
    "torch": (
        "torch", "the programs torch_step and compiled_step; the tests of torch, other_profilers and frameworks; "
        "torch in those of nvtx, run and plugin; the questions clocks (after torch.profiler) and torch_memory",
    ),
    "triton": ("triton", "torch.compile and Triton's launches in the tests of frameworks"),
    "jax": ("jax", "JAX in the tests of frameworks"),
    "cupy": ("cupy-cuda13x", "the program cupy_step; CuPy in the tests of frameworks and plugin"),
    "nvtx": ("nvtx", "ranges of the package nvtx in the tests of NVTX"),
    "cupti": ("cupti-python", "the tests of witness, which compare with NVIDIA's own reader of records"),
    "scipy": ("scipy", "the tests of bench"),
    "xdist": ("pytest-xdist", "workers that share a GPU in the tests of plugin"),
    "pynvml": ("nvidia-ml-py", "the sensors in the tests of bench"),
}  # fmt: skip
"""Module -> its distribution, and what is skipped without it."""
OPTIONAL = {"scipy", "pytest-xdist", "nvidia-ml-py"}
"""The packages of which the report says that they are missing, but which do not let it fail."""

Step = Callable[["Report", float], None]
"""Runs a step within this many seconds, and adds its result to the report."""


@dataclass
class Report:
    """The finished steps in order, with their results."""

    folder: Path
    environment: dict[str, str]
    python: str
    simulated: bool
    started: float = field(default_factory=time.monotonic)
    began: float = field(default_factory=time.time)
    failed: list[str] = field(default_factory=list)
    sections: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = SECONDS
    keep: Callable[[], None] = lambda: None
    """Writes the report and the archive as they are now."""

    def left(self) -> float:
        """Return the seconds left for all remaining steps."""
        return self.seconds - (time.monotonic() - self.started)

    def add_section(self, title: str, body: str) -> None:
        """Add a section, or replace an earlier one with that title."""
        self.sections = [each for each in self.sections if each[0] != title] + [(title, body)]

    def run(
        self, title: str, command: list[str], seconds: float, *, required: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> str:  # fmt: skip
        """Run a step in ``RUN``; print and return its output. A failure is recorded, and the next step runs."""
        self.failed = [each for each in self.failed if each != title]  # of an earlier call
        limit = max(1.0, min(seconds, self.left()))
        print(f"== {title} (at most {limit:.0f} s)", flush=True)
        before = time.monotonic()
        process = subprocess.Popen(
            command, cwd=RUN, env={**self.environment, **(environment or {})}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            printed, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with the processes that it started
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
    """Return a Python that has all requirements, together with the wheels unpacked into ``WHEELS_SITE``.

    Raises:
        SystemExit: a requirement is missing and unavailable.
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


def build(report: Report, seconds: float) -> None:
    """Build the package into ``SITE``."""
    shutil.rmtree(SITE, ignore_errors=True)
    command = [
        report.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps",
        "--no-build-isolation", f"-Cbuild-dir={BUILD / 'cmake'}", "-Ccmake.define.COLLECTOR_TEST_SUPPORT=ON",
        "--target", str(SITE), str(ROOT),
    ]  # fmt: skip
    report.run("build", command, seconds)


def list_packages(report: Report) -> None:
    """Say which packages are there, and what is skipped because of those that are not; a failure on a real GPU."""
    text = report.run("packages", [report.python, "-c", LIST_PACKAGES, *PACKAGES], 30)
    found = json.loads(text.splitlines()[-1]) if text.strip().endswith("}") else {}
    rows = [
        f"| {distribution} | {found.get(module) or f'**missing**: skips {skipped}'} |"
        for module, (distribution, skipped) in PACKAGES.items()
    ]
    report.add_section("Packages", "\n".join(["| package | |", "| --- | --- |", *rows]))
    missing = [distribution for module, (distribution, _) in PACKAGES.items() if not found.get(module)]
    if missing:
        print(f"missing packages: {', '.join(missing)}", flush=True)
        if not report.simulated and set(missing) - OPTIONAL:
            report.failed.append("packages")


def carried(report: Report) -> dict[int, Path]:
    """The libcuptis of ``.libcupti`` by version."""
    if not (folder := ROOT / ".libcupti").is_dir():
        return {}
    return carried_versions(folder, BUILD / "libcupti", report.python, report.environment)


def choose_libcupti(report: Report, found: dict[str, Any]) -> None:
    """State the path and version of libcupti; a defective one is replaced for the whole run if another is carried."""
    path, version = found.get("cupti_path", "none"), found.get("cupti_api_version")
    line = f"{path}, cuptiGetVersion {version} ({found.get('cupti_reason', found.get('cause', ''))})"
    print(f"libcupti: {line}", flush=True)
    if version in DEFECTIVE:
        line += f": {DEFECTIVE[version]}. "
        usable = {each: library for each, library in carried(report).items() if each >= REPLACEMENT}
        if usable:
            best = min(usable)
            # PyTorch must load the same file: two copies in one process collide.
            folder = BUILD / "libcupti" / "chosen"
            folder.mkdir(parents=True, exist_ok=True)
            link = folder / "libcupti.so.13"
            link.unlink(missing_ok=True)
            link.symlink_to(usable[best].resolve())
            searched = [str(folder), report.environment.get("LD_LIBRARY_PATH", "")]
            report.environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, searched))
            report.environment["COLLECTOR_LIBCUPTI"] = str(usable[best])
            line += f"All later steps use the carried {usable[best].name} with version {best} instead."
        else:
            line += "None is carried that could be used instead."
        print(f"libcupti: {line}", flush=True)
    report.add_section("libcupti", line)


def newer_libcupti(report: Report, outcomes: Outcomes) -> tuple[str, dict[str, str]] | None:
    """With which libcupti the tests of graphs are repeated: failures may be those of the versions before 13.1.1."""
    if outcomes.module.subject != "graphs" or outcomes.has_passed:
        return None
    mended = {version: library for version, library in carried(report).items() if version >= GRAPH_IDS_MENDED}
    if not mended:
        return None
    version = min(mended)
    return f"with libcupti {version}", {"COLLECTOR_LIBCUPTI": str(mended[version])}


def run_tests(title: str, log: str, *modules: Module, rest: bool = False) -> Step:
    """Return the step that runs modules of tests/gpu, where a missing GPU is an error.

    Args:
        title: the heading in the report.
        log: the file for what pytest prints.
        modules: the modules, in the order in which they run.
        rest: whether the modules that no step names run after them.
    """

    def run(report: Report, seconds: float) -> None:
        chosen = [*modules, *(gpu_tests.further_modules() if rest else ())]
        if report.simulated:
            chosen = gpu_tests.for_simulator(chosen)
        path = os.pathsep.join(filter(None, [report.environment.get("PYTHONPATH"), str(CARD)]))
        runner = gpu_tests.Runner(
            report.python, {**report.environment, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, RUN,
            time.monotonic() + min(seconds, report.left()), lambda outcomes: newer_libcupti(report, outcomes),
        )  # fmt: skip
        report.failed = [each for each in report.failed if each != title]
        print(f"== {title} (at most {min(seconds, report.left()):.0f} s)", flush=True)
        finished: list[Outcomes] = []
        (report.folder / log).write_text("")

        def ended(outcomes: Outcomes) -> None:
            finished.append(outcomes)
            with (report.folder / log).open("a") as file:
                file.write(f"==== {outcomes.title}: {outcomes.counts()}\n\n{outcomes.log}\n")
            print(f"-- {outcomes.title}: {outcomes.counts()}, {outcomes.seconds:.0f} s", flush=True)
            for text in gpu_tests.failures(outcomes):
                print(text, flush=True)
            report.add_section(title, gpu_tests.section(finished))
            report.keep()

        runner.run(chosen, ended)
        if not all(outcomes.has_passed for outcomes in finished if not outcomes.label):
            report.failed.append(title)
        report.add_section(title, gpu_tests.section(finished))

    return run


def compare_kernels(report: Report, seconds: float) -> None:
    """Compare the example's kernels."""
    options = [
        "bench", str(ROOT / "examples" / "bench_saxpy.py"), "-q", "--json", str(report.folder / "saxpy.json"),
        "--plot", str(report.folder / "saxpy.html"), "--max-seconds", str(round(max(1.0, seconds / 30), 1)),
    ]  # fmt: skip
    start = f"import sys; sys.path.insert(0, {str(ROOT / 'tests' / 'gpu')!r}); " if report.simulated else "import sys; "
    install = "import simulated_cuda; simulated_cuda.install(); " if report.simulated else ""
    call = f"{start}{install}from collector.cli import main; sys.exit(main(sys.argv[1:]))"
    runs = "1" if report.simulated else "3"  # a simulator in this process is missing in those of several runs
    text = report.run("comparing kernels", [report.python, "-c", call, *options, "--runs", runs], seconds)
    report.add_section("Comparing kernels", f"```text\n{text.strip()}\n```")


def try_examples(report: Report, seconds: float) -> None:
    """Run the examples of README and docs, and show what they print: times and names differ from the pages'."""
    command = [report.python, str(GPU_TESTS / "documented_examples.py"), *(["--simulated"] if report.simulated else [])]
    text = report.run("examples", command, seconds)
    (report.folder / "examples.txt").write_text(text)
    fates = [
        line for line in text.splitlines() if re.match("(== |-- .*(FAILED|left out|not at its end)|Failed|Every)", line)
    ]
    report.add_section("The examples of the documentation", "```text\n" + "\n".join(fates) + "\n```")


def benchmark(
    script: str, title: str, *simulated: str, takes_seconds: bool = True, has_json: bool = True, options: str = "",
    result: str = "", launches_alone: bool = False,
) -> Step:  # fmt: skip
    """Return the step that runs a script of ``benchmarks``.

    Args:
        script: the file without its suffix.
        title: the heading in the report.
        simulated: options on the simulator.
        takes_seconds: whether it has the option ``--seconds``.
        has_json: whether it has the option ``--json``.
        options: options on a GPU.
        result: the name of its results in the folder; that of the script if empty.
        launches_alone: whether only launches one by one are measured.
    """
    result = result or script

    def run(report: Report, seconds: float) -> None:
        command = [report.python, str(ROOT / "benchmarks" / f"{script}.py")]
        if has_json:
            command += ["--json", str(report.folder / f"{result}.json")]
        command += simulated if report.simulated else shlex.split(options)
        if takes_seconds and not report.simulated:
            command += ["--seconds", str(int(seconds * 0.85))]  # the last round may be a long one
        environment = {"COLLECTOR_BENCHMARK_LAUNCHES_ALONE": "1"} if launches_alone else {}
        text = report.run(result, command, seconds, environment=environment)
        report.add_section(title, f"```text\n{text.strip()}\n```" if takes_seconds and script != "harness" else text)

    return run


def record(report: Report, seconds: float) -> None:
    """Save small recordings of known programs, with what each program knows of its work; and the demo's step."""
    deadline = time.monotonic() + seconds
    for name in recorded_programs.SIMULATED if report.simulated else recorded_programs.PROGRAMS:
        needed = recorded_programs.NEEDS.get(name, "")
        if needed and not importable(needed):
            report.add_section(f"Recorded: {name}", f"Not run: {needed} is not installed.")
            continue
        command = [report.python, str(GPU_TESTS / "recorded_programs.py"), name, str(report.folder / RECORDINGS)]
        limit = FRAMEWORK_SECONDS if needed else PROGRAM_SECONDS
        text = report.run(name, command + ["--simulated"] * report.simulated, min(limit, deadline - time.monotonic()))
        report.add_section(f"Recorded: {name}", f"```text\n{text.strip()}\n```")
    demo = ["-c", "import sys; from collector.cli import main; sys.exit(main(sys.argv[1:]))", "demo", "-o"]
    left = min(PROGRAM_SECONDS, deadline - time.monotonic())
    report.run("demo", [report.python, *demo, str(report.folder / "demo.json")], left)


def ask(title: str, *names: str, others: bool = False) -> Step:
    """Return the step that asks the card questions; the answers are observations, not tests.

    Args:
        title: the name in the output.
        names: the questions.
        others: whether all questions but these are asked, instead of these.
    """

    def run(report: Report, seconds: float) -> None:
        folder = report.folder / "questions"
        command = [report.python, str(ROOT / "scripts" / "gpu_questions.py"), str(folder)]
        command += ["--without" if others else "--only", ",".join(names), "--seconds", str(int(max(1, seconds - 8)))]
        command += ["--simulated"] if report.simulated else []
        if (libraries := ROOT / ".libcupti").is_dir():
            command += ["--libraries", str(libraries)]
        report.run(title, command, seconds)
        answers = folder / "questions.json"
        found = json.loads(answers.read_text()) if answers.exists() else {}
        listed = [
            f"- {name}{f' ({part})' if part else ''}: {answer['end']} in {answer['seconds']:.1f} s"
            for name, question in found.items()
            for part, answer in question["parts"].items()
        ]
        report.add_section("What the card was asked", "\n".join(["Answers: `questions.md`.", "", *listed]))

    return run


OURS = "--only none --only 'floor, kernels' --only 'collector, kernels' --only 'floor, all' --only 'collector, all'"
PEERS = "--only 'kineto, CUDA' --only 'kineto, CPU + CUDA' --only 'proton, tree' --only 'proton, trace'"
"""Collectors of `benchmarks/_collectors.py`; each of the latter needs 6 to 15 s, and of the former 2."""
SMALL = ("--simulated", "--launches", "1000", "--rounds", "2")
ONCE = ("--simulated", "--launches", "1000", "--rounds", "1")
FIRST_QUESTIONS = (
    "machine", "flush", "peer_copies", "hang", "sticky", "clocks", "threads", "call_costs", "detach", "graphs",
    "strides",
)  # fmt: skip
"""What the collector's design depends on and no documentation says."""
STEPS: dict[str, tuple[Step, float]] = {
    "build": (build, 80),
    "peers": (
        benchmark(
            "overhead", "What tracing costs, beside other collectors", *ONCE, result="peers", launches_alone=True,
            options=f"--launches 50000 --rounds 2 {OURS} {PEERS}",
        ), 120,
    ),
    "floors": (
        benchmark("floors", "What a client that keeps nothing costs", *ONCE, options="--launches 50000 --rounds 4"), 60,
    ),
    "tests": (run_tests("Tests", "tests.log", *gpu_tests.CORE, rest=True), 165),
    "training_step": (
        benchmark(
            "training_step", "A step of training in PyTorch", "--simulated", "--launches", "3", "--rounds", "1",
            options="--launches 300 --rounds 1 --only none --only 'collector, all' --only 'kineto, CUDA' "
            "--only 'floor, all'",
        ), 95,
    ),
    "first_questions": (ask("first questions", *FIRST_QUESTIONS), 70),
    "harness": (
        benchmark(
            "harness", "The harness against do_bench", "--simulated", "--runs", "2", "--seconds", "1", "--pause", "0",
            options="--only do_bench",
        ), 75,
    ),
    "frameworks": (
        run_tests("Tests of frameworks and other profilers", "frameworks.log", *gpu_tests.FRAMEWORKS), 105,
    ),
    "overhead": (
        benchmark(
            "overhead", "What tracing costs", *SMALL,
            options=f"--launches 50000 --rounds 6 {OURS} --only 'collector, all, journal'",
        ), 80,
    ),
    "record": (record, 60),
    "stop_to_file": (
        benchmark(
            "stop_to_file", "From the end of a step to its file", *ONCE,
            options="--only 'collector .json' --only 'kineto, CUDA' --only 'collector .pb' --only 'proton, trace'",
        ), 75,
    ),
    "questions": (ask("questions", *FIRST_QUESTIONS, others=True), 75),
    "streaming": (
        benchmark(
            "streaming", "A long trace, streamed and in memory", "--simulated", "--launches", "40000", "--rounds", "1",
            options="--launches 1000000 --rounds 1",
        ), 45,
    ),
    "recorder": (
        benchmark(
            "recorder", "The flight recorder", "--simulated", "--launches", "40000", "--rounds", "1",
            options="--launches 1000000 --rounds 1",
        ), 45,
    ),
    "kernels": (compare_kernels, 40),
    "examples": (try_examples, 60),
    "completeness": (
        benchmark(
            "completeness", "What is recorded of all launches", *ONCE,
            options="--only 'collector, kernels' --only 'collector, all' --only 'kineto, CUDA' --only 'proton, trace'",
        ), 75,
    ),
    "nvtx": (
        benchmark(
            "nvtx", "What an NVTX range costs", "--turns", "2000", "--rounds", "2", takes_seconds=False, has_json=False,
        ), 30,
    ),
    "sessions": (benchmark("sessions", "Starting, stopping, and what short sessions miss", *ONCE), 60),
    "killed": (
        benchmark("killed", "What a killed program leaves", "--simulated", "--launches", "100000", "--rounds", "1"), 45,
    ),
    "memory": (benchmark("memory", "Memory", *ONCE), 60),
    "budget": (benchmark("budget", "What leaving out kinds of records saves", *ONCE), 60),
    "decode": (
        benchmark(
            "decode", "Decoding and callbacks", "--seconds", "0.05", "--launches", "5000", "--mebibytes", "4",
            takes_seconds=False,
        ), 60,
    ),
}  # fmt: skip
"""Name -> its function, and its time limit in seconds; in the order of importance.

On an H100 with 16 processors the build took 34 s, the first questions 40, the recordings 38, and the other questions
57; the tests of both steps 70 s until those began that run alone, and these another 60.
"""
CALLS: dict[str, tuple[float, tuple[str, ...]]] = {
    "first": (530, ("build", "peers", "floors", "tests", "training_step")),
    "second": (265, ("first_questions", "harness", "frameworks")),
}
"""The calls on a machine that is lent for a quarter of an hour: the seconds of each, and the steps that fit into them.

The second one goes on with the other steps if these take less than their limits. It may have more seconds, as many as
the first one has left over.
"""


def steps_of_call(name: str) -> list[str]:
    """The steps of a call, with those that it runs if time is left."""
    chosen = CALLS[name][1]
    planned = {step for _, steps in CALLS.values() for step in steps}
    return [*chosen, *(step for step in STEPS if step not in planned and name == list(CALLS)[-1])]


def step_seconds(report: Report, steps: Sequence[str], place: int) -> float:
    """The limit of a step: its own, or more if the limits of those after it leave more."""
    return max(STEPS[steps[place]][1], report.left() - sum(STEPS[name][1] for name in steps[place + 1 :]))


def machine(report: Report) -> tuple[str, str]:
    """Return the card's name and a table of the machine; chooses the libcupti of all later steps."""
    found: dict[str, Any] = {}
    text = report.run("describe", [report.python, "-c", DESCRIBE], 30, required=not report.simulated)
    for line in text.splitlines():
        if line.startswith("{"):
            found = json.loads(line)
    choose_libcupti(report, found)
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


def file_name(card: str) -> str:
    """The card's name as part of a file's."""
    return re.sub(r"[^A-Za-z0-9]+", "-", card).strip("-").lower()


def write(report: Report, card: str, table: str) -> Path:
    """Write the report into the folder and, from a real GPU, into benchmarks/results; returns its path."""
    took = time.monotonic() - report.started
    verdict = f"Failed: {', '.join(report.failed)}." if report.failed else "Everything passed."
    head = f"# {card}\n\nMade by `make gpu` in {took:.0f} s. {verdict}\n\n{table}\n"
    text = head + "".join(f"\n## {title}\n\n{body.strip()}\n" for title, body in report.sections)
    path = report.folder / "report.md"
    path.write_text(text)
    if not report.simulated and card != "no GPU":
        results = ROOT / "benchmarks" / "results"
        results.mkdir(exist_ok=True)
        path = results / f"{file_name(card)}-gpu.md"
        path.write_text(text)
        if (answers := report.folder / "questions" / "questions.md").exists():
            shutil.copy(answers, results / f"{file_name(card)}-questions.md")
        if (recordings := report.folder / RECORDINGS).is_dir():
            kept = ROOT / "tests" / "data" / "gpu" / file_name(card)
            shutil.copytree(recordings, kept, ignore=shutil.ignore_patterns("*.pb"), dirs_exist_ok=True)  # large
    return path


def pack(report: Report, archive: Path) -> None:
    """Put the report's folder and what belongs into the repository into an archive, which is replaced as a whole."""
    partial = archive.with_name(f".{archive.name}.partial")
    with tarfile.open(partial, "w:gz") as packed:
        unwanted = (archive.name, partial.name)
        packed.add(report.folder, "out", filter=lambda member: None if Path(member.name).name in unwanted else member)
        for kept in ("benchmarks/results", "tests/data/gpu"):
            for path in (ROOT / kept).rglob("*"):
                if path.is_file() and path.stat().st_mtime >= report.began:
                    packed.add(path, path.relative_to(ROOT))
    partial.replace(archive)


def remember(report: Report, card: str, table: str) -> None:
    """Store the results for a later call with --steps, also on another machine."""
    kept = {"card": card, "table": table, "sections": report.sections, "failed": report.failed}
    (report.folder / "report.json").write_text(json.dumps({**kept, "simulated": report.simulated}))


def recalled(report: Report) -> tuple[str, str]:
    """Load the results of an earlier call; returns the card's name and the table of the machine, if there are any."""
    try:
        kept = json.loads((report.folder / "report.json").read_text())
    except (OSError, ValueError):
        return "", ""
    if kept["simulated"] != report.simulated:
        return "", ""
    report.sections = [(title, body) for title, body in kept["sections"]]
    report.failed = kept["failed"]
    return kept["card"], kept["table"]


def chosen_steps(text: str) -> list[str]:
    """The steps of ``--steps``, in the order of `STEPS`."""
    chosen = text.split(",")
    if unknown := [name for name in chosen if name not in STEPS]:
        raise argparse.ArgumentTypeError(f"no step {', '.join(unknown)}; there are {', '.join(STEPS)}")
    return [name for name in STEPS if name in chosen]


def main() -> int:
    """Run all steps; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path(os.environ.get("OUT") or ROOT / "out" / "gpu"))
    parser.add_argument("--simulated", action="store_true", help="try every step out on the simulator")
    parser.add_argument("--steps", type=chosen_steps, default=list(STEPS), help=f"some of: {','.join(STEPS)}")
    parser.add_argument("--seconds", type=float, help=f"for all steps together (default: {SECONDS}, or the call's)")
    parser.add_argument("--pack", type=Path, metavar="FILE", help="also make a .tgz of the results and recordings")
    parser.add_argument("--call", choices=CALLS, help="the steps and seconds of a call on a machine lent for minutes")
    options = parser.parse_args()
    started = time.monotonic()
    seconds = options.seconds or (CALLS[options.call][0] if options.call else SECONDS)
    if options.call:
        options.steps = steps_of_call(options.call)
    folder = options.folder.resolve()
    for made in (folder, BUILD, RUN):
        made.mkdir(parents=True, exist_ok=True)
    if options.pack:
        options.pack = options.pack.resolve()
    python = prepare()
    environment = environment_of_steps(options.simulated)
    report = Report(folder, environment, python, options.simulated, started=started, seconds=seconds)
    return run_steps(report, list(options.steps), options.pack)


def environment_of_steps(is_simulated: bool) -> dict[str, str]:
    """The environment of every step."""
    paths = [str(SITE), *([str(WHEELS_SITE)] if WHEELS_SITE.is_dir() else []), os.environ.get("PYTHONPATH", "")]
    environment = dict(os.environ)
    environment |= {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",  # no pool of processes for a few kernels
    }  # fmt: skip
    # What one step has compiled the next ones need not compile again.
    for variable in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUPY_CACHE_DIR"):
        environment.setdefault(variable, str(BUILD / "compiled" / variable.partition("_")[0].lower()))
    if is_simulated:
        environment.setdefault("COLLECTOR_GPU_TESTS_SIMULATED", "1")  # or "bindings": on the real cuda.bindings
        environment["XDG_CACHE_HOME"] = str(BUILD / "cache")  # keeps simulated ceilings out of the user's cache
    else:
        environment["COLLECTOR_REQUIRE_GPU"] = "1"
    return environment


def run_steps(report: Report, steps: list[str], archive: Path | None) -> int:
    """Run steps, and write the report and the archive after each; returns the exit status."""
    card = table = ""
    path = report.folder

    def keep() -> None:
        nonlocal path
        path = write(report, card or "no GPU", table)
        remember(report, card, table)
        if archive:
            pack(report, archive)

    report.keep = keep
    if steps != list(STEPS):
        card, table = recalled(report)
        steps = steps if SITE.is_dir() or "build" in steps else ["build", *steps]
    list_packages(report)
    is_described = False
    for place, name in enumerate(steps):
        if name != "build" and not is_described:
            card, table = machine(report)
            is_described = True
        if report.left() < WORTHWHILE:
            report.add_section(name, f"Not run: no time left. `scripts/gpu_report.py --steps {name}` does it.")
        else:
            STEPS[name][0](report, step_seconds(report, steps, place))
        if name == "build" and "build" not in report.failed:
            card, table = machine(report)
            is_described = True
        keep()
        if name == "build" and "build" in report.failed:
            break
    print(f"\nWrote {path}; more is in {report.folder}")
    print(f"Failed: {', '.join(report.failed)}" if report.failed else "Everything passed")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
