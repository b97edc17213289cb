"""Annotations and steps of a Python program that `collector run` or `collector attach` records."""

from __future__ import annotations

import atexit
import functools
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import CollectorError, NotTracedError
from collector.recording.capture import Instant
from collector.runtime.extension import INJECTION_VARIABLE, is_capture_library
from collector.runtime.original_functions import getpid
from collector.sources.native import NativeSource, extension_error
from collector.tracing.annotate import send_annotations_always
from collector.tracing.stated_counters import StatedCounters

if TYPE_CHECKING:
    from collector._native import _Mark
    from collector.options import TraceOptions
    from collector.recording.annotation_details import Details
    from collector.recording.capture import Capture


class RecordedProcess(NativeSource):
    """The native source without its own session: the library's session in this process is open, or will be.

    Its annotations reach the recordings that other processes begin, but no session that this program opens.
    """

    def __init__(self) -> None:
        """Raise `collector.CuptiUnusableError` if the extension cannot be loaded."""
        super().__init__()
        self.annotation_calls = self._native.annotation_calls(of_recorded_program=True)

    def note_details(self, details: Details) -> None:
        """Store the details of an annotation, for this recording and those that follow."""
        self._native.note_run_details(json.dumps(details))

    def is_recorded(self) -> bool:
        """Whether a recording is open. Details that nobody records are not kept: a process may listen for weeks."""
        is_active: bool = self._native.is_active()
        return is_active


STACKS_VARIABLE = "COLLECTOR_RUN_PYTHON"
"""Set where `collector run --python` records the Python stack of every annotation."""


def send_annotations_to_run(*, strict: bool = False) -> None:
    """Pass annotations to the recording of `collector run`, if it records this process.

    Raises:
        collector.CollectorError: this process is not recorded; only if ``strict``.
    """
    library = os.environ.get(INJECTION_VARIABLE, "")
    if not is_capture_library(library):
        if strict:
            raise CollectorError(
                f"the library of the recording, {library}, is of another installation of the collector",
                "Run the `collector` command of this program's environment",
            )
    elif (error := extension_error()) is None:
        _state_counters_at_exit()
        send_annotations_always(RecordedProcess(), stacks=bool(os.environ.get(STACKS_VARIABLE)))
    elif strict:
        raise CollectorError(f"the native extension cannot be loaded ({error})", "Install the package again with pip")


@functools.cache
def _state_counters_at_exit() -> None:
    """Add the counters of frameworks to the recording when the program ends; they are not known earlier."""
    process_id = getpid()

    def state() -> None:
        if getpid() == process_id:  # a forked child has its own memory, and no recording
            RecordedProcess().note_facts(*StatedCounters.at_end().facts())

    atexit.register(state)


class RecordedWindow(NativeSource):
    """A step of a process that `collector run` records: the part of its journal between the begin and the end.

    The recording loses nothing, and gets the annotations of the step. The kinds are those of the recording, and so are
    the NVTX domains and the budget.
    """

    keeps_budget = False

    def start(self, options: TraceOptions) -> None:
        """Note the begin. Raises `collector.NotTracedError` if no such recording is open."""
        mark = self._native.mark("as is")
        if mark is None:
            raise NotTracedError("`collector run` does not record this process now")
        # Rows of the step are written after this moment, and so behind these bytes.
        self._segment = mark["segment"]
        self._first_byte = _file_of(mark).stat().st_size
        self._start = _instant(mark)
        self._held = mark["held"] if mark["has_calls"] else []
        self._losses = mark["losses"]

    def stop(self, *, synchronize: bool, timeout_ms: int) -> Capture:
        """Complete the journal, and return its part."""
        from collector.recording.capture_window import FOREVER_NS
        from collector.recording.journal_segments import contents_of, segment_number, segments_of
        from collector.recording.journal_window import journal_window

        mark = self._native.mark("complete", synchronize=synchronize, timeout_ms=timeout_ms)
        if mark is None:
            raise NotTracedError(
                "the recording of this process ended inside the step",
                "End the step first, then the recorder",
            )
        now = self._native.instant()
        latest_ns = now[0] if now else FOREVER_NS  # the recording may have ended since
        own_calls = (mark["own_thread_id"], mark["own_from_ns"])
        files = [_file_of(mark)] if not mark["segment"] else segments_of(_path_of(mark), self._segment)
        if mark["segment"] and segment_number(files[0]) != self._segment:
            raise NotTracedError("the step is longer than the recording of this process keeps: its begin is removed")
        contents = [contents_of(path) for path in files]
        # A buffer that was held at the begin, too, has records of the step only if it has more of them now.
        num_held = len(set(mark["held"]) - set(self._held))
        stop = _instant(mark)
        capture = journal_window(contents, self._first_byte, self._start, stop, own_calls, num_held, latest_ns)
        # The journal states them now and then, not at the begin of each step.
        capture["counters"] |= {name: count - self._losses.get(name, 0) for name, count in mark["losses"].items()}
        return capture

    def is_idle(self) -> bool:
        """False: it is not known."""
        return False

    def abort(self) -> None:
        """Do nothing: the recording of the process continues."""


def _path_of(mark: _Mark) -> Path:
    return Path(os.fsdecode(mark["journal"]))


def _file_of(mark: _Mark) -> Path:
    """The file that is being written."""
    return _path_of(mark) / f"{mark['segment']:06d}.journal" if mark["segment"] else _path_of(mark)


def _instant(mark: _Mark) -> Instant:
    return Instant(mark["cupti_ns"], mark["wall_ns"], mark["uncertainty_ns"])


def window_of_recording(options: TraceOptions) -> RecordedWindow | None:
    """Begin a step and return it if `collector run` or a recorder records this process; else return None.

    Raises:
        collector.NotTracedError: the files of the recording cannot be read.
    """
    if extension_error() is not None:
        return None
    window = RecordedWindow()
    try:
        window.start(options)
    except NotTracedError:  # there is none of which a step can be a part: the error of starting one's own says why
        return None
    except OSError as error:
        raise NotTracedError(
            f"the journal of this process, {error.filename}, cannot be read ({error.strerror or error})"
        ) from error
    return window
