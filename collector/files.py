"""Files that are either whole or not there."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from collector.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to be written beside ``path`` and give it that name when the block ends well.

    When the block raises, what was at ``path`` before stays as it was and nothing else remains.

    Raises:
        collector.OutputError: the file cannot be made, written or named.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name[:100]}.{os.urandom(4).hex()}.part")
    try:
        with temporary.open("xb") as file:
            yield file
        temporary.replace(target)
    except OSError as error:
        raise OutputError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str], *inputs: str | os.PathLike[str]) -> None:
    """Raise `collector.OutputError` if it is plain already that ``path`` cannot be written, or is one of ``inputs``."""
    target = Path(path)
    for given in inputs:
        with contextlib.suppress(OSError):  # one of them is not there: whoever reads it says so
            if target.samefile(given):
                raise OutputError(f"cannot write {target}: it is what is read", "Give the output another name")
    folder = target.parent
    if target.is_dir():
        raise OutputError(f"cannot write {target}: it is a folder")
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise OutputError(f"cannot write {target}: the folder {folder} {what}", f"Make it first: mkdir -p {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"cannot write {target}: the folder {folder} is not writable for this user")
