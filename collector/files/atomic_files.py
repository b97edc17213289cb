"""Files that are either whole or not there."""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from collector.errors import OutputError
from collector.text.surrogates import without_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterator

_GZIP_LEVEL = 6
"""The default of the gzip command: at level 9 a trace takes 3 to 5 times as long and is 8 % smaller."""


def expanded(path: str | os.PathLike[str]) -> Path:
    """``path`` with the home folder in place of ``~``, as a shell would have it."""
    try:
        return Path(path).expanduser()
    except RuntimeError:  # there is no such home
        return Path(path)


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to be written beside ``path`` and give it that name when the block ends well.

    When the block raises, what was at ``path`` before stays as it was and nothing else remains. A file that is replaced
    passes on who may read it. Of a link, the file that it points to is replaced; into a pipe or a device is written.

    Raises:
        collector.OutputError: the file cannot be made, written or named.
    """
    target = expanded(path)
    with _as_output_error(target):
        if _is_stream(target):
            with _open_stream(target) as stream:
                yield stream
            return
        target = _behind_links(target)
        temporary = target.with_name(f".{target.name[:25]}.{os.urandom(4).hex()}.part")
        try:
            with temporary.open("xb") as file:
                with contextlib.suppress(FileNotFoundError):
                    os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
                yield file
            temporary.replace(target)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def packed(file: BinaryIO, path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """``file`` itself, or a gzip stream into it where ``path``, its name, ends in ``.gz``.

    Without a name and a time in its header, equal contents are equal files.
    """
    if Path(path).suffix.lower() != ".gz":
        yield file
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=_GZIP_LEVEL) as stream:
        yield cast("BinaryIO", stream)


def check_writable(path: str | os.PathLike[str], *inputs: str | os.PathLike[str]) -> None:
    """Raise `collector.OutputError` if it is plain already that ``path`` cannot be written, or is one of ``inputs``."""
    target = expanded(path)
    with _as_output_error(target):
        for given in inputs:
            with contextlib.suppress(OSError):  # one of them is missing, which is reported where it is read
                if target.samefile(given):
                    raise OutputError(f"cannot write {target}: it is what is read", "Give the output another name")
        if _is_stream(target):
            return
        _check_place(_behind_links(target))


def _check_place(target: Path) -> None:
    folder = target.parent
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise OutputError(f"cannot write {target}: the folder {folder} {what}", f"Make it first: mkdir -p {folder}")
    num_bytes, most = len(os.fsencode(target.name)), os.pathconf(folder, "PC_NAME_MAX")
    if num_bytes > most:
        raise OutputError(f"cannot write {target}: its name has {num_bytes} bytes, at most {most} are possible")
    if target.is_dir():
        raise OutputError(f"cannot write {target}: it is a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"cannot write {target}: the folder {folder} is not writable for this user")


@contextlib.contextmanager
def _as_output_error(target: Path) -> Iterator[None]:
    """Raise an error of the system about ``target`` as a `collector.OutputError`."""
    try:
        is_possible = b"\0" not in os.fsencode(target)
    except UnicodeEncodeError:
        is_possible = False
    if not is_possible:
        raise OutputError(f"cannot write {without_surrogates(str(target))!r}: no file can have this name")
    try:
        yield
    except OSError as error:
        raise OutputError(f"cannot write {target}: {error.strerror or error}") from error


def _is_stream(target: Path) -> bool:
    """Whether it is a pipe or a device, which has to be written as it is."""
    try:
        mode = target.stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def _open_stream(target: Path) -> BinaryIO:
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_NONBLOCK)  # a pipe that nobody reads would wait for ever
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OutputError(f"cannot write {target}: nobody reads this pipe", "Start its reader first") from error
        raise
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "wb")


def _behind_links(target: Path) -> Path:
    try:
        return target.resolve() if target.is_symlink() else target
    except OSError:  # no file can have that name, which is reported where it is opened
        return target
    except RuntimeError as error:  # a link to itself, before Python 3.13
        raise OutputError(f"cannot write {target}: its links lead in a circle") from error
