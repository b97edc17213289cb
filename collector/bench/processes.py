"""Arms in separate processes: programs that report their own figures, compared round by round.

This is necessary for collectors: a process has one CUPTI subscriber, the remains of a collector slow the next one, and
peak memory belongs to a whole process. In every round each program is started anew; the last line of its output is a
JSON object of figures. The requested figures are compared, the others are shown as facts.

>>> report = bench.compare_processes(
...     {"plain": bench.Process([sys.executable, __file__, "--arm=plain"]), "other": bench.Missing("no torch")},
...     {"one launch": "ns", "peak memory": "bytes"},
... )
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from collector.bench.benchmark_errors import ArmError, BenchmarkError, no_arm_left
from collector.bench.benchmark_report import Arm, Comparison, Report
from collector.bench.benchmark_titles import check_names
from collector.bench.environment import environment, without_home
from collector.bench.gpu import Host

_SHOWN_OUTPUT = 300
_SECONDS_TO_END = 5
"""The maximum time to wait for the output of a process that was killed."""

RoundDone = Callable[[int, Report], None]
"""Called with the number of finished rounds and the report so far."""
ProgramDone = Callable[[str, float, Mapping[str, Any] | ArmError], None]
"""Called with the arm, the seconds that its program took, and what it reported or how it failed."""


@dataclass(frozen=True)
class Process:
    """An arm that is a program. Its last line of output is a JSON object: figure -> number, or the reason for none."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables in addition to those of this process."""


@dataclass(frozen=True)
class Missing:
    """An arm that cannot run here, shown with the reason."""

    why: str


def compare_processes(
    arms: Mapping[str, Process | Missing],
    figures: Mapping[str, str],
    *,
    name: str = "",
    rounds: int = 5,
    max_seconds: float = 300.0,
    timeout: float = 120.0,
    same_within: float = 0.02,
    seed: int | None = None,
    surroundings: Mapping[str, Any] | None = None,
    progress: RoundDone | None = None,
    program_done: ProgramDone | None = None,
) -> Report:
    """Start every program once in each round and compare their reports, with one comparison for each figure.

    The first round is in the order of ``arms``, later ones in random order: if time runs out in the first, those that
    were named first have been measured.

    The first arm that has a figure is its reference. Each reported number should be the median of many measurements:
    the result is the mean of the rounds' logarithms, with Student's interval.

    Args:
        arms: name -> program, or the reason why there is none.
        figures: figure -> unit: ns, bytes, or any other word.
        name: the name of the comparison.
        rounds: the number of starts of each program; an interval needs two.
        max_seconds: begin no further round if this would probably be exceeded, and no further program of the first
            round after it.
        timeout: seconds that one program may take; then it is killed, and its arm is removed.
        same_within: a ratio whose whole interval lies within 1 plus or minus this counts as the same.
        seed: the seed of the random order of the arms; None: a new one, which the report contains.
        surroundings: facts about the environment besides the processor and the libraries: ``gpu``, ``gpu_uuid``,
            ``simulated``, ``driver_version`` and so on.
        progress: called after each round.
        program_done: called after each program.

    Raises:
        BenchmarkError: no arm reports any of the figures.
        TypeError: the arms are not a mapping from texts.
        ValueError: there are no arms or figures, or a number is out of range.
    """
    check_names(arms)
    if not arms or not figures:
        raise ValueError("there is nothing to compare: at least one arm and one figure are needed")
    if rounds < 1 or not max_seconds > 0 or not timeout > 0:
        raise ValueError("rounds, max_seconds and timeout must be positive")
    chosen_seed = secrets.randbits(32) if seed is None else seed
    run = _ProcessRounds(arms, timeout, max_seconds, program_done)
    random_order = np.random.default_rng(chosen_seed)
    made_in = {**environment(Host(), {}), **(surroundings or {})}

    def report_so_far(stopped_by: str) -> Report:
        parts = {
            "name": name,
            "design": {"clock": "reported", "seed": chosen_seed, "same_within": same_within, "rounds": rounds},
            "rounds": len(run.reported),
            "seconds": run.elapsed_s,
            "stopped_by": stopped_by,
        }
        found = [_comparison(figure, unit, list(arms), run, parts) for figure, unit in figures.items()]
        return Report([each for each in found if each is not None], made_in)

    stopped_by = "rounds"
    while len(run.reported) < rounds:
        if run.would_exceed_the_time():
            stopped_by = "time"
            break
        names = run.arms_left()
        if run.reported:
            names = [names[index] for index in random_order.permutation(len(names)).tolist()]
        if not run.add_round(names):
            stopped_by = "time"
        if progress is not None:
            progress(len(run.reported), report_so_far("rounds"))
    report = report_so_far(stopped_by)
    if not report.comparisons:
        raise BenchmarkError(f"no arm reports any of: {', '.join(figures)}")
    return report


