"""Annotations of a framework's calls that hooks enter and leave, also where a call ends without its last hook.

PyTorch calls no hook of a module that Ctrl-C or another `BaseException` leaves, and none of an optimizer whose step
raises. Such a call is recognised by its frame: what is called later runs no longer inside of it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from collector.tracing.annotate import at_failed_blocks

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

    from collector.tracing.annotate import annotate


class _Entered(NamedTuple):
    """A call that began. Neither its object nor its frame is kept alive."""

    object_id: int
    annotation: annotate
    at_end: Callable[[Any], None] | None
    """Called with the call's output; None: nothing else is to be done."""
    frame_id: int
    code: CodeType


class EnteredCalls(threading.local):
    """The calls that a thread has entered, the outermost first."""

    def __init__(self) -> None:
        self.entered: list[_Entered] = []

    def enter(
        self, called: object, annotation: annotate, frame: FrameType, at_end: Callable[[Any], None] | None = None
    ) -> None:
        """A call begins in ``frame``, which called the hook and runs until the call ends."""
        annotation.__enter__()
        self.entered.append(_Entered(id(called), annotation, at_end, id(frame), frame.f_code))

    def leave(self, called: object, output: Any = None) -> None:
        """A call returned or raised. Those inside it whose end was not seen end, too."""
        entered, object_id = self.entered, id(called)
        if not entered or all(each.object_id != object_id for each in reversed(entered)):
            return  # it began before the trace
        while self._end(output) != object_id:
            pass

    def end_unfinished(self, frame: FrameType | None) -> None:
        """End the calls that ``frame`` does not run inside of: they ended without a hook."""
        while self.entered and not _is_inside(frame, self.entered[-1]):
            self._end(None)

    def _end(self, output: Any) -> int:
        """End the innermost call; return the id of its object."""
        call = self.entered.pop()
        call.annotation.__exit__(None, None, None)
        if call.at_end is not None:
            call.at_end(output)
        return call.object_id


def _is_inside(frame: FrameType | None, call: _Entered) -> bool:
    """Whether a frame is that of a call, or one that it called. The id alone may be that of a frame that is gone."""
    while frame is not None:
        if id(frame) == call.frame_id and frame.f_code is call.code:
            return True
        frame = frame.f_back
    return False


calls = EnteredCalls()
at_failed_blocks(calls.end_unfinished)
