"""Functions of Python as they were when this package was imported.

Tests replace some in their modules (``monkeypatch.setattr(os, "getpid", lambda: 42)``) while a step is traced. Whether
this is the process and the thread that began the step must not depend on that.
"""

from __future__ import annotations

from os import getcwd, getpid
from threading import get_ident

__all__ = ["get_ident", "getcwd", "getpid"]
