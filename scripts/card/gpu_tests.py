"""Runs of tests/gpu: a process of pytest for each module, several at once, and what came out of each.

A crash, a hang or a time limit ends one module's process only. The outcomes until then are kept, and the module's other
tests run in a new process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from notes import read_notes

ROOT = Path(__file__).resolve().parents[2]
GPU_TESTS = ROOT / "tests" / "gpu"
TOGETHER = min(8, max(4, (os.cpu_count() or 4) // 2))
"""The number of modules that run at the same time."""
PROCESSES = 4
"""The maximum number of processes for one module, which needs a further one after each crash."""
WORTHWHILE = 8.0
"""The minimum seconds left to begin a process."""
SIMULATOR_SECONDS = 900
"""The limit of a process and of a test on the simulator, which may run on a slow machine."""
FAILURE_LINES = 25
"""Lines of a failure in the report; all are in the log."""


@dataclass(frozen=True)
class Module:
    """A module of tests/gpu, or a part of one, which has a process of its own."""

    subject: str
    """The part of the file's name after ``test_gpu_``; on the simulator those of several, with ``+`` between them."""
    seconds: float = 75
    """The time limit of a process."""
    is_alone: bool = False
    """Whether nothing else may use the GPU meanwhile: it measures times or memory."""
    test_seconds: int = 60
    """The time limit of a test."""
    select: str = ""
    """The tests, as for ``pytest -k``; empty: all."""

    @property
    def title(self) -> str:
        """The subject with the selection."""
        return f"{self.subject} ({self.select})" if self.select else self.subject

    @property
    def files(self) -> list[Path]:
        """The files."""
        return [GPU_TESTS / f"test_gpu_{subject}.py" for subject in self.subject.split("+")]


CORE = (
    Module("records", 60, is_alone=True),
    Module("library"), Module("graphs"), Module("witness"), Module("run"), Module("nvtx"), Module("streaming"),
    Module("attach"), Module("journal"), Module("memory"), Module("demo"),
    Module("completeness", is_alone=True),
    Module("schedules", 40, is_alone=True),
    Module("plugin", 90, is_alone=True),
    Module("bench", 60, is_alone=True),
)  # fmt: skip
FRAMEWORKS = (
    Module("other_profilers", 90),
    Module("frameworks", 90, select="kineto or modules"),
    Module("frameworks", 120, test_seconds=120, select="compiled or emit_nvtx"),
    Module("frameworks", 90, select="not (kineto or modules or compiled or emit_nvtx)"),
    Module("torch", 90, test_seconds=120),
    Module("ncu", 60, is_alone=True),
)
"""The modules in the order of their importance."""


def further_modules() -> tuple[Module, ...]:
    """The modules that no list names."""
    named = {file for module in (*CORE, *FRAMEWORKS) for file in module.files}
    files = sorted(file for file in GPU_TESTS.glob("test_gpu_*.py") if file not in named)
    return tuple(Module(file.stem.removeprefix("test_gpu_"), is_alone=True) for file in files)


@dataclass
class Outcomes:
    """The outcomes of one module."""

    module: Module
    seconds: float = 0.0
    ends: list[str] = field(default_factory=list)
    """How processes ended that did not end by themselves, each with the test that ran then."""
    lines: list[dict[str, Any]] = field(default_factory=list)
    """The lines of `told_outcomes`."""
    log: str = ""
    label: str = ""
    """A difference from the ordinary run, such as another libcupti."""

    @property
    def title(self) -> str:
        """The module's, with the label."""
        return f"{self.module.title}, {self.label}" if self.label else self.module.title

    def of(self, outcome: str) -> list[dict[str, Any]]:
        """The lines of one outcome: ``passed``, ``failed`` or ``skipped``."""
        return [line for line in self.lines if line.get("outcome") == outcome]

    @property
    def failed_tests(self) -> list[str]:
        """The tests that failed, and those that a crash or a limit ended, in their order."""
        failed = {line["test"] for line in self.of("failed")}
        return [test for test in dict.fromkeys(line["test"] for line in self.lines) if test in failed]

    @property
    def has_passed(self) -> bool:
        """Whether every test passed or was skipped, in processes that ended by themselves."""
        return not (self.failed_tests or self.ends)

    def counts(self) -> str:
        """``20 passed, 1 failed``, and how processes ended."""
        outcomes = Counter(line["outcome"] for line in self.lines if "outcome" in line)
        texts = [f"{outcomes[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped") if outcomes[outcome]]
        return "; ".join([", ".join(texts) or "nothing ran", *self.ends])


