"""The line of the project's Python code that made a call, determined by time, because CUPTI does not record it.

The project's lines that run are recorded with their times. A CUDA call at some time on some thread was made by the last
line that the thread had reached; no frame is inspected in CUPTI's callbacks. This needs a clock that CUPTI and Python
share, as on Linux, unlike a simulated GPU with its own time.

From Python 3.12 on, `collector.testing.plugin.line_events` reports the lines. Before, only a trace function can, which
makes plain Python code dozens of times slower; it is therefore used only on request.
"""

from __future__ import annotations

import sys
import threading
import time
from bisect import bisect_right
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from collector.errors import CollectorError
from collector.testing.plugin.line_events import MOST_RUNS, Function

if sys.version_info >= (3, 12):
    from collector.testing.plugin.line_events import LineEvents

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

    from collector.recording.recording import Clock

MAX_LINES = 400_000
"""Limit of recorded lines; later calls have no known line. About 24 MB."""

_ELSEWHERE = ("site-packages", "dist-packages", "<")
_HERE = str(Path(__file__).parent)

NOT_ASKED = (
    "before Python 3.12 lines are noted only with --gpu-lines (gpu_lines = true in the ini file), "
    "which slows plain Python code down many times"
)
ANOTHER_TOOL = "before Python 3.12 no lines are noted while a debugger or a coverage tool runs: run without it"
NO_TOOL_ID = "other tools hold every tool id of sys.monitoring that is free for use: run without them"
OTHER_CLOCK = "CUPTI's clock does not run with this system's clock, so that times do not determine the line"
ELSEWHERE = (
    "the call was not made by Python code of the project, or by a line in a loop whose lines ran more than "
    f"{MOST_RUNS:,} times"
)


class _Tracer(Protocol):
    """Reports the lines that run."""

    def start(self) -> bool:
        """Begin; return whether that was possible."""

    def stop(self) -> None:
        """End, and remove all traces."""


class _Notes:
    """The lines that one thread reached, in order of time."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self.functions: list[Function] = []
        self.lines: list[int] = []


class Lines:
    """The lines of files below ``root`` that run in the ``with`` block, which may be entered several times."""

    def __init__(self, root: Path, simulated_ns: Callable[[], int] | None = None, *, asked: bool = False) -> None:
        """Records nothing before the block is entered.

        Args:
            root: the folder of the project's own code.
            simulated_ns: the clock of the simulated GPU that records the calls; None: real time.
            asked: whether to record lines before Python 3.12, where that is slow.
        """
        self._root = f"{root}/"
        self._simulated = simulated_ns is not None
        self._clock_ns = simulated_ns or time.time_ns
        self._last_ns = 0
        self._asked = asked
        self._of_thread = threading.local()
        self._noted: dict[int, _Notes] = {}
        self._left = MAX_LINES
        self._full_ns: int | None = None
        self._tracer: _Tracer | None = None
        self._unavailable = ""

    def __enter__(self) -> Lines:
        if sys.version_info >= (3, 12):
            self._start(LineEvents(self._is_ours, self._note, self._now_ns), NO_TOOL_ID)
        elif self._asked:
            self._start(_TraceFunction(self._is_ours, self._note), ANOTHER_TOOL)
        else:
            self._unavailable = NOT_ASKED
        return self

    def _start(self, tracer: _Tracer, unavailable: str) -> None:
        if tracer.start():
            self._tracer = tracer
        else:
            self._unavailable = unavailable

    def __exit__(self, *exc: object) -> None:
        tracer, self._tracer = self._tracer, None
        if tracer is not None:
            tracer.stop()

    def knows(self, clock: Clock) -> bool:
        """Whether the times of a recording with this clock can be compared with the lines'."""
        if self._simulated:
            return True
        wall_ns = clock.wall_stop_ns - clock.wall_start_ns
        return abs(wall_ns - clock.window_ns) <= wall_ns // 1000 + 2 * clock.uncertainty_ns + 1_000

    def why_unknown(self, clock: Clock) -> str:
        """The reason why `at` may not know the line of a call in a recording with this clock, and the remedy."""
        if self._unavailable:
            return self._unavailable
        return ELSEWHERE if self.knows(clock) else OTHER_CLOCK

    def at(self, thread_id: int, cupti_ns: int, clock: Clock) -> tuple[str, int] | None:
        """The file (below the root) and line at which a thread (by system id) was at a time; None if unknown."""
        noted = self._noted.get(thread_id)
        if noted is None:
            return None
        at_ns = cupti_ns if self._simulated else cupti_ns + clock.offset_ns
        index = bisect_right(noted.times, at_ns) - 1
        if index < 0 or (self._full_ns is not None and at_ns > self._full_ns):
            return None
        function, line = noted.functions[index], noted.lines[index]
        if not function.is_certain(line, at_ns):
            return None
        return function.code.co_filename.removeprefix(self._root), line

    def _now_ns(self) -> int:
        try:
            self._last_ns = self._clock_ns()
            return self._last_ns
        except CollectorError:  # another thread has closed the simulated GPU; the program must not notice
            return self._last_ns

    def _is_ours(self, code: CodeType) -> bool:
        name = code.co_filename
        return name.startswith(self._root) and not any(part in name for part in (*_ELSEWHERE, _HERE))

    def _note(self, function: Function, line: int) -> None:
        try:
            noted: _Notes = self._of_thread.notes
        except AttributeError:
            noted = self._of_thread.notes = self._noted.setdefault(threading.get_native_id(), _Notes())
        if noted.lines and noted.lines[-1] == line and noted.functions[-1] is function:
            return
        if self._left <= 0:
            self._full_ns = self._full_ns or self._now_ns()
            return
        self._left -= 1
        noted.times.append(self._now_ns())
        noted.functions.append(function)
        noted.lines.append(line)


class _TraceFunction:
    """Reports every line by `sys.settrace`, in this thread and those it starts; an alternative to `LineEvents`."""

    def __init__(self, is_ours: Callable[[CodeType], bool], note: Callable[[Function, int], None]) -> None:
        self._is_ours = is_ours
        self._note = note
        self._functions: dict[CodeType, Function | None] = {}
        self._active = False

    def start(self) -> bool:
        """Begin, unless a debugger or a coverage tool is already tracing; return whether it did."""
        if sys.gettrace() is not None or threading.gettrace() is not None:
            return False
        self._active = True
        threading.settrace(self._on_call)
        sys.settrace(self._on_call)
        return True

    def stop(self) -> None:
        """Stop tracing; a debugger that was started meanwhile stays."""
        self._active = False
        if sys.gettrace() == self._on_call:
            sys.settrace(None)
        if threading.gettrace() == self._on_call:
            threading.settrace(None)

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._on_line if self._active and self._function(frame) is not None else None

    def _on_line(self, frame: FrameType, event: str, argument: Any) -> Any:
        noted: FrameType | None = frame
        if event == "return":  # later calls belong to the caller's line
            noted = frame.f_back
            while noted is not None and self._functions.get(noted.f_code) is None:
                noted = noted.f_back
        if event in ("line", "return") and noted is not None:
            function = self._functions[noted.f_code]
            assert function is not None
            self._note(function, noted.f_lineno)
        return self._on_line if self._active else None

    def _function(self, frame: FrameType) -> Function | None:
        code = frame.f_code
        if code not in self._functions:
            self._functions[code] = Function(code) if self._is_ours(code) else None
        return self._functions[code]
