"""The options of one trace, and the interface of the sources that it can record from."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from collector.checked_arguments import plain_text, switch, whole_number
from collector.recording.schema import KINDS, KINDS_ON_REQUEST
from collector.text.cost_shares import millionths_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from collector.recording.capture import Capture

__all__ = ["API_KINDS", "KINDS", "KINDS_ON_REQUEST", "LEAST_RING_BYTES", "Source", "TraceOptions"]

API_KINDS = ("runtime_api", "driver_api")
"""The kinds that record calls; without one of them, CUPTI does not link launches to annotations."""

GRAPH_LEVELS = ("nodes", "whole")
"""How CUDA graphs are recorded."""
GRAPH_KIND = "graph_launches"
"""The kind that records whole graphs."""

LEAST_RING_BYTES = 1 << 16
"""The smallest limit of disk space for the latest records: the records of one segment must fit into an eighth of it."""

_LIMITS = (
    ("buffer_bytes", 4096, 1 << 40),
    ("max_buffers", 1, (1 << 32) - 1),
    ("timeout_ms", 0, (1 << 32) - 1),
)
"""Option, minimum, maximum."""
_SWITCHES = ("strict", "synchronize", "stacks", "stream", "counters", "git_revision", "share_subscription")
_JOB_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


def kind_names(kinds: Any) -> tuple[str, ...]:
    """Return the names of kinds as a tuple; a single name may be given as text.

    Raises:
        TypeError: a name is not text.
    """
    names = (kinds,) if isinstance(kinds, str) or not isinstance(kinds, Iterable) else tuple(kinds)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"kinds takes names, not {name!r}")
    return names


class Source(Protocol):
    """One way to record GPU activity. At most one source records at a time, which the session ensures.

    A source may have more members, which a session uses where they are there, as the native source has them:

    * ``instant()``: the present time of the open session, without which a step cannot leave out its warm-up;
    * ``is_idle()``: whether nothing was recorded yet, for `collector.Session.idle`;
    * ``keeps_budget``: whether the source keeps the option ``budget`` by itself;
    * ``journal_trouble()`` and ``remove_journal()``: the source writes the option ``journal``;
    * ``note_details(details)`` and ``note_facts(texts, counters)``: details of annotations, and facts about the step,
      when they become known;
    * ``annotation_calls``: `push_annotation` and `pop_annotation` as functions in C;
    * ``is_recorded()``: whether annotations reach a recording now, of a source that is there before and after it.
    """

    name: str
    """The value of ``Provenance.source``: native, cupti-python, replay."""

    def probe(self) -> dict[str, Any]:
        """Describe the environment without starting: keys as in ``collector._native.probe``. Never raises."""

    def start(self, options: TraceOptions) -> None:
        """Begin to record. If that fails, raises a `collector.CollectorError` and leaves nothing running."""

    def stop(self, *, synchronize: bool, timeout_ms: int) -> Capture:
        """End, and return the records. ``synchronize``: first wait for the devices' unfinished work."""

    def abort(self) -> None:
        """End without a result and without waiting, e.g. at the exit of the interpreter. Never raises."""

    def push_annotation(self, path: str, details: int = 0) -> None:
        """Attach ``path`` (complete, such as ``layer1/conv``) to the following launches of this thread.

        ``details`` becomes the annotation's ``details_id``; 0 if there are no details.
        """

    def pop_annotation(self) -> None:
        """Return to the annotation that this thread had before the last push; does nothing if there was none."""


