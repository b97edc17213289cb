"""The run: rounds of all arms in random order, until the result is precise enough or the time is up."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from collector.bench.benchmark_errors import ArmError, BenchmarkError, BodyNotRunError, no_arm_left
from collector.bench.calls import NOTHING, CallActivity, activities_of_calls, call_name
from collector.bench.design import Design
from collector.bench.gpu import Host
from collector.recording.ledger import GRAPH_NAMES_LOST, TIMES_LOST
from collector.statistics.modes import GPU_TICK_NS
from collector.statistics.verdicts import is_stationary, median, paired_interval
from collector.tracing.annotate import annotate
from collector.tracing.trace import trace

if TYPE_CHECKING:
    from collector.bench.gpu import CardState, Gpu
    from collector.recording.recording import Recording

Call = Callable[[], Any]
StoppedBy = Literal["precision", "time", "rounds"]
Progress = Callable[[int, float], None]
"""Called after every batch with the rounds kept so far and the widest half-width."""

_KINDS = ("kernels", "memcpys", "memsets", "runtime_api", "driver_api", "external_correlations", "synchronizations")
_BATCH = 30  # minimum rounds in one trace; the stop condition is checked once per trace
_LARGEST_BATCH = 300  # maximum, if the precision so far requires many
_BUFFER_BYTES = 256 << 10  # holds a batch of usual arms, and is prepared in a fraction of the time of a step's buffers
_MAX_BUFFERS = 4096
_BATCH_SHARE = 0.1  # share of the available time after which a batch of long calls ends early
_WARM_UP_WINDOW = 15
_LOSSY_BATCHES = 3
_SHORTEST_REST_S, _LONGEST_REST_S = 0.05, 0.4  # after throttled rounds; each is twice as long as the one before
_IN_VAIN = 1 / 3  # share of the available time after which a card that stays throttled is measured as it is
_EVENT_ROUNDS = 15
_HOST_CLOCKS = {"wall": "perf_counter_ns", "cpu": "process_time_ns"}
_FLUSHES_BEFORE_EVENTS = 2  # each takes tens of microseconds, as a launch from Python does
_CLOCK_STEPS = 15  # readings of a clock's step: enough for a median, and fast with a step of milliseconds
_RESOLVED = 100  # a call of this many steps of the clock is timed by itself
_LOOPED = 1000  # shorter calls are repeated until they take this many
_GROWTH = 10  # maximum growth of the loop during calibration
_CALIBRATIONS = 3  # the shortest counts, because the others were interrupted
_LONGEST_LOOP_NS = 20_000_000
_SURELY_LONG_NS = 100_000_000  # no interruption takes this long, so that one try is enough
_READINGS = 100_000  # of a clock that seems to stand still
_SHOWN_CALLS = 8


@dataclass
class ArmRun:
    """The measurements of one arm. Lists are parallel, one entry per kept round; times are ns per call."""

    times_ns: list[float] = field(default_factory=list)
    span_ns: list[float] = field(default_factory=list)
    """From the start of the first activity to the end of the last one; empty with the wall clock."""
    kernel_ns: dict[str, list[float]] = field(default_factory=dict)
    """Each kernel's time, by short name."""
    throttled_ns: list[float] = field(default_factory=list)
    """Times of rounds in which the card was throttled, which are not used."""
    event_ns: list[float] = field(default_factory=list)
    """The same call timed by CUDA events, in separate rounds after the run."""
    calls_per_sample: int = 1
    """Calls between two readings of the host's clock."""
    activity: CallActivity = NOTHING
    """The work of its first kept call (of all the calls of a graph, in graph mode)."""


