"""The revision of the git repository that a program runs in, read from its files: no program is started for it."""

from __future__ import annotations

import re
from pathlib import Path

_REVISION = re.compile("[0-9a-f]{40,64}")
_LARGEST_FILE = 1 << 24
"""The maximum number of bytes that are read of a file, which may be a list of all references."""


def git_revision(folder: Path | None = None) -> str:
    """The commit that is checked out in a folder or a parent of it; ``""``: there is none, or it cannot be read.

    Args:
        folder: where to begin; None: the working directory.
    """
    try:
        begin = (folder or Path()).resolve()
        for each in (begin, *begin.parents):
            if (each / ".git").exists():
                return _checked_out(_git_folder(each / ".git"))
    except OSError:
        pass
    return ""


def _git_folder(path: Path) -> Path:
    """The folder of git: that of a worktree or a submodule is named in a file."""
    if path.is_dir():
        return path
    return path.parent / _text(path).removeprefix("gitdir:").strip()


def _checked_out(git: Path) -> str:
    head = _text(git / "HEAD").strip()
    if not head.startswith("ref:"):
        return _revision(head)
    reference = head.removeprefix("ref:").strip()
    common = git / _text(git / "commondir").strip() if (git / "commondir").is_file() else git
    for place in (git, common):
        if (place / reference).is_file():
            return _revision(_text(place / reference).strip())
    packed = _text(common / "packed-refs").splitlines() if (common / "packed-refs").is_file() else []
    return next((_revision(line.split()[0]) for line in packed if line.endswith(f" {reference}")), "")


def _revision(text: str) -> str:
    return text if _REVISION.fullmatch(text) else ""


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_LARGEST_FILE).decode(errors="replace")
