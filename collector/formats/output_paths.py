"""The output file of one process of many: each rank or process has its own file.

A path may contain placeholders: ``{rank}``, ``{pid}``, ``{host}``, ``{step}`` and ``{env:VARIABLE}``.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from collector.errors import OutputError
from collector.files.atomic_files import check_folder, check_writable, output_error
from collector.files.path_kinds import is_folder
from collector.formats.registry import suffix_of
from collector.runtime.launcher_ranks import RANK_VARIABLES, has_other_ranks, launched_rank, launched_world_size
from collector.text.wording import listed, most_similar

_PLACEHOLDER = re.compile(r"\{(rank|pid|host|step|env:[A-Za-z_][A-Za-z0-9_]*)\}")
_WORD = re.compile(r"\{([A-Za-z_][\w.]*)([:!][^{}]*)?\}")
"""A placeholder, or a word in braces that looks like one, such as that of a text whose ``f`` was forgotten."""
_NAMES = ("rank", "pid", "host", "step")
_RANK = re.compile(r"(?<![a-z])(?:rank|worker|process|proc|task|gpu|r)[-_.=]?0*(\d+)(?!\d)", re.IGNORECASE)
_OF_ONE_PROCESS = {"rank", "pid", *(f"env:{name}" for name in RANK_VARIABLES)}
"""Placeholders that give each process a file of its own."""
_STARTED_NS = time.time_ns()
"""The approximate time at which this process, or the one it was forked from, began."""


@dataclass(frozen=True)
class ProcessIdentity:
    """The values of a path's placeholders in one process."""

    process_id: int
    host: str
    environment: Mapping[str, str]


def this_process() -> ProcessIdentity:
    """The process that calls."""
    return ProcessIdentity(os.getpid(), socket.gethostname(), os.environ)


def placeholders_of(path: Path) -> tuple[str, ...]:
    """The placeholders in ``path``, without braces: ``("rank", "env:JOB")``."""
    return tuple(dict.fromkeys(_PLACEHOLDER.findall(os.fspath(path))))


