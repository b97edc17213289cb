"""Signals that end programs, such as that of `timeout` and of a batch system at the end of a job's time."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


@contextlib.contextmanager
def ended_by_exception() -> Iterator[None]:
    """Let these signals end the block as an exception does: temporary files are removed, which a signal would leave.

    Only those signals for which the program has no handler, and which it does not ignore (nohup).
    """
    numbers = {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}  # Windows has no SIGHUP
    if threading.current_thread() is not threading.main_thread():
        numbers = set()
    replaced = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
