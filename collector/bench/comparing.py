"""From arms to a report: checks that the arms compute the same, runs them, and collects warnings."""

from __future__ import annotations

import itertools
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from collector.bench.benchmark_errors import ArmError, no_arm_left
from collector.bench.benchmark_report import Arm, Comparison, Report
from collector.bench.benchmark_titles import check_names, stored_parameters
from collector.bench.checks import Check
from collector.bench.cuda_gpu import find_gpu
from collector.bench.design import Cache, Clock, Design
from collector.bench.environment import environment, without_home
from collector.bench.experiment import ArmRun, Progress, Run, failure_of, returned_by, run
from collector.bench.gpu import Gpu, Host
from collector.bench.roofline import Ceilings, ceilings
from collector.checked_arguments import check_function, real_number
from collector.errors import UnavailableError
from collector.statistics.verdicts import median, outliers, paired_interval
from collector.text.quantities import time_text
from collector.text.wording import counted
from collector.tracing import session_slot

if TYPE_CHECKING:
    from collector.bench.gpu import CardState
    from collector.recording.recording import Recording

_CACHE_MATTERS = 1.1
"""A memory access that misses the cache takes at least this multiple of one that hits it."""
_MANY_OUTLIERS = 0.05
_ABOVE_THE_ROOF = 1.05
_EVENT_CONFIDENCE = 0.999  # a false warning for one in a thousand arms is acceptable
_EVENT_RESOLUTION_NS = 500  # the documentation of cuEventElapsedTime: around half a microsecond


class Rotating:
    """A call whose inputs change from round to round: see `rotating`."""

    def __init__(self, function: Callable[..., Any], inputs: Sequence[Sequence[Any]]) -> None:
        """Store the function, and the arguments of each round."""
        if not inputs:
            raise ValueError("rotating inputs need at least one set of arguments")
        self._function = function
        self._sets = itertools.cycle([tuple(each) for each in inputs])
        self._current = tuple(inputs[0])

    def advance(self) -> None:
        """Advance to the next inputs; the harness calls this once per round."""
        self._current = next(self._sets)

    def __call__(self) -> Any:
        """Call the function with this round's inputs."""
        return self._function(*self._current)


def rotating(function: Callable[..., Any], inputs: Sequence[Sequence[Any]]) -> Rotating:
    """Return an arm that calls ``function`` with the next of ``inputs`` in every round, starting over at the end.

    Every arm should get the same inputs in the same order, so that a round compares equal work.
    """
    return Rotating(function, inputs)