@dataclass
class Run:
    """A finished run."""

    arms: dict[str, ArmRun]
    failures: dict[str, ArmError]
    stopped_by: StoppedBy
    rounds: int
    warm_up_rounds: int
    throttled_rounds: int
    seconds: float
    states: list[CardState]
    probe_cold_ns: list[float]
    """Times of `Gpu.touch` with an empty cache."""
    probe_hot_ns: list[float]
    """Times of `Gpu.touch` immediately repeated."""
    event_overhead_ns: float = 0.0
    """Overhead: time between two CUDA events with no work between them."""
    clock_step_ns: float = 0.0
    """Resolution of the clock; 0: unknown."""
    throttled_throughout: bool = False
    """Whether too few rounds were free of throttling, so that the throttled ones were used."""
    notes: list[str] = field(default_factory=list)
    """Problems that did not end the experiment."""
    recorded: dict[str, Any] = field(default_factory=dict)
    """The environment in the recordings: driver, libcupti."""


def run(
    arms: Mapping[str, Call],
    design: Design,
    gpu: Gpu,
    progress: Progress | None = None,
    keep: Callable[[Recording], object] | None = None,
) -> Run:
    """Run ``arms`` until their ratios to the first one are precise enough.

    An arm that raises, launches nothing or varies is removed and reported in `Run.failures`; the others continue. The
    recording of each batch of rounds that count is passed to ``keep``.

    Raises:
        BenchmarkError: no arm could be run, or the traces kept losing records.
    """
    return _Experiment(dict(arms), design, gpu, progress, keep).run()


@dataclass
class _Round:
    calls: dict[str, int]
    """Arm -> the number of its call in the trace; without arms that failed."""
    before: CardState | None
    after: CardState | None
    """The same object if the card returned its last answer again; see `collector.bench.gpu.Gpu.state`."""
    throttled: bool = False
    activities: dict[str, CallActivity] = field(default_factory=dict)
    times_ns: dict[str, float] = field(default_factory=dict)
    """Per call; for a graph, per call in it."""


