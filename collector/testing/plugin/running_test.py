"""One test during setup, call and teardown: its GPU work in each phase, and its report entries."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collector.options import KINDS_ON_REQUEST
from collector.testing.plugin.limits import MEMORY_OPERATIONS, judge

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

    from collector.recording.recording import Recording
    from collector.testing.plugin.allocations import Unfreed
    from collector.testing.plugin.figures import Figures
    from collector.testing.plugin.leaks import LeakCheck
    from collector.testing.plugin.limits import Limit
    from collector.testing.plugin.lines import Lines
    from collector.testing.plugin.markers import Markers
    from collector.testing.simulator.simulated_gpu import SimulatedGpu

_TOP_KERNELS = 5


@dataclass
class Phase:
    """The GPU work of one phase: setup, call or teardown."""

    recordings: list[Recording]
    figures: Figures


@dataclass
class Running:
    """The state of the running test; each test has its own."""

    item: pytest.Item
    markers: Markers
    untraced: str | None
    """The reason why its call is not traced; None if it is."""
    traced: bool
    phases: dict[str, Phase] = field(default_factory=dict)
    leak_check: LeakCheck | None = None
    lines: Lines | None = None
    lines_of: SimulatedGpu | None = None
    """The GPU on whose clock lines are recorded; None: the system's clock."""
    after_judgement: ExitStack = field(default_factory=ExitStack)
    """Ends contexts that must last until the test has been judged."""
    claimed: bool = False
    completed: bool = False
    """Whether its call returned and stayed within its limits."""
    failed: bool = False
    """Whether one of its reports so far is a failure."""
    steps: int = 0
    snapshots: int = 0
    snapshots_written: set[str] = field(default_factory=set)
    """Files of snapshots that the test has written, with which its later steps of the same name are compared."""
    parts: list[tuple[Recording, bool]] = field(default_factory=list)
    """Recordings to search for leaks, in order of time, each with whether its allocations are the test's own."""
    taken: int = 0
    """The number of recordings of the current phase in ``parts``."""
    in_wider_fixture: bool = False
    """Whether a fixture of a wider scope is being set up."""
    skip_reason: str | None = None
    """The reason why it cannot run, unless one of its fixtures, or its ``setUp``, provides a simulated GPU."""
    lacks_gpu: bool = False
    """Whether its ``setUp`` has provided none."""
    method: slice | None = None
    """The recordings of the method of a `unittest.TestCase`, without those of ``setUp`` and ``tearDown``."""
    limited: Phase | None = None
    """The phase, or the part of it, that is compared with the limits."""
    unjudged: list[str] = field(default_factory=list)
    """The reasons why a limit or a step of this test could not be judged."""
    notes: dict[str, Any] = field(default_factory=dict)
    """For the next report: leak, trace, sticky, problems, remarks."""

    def note_step_limits(self, limits: tuple[Limit, ...], figures: Figures) -> None:
        """Add the limits that a step exceeds to the next report."""
        self.notes.setdefault("step_limits", []).extend(each for each in _limits(limits, figures) if each["exceeded"])

    def note(self, kind: str, text: str) -> None:
        """Add a line to the next report's ``problems`` or ``remarks``."""
        self.notes.setdefault(kind, []).append(text)

    @property
    def used_gpu(self) -> bool:
        """Whether it has used the GPU so far."""
        return any(phase.figures.used_gpu for phase in self.phases.values())

    @property
    def seen_idle(self) -> bool:
        """Whether all phases so far were traced and the GPU was not used."""
        lossy = any(phase.figures.losses for phase in self.phases.values())
        return self.traced and self.untraced is None and not lossy and not self.used_gpu

    @property
    def recordings(self) -> list[Recording]:
        """All recordings so far."""
        return [recording for phase in self.phases.values() for recording in phase.recordings]

    def recordings_with_work(self) -> list[tuple[str, Recording]]:
        """The recordings so far in which the GPU worked, each with its name: ``call``, ``call 1``."""
        return [
            (f"{when} {number}" if number else when, recording)
            for when, phase in self.phases.items()
            for number, recording in enumerate(phase.recordings)
            if any(map(len, (recording.kernels, recording.memcpys, recording.memsets)))
        ]

    def wanted_kinds(self, further: Iterable[Limit] = ()) -> tuple[str, ...]:
        """The kinds on request that must be recorded, in a fixed order; ``further``: limits beside those of markers."""
        wanted = {limit.kind.record_kind for limit in (*self.markers.limits, *further)}
        if self.markers.leaks:
            wanted.add(MEMORY_OPERATIONS)
        return tuple(kind for kind in KINDS_ON_REQUEST if kind in wanted)

    def wants_lines(self, when: str) -> bool:
        """Whether to record the lines of Python code in a phase, because a message may contain them."""
        return self.markers.leaks or (when == "call" and self.markers.ask)

    def take_parts(self, recordings: list[Recording], *, own: bool) -> None:
        """Add the new recordings of the current phase; ``own``: whether their allocations are the test's."""
        self.parts += [(recording, own) for recording in recordings[self.taken :]]
        self.taken = len(recordings)

    def unfreed(self) -> Unfreed:
        """The memory that the test allocated and that neither it, its fixtures nor the garbage collector freed."""
        from collector.testing.plugin.allocations import unfreed

        return unfreed(self.parts, self.lines)

    def limits_message(self) -> str | None:
        """The failure's text if the call exceeds the test's limits; None if it does not or cannot be judged."""
        phase = self.limited
        if phase is None or not self.markers.limits or phase.figures.losses:
            return None
        excesses = judge(self.markers.limits, phase.figures)
        if not excesses:
            return None
        from collector.testing.plugin.messages import excess_message

        return excess_message(f"the call of {self.item.nodeid}", excesses, phase.recordings, self.lines)

    def as_report(self, when: str) -> dict[str, Any] | None:
        """The content of a phase's report as plain data, or None."""
        entries, self.notes = self.notes, {}
        phase = self.phases.get(when)
        if when == "call" and self.untraced is not None and self.traced:
            entries["untraced"] = self.untraced
        if phase is not None:
            entries["figures"] = phase.figures.as_dict()
            entries["losses"] = list(phase.figures.losses)
            entries["kernels"] = _top_kernels(phase.recordings)
            if when == "call":
                entries["steps"] = self.steps
                entries["limits"] = [] if self.limited is None else _limits(self.markers.limits, self.limited.figures)
        return entries or None


def _limits(limits: tuple[Limit, ...], figures: Figures) -> list[dict[str, Any]]:
    exceeded = {excess.limit.name for excess in judge(limits, figures)}
    return [
        {
            "name": limit.name,
            "maximum": limit.maximum,
            "measured": None if figures.losses else getattr(figures, limit.kind.figure),
            "exceeded": None if figures.losses else limit.name in exceeded,
        }
        for limit in limits
    ]


def _top_kernels(recordings: list[Recording]) -> list[dict[str, Any]]:
    totals: dict[str, list[int]] = {}
    for recording in recordings:
        kernels = recording.kernels
        for name, duration in zip(kernels.names(), kernels.duration_ns.tolist(), strict=True):
            total = totals.setdefault(name, [0, 0])
            total[0] += 1
            total[1] += duration
    ordered = sorted(totals.items(), key=lambda each: (-each[1][1], each[0]))[:_TOP_KERNELS]
    return [{"name": name, "count": count, "total_ns": spent} for name, (count, spent) in ordered]
