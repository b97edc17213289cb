"""The part of paths that outputs may contain: no home folder, no user's name."""

from __future__ import annotations

import re
from pathlib import PurePath

_PACKAGES = ("site-packages", "dist-packages")
_HOME = re.compile(r"/(?:home|Users)/[^/\s\"',;:]+")
_IN_TEXT = re.compile(
    r"""(?<![\w.~/])(?:~|\.\.?)?/(?!/)  # not that of an address or between words
    (?:[^\s/:;,'"()](?:[^/:;,'"()\n]*[^\s/:;,'"()])?/)*  # folders, whose names may have spaces inside
    [^\s/:;,'"()]+""",
    re.VERBOSE,
)
"""A path from the root, a home or the working folder on."""
_SYSTEM = ("/usr/", "/opt/", "/lib/", "/lib64/")


def portable(path: str) -> str:
    """The part of a library's path that is the same on every machine.

    That is the part from ``site-packages`` on: a virtual environment may lie in a system's folder, too, such as /opt.
    Otherwise it is the whole path in a system's folder, and elsewhere the file's name.
    """
    parts = PurePath(path).parts
    begin = next((index for index, part in enumerate(parts) if part in _PACKAGES), None)
    if begin is None and path.startswith(_SYSTEM):
        return path
    return "/".join(parts[begin if begin is not None else -1 :])


def without_home(text: str) -> str:
    """Any text with ``~`` in place of the paths of home folders."""
    return _HOME.sub("~", text)


def without_folders(text: str) -> str:
    """Any text with the `portable` parts of the paths in it."""
    return _IN_TEXT.sub(lambda found: portable(found[0]), text)