@dataclass(frozen=True)
class TraceOptions:
    """The checked options of `collector.trace`, which never change."""

    path: Path | None = None
    """The file of the trace, written when the step ends; the suffix decides the format. None: only in memory."""
    strict: bool = False
    """Raise instead of warning if nothing can be traced or written."""
    source: str | Source = "auto"
    """auto, native, cupti-python, or a `collector.sources.Source`."""
    synchronize: bool = True
    """Wait for the devices' unfinished work at the end of the step, so that the trace contains it."""
    kinds: tuple[str, ...] = KINDS
    """The kinds of activity to record, out of `KINDS` and `KINDS_ON_REQUEST`.

    Annotations need external_correlations and an API kind."""
    buffer_bytes: int = 4 << 20
    """Bytes of one activity buffer, a multiple of 8."""
    max_buffers: int = 256
    """Limit of buffers at one time; when all are full, records are dropped and counted."""
    timeout_ms: int = 5000
    """The time that the end of a step waits for outstanding buffers."""
    rank: int | None = None
    """This process's rank among many; the devices are then called ``/job:JOB/replica:0/task:RANK/gpu:0/...``."""
    job: str = "worker"
    """The job's name in that prefix; unused without a rank."""
    stacks: bool = False
    """Record the Python stack at every annotation, for the profiler's code view."""
    journal: Path | None = None
    """A file to which records are appended while the step is open, in case the program ends before the step."""
    stream: bool = False
    """Keep no record in memory: the journal, in segments, is the result."""
    nvtx: bool | tuple[str, ...] | None = None
    """Whether NVTX ranges are recorded, or the domains whose ranges are; None: if the handler is armed."""
    graphs: str = "nodes"
    """nodes: record each kernel, copy and memset of a CUDA graph; whole: one record for each launch of a graph."""
    counters: bool = False
    """Sample clocks, power, memory and throttling of the GPUs during the step."""
    dataset: Path | None = None
    """The folder of a dataset to which the step is added when it ends."""
    label: str = ""
    """The name of the run for people, in lists of many runs."""
    git_revision: bool = False
    """Record the revision of the git repository that the program runs in."""
    budget: str = ""
    """The maximum cost of recording, such as ``1%`` of the time of one core; kinds are left out when it costs more."""
    schedule: Callable[[int], Any] | None = None
    """The action in each step of the session; None: the session is one step."""
    on_window: Callable[[Any], object] | None = None
    """Called with the session after each window of the schedule."""
    share_subscription: bool = field(default=False, kw_only=True)
    """Collect even if another client in this process holds CUPTI's only subscription (set if torch's is idle)."""

    segment_bytes: int = field(default=64 << 20, kw_only=True)
    """Bytes of a segment of a streamed journal."""
    budget_period_ms: int = field(default=1000, kw_only=True)
    """The time over which the cost is measured."""

    def __post_init__(self) -> None:
        """Raise ValueError for impossible values, and TypeError for those of a wrong type."""
        self._check_types()
        self._check_kinds()
        self._check_streaming_and_schedule()
        self._check_limits()
        if self.budget != "":
            millionths_of(self.budget)
        if self.path and self.journal and os.path.realpath(self.path) == os.path.realpath(self.journal):
            raise ValueError(f"the trace and its journal are one file ({self.journal}): give them two names")
        if not _JOB_NAME.fullmatch(self.job):
            raise ValueError(f"job {self.job!r} is not a name of letters, digits, '_', '.' and '-'")

    def _check_types(self) -> None:
        for name in ("buffer_bytes", "max_buffers", "timeout_ms", "rank"):
            if name != "rank" or self.rank is not None:
                whole_number(name, getattr(self, name))
        for name in _SWITCHES:
            object.__setattr__(self, name, switch(name, getattr(self, name)))
        for name in ("job", "label"):
            plain_text(name, getattr(self, name))
        if not isinstance(self.source, str) and not hasattr(self.source, "start"):
            raise TypeError(f"source takes a name or a source, not {self.source!r}")

    def _check_kinds(self) -> None:
        if self.graphs not in GRAPH_LEVELS:
            raise ValueError(f"graphs is {self.graphs!r}: choose from {', '.join(GRAPH_LEVELS)}")
        if self.graphs == "whole" and GRAPH_KIND not in self.kinds:
            object.__setattr__(self, "kinds", (*self.kinds, GRAPH_KIND))
        known = (*KINDS, *KINDS_ON_REQUEST)
        unknown = [kind for kind in self.kinds if kind not in known]
        if unknown:
            raise ValueError(f"unknown kind {unknown[0]!r}: choose from {', '.join(known)}")
        if "peer_copies" in self.kinds and "memcpys" not in self.kinds:
            raise ValueError("the kind peer_copies needs memcpys: CUPTI records copies between GPUs only with both")
        if not self.kinds:
            raise ValueError("kinds is empty: nothing would be recorded")

    def _check_streaming_and_schedule(self) -> None:
        if self.stream and self.journal is None:
            raise ValueError("stream=True writes all records into a journal: name one (journal=...)")
        if self.stream and self.dataset is not None:
            raise ValueError("a streamed step is added to no dataset: save the journal there when it has ended")
        if self.schedule is not None and not callable(self.schedule):
            raise TypeError(f"schedule takes a function of the step, not {self.schedule!r}: see collector.schedule")
        if self.schedule is not None and self.stream:
            raise ValueError("stream=True keeps one long step, and a schedule makes many short ones: choose one")
        if self.on_window is not None and not (self.schedule and callable(self.on_window)):
            raise ValueError("on_window is a function that is called after each window of a schedule (schedule=...)")

    def _check_limits(self) -> None:
        for name, least, most in _LIMITS:
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}: at least {least} is needed")
            if getattr(self, name) > most:
                raise ValueError(f"{name} is {getattr(self, name)}: at most {most} is possible")
        if self.buffer_bytes % 8:
            raise ValueError(f"buffer_bytes is {self.buffer_bytes}: a multiple of 8 is needed")
        if self.rank is not None and self.rank < 0:
            raise ValueError(f"rank is {self.rank}: ranks count from 0")

    @property
    def budget_millionths(self) -> int:
        """The budget in millionths of the time of one core; 0: there is none."""
        return millionths_of(self.budget) if self.budget else 0

    @property
    def missing_for_annotations(self) -> str:
        """The kinds that `collector.annotate` needs and that are not recorded, as text; ``""`` if none are missing."""
        missing = [] if "external_correlations" in self.kinds else ["external_correlations"]
        if not set(API_KINDS) & set(self.kinds):
            missing.append(" or ".join(API_KINDS))
        return " and ".join(missing)

    @property
    def device_prefix(self) -> str:
        """The prefix of ``/gpu:0`` in device names: ``""`` or ``/job:worker/replica:0/task:3``."""
        return "" if self.rank is None else f"/job:{self.job}/replica:0/task:{self.rank}"
