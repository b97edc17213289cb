"""What a process has one of: the open session, and who steps aside for it."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from collector.annotate import forget_annotations
from collector.errors import SessionActiveError

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.session import Session


class Background(Protocol):
    """Whoever traces a whole program, such as a test runner, and steps aside for the sessions that it opens itself."""

    def step_aside(self, session: Session) -> None:
        """``session`` is about to open: end your own, if it is another one."""

    def come_back(self, session: Session) -> None:
        """``session`` has ended. Raise nothing."""


class _Claim(NamedTuple):
    session: Session
    abandon: Callable[[], None]


_lock = threading.Lock()
_claim: _Claim | None = None
"""The one open session of this process, as CUPTI has one subscription."""
_background: Background | None = None


def set_background(background: Background | None) -> Background | None:
    """Let ``background`` step aside for every session from now on; returns the one there was before."""
    global _background
    before, _background = _background, background
    return before


def claim(session: Session, abandon: Callable[[], None]) -> None:
    """Make ``session`` the open one; ``abandon`` ends it without a result, should the interpreter end first.

    Raises:
        collector.SessionActiveError: one is open already.
    """
    global _claim
    if _background is not None:
        _background.step_aside(session)
    with _lock:
        if _claim is not None:
            where = "this" if _claim.session is session else "another"
            raise SessionActiveError(
                f"{where} session is already tracing in this process ({_claim.session.options.path or 'in memory'})",
                "End it first; one process can trace one step at a time, and annotate() names the parts of a step",
            )
        _claim = _Claim(session, abandon)


def release(session: Session) -> None:
    """Let another session open. Nothing happens if ``session`` is not the open one."""
    global _claim
    with _lock:
        if _claim is not None and _claim.session is session:
            _claim = None


def tell_background(session: Session) -> None:
    """Say that ``session`` has ended, with all that follows."""
    if _background is not None:
        _background.come_back(session)


def _abort_at_exit() -> None:
    """Let go of CUPTI before the interpreter goes: the driver must not call into freed code."""
    if _claim is not None:
        _claim.abandon()


def _forget_in_child() -> None:
    """After a fork: CUPTI's state belongs to the parent. Nothing of it may be called here."""
    global _background, _claim, _lock
    _lock = threading.Lock()  # another thread may have held it when the process was forked
    _background = _claim = None
    forget_annotations()


atexit.register(_abort_at_exit)
os.register_at_fork(after_in_child=_forget_in_child)


def thread_names() -> dict[int, str]:
    """The names of this process's threads by system thread id: Python's where Python made them, else the kernel's."""
    names: dict[int, str] = {}
    with contextlib.suppress(OSError):
        for task in Path("/proc/self/task").iterdir():
            with contextlib.suppress(OSError):
                names[int(task.name)] = (task / "comm").read_text(errors="replace").strip()
    names.update({thread.native_id: thread.name for thread in threading.enumerate() if thread.native_id is not None})
    return dict(sorted(names.items()))


def torch_profiler_is_idle() -> bool:
    """Whether PyTorch is here, and its profiler is not running.

    Kineto subscribes to CUPTI at its first use and never lets go (pytorch/pytorch#191944), so a held subscription says
    nothing about whether anybody records.
    """
    torch = sys.modules.get("torch")
    profiler = getattr(getattr(torch, "autograd", None), "profiler", None)
    return profiler is not None and not getattr(profiler, "_is_profiler_enabled", True)
