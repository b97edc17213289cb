"""The files a traced step can be written to, by suffix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from collector.errors import UnknownFormatError
from collector.files import atomic_write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from collector.protos import RunMetadata
    from collector.recording import Recording


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
        from collector.stepstats import run_metadata

        return run_metadata(self.recording)

    def serialized(self) -> bytes:
        """See `Step`."""
        from collector.stepstats import serialized

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
    from collector.recording_file import save_recording

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


def output_of(path: Path) -> Callable[[Step, Path], None]:
    """Return the writer for ``path``'s suffix; the longest suffix wins.

    Raises:
        collector.UnknownFormatError: no format has that suffix.
    """
    for suffix in sorted(OUTPUTS, key=len, reverse=True):
        if path.name.lower().endswith(suffix) and len(path.name) > len(suffix):
            return OUTPUTS[suffix]
    raise UnknownFormatError(f"{path}: no format has this suffix", f"Use one of {', '.join(OUTPUTS)}")
