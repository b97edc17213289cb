"""The threads of this process."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

from collector.runtime.signal_handlers import error_of_handler
from collector.text.surrogates import without_surrogates


def thread_names() -> dict[int, str]:
    """The names of this process's threads by system thread id: Python's for its own threads, else the kernel's.

    The result is empty if the program's tests have replaced a function that is needed to find them.
    """
    try:
        return _found_names()
    except Exception as error:
        if error_of_handler(error) is not None:
            raise
        return {}


def _found_names() -> dict[int, str]:
    names: dict[int, str] = {}
    with contextlib.suppress(OSError):
        for task in Path("/proc/self/task").iterdir():
            with contextlib.suppress(OSError):
                names[int(task.name)] = (task / "comm").read_text("utf-8", errors="replace").strip()
    names.update({thread.native_id: thread.name for thread in threading.enumerate() if thread.native_id is not None})
    return {number: without_surrogates(name) for number, name in sorted(names.items())}
