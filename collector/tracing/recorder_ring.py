"""The ring of a recorder: how much it keeps, the source that writes it, and the folder of its segments."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.errors import NotTracedError
from collector.files.atomic_files import output_error
from collector.files.new_folders import remove_folder, temporary_folder
from collector.files.path_kinds import is_folder
from collector.options import LEAST_RING_BYTES, TraceOptions
from collector.recording.journal_frames import holds_records
from collector.recording.journal_segments import is_closed, link_segments, segment_number, segments_of
from collector.runtime.original_functions import getpid
from collector.sources.native import NativeSource
from collector.text.quantities import bytes_of, seconds_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector._native import _Mark, _StartOptions
    from collector.recording.capture import Capture

_SHORTEST_S = 0.5


@dataclass(frozen=True)
class Keep:
    """How much a recorder keeps: a time, or a size on disk."""

    seconds: float = 0
    num_bytes: int = 0

    @classmethod
    def of(cls, text: str) -> Keep:
        """Read ``30s``, ``5min`` or ``512MB``. Raises ValueError for anything else."""
        try:
            seconds: float | None = seconds_of(text)
        except ValueError:
            seconds = None
        if seconds is not None:
            if seconds < _SHORTEST_S:
                raise ValueError(f"keep={text!r}: at least {_SHORTEST_S} s are kept")
            return cls(seconds=seconds)
        try:
            num_bytes = bytes_of(text)
        except ValueError:
            raise ValueError(f"keep={text!r} is neither a time, such as 30s, nor a size, such as 512MB") from None
        if num_bytes < LEAST_RING_BYTES:
            raise ValueError(
                f"keep={text!r} is {num_bytes:,} bytes, and at least {LEAST_RING_BYTES >> 10} KiB are kept: "
                "write a time, such as 30s, or a size, such as 512MB"
            )
        return cls(num_bytes=num_bytes)

    def limits(self) -> _StartOptions:
        """The options of the native session."""
        if self.num_bytes:
            return {"ring_bytes": self.num_bytes}
        return {"ring_ns": round(self.seconds * 1e9)}


class RecorderSource(NativeSource):
    """The native source, in a session of the recorder."""

    is_up_to_date = True
    """Whether the records of the last cut were written in time; otherwise they are in later segments."""

    def begin(self, journal: Path, keep: Keep, kinds: Sequence[str], settings: TraceOptions) -> None:
        """Subscribe, and record into segments in ``journal``."""
        self._subscribe(
            settings,
            {
                "kinds": list(kinds),
                "journal": os.fsencode(journal),
                "journal_only": True,
                "is_recorder": True,
                "texts": {"process.id": str(getpid())},
                **keep.limits(),
            },
        )
        self._keeps_journal = True

    def stop(self, *, synchronize: bool, timeout_ms: int) -> Capture:
        """End; the capture is empty."""
        capture: Capture | None = self._native.stop(synchronize, timeout_ms, is_recorder=True)
        if capture is None:
            raise NotTracedError("the recorder had ended already")
        return capture

    def cut(self, *, running: bool = False) -> int | None:
        """Close the present segment; return the number of the next one. ``running``: also write unfinished kernels.

        None: the segment cannot be closed, because the recording broke off.
        """
        mark: _Mark | None = self._native.mark("running" if running else "cut")
        self.is_up_to_date = mark is None or mark["is_up_to_date"]
        return None if mark is None else mark["segment"]

    @property
    def is_broken(self) -> bool:
        """Whether nothing can be written any more, as on a full disk."""
        state = self.state()
        return state is not None and bool(state["is_broken"])

    def state(self) -> Any:
        """See ``_native.watched_state``."""
        return self._native.watched_state()


class Ring:
    """The folder of the segments that a recorder writes, of which the oldest are removed."""

    def __init__(self, dumps: Path) -> None:
        """Make a folder on the file system of the dumps, so that segments can be linked.

        Raises:
            collector.OutputError: it cannot be made, or there is no place for it.
        """
        while not is_folder(dumps):
            dumps = dumps.parent
        parent = dumps if os.access(dumps, os.W_OK) else Path(temporary_folder())
        try:
            self.path = Path(tempfile.mkdtemp(prefix=".collector-ring-", dir=parent)) / "ring.journal"
        except OSError as error:
            raise output_error(f"the records cannot be kept in {parent}", error) from error
        """The journal, which `collector.load` reads."""

    @property
    def is_there(self) -> bool:
        """Whether the journal still exists."""
        return is_folder(self.path)

    @property
    def removal(self) -> str:
        """The message that the journal was removed."""
        return f"the folder of its records, {self.path}, was removed"

    def copy(self, journal: Path, next_segment: int | None, *, is_broken: bool) -> None:
        """Copy the closed segments, or link them, into a journal of their own, whole or not at all.

        Args:
            journal: the folder that is made.
            next_segment: the number of the first segment that is not copied; None: that of the first open one.
            is_broken: whether nothing is written any more, and all of them are copied.

        Raises:
            collector.OutputError: there is nothing to copy.
            OSError: the copy cannot be written.
        """
        partial = Path(tempfile.mkdtemp(prefix=".dump-", dir=journal.parent))
        try:
            link_segments(self.path, partial, lambda segment: is_broken or _is_before(segment, next_segment))
            partial.chmod(0o755)
            partial.rename(journal)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise

    def holds_records(self) -> bool:
        """Whether any segment has records.

        Segments that cannot be listed, as without a free file descriptor, may have some.
        """
        try:
            return any(holds_records(segment) for segment in segments_of(self.path))
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def remove(self) -> None:
        """Delete the segments and their folder."""
        remove_folder(self.path.parent)


def _is_before(segment: Path, number: int | None) -> bool:
    """Whether a segment precedes the one of this number and is closed therefore; None: that is not known."""
    return is_closed(segment) if number is None else segment_number(segment) < number