@dataclass(frozen=True)
class Runner:
    """Runs modules."""

    python: str
    environment: dict[str, str]
    folder: Path
    """Processes run here; it must not contain a folder ``collector``."""
    deadline: float
    """The `time.monotonic` at which all must have ended."""
    repeated: Callable[[Outcomes], tuple[str, dict[str, str]] | None] = lambda outcomes: None
    """Whether a module runs once more, with which label and in which environment."""

    def run(
        self, modules: Sequence[Module], ended: Callable[[Outcomes], None], together: int = TOGETHER
    ) -> list[Outcomes]:
        """Run modules in their order: those that may run with others several at a time.

        Args:
            modules: the modules.
            ended: called with the outcomes of each module when it has ended, in one thread at a time.
            together: the number of modules that run at the same time.
        """
        found: dict[Module, Outcomes] = {}
        lock = threading.Lock()

        def one(module: Module) -> None:
            outcomes = self.run_module(module)
            with lock:
                found[module] = outcomes
                ended(outcomes)
            again = self.repeated(outcomes)
            if again is not None:
                label, environment = again
                repeated = self.run_module(module, label=label, environment=environment)
                with lock:
                    ended(repeated)

        for group in _groups(modules):
            with ThreadPoolExecutor(min(together, len(group))) as pool:
                list(pool.map(one, group))
        return [found[module] for module in modules]

    def run_module(self, module: Module, *, label: str = "", environment: dict[str, str] | None = None) -> Outcomes:
        """Run one module, in further processes if one dies."""
        outcomes = Outcomes(module, label=label)
        begin = time.monotonic()
        started: dict[str, None] = {}
        for number in range(PROCESSES):
            left = self.deadline - time.monotonic()
            if left < WORTHWHILE:
                outcomes.ends.append("no time was left" if not number else "no time was left for its other tests")
                break
            file = self.folder / f"outcomes-{threading.get_native_id()}-{time.monotonic_ns()}"
            command = self._command(module, file, started)
            end, printed = run_limited(
                command, self.folder, {**self.environment, **(environment or {})}, min(module.seconds, left)
            )
            lines = read_notes(file)
            file.unlink(missing_ok=True)
            outcomes.lines += lines
            outcomes.log += printed
            new = dict.fromkeys(line["test"] for line in lines if "outcome" not in line)
            started |= new
            running = _unfinished(lines)
            if isinstance(end, int) and end in (0, 1, 5):  # 5: none is left or selected
                break
            how = f"exit status {end}" if isinstance(end, int) else end
            outcomes.ends.append(f"{how}{f' in {_name(running)}' if running else ''}")
            if running:
                outcomes.lines.append({"test": running, "outcome": "failed", "text": f"{how}\n{_last_words(printed)}"})
            if not new:  # none began: another process would do the same
                break
        outcomes.seconds = time.monotonic() - begin
        return outcomes

    def _command(self, module: Module, file: Path, started: Iterable[str]) -> list[str]:
        # Other plugins and other packages' warnings are not under test here.
        plugins = ("pytest_timeout", "collector.testing.plugin", "told_outcomes", "no:cacheprovider")
        options = ["--tb=short", "--no-summary", "-v", f"--outcomes={file}", f"--timeout={module.test_seconds}"]
        # Of a call that hangs in C, where the limit of a test cannot end it.
        options += ["-o", f"faulthandler_timeout={0.75 * module.test_seconds}", "-W", "default"]
        options += ["-k", module.select] if module.select else []
        options += [f"--deselect={test}" for test in started]
        base = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)]
        loaded = [word for plugin in plugins for word in ("-p", plugin)]
        return [self.python, "-m", "pytest", *loaded, *base, *options, *map(str, module.files)]


