"""One step traced inside a test: the value of ``gpu_trace()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.recording.distinct import distinct_values
from collector.recording.intervals import Union
from collector.recording.table import Table
from collector.testing.plugin.background_tracing import trace_options
from collector.testing.plugin.figures import Figures, figures_of
from collector.tracing.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


class StepTable(Table):
    """A table of a step: a `collector.recording.table.Table` that also knows the step's other tables."""

    __slots__ = ("_others",)

    def __init__(self, table: Table, others: dict[str, Table]) -> None:
        """``table`` with the step's other tables by name."""
        super().__init__(table.name, table.columns, table._strings, table._annotations)
        self._others = others

    def overlap(self, what: str) -> float:
        """The share (0 to 1) of the time of all ``what`` during which a row of this table ran on the same device.

        ``step.kernels.overlap("copy")`` is 1.0 if all copies are hidden behind kernels.

        Args:
            what: ``copy``, ``memset`` or ``kernel``.

        Raises:
            ValueError: ``what`` is none of these, or the step contains none, so that there is no share.
        """
        if what not in _TABLES:
            raise ValueError(f"overlap({what!r}): choose from {', '.join(_TABLES)}")
        other = self._others[_TABLES[what]]
        spent = int(other.duration_ns.sum())
        if spent == 0:
            raise ValueError(f"overlap({what!r}): the step has no {what}")
        return sum(_covered(other.where(device_id=d), self.where(device_id=d)) for d in _devices(other)) / spent


_TABLES = {"kernel": "kernels", "copy": "memcpys", "memset": "memsets"}


class Step(Session):
    """One step traced inside a test; a `collector.Session` with methods for tests.

    Its results are not available before the block has ended, and it raises if nothing can be traced.
    """

    def __init__(
        self,
        on_exit: Callable[[Step], None],
        match_snapshot: Callable[[Step, str | None], None],
        also: tuple[str, ...],
    ) -> None:
        """Made by the fixture ``gpu_trace``; ``also``: the kinds on request that are recorded."""
        super().__init__(trace_options(also))
        self._on_exit = on_exit
        self._match_snapshot = match_snapshot

    def __enter__(self) -> Step:
        super().__enter__()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        super().__exit__(exc_type, exc, traceback)
        if exc is None:
            self._on_exit(self)

    @property
    def kernels(self) -> StepTable:
        """The kernels, by device, context, stream and time."""
        return self._table("kernels")

    @property
    def memcpys(self) -> StepTable:
        """The copies."""
        return self._table("memcpys")

    @property
    def memsets(self) -> StepTable:
        """The memsets."""
        return self._table("memsets")

    @property
    def figures(self) -> Figures:
        """Counts, bytes and times, by the names of the limits."""
        return figures_of([self.recording])

    def assert_matches_snapshot(self, name: str | None = None) -> None:
        """Compare kernels, copies and memsets, in their order on each stream, with those of a recorded run.

        The snapshot is a file in ``__gpu_snapshots__`` beside the test file; ``--gpu-snapshot-update`` writes it. A
        snapshot from another GPU model is compared only by names, because launch shapes differ between models.

        Args:
            name: the snapshot's name within the test; None: the test's own name, numbered from its second snapshot on.
        """
        __tracebackhide__ = True
        self._match_snapshot(self, name)

    def _table(self, name: str) -> StepTable:
        tables = {each: getattr(self.recording, each) for each in _TABLES.values()}
        return StepTable(tables[name], tables)


def _devices(table: Table) -> list[int]:
    devices: list[int] = distinct_values(table.device_id).tolist()
    return devices


def _covered(rows: Table, by: Table) -> int:
    """Time (ns) of each of ``rows`` during which any row of ``by`` runs, summed up."""
    return int(Union.of(by.start_ns, by.end_ns).covered(rows.start_ns, rows.end_ns).sum())