def compare(
    arms: Mapping[str, Callable[[], Any]],
    *,
    check: Check | None = None,
    flops: float | None = None,
    bytes: float | None = None,  # noqa: A002 - the field's word
    name: str = "",
    parameters: Mapping[str, Any] | None = None,
    gpu: Gpu | None = None,
    clock: Clock = "cupti",
    cache: Cache = "cold",
    graph_calls: int = 0,
    precision: float = Design.precision,
    same_within: float = Design.same_within,
    min_rounds: int = Design.min_rounds,
    max_rounds: int = Design.max_rounds,
    max_seconds: float = Design.max_seconds,
    seed: int | None = None,
    progress: Progress | None = None,
    keep: Callable[[Recording], object] | None = None,
) -> Report:
    """Measure ``arms`` and compare them with the first one.

    >>> report = bench.compare({"torch": lambda: a @ b, "mine": lambda: my_matmul(a, b)}, check=bench.allclose(1e-2))
    >>> print(report)

    Args:
        arms: name -> function; the first is the reference.
        check: compares each arm's result with the reference's before any timing; see `allclose`.
        flops: floating point operations of one call.
        bytes: the minimum number of bytes that one call reads and writes.
        name: the name of the comparison.
        parameters: axis -> value, for a benchmark that is run over axes. The report has functions, classes and modules
            by name, and the text of other values that are not numbers.
        gpu: the card; None: the current CUDA device or, with a clock of the host, none if the machine has none.
        clock: ``cupti``: time in which the call's own activities ran. ``wall``: host time until the GPU is idle.
            ``cpu``: processor time of this process until then. Both time several calls together if the clock does
            not resolve a single one (`Arm.calls_per_sample`). ``returned``: the ns that a call returns.
        cache: ``cold``: L2 is emptied before every call. ``hot``: the call is made once, untimed, right before.
        graph_calls: replay a CUDA graph of that many calls, for kernels that are too small to be timed singly.
        precision: stop when half the interval of every ratio is at most this share of the ratio.
        same_within: a ratio whose whole interval lies within 1 plus or minus this counts as the same.
        min_rounds: the minimum number of rounds.
        max_rounds: the maximum number of rounds.
        max_seconds: the time limit (doubled if throttled rounds must be replaced).
        seed: the seed of the random order of the arms; None: a new one, which the report contains.
        progress: called with rounds and precision after every batch.
        keep: called with the recording of every batch, where CUPTI is the clock; its rounds are annotated with the
            names of their arms.

    Raises:
        BenchmarkError: no arm can be measured. Single failures are in the report, and the other arms continue.
        TypeError: an argument has a wrong type.
        ValueError: an option has an invalid value.
        collector.UnavailableError: there is no GPU, or it cannot be traced.
        collector.SessionActiveError: a trace is open, and CUPTI is the clock.
    """
    check_names(arms)
    if not arms:
        raise ValueError("there is no arm to measure")
    if check is not None:
        check_function("check", check)
    for what, value in (("flops", flops), ("bytes", bytes)):
        if value is not None and not 0 < real_number(what, value) < math.inf:
            raise ValueError(f"{what} is {value}: a positive number is needed")
    if graph_calls and any(isinstance(arm, Rotating) for arm in arms.values()):
        raise ValueError("a graph repeats the inputs of its capture: graph_calls cannot be used with rotating inputs")
    design = Design(
        clock=clock,
        cache=cache,
        graph_calls=graph_calls,
        precision=precision,
        same_within=same_within,
        min_rounds=min_rounds,
        max_rounds=max_rounds,
        max_seconds=max_seconds,
        seed=secrets.randbits(32) if seed is None else seed,
    )
    gpu = gpu if gpu is not None else _gpu_for(clock)
    failures: dict[str, ArmError] = {}
    usable = dict(arms) if check is None else _same_work(arms, check, gpu, failures)
    use = session_slot.open_use()
    is_traced = use is not None and use.tracer is not None and use.tracer.is_open  # only with a clock of the host
    found = run(usable, design, gpu, progress, keep)
    failures |= found.failures
    warnings = _warnings(found, design, next(iter(arms)), has_cache=gpu.l2_bytes > 0)
    if is_traced:
        warnings.append("a trace was open: the times include the cost of tracing")
    has_rates = flops is not None or bytes is not None
    roof = _ceilings(gpu, warnings) if has_rates else None
    comparison = Comparison(
        arms={arm: _arm(found, arm) for arm in found.arms},
        reference=next(iter(found.arms)),
        name=name,
        parameters=stored_parameters(parameters or {}),
        design=asdict(design),
        flops=flops,
        bytes=bytes,
        ceilings=asdict(roof) if roof else None,
        failures={arm: without_home(str(error)) for arm, error in failures.items()},
        rounds=found.rounds,
        warm_up_rounds=found.warm_up_rounds,
        throttled_rounds=found.throttled_rounds,
        seconds=found.seconds,
        stopped_by=found.stopped_by,
        states=[dict(vars(state)) for state in found.states],
        probe_cold_ns=found.probe_cold_ns,
        probe_hot_ns=found.probe_hot_ns,
        event_overhead_ns=found.event_overhead_ns,
        clock_step_ns=found.clock_step_ns,
    )
    warnings += _warnings_above_roof(comparison)
    comparison = replace(comparison, warnings=[without_home(warning) for warning in warnings])
    return Report([comparison], environment(gpu, found.recorded))


def _ceilings(gpu: Gpu, warnings: list[str]) -> Ceilings | None:
    """The card's ceilings; None with a further warning if they cannot be measured."""
    try:
        return ceilings(gpu)
    except Exception as error:  # an error here must not lose the measurements
        warnings.append(f"the card's ceilings could not be measured: {error}")
        return None


def _warnings_above_roof(comparison: Comparison) -> list[str]:
    """A warning about the arms whose rates are above the ceilings, if there are any."""
    above = [arm for arm in comparison.arms if (comparison.share_of_roof(arm) or 0) > _ABOVE_THE_ROOF]
    if not above:
        return []
    reason = "more than the measured ceilings allow: flops and bytes may be wrong, or the data stays in the cache"
    return [f"{', '.join(above)}: {reason}"]


def _gpu_for(clock: Clock) -> Gpu:
    try:
        return find_gpu()
    except UnavailableError:
        if clock != "cupti":
            return Host()
        raise


def _same_work(
    arms: Mapping[str, Callable[[], Any]], check: Check, gpu: Gpu, failures: dict[str, ArmError]
) -> dict[str, Callable[[], Any]]:
    """The arms whose results agree with the first usable result."""
    usable: dict[str, Callable[[], Any]] = {}
    reference, reference_name = None, ""
    for name, call in arms.items():
        try:
            result = returned_by(call)
            gpu.synchronize()
            difference = check(result if not usable else reference, result)
        except (Exception, SystemExit) as error:
            failures[name] = failure_of(name, error)
            continue
        if difference is not None:
            than = f"its result is wrong, compared with {reference_name!r}" if usable else "its result cannot be used"
            failures[name] = ArmError(name, f"{than}: {difference}")
            continue
        if not usable:
            kept = getattr(check, "kept", None)
            reference, reference_name = result if kept is None else kept(result), name
        usable[name] = call
    if not usable:
        raise no_arm_left(failures)
    return usable