class _Experiment:
    def __init__(
        self,
        arms: dict[str, Call],
        design: Design,
        gpu: Gpu,
        progress: Progress | None,
        keep: Callable[[Recording], object] | None,
    ) -> None:
        self.keep_recording = keep
        self.arms = arms
        self.design = design
        self.gpu = gpu
        self.progress = progress
        self.random = np.random.default_rng(design.seed)
        self.failures: dict[str, ArmError] = {}
        self.runs = {name: ArmRun() for name in arms}
        self.states: list[CardState] = []
        self.state_before: CardState | None = None
        self.walls: list[float] = []
        self.probes: dict[str, list[float]] = {"cold": [], "hot": []}
        self.recorded: dict[str, Any] = {}
        self.kept = self.throttled = self.lossy = 0
        self.notes: dict[str, None] = {}
        self.rest_s = _SHORTEST_REST_S
        self.unthrottled_at = 0.0  # when the last unthrottled round had ended, in seconds since the begin; or the begin
        self.keeps_throttled = False
        self.event_overhead_ns = 0.0
        clock = _HOST_CLOCKS.get(design.clock)
        self.host_clock: Callable[[], int] | None = getattr(time, clock) if clock else None
        self.clock_step_ns = GPU_TICK_NS if design.clock == "cupti" else 0.0
        if self.host_clock is not None:
            self.clock_step_ns = _step_ns(self.host_clock)
        self.began = time.monotonic()

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began

    def run(self) -> Run:
        self.try_out()
        warm_up = self.warm_up()
        stopped_by: StoppedBy | None = None
        while stopped_by is None:
            width = self.widest_half_width() if self.kept else float("inf")
            enough = self.kept >= self.design.min_rounds
            if self.progress:
                self.progress(self.kept, width)
            if enough and width <= self.design.precision:
                stopped_by = "precision"
            # Up to twice the time, if throttled rounds had to be replaced, and then with the existing rounds, at least
            # one.
            elif (self.kept or self.throttled) and self.elapsed > self.design.max_seconds * (1 if enough else 2):
                stopped_by = "time"
            elif self.kept >= self.design.max_rounds:
                stopped_by = "rounds"
            else:
                self.keep(self.batch(self.rounds_to_go(width)))
        has_too_few = self.kept < self.design.min_rounds and self.throttled >= self.design.min_rounds
        if has_too_few:
            for name in self.left():
                arm = self.runs[name]
                arm.times_ns, arm.span_ns, arm.kernel_ns = list(arm.throttled_ns), [], {}
        if not any(self.runs[name].times_ns for name in self.left()):
            raise BenchmarkError(f"no round could be kept in {self.elapsed:.1f} s", "Allow more time: max_seconds")
        if self.design.clock == "cupti":
            self.time_by_events()
        return Run(
            arms={name: self.runs[name] for name in self.left()},
            failures=self.failures,
            stopped_by=stopped_by,
            rounds=self.throttled if has_too_few else self.kept,
            warm_up_rounds=warm_up,
            throttled_rounds=self.throttled,
            seconds=self.elapsed,
            states=self.states,
            probe_cold_ns=self.probes["cold"],
            probe_hot_ns=self.probes["hot"],
            throttled_throughout=has_too_few or self.keeps_throttled,
            event_overhead_ns=self.event_overhead_ns,
            clock_step_ns=self.clock_step_ns,
            recorded=self.recorded,
            notes=list(self.notes),
        )

    def try_out(self) -> None:
        """Call every arm once, so that arms that cannot run are removed before any timing; capture graphs.

        Calls that the host's clock does not resolve are repeated within a sample.
        """
        for name in list(self.arms):
            with self.blaming(name):
                returned_by(self.arms[name])
                self.gpu.synchronize()
                if self.design.graph_calls:
                    self.arms[name] = self.gpu.graph(self.arms[name], self.design.graph_calls)
                if self.host_clock is not None:
                    self.runs[name].calls_per_sample = self.calls_per_sample(self.arms[name], self.host_clock)
        self.check_arms_left()

    def warm_up(self) -> int:
        """Run rounds until every arm's times are stationary; return the number of rounds.

        The first trace contains as many additional rounds, which are kept if the card was warm by then: opening another
        trace costs as much as some of them.
        """
        done = 0
        self.unthrottled_at = self.elapsed
        history: dict[str, list[float]] = {name: [] for name in self.arms}
        rounds = self.batch(2 * _BATCH)
        while True:
            looked_at, rounds = rounds[:_BATCH], rounds[_BATCH:]
            done += len(looked_at)
            for one in looked_at:
                if not one.throttled or self.keeps_throttled:
                    for name in self.left():
                        history[name].append(one.times_ns[name])
            if all(is_stationary(history[name], _WARM_UP_WINDOW) for name in self.left()):
                break
            if done >= self.design.max_warm_up_rounds or self.elapsed >= self.design.max_seconds / 3:
                break
            rounds += self.batch(_BATCH)
        self.keep(rounds[: self.design.max_rounds])
        return done

    def rounds_to_go(self, width: float) -> int:
        """The number of rounds until the next check: opening a trace costs as much as several rounds.

        Four times the rounds halve an interval, but the first rounds predict its width only roughly.
        """
        needed = _BATCH
        if math.isfinite(width):
            seems = self.kept * (width / self.design.precision) ** 2 - self.kept
            needed = int(min(seems, self.kept, _LARGEST_BATCH))
        return min(max(needed, _BATCH), self.design.max_rounds - self.kept)

    def left(self) -> list[str]:
        return [name for name in self.arms if name not in self.failures]

    def check_arms_left(self) -> None:
        if not self.left():
            raise no_arm_left(self.failures)

    @contextlib.contextmanager
    def blaming(self, name: str) -> Iterator[None]:
        """Remove the arm if the block raises."""
        try:
            yield
        except (Exception, SystemExit) as error:
            self.failures[name] = failure_of(name, error)

    def batch(self, count: int) -> list[_Round]:
        """Measure ``count`` rounds in one trace (fewer if they take long), and the cache with them; return them."""
        self.walls = []
        traced = self.design.clock == "cupti"
        rounds: list[_Round] = []
        probes: dict[str, int] = {}
        tracing = partial(trace, kinds=_KINDS, strict=True, buffer_bytes=_BUFFER_BYTES, max_buffers=_MAX_BUFFERS)
        with tracing() if traced else contextlib.nullcontext() as step:
            begun, self.state_before = time.monotonic(), self.gpu.state()
            while not rounds or (
                len(rounds) < count and time.monotonic() - begun <= self.design.max_seconds * _BATCH_SHARE
            ):
                rounds.append(self.round())
            if traced:
                probes = self.probe()
        self.look_for_throttling(rounds)
        self.rest_after(rounds)
        activities = [NOTHING] * len(self.walls)
        if step is not None:
            # The benchmark needs no annotations at the capture of graphs.
            losses = [line for name, line in step.ledger.explained_losses() if name not in GRAPH_NAMES_LOST]
            if losses:
                self.lossy += 1
                if self.lossy < _LOSSY_BATCHES:
                    return []  # measured again
                if any(getattr(step.ledger, name) for name in TIMES_LOST):
                    raise BenchmarkError(f"the traces lose records: {losses[0]}")
                self.notes |= {f"the traces are not complete: {loss}": None for loss in losses}
            activities = activities_of_calls(step.recording, len(self.walls))
            self.recorded = dict(step.recording.environment)
            if self.keep_recording is not None:
                self.keep_recording(step.recording)
            self.check_activities(rounds, activities)
        self.check_arms_left()
        for kind, index in probes.items():
            if activities[index].busy_ns:
                self.probes[kind].append(float(activities[index].busy_ns))
        share = self.design.graph_calls or 1
        for one in rounds:
            one.activities = {name: activities[index] for name, index in one.calls.items()}
            one.times_ns = {
                name: (float(activities[index].busy_ns) if traced else self.walls[index]) / share
                for name, index in one.calls.items()
            }
        return rounds

    def round(self) -> _Round:
        """Call every arm once, in random order; the state of the card is read before and after."""
        names = self.left()
        calls: dict[str, int] = {}
        for name in names:
            advance = getattr(self.arms[name], "advance", None)
            if advance is not None:
                advance()
        for index in self.random.permutation(len(names)).tolist():
            with self.blaming(names[index]):
                count = self.runs[names[index]].calls_per_sample
                calls[names[index]] = self.measure(self.arms[names[index]], count)
        before, self.state_before = self.state_before, self.gpu.state()
        return _Round(calls, before, self.state_before)

    def look_for_throttling(self, rounds: list[_Round]) -> None:
        """Mark the rounds for which a reading of the card before or after showed throttling."""
        next_answer = self.gpu.state()  # closing the trace took longer than the card repeats an answer
        for one in reversed(rounds):
            if one.after is not one.before:
                next_answer = one.after
            one.throttled = any(state is not None and state.throttled_by for state in (one.before, next_answer))
        answers = [one.after for one in rounds if one.after is not None and one.after is not one.before]
        self.states += answers

    def rest_after(self, rounds: list[_Round]) -> None:
        """Leave the card idle after throttled rounds, as its own work may have reached its limit of power.

        A card that stays throttled from the begin on, and after every rest, is measured as it is from then on.
        """
        throttled = [one.throttled for one in rounds]
        if not all(throttled):
            self.unthrottled_at = self.elapsed
        if not any(throttled) or self.keeps_throttled:
            self.rest_s = _SHORTEST_REST_S
            return
        is_in_vain = self.elapsed - self.unthrottled_at > self.design.max_seconds * _IN_VAIN
        if is_in_vain and self.rest_s == _LONGEST_REST_S and self.kept < self.design.min_rounds:
            self.keeps_throttled = True
            self.kept = 0
            for arm in self.runs.values():
                arm.times_ns, arm.span_ns, arm.kernel_ns = [], [], {}
            return
        time.sleep(self.rest_s)
        self.rest_s = min(2 * self.rest_s, _LONGEST_REST_S)

    def calls_per_sample(self, call: Call, now: Callable[[], int]) -> int:
        """The number of calls between two readings of a clock that resolves some tens of nanoseconds at best."""
        count = 1
        while True:
            taken, wall = math.inf, math.inf
            for _ in range(_CALIBRATIONS):
                began = time.perf_counter_ns()
                taken = min(taken, self.elapsed_ns(call, count, now))
                wall = min(wall, time.perf_counter_ns() - began)
                if wall >= _SURELY_LONG_NS:
                    return count
            if taken >= self.clock_step_ns * (_RESOLVED if count == 1 else _LOOPED):
                return count
            needed = 1.2 * _LOOPED * self.clock_step_ns / max(taken, self.clock_step_ns)
            more = int(min(_GROWTH, max(2, needed), _LONGEST_LOOP_NS / max(wall, 1)))
            if more < 2:  # a call that waits uses little processor time, which would take too long to accumulate
                return count
            count *= more

    def elapsed_ns(self, call: Call, count: int, now: Callable[[], int]) -> int:
        """The time of ``count`` calls by a clock of the host, each until the GPU is idle."""
        repeated = itertools.repeat(None, count)
        if isinstance(self.gpu, Host):  # even a function that does nothing takes as long as a short call
            began = now()
            for _ in repeated:
                call()
            return now() - began
        began = now()
        for _ in repeated:
            call()
            self.gpu.synchronize()
        return now() - began

    def measure(self, call: Call, count: int = 1) -> int:
        """Make one sample under its own number, which is returned, with caches according to the design.

        A sample is one call or, with a clock of the host, the mean of ``count`` calls.
        """
        self.prepare(call)
        self.gpu.synchronize()
        index = len(self.walls)
        self.walls.append(0.0)
        if self.design.clock == "returned":
            self.walls[index] = _returned_ns(call())
            return index
        if self.host_clock is not None:
            self.walls[index] = max(1, self.elapsed_ns(call, count, self.host_clock)) / count
            return index
        with annotate(call_name(index)):
            call()
        self.gpu.synchronize()  # outside, so that it does not count as the arm's own
        return index

    def prepare(self, call: Call) -> None:
        """Empty the cache, or fill it with the data of ``call``."""
        if self.design.cache == "cold":
            self.gpu.flush_l2()
        else:
            call()

    def probe(self) -> dict[str, int]:
        """Time a memory access in the state of the cache that the arms have, and once in the other state."""
        prepared = self.measure(self.gpu.touch)
        if self.design.cache == "hot":
            self.gpu.flush_l2()
        other = len(self.walls)
        self.walls.append(0.0)
        with annotate(call_name(other)):
            self.gpu.touch()
        self.gpu.synchronize()
        return {"cold": prepared, "hot": other} if self.design.cache == "cold" else {"hot": prepared, "cold": other}

    def check_activities(self, rounds: list[_Round], activities: list[CallActivity]) -> None:
        """Remove arms that launch nothing, or not the same in every call."""
        for name in self.left():
            calls = [activities[one.calls[name]] for one in rounds if name in one.calls]
            if any(call.busy_ns == 0 for call in calls):
                self.failures[name] = ArmError(
                    name, "it launches nothing that the GPU runs", "Use clock='wall' for work on the host"
                )
                continue
            sets = [frozenset(Counter(call.kernels).items()) for call in calls]
            if not sets:
                continue
            usual = Counter(sets).most_common(1)[0][0]
            if self.runs[name].times_ns:
                usual = frozenset(Counter(self.runs[name].activity.kernels).items())
            differing = [index for index, found in enumerate(sets) if found != usual]
            if differing:
                self.failures[name] = ArmError(name, _varying(sets, usual, differing, self.kept))

    def keep(self, rounds: list[_Round]) -> None:
        """Store the measurements."""
        share = self.design.graph_calls or 1
        for one in rounds:
            is_discarded = one.throttled and not self.keeps_throttled
            self.kept += not is_discarded
            self.throttled += is_discarded
            for name in self.left():
                arm, activity = self.runs[name], one.activities[name]
                if is_discarded:
                    arm.throttled_ns.append(one.times_ns[name])
                    continue
                if not arm.times_ns:
                    arm.activity = activity
                arm.times_ns.append(one.times_ns[name])
                if self.design.clock == "cupti":
                    arm.span_ns.append(activity.span_ns / share)
                for kernel, spent in activity.kernel_ns.items():
                    arm.kernel_ns.setdefault(kernel, []).append(spent / share)

    def widest_half_width(self) -> float:
        names = self.left()
        reference = self.runs[names[0]].times_ns
        if len(names) == 1:
            return median(reference).relative_half_width
        return max(paired_interval(self.runs[name].times_ns, reference).relative_half_width for name in names[1:])

    def time_by_events(self) -> None:
        """Time every arm by CUDA events too, in random order."""
        share = self.design.graph_calls or 1
        try:
            self.event_overhead_ns = self.gpu.event_overhead_ns()
        except Exception as error:  # an error of this cross-check must not lose the measurements
            self.notes[f"not compared with CUDA events: {error}"] = None
            return
        for _ in range(_EVENT_ROUNDS):
            names = self.left()
            for index in self.random.permutation(len(names)).tolist():
                call = self.arms[names[index]]
                with self.blaming(names[index]):
                    taken = self.gpu.event_ns(call, before=partial(self.keep_busy_and_prepare, call))
                    self.runs[names[index]].event_ns.append(taken / share)
        self.check_arms_left()

    def keep_busy_and_prepare(self, call: Call) -> None:
        """Prepare the cache with so much GPU work that the call between the events is queued by then."""
        for _ in range(_FLUSHES_BEFORE_EVENTS):
            self.gpu.flush_l2()
        if self.design.cache == "hot":
            call()


