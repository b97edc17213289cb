"""The files a traced step can be written to, by suffix."""

from __future__ import annotations

import contextlib
import os
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from collector.errors import UnknownFormatError
from collector.files.atomic_files import atomic_write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from collector.protos import RunMetadata
    from collector.recording.recording import Recording


class Step(Protocol):
    """What a writer may ask of a step."""

    @property
    def recording(self) -> Recording | None:
        """What was recorded; None for a step that was read from a file without it."""
        ...

    @property
    def run_metadata(self) -> RunMetadata:
        """The same as StepStats with its provenance."""
        ...

    def serialized(self) -> bytes:
        """``run_metadata`` in protobuf's wire format."""
        ...


@dataclass(frozen=True)
class RecordingAsStep:
    """A recording as the step that it is."""

    recording: Recording

    @property
    def run_metadata(self) -> RunMetadata:
        """See `Step`."""
        from collector.stepstats.from_recording import run_metadata

        return run_metadata(self.recording)

    def serialized(self) -> bytes:
        """See `Step`."""
        from collector.stepstats.from_recording import serialized

        return serialized(self.recording)


def _draw(step: Step, path: Path) -> None:
    from collector.timeline import chrome_trace

    chrome_trace(step.serialized(), path)


def _write_binary(step: Step, path: Path) -> None:
    data = step.serialized()
    with atomic_write(path) as file:
        file.write(data)


def _write_text(step: Step, path: Path) -> None:
    from google.protobuf import text_format

    text = text_format.MessageToString(step.run_metadata).encode()
    with atomic_write(path) as file:
        file.write(text)


def _write_recording(step: Step, path: Path) -> None:
    if step.recording is None:
        raise UnknownFormatError(f"{path}: a recording cannot be made again from StepStats")
    from collector.recording.gpurec import save_recording

    save_recording(step.recording, path)


def _write_xspace(step: Step, path: Path) -> None:
    from collector.formats.xspace import xspace

    data = xspace(step.run_metadata).SerializeToString(deterministic=True)
    with atomic_write(path) as file:
        file.write(data)


OUTPUTS: dict[str, Callable[[Step, Path], None]] = {
    ".json": _draw,
    ".json.gz": _draw,
    ".pftrace": _draw,
    ".pftrace.gz": _draw,
    ".pb": _write_binary,
    ".pbtxt": _write_text,
    ".gpurec": _write_recording,
    ".xplane.pb": _write_xspace,
}
"""Suffix -> what writes a step to a file of that kind, whole or not at all."""


def save_in_format(recording: Recording, path: Path) -> None:
    """Write ``recording`` to ``path`` in the format of its suffix; see `collector.Recording.save`."""
    output_of(path)(RecordingAsStep(recording), path)


_RANK = re.compile(r"(?<![a-z])(?:rank|worker|process|proc|task|gpu|r)[-_.=]?0*(\d+)(?!\d)", re.IGNORECASE)
_STARTED_NS = time.time_ns()
"""The approximate time at which this process, or the one it was forked from, began."""


def file_of_this_process(path: Path, rank: int | None) -> tuple[Path, str]:
    """Return the path that this process writes instead of ``path``, and the reason; ``""`` where it is ``path`` itself.

    Of many ranks each has a file of its own, ``step.rank3.json``, unless ``path`` says the rank already. Where no rank
    is known, a file that another process of this run has written is left alone, and the process id goes into the name.

    Args:
        path: what the program asked for.
        rank: of this process, None: that which torchrun's environment says.
    """
    world_size = _number("WORLD_SIZE")
    rank = _number("RANK") if rank is None else rank
    if world_size is not None and world_size > 1 and rank is not None:
        if _names_rank(path, rank):
            return path, ""
        own = _with_word(path, f"rank{rank}")
        return own, f"this is rank {rank} of {world_size}: it writes {own}, as {path} is every rank's"
    if _is_of_another_process(path):
        own = _with_word(path, f"pid{os.getpid()}")
        return own, f"{path} was written by another process of this run: this one writes {own}"
    return path, ""


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


def _names_rank(path: Path, rank: int) -> bool:
    if any(int(number) == rank for part in path.parts for number in _RANK.findall(part)):
        return True
    numbers = re.findall(r"\d+", path.name.removesuffix(_suffix_of(path)))
    return bool(numbers) and int(numbers[-1]) == rank


def _with_word(path: Path, word: str) -> Path:
    suffix = _suffix_of(path)
    return path.with_name(f"{path.name.removesuffix(suffix)}.{word}{suffix}")


def _suffix_of(path: Path) -> str:
    """The suffix that selects the format, as ``path`` spells it; of a journal, whose name is free, the last one."""
    name = path.name.lower()
    return path.name[-len(suffix) :] if (suffix := _format_suffix(name)) else path.suffix


def _format_suffix(name: str) -> str:
    fitting = [suffix for suffix in OUTPUTS if name.endswith(suffix) and len(name) > len(suffix)]
    return max(fitting, key=len, default="")


def _number(variable: str) -> int | None:
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else None


def output_of(path: Path) -> Callable[[Step, Path], None]:
    """Return the writer for ``path``'s suffix; the longest suffix wins.

    Raises:
        collector.UnknownFormatError: no format has that suffix.
    """
    suffix = _format_suffix(path.name.lower())
    if suffix:
        return OUTPUTS[suffix]
    raise UnknownFormatError(f"{path}: no format has this suffix", f"Use one of {', '.join(OUTPUTS)}")
