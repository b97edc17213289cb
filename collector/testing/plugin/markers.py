"""The markers of a test, read and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.testing.plugin.limits import LIMITS, Limit, LimitError, parse_limits, parse_value
from collector.testing.plugin.marker_names import FIXTURE_NAMES, MARKER_NAMES, SIMULATED_FIXTURES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest


ADDED_LATE = (
    "a GPU marker was added while the test ran, which is too late for it: "
    "put it on the test, or let a fixture add it (with --gpu-trace a test can add gpu_limits itself)"
)


class MarkerError(ValueError):
    """An invalid argument of a marker. One line, which names the marker."""


@dataclass(frozen=True)
class Requirement:
    """The requirements of a test, from ``@pytest.mark.gpu``."""

    count: int = 1
    memory: int | None = None
    """Bytes that the test may use on each of its devices; None if not declared."""
    compute_capability: tuple[int, int] | None = None
    simulate: bool = False
    """Whether the test can also run on the simulated GPU."""


@dataclass(frozen=True)
class Markers:
    """The settings in a test's markers and fixtures."""

    requirement: Requirement
    limits: tuple[Limit, ...] = ()
    leaks: bool = False
    untraced: str | None = None
    """The reason why the test must not be traced; None if it may be."""
    traces_itself: bool = False
    """Whether it uses the fixture ``gpu_trace``."""

    @property
    def ask(self) -> bool:
        """Whether the test is traced because of its own markers or fixtures, even if other tests are not."""
        return bool(self.limits or self.leaks or self.traces_itself)


def uses_gpu(item: pytest.Item) -> bool:
    """Whether a test's markers or fixtures declare that it uses the GPU."""
    return _asks_for(item, MARKER_NAMES - {"gpu_untraced"})


def read_markers(item: pytest.Item) -> Markers:
    """Return the settings of ``item``. The marker nearest to the test wins, argument by argument.

    Raises:
        MarkerError: an argument is unknown or impossible.
    """
    if not _asks_for(item, MARKER_NAMES):
        return Markers(Requirement())
    fixtures = getattr(item, "fixturenames", ())
    simulate = {} if SIMULATED_FIXTURES.isdisjoint(fixtures) else {"simulate": True}
    return Markers(
        requirement=requirement_of(item, simulate),
        limits=_limits(item),
        leaks=_leaks(item),
        untraced=_untraced(item),
        traces_itself="gpu_trace" in fixtures,
    )


def requirement_of(node: pytest.Item | pytest.Collector, given: Mapping[str, object] | None = None) -> Requirement:
    """The requirements in the ``gpu`` markers of a test, a class or a module; ``given`` are the defaults.

    Raises:
        MarkerError: an argument is unknown or impossible.
    """
    return _requirement({**(given or {}), **_arguments(node, "gpu")})


def _asks_for(item: pytest.Item, markers: frozenset[str]) -> bool:
    fixtures = getattr(item, "fixturenames", ())
    return not FIXTURE_NAMES.isdisjoint(fixtures) or any(mark.name in markers for mark in item.iter_markers())


def _arguments(node: pytest.Item | pytest.Collector, name: str, positional: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    # pytest lists the marks of a case of `parametrize` behind those of its function, but they are nearer to the test.
    of_case = getattr(getattr(node, "callspec", None), "marks", ())
    for mark in sorted(node.iter_markers(name), key=lambda mark: mark not in of_case):
        given: Mapping[str, object] = mark.kwargs
        if mark.args:
            if not positional or len(mark.args) > 1:
                raise MarkerError(f"marker {name}: it takes arguments by name only, not {mark.args[0]!r}")
            given = {positional: mark.args[0], **given}
        found = {**given, **found}
    return found


def _requirement(given: Mapping[str, object]) -> Requirement:
    known = ("count", "memory", "compute_capability", "simulate")
    unknown = [name for name in given if name not in known]
    if unknown:
        raise MarkerError(f"marker gpu: unknown argument {unknown[0]!r}, choose from {', '.join(known)}")
    count, capability, simulate = given.get("count", 1), given.get("compute_capability"), given.get("simulate", False)
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise MarkerError(f"marker gpu: count={count!r} must be a whole number of 1 or more")
    if not isinstance(simulate, bool):
        raise MarkerError(f"marker gpu: simulate={simulate!r} must be True or False")
    memory = given.get("memory")
    try:
        num_bytes = None if memory is None else parse_value("memory", memory, "bytes")
    except LimitError as error:
        raise MarkerError(f"marker gpu: {error}") from None
    return Requirement(count, num_bytes, _capability(capability), simulate)


def _capability(given: object) -> tuple[int, int] | None:
    if given is None:
        return None
    if (
        isinstance(given, (tuple, list))
        and len(given) == 2
        and all(isinstance(part, int) and not isinstance(part, bool) and part >= 0 for part in given)
    ):
        return int(given[0]), int(given[1])
    raise MarkerError(f"marker gpu: compute_capability={given!r} must be two whole numbers, such as (8, 0)")


def _limits(item: pytest.Item) -> tuple[Limit, ...]:
    given = _arguments(item, "gpu_limits")
    if not given and item.get_closest_marker("gpu_limits") is not None:
        raise MarkerError(f"marker gpu_limits: it names no limit: choose from {', '.join(LIMITS)}")
    try:
        return parse_limits(given)
    except LimitError as error:
        raise MarkerError(f"marker gpu_limits: {error}") from None


def _leaks(item: pytest.Item) -> bool:
    given = _arguments(item, "gpu_leaks")
    if given:
        raise MarkerError(f"marker gpu_leaks: it takes no arguments, not {next(iter(given))!r}")
    return item.get_closest_marker("gpu_leaks") is not None


def _untraced(item: pytest.Item) -> str | None:
    if item.get_closest_marker("gpu_untraced") is None:
        return None
    given = _arguments(item, "gpu_untraced", positional="reason")
    reason = given.get("reason", "marked gpu_untraced")
    if set(given) - {"reason"} or not isinstance(reason, str):
        raise MarkerError("marker gpu_untraced: it takes one argument, the reason as text")
    return reason
