"""The part of paths that outputs may contain: no home folder, no user's name."""

from __future__ import annotations

import re
from pathlib import PurePath

_PACKAGES = ("site-packages", "dist-packages")
_HOME = re.compile(r"/(?:home|Users)/[^/\s\"',;:]+")
_SYSTEM = ("/usr/", "/opt/", "/lib/", "/lib64/")


def portable(path: str) -> str:
    """The part of a library's path that is the same on every machine.

    In a system's folder that is the whole path, elsewhere the part from ``site-packages`` on, or else the file's name.
    """
    if path.startswith(_SYSTEM):
        return path
    parts = PurePath(path).parts
    begin = next((index for index, part in enumerate(parts) if part in _PACKAGES), len(parts) - 1)
    return "/".join(parts[begin:])


def without_home(text: str) -> str:
    """Any text with ``~`` in place of the paths of home folders."""
    return _HOME.sub("~", text)