def _arm(found: Run, name: str) -> Arm:
    measured = found.arms[name]
    return Arm(
        times_ns=measured.times_ns,
        span_ns=measured.span_ns,
        kernel_ns=measured.kernel_ns,
        throttled_ns=measured.throttled_ns,
        event_ns=measured.event_ns,
        kernels=measured.activity.kernels,
        launches=measured.activity.launches,
        copies=measured.activity.copies,
        memsets=measured.activity.memsets,
        synchronizations=measured.activity.synchronizations,
        calls_per_sample=measured.calls_per_sample,
    )


def _warnings(found: Run, design: Design, asked_reference: str, *, has_cache: bool) -> list[str]:
    """Warnings for readers of the figures."""
    warnings = []
    reference = next(iter(found.arms))
    if reference != asked_reference:
        warnings.append(f"{asked_reference} could not be measured: ratios are relative to {reference}")
    if found.stopped_by != "precision":
        warnings.append(f"stopped by {found.stopped_by}, before the precision of {design.precision:.2%} was reached")
    warnings += found.notes
    if design.graph_calls > 1 and design.cache == "cold":
        warnings.append(f"only the first of the {design.graph_calls} calls in a graph finds the cache empty")
    looped = [name for name, arm in found.arms.items() if arm.calls_per_sample > 1]
    if looped and design.cache == "cold" and has_cache:
        warnings.append(f"{', '.join(looped)}: only the first call of each sample finds the cache empty")
    if found.throttled_throughout:
        warnings.append("the card was throttled in nearly all rounds: the times are those of a throttled card")
    elif found.throttled_rounds:
        warnings.append(
            f"{counted('{} round[|s] [was|were] discarded and replaced', found.throttled_rounds)}: "
            f"{_reasons(found.states)}"
        )
    if design.clock == "cupti" and not found.states:
        warnings.append("the card's clocks and throttling are not known: NVML is not installed or does not answer")
    others = sorted({pid for state in found.states for pid in state.other_processes})
    if others:
        warnings.append(f"other processes compute on this card: {', '.join(map(str, others))}")
    warnings += _cache_warnings(found, design)
    for name, arm in found.arms.items():
        warnings += _arm_warnings(name, arm, found.event_overhead_ns, design.graph_calls or 1)
    times = {name: arm.times_ns for name, arm in found.arms.items()}
    for name in list(times)[1:]:
        ratio = paired_interval(times[name], times[reference])
        of_medians = median(times[name]).estimate / median(times[reference]).estimate
        if not ratio.low - design.precision <= of_medians <= ratio.high + design.precision:
            warnings.append(
                f"{name}: the ratio of the medians is {of_medians:.4f}, the median ratio {ratio.estimate:.4f}: "
                "the times have different distributions, which no single figure describes; look at the plot"
            )
    return warnings


def _arm_warnings(name: str, arm: ArmRun, event_overhead_ns: float, calls: int) -> list[str]:
    warnings = []
    far_out = int(outliers(arm.times_ns).sum())
    if far_out > _MANY_OUTLIERS * len(arm.times_ns):
        warnings.append(f"{name}: {far_out} of {len(arm.times_ns)} samples are outliers; they are kept")
    if len(arm.event_ns) and len(arm.span_ns):
        # Events are queued behind other work, which closes the gaps that launches leave between an arm's kernels.
        # Their time must lie between the time without gaps and the time with all gaps, plus the events' overhead and
        # within their resolution.
        event_overhead, resolution = event_overhead_ns / calls, _EVENT_RESOLUTION_NS / calls
        measured = arm.event_ns, arm.times_ns, arm.span_ns
        by_events, busy, span = (median(each, _EVENT_CONFIDENCE) for each in measured)
        least, most = busy.low - resolution, span.high + event_overhead + resolution
        if by_events.high < least or by_events.low > most:
            warnings.append(
                f"{name}: CUDA events measure {time_text(by_events.estimate)} and CUPTI {time_text(busy.estimate)} "
                f"({time_text(span.estimate)} with the gaps): the difference exceeds their intervals, the "
                f"{time_text(event_overhead)} that the events themselves take and the {time_text(resolution)} that "
                "they resolve"
            )
    return warnings


def _cache_warnings(found: Run, design: Design) -> list[str]:
    if design.clock != "cupti" or not found.probe_cold_ns or not found.probe_hot_ns:
        return []
    cold, hot = median(found.probe_cold_ns), median(found.probe_hot_ns)
    if cold.estimate >= _CACHE_MATTERS * hot.estimate:
        return []
    wrong = (
        "emptying it did not make memory slow" if design.cache == "cold" else "data that was just used is not faster"
    )
    return [
        f"the cache was not {design.cache} as requested: {wrong} "
        f"(a touch takes {time_text(cold.estimate)} after a flush, {time_text(hot.estimate)} after itself)"
    ]


def _reasons(states: Sequence[CardState]) -> str:
    return "throttled by " + ", ".join(sorted({reason for state in states for reason in state.throttled_by}))
