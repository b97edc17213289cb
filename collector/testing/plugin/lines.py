"""At which line of the project's own Python code a call was made: known by time, as CUPTI records none.

Every line of the project that runs is noted with its time. A CUDA call recorded at some time by some thread was made by
the last line that the thread had come to. That needs a clock that CUPTI and Python share, as they do on Linux; not so
where a simulated GPU has its own time.
"""

from __future__ import annotations

import sys
import threading
import time
from bisect import bisect_right
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

    from collector.recording import Clock

MAX_LINES = 400_000
"""How many lines are noted at most; calls after these have no known line. About 16 MB."""

_ELSEWHERE = ("site-packages", "dist-packages", "<")
_HERE = str(Path(__file__).parent)


class Lines:
    """The lines of the files below ``root`` that this thread, and those it starts, run in the ``with`` block.

    Nothing is noted where a debugger or a coverage tool is tracing already.
    """

    def __init__(self, root: Path, simulated_ns: Callable[[], int] | None = None) -> None:
        """``simulated_ns``: the clock of the simulated GPU that makes the calls; None: they are made in real time."""
        self._root = f"{root}/"
        self._simulated = simulated_ns is not None
        self._now_ns = simulated_ns or time.time_ns
        self._is_ours: dict[CodeType, bool] = {}
        self._noted: dict[int, tuple[list[int], list[CodeType], list[int]]] = {}
        self._left = MAX_LINES
        self._active = False

    def __enter__(self) -> Lines:
        if sys.gettrace() is None and threading.gettrace() is None:
            self._active = True
            threading.settrace(self._on_call)
            sys.settrace(self._on_call)
        return self

    def __exit__(self, *exc: object) -> None:
        if not self._active:
            return
        self._active = False
        if sys.gettrace() == self._on_call:  # a debugger that was started meanwhile stays
            sys.settrace(None)
        if threading.gettrace() == self._on_call:
            threading.settrace(None)

    def knows(self, clock: Clock) -> bool:
        """Whether a recording with this clock has times that mean something here."""
        if self._simulated:
            return True
        wall_ns = clock.wall_stop_ns - clock.wall_start_ns
        return abs(wall_ns - clock.window_ns) <= wall_ns // 1000 + 2 * clock.uncertainty_ns + 1_000

    def at(self, thread_id: int, cupti_ns: int, clock: Clock) -> tuple[str, int] | None:
        """The file (below the root) and line at which a thread (by system id) was at a time; None: not known."""
        noted = self._noted.get(thread_id)
        if noted is None:
            return None
        index = bisect_right(noted[0], cupti_ns if self._simulated else cupti_ns + clock.offset_ns) - 1
        if index < 0:
            return None
        return noted[1][index].co_filename.removeprefix(self._root), noted[2][index]

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        ours = self._is_ours.get(code)
        if ours is None:
            name = code.co_filename
            ours = name.startswith(self._root) and not any(part in name for part in (*_ELSEWHERE, _HERE))
            self._is_ours[code] = ours
        return self._on_line if ours and self._active else None

    def _on_line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self._note(frame)
        elif event == "return":
            # What the caller's line goes on to do is the caller's.
            caller = frame.f_back
            while caller is not None and not self._is_ours.get(caller.f_code):
                caller = caller.f_back
            if caller is not None:
                self._note(caller)
        return self._on_line if self._left > 0 and self._active else None

    def _note(self, frame: FrameType) -> None:
        self._left -= 1
        thread = threading.get_native_id()
        noted = self._noted.get(thread)
        if noted is None:
            noted = self._noted[thread] = ([], [], [])
        noted[0].append(self._now_ns())
        noted[1].append(frame.f_code)
        noted[2].append(frame.f_lineno)
