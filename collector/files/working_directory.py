"""The working directory in which relative paths were given, which a program may change before they are used."""

from __future__ import annotations

from pathlib import Path

from collector.runtime.original_functions import getcwd
from collector.runtime.uncompiled import uncompiled


class WorkingDirectory:
    """The working directory at the time when this object was made."""

    def __init__(self) -> None:
        """Remember the present working directory, unless it has been deleted."""
        self._path = _present()

    def anchored(self, path: Path) -> Path:
        """``path`` in this directory; unchanged if it is absolute or this is still the working directory."""
        if path.is_absolute() or self._path is None or self._path == _present():
            return path
        return Path(self._path, path)


@uncompiled
def _present() -> str | None:
    try:
        return getcwd()
    except OSError:
        return None