class _ProcessRounds:
    """The rounds so far: the reports of the programs, and the arms that failed."""

    def __init__(
        self,
        arms: Mapping[str, Process | Missing],
        timeout: float,
        max_seconds: float,
        program_done: ProgramDone | None,
    ) -> None:
        self.reported: list[dict[str, dict[str, Any]]] = []
        """The reports of each round, by arm."""
        self.failures = {arm: ArmError(arm, one.why) for arm, one in arms.items() if isinstance(one, Missing)}
        self._programs = {arm: one for arm, one in arms.items() if isinstance(one, Process)}
        self._timeout = timeout
        self._max_seconds = max_seconds
        self._program_done = program_done
        self._began = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """The time since the begin."""
        return time.monotonic() - self._began

    def arms_left(self) -> list[str]:
        """The arms that have not failed, in the caller's order."""
        return [arm for arm in self._programs if arm not in self.failures]

    def would_exceed_the_time(self) -> bool:
        """Whether a further round as long as the mean of those so far would end too late; False for the first."""
        elapsed_s = self.elapsed_s
        return bool(self.reported) and elapsed_s + elapsed_s / len(self.reported) > self._max_seconds

    def add_round(self, names: Sequence[str]) -> bool:
        """Start the programs of these arms in this order; False: in the first round there was no time for all.

        Raises:
            BenchmarkError: no arm is left.
        """
        found: dict[str, dict[str, Any]] = {}
        in_time = True
        for arm in names:
            if not self.reported and found and self.elapsed_s > self._max_seconds:
                why = f"no time was left: the arms before it took {self._max_seconds:g} s"
                self.failures[arm] = ArmError(arm, why)
                in_time = False
                continue
            begin = time.monotonic()
            outcome = self._outcome_of(arm)
            if isinstance(outcome, ArmError):
                self.failures[arm] = outcome
            else:
                found[arm] = outcome
            if self._program_done is not None:
                self._program_done(arm, time.monotonic() - begin, outcome)
        if not self.arms_left():
            raise no_arm_left(self.failures)
        self.reported.append(found)
        return in_time

    def _outcome_of(self, arm: str) -> dict[str, Any] | ArmError:
        try:
            return _run(arm, self._programs[arm], self._timeout)
        except ArmError as error:
            return error


def _comparison(
    figure: str,
    unit: str,
    order: Sequence[str],
    run: _ProcessRounds,
    parts: Mapping[str, Any],
) -> Comparison | None:
    """One figure of all arms that have it; None if no arm has it."""
    reasons_by_arm = {arm: str(error) for arm, error in run.failures.items()}
    arms: dict[str, Arm] = {}
    for name in run.arms_left():
        values = [one[name].get(figure) for one in run.reported]
        reasons = [value for value in values if isinstance(value, str)]
        numbers = [float(value) for value in values if isinstance(value, (int, float)) and 0 < value < math.inf]
        if reasons:
            reasons_by_arm[name] = str(ArmError(name, reasons[0]))
        elif len(numbers) < len(values):
            missing = (
                "it does not report this"
                if None in values
                else f"it reports {values}, which are not all positive numbers"
            )
            reasons_by_arm[name] = str(ArmError(name, missing))
        else:
            facts = {
                key.removeprefix(f"{figure}: "): without_home(fact) if isinstance(fact, str) else fact
                for key, fact in run.reported[-1][name].items()
                if key.startswith(f"{figure}: ")
            }
            arms[name] = Arm(times_ns=numbers, facts=facts)
    if not arms:
        return None
    in_order = {name: reasons_by_arm[name] for name in order if name in reasons_by_arm}
    warnings = [] if len(run.reported) > 1 else ["one round only: nothing is known of how rounds differ"]
    return Comparison(
        arms=arms,
        reference=next(iter(arms)),
        unit=unit,
        failures={arm: without_home(why) for arm, why in in_order.items()},
        warnings=warnings,
        **{**parts, "name": f"{parts['name']}: {figure}" if parts["name"] else figure},
    )


def _killed(process: subprocess.Popen[str]) -> str:
    """Kill a process with those that it started; returns the end of its standard error.

    Processes that it started in sessions of their own live on, and may keep its pipes open.
    """
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        said = process.communicate(timeout=_SECONDS_TO_END)[1]
    except subprocess.TimeoutExpired as expired:
        said = (expired.stderr or b"").decode(errors="replace")
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
    # Of the stacks of threads that faulthandler prints the last one is the main thread's, innermost call first.
    _, found, stack = said.rpartition("(most recent call first):")
    return stack.strip()[:_SHOWN_OUTPUT] if found else said.strip()[-_SHOWN_OUTPUT:]


def _run(arm: str, program: Process, timeout: float) -> dict[str, Any]:
    """The figures that one start of ``program`` reports.

    Raises:
        ArmError: it fails, takes too long, or its output is invalid.
    """
    try:
        process = subprocess.Popen(
            list(program.command),
            env={**os.environ, **program.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="locale",
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise ArmError(arm, f"it cannot be started: {error}") from error
    try:
        output, trouble = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired as error:
        said = _killed(process)
        last_words = f"; the end of what it said: {said}" if said else ""
        raise ArmError(arm, f"it took longer than {timeout:g} s{last_words}") from error
    finally:
        if process.poll() is None:
            _killed(process)
    lines = output.strip().splitlines()
    if process.returncode != 0:
        last = (trouble.strip().splitlines() or lines or ["without a word"])[-1]
        ended = f"signal {-process.returncode}" if process.returncode < 0 else f"status {process.returncode}"
        raise ArmError(arm, f"it ended with {ended}: {last[:_SHOWN_OUTPUT]}")
    try:
        found = json.loads(lines[-1])
    except (IndexError, ValueError) as error:
        last = lines[-1][:_SHOWN_OUTPUT] if lines else ""
        raise ArmError(arm, f"its last line of output is not a JSON object: {last!r}") from error
    if not isinstance(found, dict):
        raise ArmError(arm, f"its last line of output is not a JSON object: {lines[-1][:_SHOWN_OUTPUT]!r}")
    return found
