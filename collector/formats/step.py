"""One traced step, held as columns of a recording or as StepStats of a file.

>>> import collector
>>> step = collector.load("step.pb")  # doctest: +SKIP
>>> step.recording, step.step_stats, step.ledger  # doctest: +SKIP

Each form is made from the other at its first use, and then kept.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from collector.checked_arguments import plain_text
from collector.errors import InvalidFileError, NotTracedError
from collector.files.written_files import written
from collector.formats.step_sources import RecordingSource, StepSource, devices_and_nodes, rows_of
from collector.recording.step_origin import NO_ORIGIN, StepOrigin
from collector.runtime.later_modules import later_function
from collector.text.html_tables import html_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.formats.call_sums import CallSums
    from collector.protos import Provenance, RunMetadata, StepStats
    from collector.recording.journal_facts import JournalProcess
    from collector.recording.ledger import Ledger
    from collector.recording.recording import Recording
    from collector.recording.table import Table
    from collector.stepstats.object_tables import ObjectRow


class TracedStep:
    """The interface of a step: of a `Step` that was loaded, and of a `collector.Session` that has ended."""

    device_prefix = ""
    """Put before the names of devices: ``/job:worker/replica:0/task:3``."""
    has_more_columns = False
    """Whether the recording has content that the step's StepStats, made from the same file, do not have."""
    unavailable: str | None = None
    """The reason why nothing was traced; None if the step was traced."""
    path: Path | None
    """The step's file; None where it has none."""

    def __repr__(self) -> str:
        """One line; the step itself may have millions."""
        place = "in memory" if self.path is None else repr(os.fspath(self.path))
        return f"<{type(self).__name__} {place}: {self._state()}>"

    def _state(self) -> str:
        """The words of `__repr__` about the step."""
        return f"recording, {rows_of(self.recording)}"

    @property
    def recording(self) -> Recording:
        """The recording: the step as columns."""
        raise NotImplementedError

    @property
    def is_recording(self) -> bool:
        """Whether the step is made of a recording, and its StepStats of that."""
        return True

    @property
    def recorded(self) -> Recording | None:
        """The recording, if the step is made from one; None if its StepStats are the original form."""
        return None if "run_metadata" in self.__dict__ else self.recording  # the caller may have changed these

    @property
    def origin(self) -> StepOrigin:
        """The rank of the step and the missing parts of its file, where these are stated."""
        return NO_ORIGIN

    @property
    def common_prefix(self) -> str:
        """The prefix that the names of all devices have, ``""`` if they have none or differ in it."""
        return self.device_prefix

    def columns_alone(self) -> TracedStep:
        """The same step without the bytes of its file, if its recording contains all of them; otherwise itself."""
        return self

    def object_rows(self) -> dict[str, list[ObjectRow]]:
        """The rows of `OBJECT_TABLES`, where the StepStats do not hold them: those of objects and of collectives.

        Those of several processes are not among them: the recording gives their objects other numbers than StepStats.
        """
        return {}

    def device_names(self) -> list[str]:
        """The device names in StepStats that were read; for a recording the prefix that its devices get."""
        return [self.device_prefix]

    def with_recording(self, recording: Recording) -> Step:
        """A part of the step's recording as a step, with the path, the rank and the names of devices of this step."""
        source = RecordingSource(recording, self.device_prefix)
        return Step(source, path=self.path, rank=getattr(self, "rank", None))

    @property
    def sums(self) -> CallSums | None:
        """The sums by call path of a profile without start times, which has no recording; None for every other step."""
        return None

    @property
    def ledger(self) -> Ledger:
        """The launches and records that were seen, kept and lost, with reasons."""
        return self.recording.ledger

    @property
    def kernels(self) -> Table:
        """The kernels of the step: ``recording.kernels``."""
        return self.recording.kernels

    @property
    def memcpys(self) -> Table:
        """The copies of the step: ``recording.memcpys``."""
        return self.recording.memcpys

    @property
    def memsets(self) -> Table:
        """The memsets of the step: ``recording.memsets``."""
        return self.recording.memsets

    @cached_property
    def run_metadata(self) -> RunMetadata:
        """RunMetadata with the step's StepStats and the provenance."""
        from collector.stepstats.from_recording import run_metadata

        return run_metadata(self.recording, self.device_prefix)

    @property
    def step_stats(self) -> StepStats:
        """The step as TensorFlow's StepStats; see `collector.stepstats.from_recording`."""
        return self.run_metadata.step_stats

    def serialized(self) -> bytes:
        """`run_metadata` in protobuf's wire format, as a ``.pb`` file holds it; faster than through the message."""
        if "run_metadata" in self.__dict__:  # the caller may have changed it
            return self.run_metadata.SerializeToString(deterministic=True)
        from collector.stepstats.from_recording import serialized

        return serialized(self.recording, self.device_prefix)

    def wire(self) -> tuple[bytes, bool]:
        """The bytes of a StepStats or RunMetadata, and whether they are those of a RunMetadata."""
        return self.serialized(), True

    def summary(self, *, color: bool | None = None) -> str:
        """The step as a table for a terminal.

        Args:
            color: whether to use terminal colours; None: if standard output is a terminal that shows them.
        """
        if self.sums is not None:
            text: str = later_function("summarize_sums")(self, color=color)
        else:
            text = later_function("summarize")(self.recording, unavailable=self.unavailable, color=color)
        return text

    def _repr_html_(self) -> str:
        try:
            recording = self.recording
        except NotTracedError as error:
            return html_line(str(error))
        warning = self.warning if isinstance(self, Step) else ""
        text: str = later_function("overview_html")(recording, unavailable=self.unavailable, warning=warning)
        return text

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        before: TracedStep | Sequence[TracedStep] = (),
        title: str = "",
        max_size: int = 2_000_000,
    ) -> None:
        """Write a page about the step that opens in any browser; see `collector report`.

        Args:
            path: the file: ``.html``.
            before: one or several steps with which this one is compared.
            title: the title of the page; empty: the names of the files.
            max_size: the maximum size of the file in bytes.

        Raises:
            TypeError: ``before`` is not a step, the title is not text, or the size is not a number.
            ValueError: the size is NaN or below 0.
            collector.UnknownFormatError: the suffix is not ``.html``.
            collector.OutputError: the file cannot be written.
        """
        others = list(before) if isinstance(before, Iterable) else [before]
        if not all(isinstance(each, TracedStep) for each in others):
            raise TypeError(f"before takes steps, not {before!r}: load a file first, by collector.load(path)")
        plain_text("title", title)
        with written(Path(path).expanduser(), shown=sys.stderr.isatty()):
            later_function("report_of_step")(self, Path(path).expanduser(), others, title, max_size)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the step to ``path`` in the format of its suffix, whole or not at all; see `collector.trace`.

        Raises:
            collector.UnknownFormatError: no format has the suffix.
            collector.OutputError: the file cannot be written.
        """
        with written(Path(path).expanduser(), shown=sys.stderr.isatty()):
            later_function("save_in_format")(self, path)


class Step(TracedStep):
    """One step that was read from a file, or a recording in memory; see `collector.load`."""

    def __init__(
        self,
        source: StepSource,
        *,
        kind: str = "recording",
        path: Path | None = None,
        skipped: Mapping[str, int] | None = None,
        cut_at: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        process: JournalProcess | None = None,
        run: str = "",
    ) -> None:
        """Take the source; columns and messages are made from it on request."""
        self._source = source
        self.device_prefix = source.device_prefix
        self.kind = kind
        """RunMetadata, StepStats, recording, journal, collector timeline, TensorFlow timeline, Chrome trace, …"""
        self.path = path
        """The file; None for a recording in memory."""
        self.skipped: Mapping[str, int] = skipped or {}
        """Reason -> how many pieces of the file were left out or mended. Empty: everything was read."""
        self.cut_at = cut_at
        """Byte (for JSON: character) of the unpacked file from which on it could not be read, or None."""
        self.rank = rank
        """The rank among many processes; None: the file does not state it."""
        self.world_size = world_size
        """The number of these processes; None: the file does not state it."""
        self.process = process
        """The process that a journal states."""
        self.run = run
        """The name of the run in a dataset; ``""``: it is not of a dataset."""

    def _state(self) -> str:
        size = self._source.size()
        if not size:
            devices = self.step_stats.dev_stats
            size = devices_and_nodes(len(devices), sum(len(device.node_stats) for device in devices))
        return f"{self.kind}, {size}" + (", not all of it could be read" if self.warning else "")

    @property
    def process_name(self) -> str:
        """``process 1234``, where a journal states it."""
        process_id = None if self.process is None else self.process.process_id
        return "" if process_id is None else f"process {process_id}"

    @property
    def warning(self) -> str:
        """One line that states the parts that were left out and their place; empty if there are none."""
        if not self.skipped and self.cut_at is None:
            return ""
        where = "" if self.cut_at is None else f" from position {self.cut_at} on"
        reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(self.skipped.items()))
        return f"{self.path}: not all of it could be read{where}: {reasons or 'cut off'}"

    @property
    def unread(self) -> Mapping[str, int]:
        """Reason -> count of missing parts that no figure of the ledger counts; all outputs of the step state them."""
        return self._missing() + Counter(self._source.unread())

    def _missing(self) -> Counter[str]:
        """The missing parts of this file itself."""
        found = Counter(self.skipped)
        if not self.skipped and self.cut_at is not None and not self._source.counts_cut_files:
            found["unreadable rest of the file"] += 1
        return found

    @property
    def origin(self) -> StepOrigin:
        """See `TracedStep`."""
        return StepOrigin(self.rank, self.world_size, self.ledger.unread)

    @property
    def common_prefix(self) -> str:
        """See `TracedStep`."""
        from collector.stepstats.device_prefixes import common_prefix

        return self.device_prefix or common_prefix(self._source.device_names()) or ""

    def with_recording(self, recording: Recording) -> Step:
        """See `TracedStep`; the losses that the file states remain."""
        stated = Counter(self.recording.ledger.unread) - self._missing()
        return Step(
            RecordingSource(
                recording, self.common_prefix, unread=stated, counts_cut_files=self._source.counts_cut_files
            ),
            kind=self.kind,
            path=self.path,
            skipped=self.skipped,
            cut_at=self.cut_at,
            rank=self.rank,
            world_size=self.world_size,
            process=self.process,
        )

    @cached_property
    def recording(self) -> Recording:
        """The step as columns; if the file has none, the ledger counts the nodes that have no columns.

        Its ledger states the parts of the file that could not be read, so that every answer does.
        """
        try:
            recording = self._source.recording()
        except InvalidFileError as error:  # damage that only reading the columns shows
            raise error.of_file(self.path) from error
        if self._source.is_recording:
            unread = self.unread
        else:  # of which the columns may have parts that cannot be read
            unread = Counter(self.ledger.unread) + Counter(recording.ledger.unread)
        return recording.restated(ledger=replace(recording.ledger, unread=dict(unread))) if unread else recording

    @property
    def is_recording(self) -> bool:
        """See `TracedStep`."""
        return self._source.is_recording

    @property
    def recorded(self) -> Recording | None:
        """See `TracedStep`."""
        return super().recorded if self.is_recording else None

    def columns_alone(self) -> Step:
        """See `TracedStep`."""
        if self.is_recording or self.sums is not None or self.unread or "run_metadata" in self.__dict__:
            return self
        return self if self._source.prefix_beside(self.recording) is None else self.with_recording(self.recording)

    @property
    def has_more_columns(self) -> bool:  # type: ignore[override]  # a constant of other steps
        """See `TracedStep`."""
        return self._source.has_more_columns

    def object_rows(self) -> dict[str, list[ObjectRow]]:
        """See `TracedStep`."""
        from collector.stepstats.object_tables import object_rows

        return object_rows(self.recording) if self.has_ids_of_columns else {}

    @property
    def has_ids_of_columns(self) -> bool:
        """Whether the recording has more than the step's StepStats, and both have the same correlation ids."""
        return self.has_more_columns and self._source.is_one_process

    def device_names(self) -> list[str]:
        """See `TracedStep`."""
        return [*super().device_names(), *self._source.device_names()]

    @property
    def sums(self) -> CallSums | None:
        """See `TracedStep`."""
        return self._source.sums()

    @property
    def ledger(self) -> Ledger:
        """The ledger in the file, with the parts of the file that could not be read."""
        if self.sums is not None:
            return self.sums.ledger
        if self._source.is_recording:
            return replace(self.recording.ledger, unread=dict(self.unread))
        from collector.recording.ledger import Ledger

        return Ledger.of(self.provenance)

    @property
    def provenance(self) -> Provenance:
        """The provenance of the step, with the parts of its file that could not be read."""
        if "run_metadata" in self.__dict__:  # the caller may have changed it
            return self.run_metadata.provenance
        return self._source.provenance(self._beside())

    @cached_property
    def run_metadata(self) -> RunMetadata:
        """The step as RunMetadata, whatever the file held."""
        return self._source.run_metadata(self._beside())

    def _beside(self) -> StepOrigin:
        """The origin of the step: its rank, and the missing parts of its file."""
        return StepOrigin(self.rank, self.world_size, self.unread)

    def _untouched_wire(self) -> tuple[bytes, bool] | None:
        """The source's own bytes, if they contain everything that the step states; otherwise None."""
        return None if "run_metadata" in self.__dict__ else self._source.wire(self._beside())

    def wire(self) -> tuple[bytes, bool]:
        """The bytes of a StepStats or RunMetadata, and whether they are those of a RunMetadata."""
        return self._untouched_wire() or (self.run_metadata.SerializeToString(deterministic=True), True)

    def serialized(self) -> bytes:
        """`run_metadata` in protobuf's wire format, as a ``.pb`` file holds it."""
        from collector.stepstats.wire import as_run_metadata

        data, is_run_metadata = self.wire()
        return data if is_run_metadata else as_run_metadata(data)
