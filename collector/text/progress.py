"""A progress bar on standard error, for work that takes longer than a second; only on a terminal."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Report = Callable[[str, int, int], None]
    """Takes the name of the work, the amount that is done, and the total amount."""

SHOWN_AFTER_S = 1.0
"""Before this time there is no bar, because faster work needs none."""
_LONGEST_TITLE = 80


@contextmanager
def progress(title: str, *, shown: bool = True, after_s: float | None = None) -> Iterator[Report]:
    """A bar until the end of the block; gives the function that moves it.

    Args:
        title: the name of the work, until the function gives another.
        shown: False: show no bar.
        after_s: the time in s until the bar appears; None: `SHOWN_AFTER_S`.
    """
    if not shown or not sys.stderr.isatty():
        yield lambda _what, _done, _of: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=None)
    wait_s = SHOWN_AFTER_S if after_s is None else after_s
    appearance = threading.Timer(wait_s, bar.start)
    appearance.daemon = True

    def report(what: str, done: int, of: int) -> None:
        bar.update(task, description=escape(what[-_LONGEST_TITLE:]), completed=done, total=of)  # [n=5] is not markup

    if wait_s:
        appearance.start()
    else:
        bar.start()
    try:
        yield report
    finally:
        appearance.cancel()
        if wait_s:
            appearance.join()
        bar.stop()
