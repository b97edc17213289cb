"""Processes of this machine."""

from __future__ import annotations

import os


def process_exists(process_id: int) -> bool:
    """Whether there is a process of this number, whoever its user is."""
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user
        pass
    return True
