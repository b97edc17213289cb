"""Actions of signals in started programs, whatever the tests themselves run under, such as nohup."""

from __future__ import annotations

import signal


def restore_default(number: int) -> None:
    """Give the signal the action that it has in a program that a shell starts in the foreground."""
    signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
