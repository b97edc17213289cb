"""The trace of one test as a file: its name, its content, and the selection of files to keep."""

from __future__ import annotations

import hashlib
import re
from functools import cached_property
from typing import TYPE_CHECKING

from collector.errors import CollectorError
from collector.formats.registry import output_of
from collector.recording.step_origin import NO_ORIGIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from collector.protos import RunMetadata
    from collector.recording.recording import Recording

SUFFIX = ".trace.json"
_LONGEST = 120
_UNSAFE = re.compile(r"[^A-Za-z0-9_.=-]+")


def safe_name(nodeid: str) -> str:
    """A unique, readable and portable file name for a test, without suffix, of at most 129 characters.

    Letters, digits, ``_``, ``.``, ``=`` and ``-`` stay, other characters become ``-``. If this or the length could give
    two tests the same name, nine characters of a digest of the node id are added.
    """
    plain = nodeid.replace("::", "--").replace("/", "-")
    name = _UNSAFE.sub("-", plain).strip("-.")
    if name == plain and "-" not in nodeid and len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(nodeid.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{name[:_LONGEST].rstrip('-.')}-{digest}"


class TestTrace:
    """All recordings of one test as one trace; can be written by `collector.formats.registry`."""

    __test__ = False
    is_recording = True
    origin = NO_ORIGIN
    common_prefix = ""

    def __init__(self, recordings: Sequence[Recording]) -> None:
        """``recordings`` in order of time; at least one."""
        self._recordings = recordings

    @property
    def recording(self) -> Recording:
        """The longest recording, for the format that contains only one."""
        return max(self._recordings, key=lambda recording: len(recording.kernels))

    @cached_property
    def run_metadata(self) -> RunMetadata:
        """The recordings' device nodes, one recording after the other."""
        from collector.stepstats.from_recording import run_metadata

        first, *others = (run_metadata(recording) for recording in self._recordings)
        devices = {device.device: device for device in first.step_stats.dev_stats}
        for other in others:
            for device in other.step_stats.dev_stats:
                if device.device in devices:
                    devices[device.device].MergeFrom(device)
                    devices[device.device].device = device.device
                else:
                    devices[device.device] = first.step_stats.dev_stats.add()
                    devices[device.device].CopyFrom(device)
            for name, figure in other.provenance.ledger.items():
                first.provenance.ledger[name] += figure
            first.provenance.window_end_nanos = other.provenance.window_end_nanos
        return first

    def serialized(self) -> bytes:
        """`run_metadata` in protobuf's wire format."""
        from collector.stepstats.from_recording import serialized

        if len(self._recordings) == 1:
            return serialized(self._recordings[0])
        return bytes(self.run_metadata.SerializeToString(deterministic=True))

    def save(self, path: Path) -> None:
        """Write the trace completely or not at all.

        Raises:
            collector.CollectorError: it cannot be written.
        """
        output_of(path)(self, path)


def writable_folder(folder: Path) -> str | None:
    """Create ``folder`` and return the error of that or of writing into it; None if there is no error."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".writable-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"
        probe.touch()
        probe.unlink(missing_ok=True)
    except FileExistsError:
        return f"{folder} is not a folder"
    except OSError as error:
        return f"cannot write to the folder {folder}: {error.strerror or error}"
    return None


def save_trace(recordings: Sequence[Recording], path: Path) -> str | None:
    """Write a test's trace to ``path``; return the error without the path, which differs, or None."""
    try:
        TestTrace(recordings).save(path)
    except (CollectorError, OSError) as error:
        return _cause_of(error)
    return None


def save_page(parts: Sequence[tuple[str, Recording]], path: Path, title: str) -> str | None:
    """Write a page about a test's recordings, each with its name, to ``path``; return the error or None."""
    from collector.formats.step import RecordingSource, Step
    from collector.web.report_file import write_report

    try:
        write_report(path, [(name, Step(RecordingSource(recording))) for name, recording in parts], title=title)
    except (CollectorError, OSError) as error:
        return _cause_of(error)
    return None


def _cause_of(error: Exception) -> str:
    """The error without the path."""
    cause = error.__cause__ or error
    return str(getattr(cause, "strerror", None) or cause)


def longest(traces: Iterable[tuple[int, str]], count: int) -> set[str]:
    """The paths of the ``count`` traces with the most device time; equal ones are ordered by name."""
    return {path for _, path in sorted(traces, key=lambda trace: (-trace[0], trace[1]))[:count]}
