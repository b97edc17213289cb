"""Files that are either complete or absent."""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import re
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from collector.errors import OutputError
from collector.files.dataset_files import dataset_that_holds
from collector.runtime.signal_handlers import error_of_handler
from collector.text.shell_words import file_argument
from collector.text.surrogates import without_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterator

_GZIP_LEVEL = 6
"""The default of the gzip command: level 9 takes 3 to 5 times as long for a trace and saves 8 %."""
_NO_ROOM, _NOT_HERE = "Free space, or write to another place", "Write to another place"
_OTHER_NAME = "Give the output another name"
_MOST_LINKS = 40
"""The number of links that Linux follows in a path."""
_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), _NO_ROOM),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _NOT_HERE),
}


def output_error(failed: str, error: OSError) -> OutputError:
    """The error for a failed system call, with a remedy if there is one for its reason.

    Args:
        failed: the first part of the cause, such as "cannot write step.json".
        error: the error of the system call.
    """
    number = error.errno or 0  # Arrow's own text is longer than the system's
    return OutputError(f"{failed}: {os.strerror(number) if number else error}", _REMEDIES.get(number, ""))


def database_error(failed: str, text: str) -> OutputError:
    """The error for a failed write of a database, as `output_error` where its text holds a reason of the system.

    Args:
        failed: the first part of the cause, such as "cannot write trace.sqlite".
        text: what the database states, such as "database or disk is full".
    """
    reasons = {"disk is full": errno.ENOSPC, **{os.strerror(number): number for number in _REMEDIES}}
    for reason, number in reasons.items():
        if reason in text:
            return output_error(failed, OSError(number, reason))
    return OutputError(f"{failed}: {text}")


def expanded(path: str | os.PathLike[str]) -> Path:
    """``path`` with ``~`` replaced by the home folder, as in a shell."""
    try:
        return Path(path).expanduser()
    except RuntimeError:  # no home folder
        return Path(path)


