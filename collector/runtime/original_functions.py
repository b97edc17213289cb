"""Functions of Python as they were when this package was imported.

Tests may replace them while a step is traced (``monkeypatch.setattr(os, "getpid", lambda: 42)``), which must not affect
the check whether a step ends in the process and the thread in which it began.
"""

from __future__ import annotations

from os import getcwd, getpid
from threading import get_ident

__all__ = ["get_ident", "getcwd", "getpid"]