def _step_ns(now: Callable[[], int]) -> float:
    """The resolution of a clock: its tick, or the time of a reading if that is longer; 1 if it stands still."""
    steps = []
    for _ in range(_CLOCK_STEPS):
        began = now()
        later = next((reading for reading in (now() for _ in range(_READINGS)) if reading != began), None)
        if later is None:
            return 1.0
        steps.append(later - began)
    return float(np.median(steps))


def _returned_ns(value: Any) -> float:
    """The time that a call returned.

    Raises:
        ValueError: it is not a positive number.
    """
    if not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise ValueError(f"with clock='returned' a call returns its ns, and not {value!r}")
    return float(value)


def returned_by(call: Call) -> Any:
    """The result of a call.

    Raises:
        BodyNotRunError: it is that of a function whose body does not run when it is called.
    """
    result = call()
    for word, is_one, remedy in (
        ("a coroutine", inspect.iscoroutine, "Run it: lambda: asyncio.run(f())"),
        ("a generator", inspect.isgenerator, "Exhaust it: lambda: list(f())"),
        ("an async generator", inspect.isasyncgen, "Call a function that runs it to its end"),
    ):
        if is_one(result):
            if not inspect.isasyncgen(result):
                result.close()  # Python warns about a coroutine that was never awaited
            raise BodyNotRunError(f"it returned {word}, and its body did not run", remedy)
    return result