def absolute(path: Path) -> Path:
    """``path`` from the root on.

    Raises:
        collector.OutputError: it is relative, and the working directory has been deleted.
    """
    try:
        return path.absolute()
    except FileNotFoundError as error:
        raise OutputError(
            f"cannot write {path}: the working directory has been deleted", "Name the whole path, from the root on"
        ) from error


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str], *, is_of_dataset: bool = False) -> Iterator[BinaryIO]:
    """Open a file beside ``path``, which is renamed to ``path`` when the block ends without an error.

    If the block raises, an existing file at ``path`` is unchanged and nothing else remains. The new file gets the
    permissions of the one it replaces. For a link, the file that it points to is replaced; pipes, devices and open
    files of this process (``/dev/stdout``) are written directly.

    Args:
        path: the file.
        is_of_dataset: whether the file is written for the dataset in whose folder it is.

    Raises:
        collector.OutputError: the file cannot be created, written or renamed, or belongs to a dataset.
    """
    target = expanded(path)
    with _as_output_error(target):
        if _is_stream(target):
            with _open_stream(target) as stream:
                yield stream
            return
        target = _behind_links(target)
        if not is_of_dataset:
            _check_owner(target)
        temporary = _temporary_name(target)
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
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A name beside ``path`` for a library that opens files by name; see `atomic_write`.

    Raises:
        collector.OutputError: the file cannot be renamed.
    """
    target = expanded(path)
    with _as_output_error(target):
        target = _behind_links(target)
        temporary = _temporary_name(target)
        try:
            yield temporary
            temporary.replace(target)
        finally:
            for left in (temporary, *target.parent.glob(f"{temporary.name}*")):  # with the library's own journal
                with contextlib.suppress(OSError):
                    left.unlink(missing_ok=True)


def _temporary_name(target: Path) -> Path:
    return target.with_name(f".{target.name[:25]}.{os.urandom(4).hex()}.part")


@contextlib.contextmanager
def packed(file: BinaryIO, path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """``file`` itself, or a gzip stream into it if the name ``path`` ends in ``.gz``.

    The header contains no name and no time, so that equal contents give equal files.
    """
    if Path(path).suffix.lower() != ".gz":
        yield file
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=_GZIP_LEVEL) as stream:
        yield cast("BinaryIO", stream)


def check_writable(path: str | os.PathLike[str], *inputs: str | os.PathLike[str]) -> None:
    """Raise `collector.OutputError` if ``path`` obviously cannot be written, is one of ``inputs`` or of a dataset."""
    target = expanded(path)
    with _as_output_error(target):
        for given in inputs:
            with contextlib.suppress(OSError):  # a missing one is reported when it is read
                if target.samefile(given):
                    raise OutputError(f"cannot write {target}: it is an input", _OTHER_NAME)
        if _is_stream(target):
            return
        target = _behind_links(target)
        _check_place(target)
        _check_owner(target)


def check_folder(target: Path, folder: Path, *, is_made: bool = False) -> None:
    """Raise `collector.OutputError` if ``target`` obviously cannot be written, because of its folder.

    Args:
        target: the file or folder to be written.
        folder: the folder that holds it.
        is_made: whether a missing folder is made, together with its parents.
    """
    with _as_output_error(target):
        while is_made and folder != folder.parent and not folder.exists() and not folder.is_symlink():
            folder = folder.parent
        _check_folder(target, folder)


def _check_folder(target: Path, folder: Path) -> None:
    absolute(target)  # nothing can be written into a working directory that has been deleted
    if not folder.is_dir():
        if folder.exists():
            raise OutputError(f"cannot write {target}: {folder} is not a folder", _NOT_HERE)
        raise OutputError(
            f"cannot write {target}: the folder {folder} does not exist",
            f"Make it first: mkdir -p {file_argument(str(folder))}",
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"cannot write {target}: the folder {folder} is not writable for this user", _NOT_HERE)


def _check_place(target: Path) -> None:
    folder = target.parent
    _check_folder(target, folder)
    num_bytes, most = len(os.fsencode(target.name)), os.pathconf(folder, "PC_NAME_MAX")
    if num_bytes > most:
        raise OutputError(
            f"cannot write {target}: its name has {num_bytes} bytes, and at most {most} are possible",
            "Shorten the name",
        )
    if target.is_dir():
        raise OutputError(f"cannot write {target}: it is a folder", "Name a file in it")


def _check_owner(target: Path) -> None:
    """Raise `collector.OutputError` if a file belongs to a dataset, which could not be read without it."""
    if (folder := dataset_that_holds(target)) is not None:
        raise OutputError(f"cannot write {target}: it belongs to the dataset in {folder}", _OTHER_NAME)


@contextlib.contextmanager
def _as_output_error(target: Path) -> Iterator[None]:
    """Raise the system's errors about ``target`` as `collector.OutputError`."""
    try:
        is_possible = b"\0" not in os.fsencode(target)
    except UnicodeEncodeError:
        is_possible = False
    if not is_possible:
        raise OutputError(f"cannot write {without_surrogates(str(target))!r}: no file can have this name")
    try:
        yield
    except OSError as error:
        if error_of_handler(error) is not None:
            raise
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            _check_folder(target, target.parent)  # which names the cause and the remedy
        raise output_error(f"cannot write {target}", error) from error


def _is_stream(target: Path) -> bool:
    """Whether a path leads to a pipe, a device or an open file of this process, which must be written directly."""
    try:
        mode = target.stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or _open_file(target) is not None


def _open_file(target: Path) -> int | None:
    """The descriptor that a path such as ``/dev/stdout`` names, in this process; None: it names none.

    Where a shell has redirected the output to a file, to replace that file would lose what it holds and what follows.
    """
    for _ in range(_MOST_LINKS):
        folder = os.path.realpath(target.parent)
        if target.name.isdecimal() and re.fullmatch(rf"/proc/{os.getpid()}(/task/\d+)?/fd", folder):
            return int(target.name)
        if not target.is_symlink():
            return None
        target = Path(folder, target.readlink())
    return None


def _flush_outputs() -> None:
    """Let texts that were printed before stand before what is written now."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _open_stream(target: Path) -> BinaryIO:
    number = _open_file(target)
    if number is not None:
        _flush_outputs()
        return os.fdopen(os.dup(number), "wb")
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_NONBLOCK)  # opening a pipe without a reader would block
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OutputError(f"cannot write {target}: this pipe has no reader", "Start its reader first") from error
        raise
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "wb")


def _behind_links(target: Path) -> Path:
    try:
        if not target.is_symlink():
            return target
        found = target.resolve()
    except OSError:  # no file can have this name, which is reported when it is opened
        return target
    except RuntimeError as error:  # before Python 3.13
        raise _circle(target) from error
    if found.is_symlink():  # from Python 3.13 on
        raise _circle(target)
    return found


def _circle(target: Path) -> OutputError:
    return OutputError(f"cannot write {target}: its links lead in a circle")
