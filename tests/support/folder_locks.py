"""The lock of a folder, as another process sees it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def is_locked(folder: Path) -> bool:
    """Whether another process would have to wait before it writes a file in the folder."""
    number = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(number)
    return False
