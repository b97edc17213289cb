"""Programs of the collector that other processes run with the same Python."""

from __future__ import annotations

import os
import sys

# `-c` and `-m` let a process import modules from the working directory, which belongs to the user's program: a file
# tokenize.py in it would be run instead of Python's. The option -P is not known to CPython 3.10.
_HEAD = """\
import sys
if sys.path[:1] == [""]:
    del sys.path[0]
"""


def python_command(program: str, *arguments: str) -> list[str]:
    """The command that runs ``program`` with this interpreter, without modules of the working directory."""
    return [sys.executable or "python3", "-c", f"{_HEAD}{program}", *arguments]


def python_path() -> str:
    """The PYTHONPATH with which another process can import the modules that this one can."""
    return os.pathsep.join(folder for folder in sys.path if folder)