def check_placeholders(path: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Raise `collector.OutputError` if a path has placeholders that cannot be filled in: see `check_words`.

    A variable has to be in the environment.
    """
    check_words(path)
    for name in placeholders_of(path):
        if name.startswith("env:"):
            _value_of_variable(path, name.removeprefix("env:"), environment)


def check_words(path: Path) -> None:
    """Raise `collector.OutputError` if a path has a word in braces that is not a placeholder.

    Every step, rank or epoch would write the same file. Names of existing folders are free.
    """
    found = ((at, word) for at, part in enumerate(path.parts, 1) for word in _WORD.finditer(part))
    for at, word in found:
        if _PLACEHOLDER.fullmatch(word[0]) or is_folder(Path(*path.parts[:at])):
            continue
        similar = most_similar(word[1], _NAMES)
        meant = f"; did you mean {{{similar}}}?" if similar else ""
        known = listed([*(f"{{{name}}}" for name in _NAMES), "{env:VARIABLE}"], "or")
        raise OutputError(f"{path}: {word[0]} is not a placeholder{meant}", f"Write {known}, or remove the braces")


def check_without_step(path: Path) -> None:
    """Raise `collector.OutputError` if a path that is not that of a step has the placeholder ``{step}``."""
    if "step" in placeholders_of(path):
        raise OutputError(
            f"{path}: {{step}} stands for nothing here: several steps are written there", "Remove it from the path"
        )


def _value_of_variable(path: Path, name: str, environment: Mapping[str, str]) -> str:
    if not (stated := environment.get(name)):
        raise OutputError(f"{path}: the environment variable {name} is not set", "Set it, or remove it from the path")
    return stated


def check_place(path: Path, *, is_folder: bool = False) -> None:
    """Raise `collector.OutputError` if ``path`` obviously cannot be written, whatever its placeholders stand for.

    Args:
        path: the path of a file, or of a folder that is made.
        is_folder: whether it is the path of a folder.
    """
    num_fixed = next((at for at, part in enumerate(path.parts) if _PLACEHOLDER.search(part)), len(path.parts))
    if num_fixed < len(path.parts) - 1 or is_folder:
        check_folder(path, Path(*path.parts[:num_fixed]), is_made=True)
    elif num_fixed < len(path.parts):
        check_folder(path, path.parent)
    else:
        check_writable(path)


def filled_path(path: Path, rank: int | None, step: int | None = None, process: ProcessIdentity | None = None) -> Path:
    """The path with its placeholders filled in, as `filled_in`; folders whose names have placeholders are made.

    Raises:
        OutputError: `filled_in` raises it, or a folder cannot be made.
    """
    filled = filled_in(path, rank, step, process)
    if _PLACEHOLDER.search(os.fspath(path.parent)) is not None:
        try:
            filled.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise output_error(f"cannot make the folder {filled.parent}", error) from error
    return filled


def filled_in(path: Path, rank: int | None, step: int | None = None, process: ProcessIdentity | None = None) -> Path:
    """The path with its placeholders filled in; no folder is made.

    ``{rank}`` is 0 where no rank is known.

    Args:
        path: the path that the program gave.
        rank: the rank of the process; None: the rank in its environment.
        step: the number of the step; None: the path is that of several steps.
        process: the traced process; None: this one.

    Raises:
        OutputError: a word in braces is not a placeholder, ``{step}`` has no number here, or an environment variable
            is not set.
    """
    check_words(path)
    text = os.fspath(path)
    if _PLACEHOLDER.search(text) is None:
        return path
    if step is None:
        check_without_step(path)

    of = process or this_process()

    def value(found: re.Match[str]) -> str:
        name = found[1]
        if name.startswith("env:"):
            return _value_of_variable(path, name.removeprefix("env:"), of.environment)
        known_rank = launched_rank(of.environment) if rank is None else rank
        values = {"rank": known_rank or 0, "pid": of.process_id, "host": of.host}
        return str(step if name == "step" else values[name]).replace("/", "-")

    return Path(_PLACEHOLDER.sub(value, text))


def file_of_this_process(path: Path, rank: int | None, step: int | None = None) -> tuple[Path, str]:
    """Return the path that this process writes instead of ``path``, and the reason; ``""`` where it is ``path`` itself.

    Of many ranks each has a file of its own, ``step.rank3.json``, unless ``path`` says the rank already: by ``{rank}``,
    ``{pid}``, a launcher's variable such as ``{env:RANK}``, or a word before its number (``rank3``, ``worker-3``). A
    number without a word, such as that of a step or a model, is none. Where no rank is known, a file that another
    process of this run has written is left alone, and the process id goes into the name.

    Args:
        path: the path that the program gave; see `filled_in`.
        rank: the rank of this process; None: the rank in its environment.
        step: the number of the step.

    Raises:
        OutputError: a placeholder cannot be filled in.
    """
    asked, path = path, filled_path(path, rank, step)
    if _OF_ONE_PROCESS.intersection(placeholders_of(asked)):
        return path, ""
    rank = rank_of_this_process(rank)
    if has_other_ranks() and rank is not None:
        if _names_rank(asked, rank):
            return path, ""
        own = path_with_word(path, f"rank{rank}")
        size = launched_world_size()
        of_ranks = "" if size is None else f" of {size}"
        return own, f"this is rank {rank}{of_ranks}: it writes {own}, as {path} is every rank's"
    if _is_of_another_process(path):
        own = path_with_word(path, f"pid{os.getpid()}")
        return own, f"{path} was written by another process of this run: this one writes {own}"
    return path, ""


def rank_of_this_process(rank: int | None) -> int | None:
    """The rank that the program gave, else that of the environment; None where neither states one."""
    return launched_rank() if rank is None else rank


def mark_as_written_here(path: Path) -> None:
    """Let other processes of this run see that this one wrote ``path``; not every file system can say so."""
    with contextlib.suppress(OSError):
        os.setxattr(path, _WRITER, str(os.getpid()).encode())


_WRITER = "user.collector.writer"


def _is_of_another_process(path: Path) -> bool:
    try:
        writer = int(os.getxattr(path, _WRITER))
        return writer != os.getpid() and path.stat().st_mtime_ns >= _STARTED_NS
    except (OSError, ValueError):
        return False


def _names_rank(asked: Path, rank: int) -> bool:
    """Whether a path itself contains the rank; numbers that replace placeholders, such as a step, do not count."""
    stated = Path(_PLACEHOLDER.sub("{}", os.fspath(asked)))
    return any(int(number) == rank for part in stated.parts for number in _RANK.findall(part))


def path_with_word(path: Path, word: str) -> Path:
    """The path with a word before its suffix: ``step.rank3.json``."""
    suffix = _suffix_of(path)
    return path.with_name(f"{path.name.removesuffix(suffix)}.{word}{suffix}")


def _suffix_of(path: Path) -> str:
    """The suffix that selects the format, as ``path`` spells it; of a journal, whose name is free, the last one."""
    return path.name[-len(suffix) :] if (suffix := suffix_of(path.name)) else path.suffix