def failure_of(name: str, error: Exception | SystemExit) -> ArmError:
    """The error of the arm that raised ``error``; lack of memory has its own cause."""
    # torch says "out of memory", CuPy's error is named OutOfMemoryError, CUDA's is CUDA_ERROR_OUT_OF_MEMORY.
    text = f"{type(error).__name__} {error}"
    if isinstance(error, MemoryError) or re.search(r"out[ _]?of[ _]?memory", text, re.IGNORECASE):
        failure = ArmError(name, f"it needs more memory than is available ({error})", "Make its inputs smaller")
    elif isinstance(error, BodyNotRunError):
        failure = ArmError(name, error.cause, error.remedy)
    else:
        failure = ArmError(name, f"it raised {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure


def _varying(
    sets: list[frozenset[tuple[str, int]]], usual: frozenset[tuple[str, int]], differing: list[int], before: int
) -> str:
    shown = ", ".join(str(before + index) for index in differing[:_SHOWN_CALLS])
    more = f" and {len(differing) - _SHOWN_CALLS} more" if len(differing) > _SHOWN_CALLS else ""
    return (
        f"its kernels vary: {len(differing)} of {len(sets)} calls (rounds {shown}{more}) launched "
        f"{_in_words(sets[differing[0]])} instead of {_in_words(usual)}"
    )


def _in_words(kernels: frozenset[tuple[str, int]]) -> str:
    return ", ".join(f"{name} x{count}" if count > 1 else name for name, count in sorted(kernels)) or "no kernel"