def _groups(modules: Sequence[Module]) -> list[list[Module]]:
    """The modules in their order: those that may run at the same time, next to each other, are one group."""
    groups: list[list[Module]] = []
    for module in modules:
        if groups and not module.is_alone and not groups[-1][0].is_alone:
            groups[-1].append(module)
        else:
            groups.append([module])
    return groups


def _unfinished(lines: list[dict[str, Any]]) -> str:
    """The test that had begun and has no outcome."""
    ended = {line["test"] for line in lines if "outcome" in line}
    return next((line["test"] for line in reversed(lines) if line["test"] not in ended), "")


def _last_words(printed: str) -> str:
    """What a process said of its end: the beginning of the fault handler's lines, or the last ones."""
    lines = printed.splitlines()
    begin = next((number for number, line in enumerate(lines) if "Fatal Python error" in line), None)
    end = FAILURE_LINES - 1
    return "\n".join(lines[-end:] if begin is None else lines[begin : begin + end])


def _name(test: str) -> str:
    return test.rpartition("::")[2]


def run_limited(command: list[str], folder: Path, environment: dict[str, str], seconds: float) -> tuple[int | str, str]:
    """Run a command; at the time limit its whole group is ended, by SIGABRT first, so that Python shows where it was.

    Returns:
        the exit status, or how it ended otherwise, and the output.
    """
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    end: int | str
    try:
        printed, _ = process.communicate(timeout=seconds)
        status = process.returncode
        end = status if status >= 0 else f"died of {signal.Signals(-status).name}"
    except subprocess.TimeoutExpired:
        printed, end = _ended(process), f"ended after {seconds:.0f} s"
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # what it left behind
    return end, printed.decode(errors="replace")


def _ended(process: subprocess.Popen[bytes]) -> bytes:
    """End a group of processes; returns what they printed."""
    printed = b""
    for how, seconds in ((signal.SIGABRT, 3), (signal.SIGKILL, 5)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        try:
            printed, _ = process.communicate(timeout=seconds)
            break
        except subprocess.TimeoutExpired as expired:  # of a process that the driver keeps
            printed = expired.stdout or printed
    return printed


def failures(outcomes: Outcomes) -> list[str]:
    """Of each test that failed its name and the end of its text, as Markdown."""
    texts = {line["test"]: line["text"] for line in outcomes.of("failed")}
    found = []
    for test in outcomes.failed_tests:
        lines = texts[test].splitlines()
        cut = ["..."] if len(lines) > FAILURE_LINES else []
        text = "\n".join([*cut, *lines[-FAILURE_LINES:]])
        found.append(f"{test} failed ({outcomes.title}):\n\n```text\n{text}\n```")
    return found


def section(outcomes: Sequence[Outcomes]) -> str:
    """The outcomes as Markdown: a table, every failure with its text, what was shown, and the reasons of skips."""
    lines = ["| module | outcomes | s |", "| --- | --- | ---: |"]
    lines += [f"| {each.title} | {each.counts()} | {each.seconds:.0f} |" for each in outcomes]
    lines += [line for each in outcomes for text in failures(each) for line in ("", text)]
    remarks = [
        f"- {_name(line['test'])}: {remark}"
        for each in outcomes
        for line in each.lines
        for remark in line.get("shown", ())
    ]
    lines += ["", "Shown:", "", *remarks] if remarks else []
    skips = Counter(line["text"] for each in outcomes for line in each.of("skipped"))
    if skips:
        lines += ["", "Skipped:", "", *(f"- {count}: {reason}" for reason, count in sorted(skips.items()))]
    return "\n".join(lines)


def for_simulator(modules: Sequence[Module]) -> list[Module]:
    """The modules for the simulator, which measures nothing: in a few processes, as each takes a second to start."""
    subjects = list(dict.fromkeys(module.subject for module in modules))
    groups = ["+".join(subjects[number::TOGETHER]) for number in range(min(TOGETHER, len(subjects)))]
    return [Module(subjects, SIMULATOR_SECONDS, test_seconds=SIMULATOR_SECONDS) for subjects in groups]
