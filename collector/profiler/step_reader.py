"""Reads a recorded step from any object that contains one."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from collector.errors import InvalidFileError
from collector.formats.call_sums import CallSums
from collector.formats.loading import load
from collector.formats.step import TracedStep
from collector.profiler.recorded_steps import RecordedStep, read
from collector.protos import RunMetadata, StepStats
from collector.recording.recording import Recording
from collector.stepstats.from_recording import serialized
from collector.stepstats.wire import provenance_of
from collector.text.terminal import printable

log = logging.getLogger("collector.profiler")


def read_step(source: Any) -> RecordedStep:
    """A step from a file, from bytes, or from an object in memory.

    ``.pb`` files are mapped and read as columns; everything else is left to `collector.load`.

    Raises:
        InvalidFileError: there is no step in it, or only sums without start times.
    """
    found = read_step_or_sums(source)
    if isinstance(found, CallSums):
        raise found.refusal
    return found


def read_step_or_sums(source: Any) -> RecordedStep | CallSums:
    """A step as `read_step` takes it, or the sums of a profile without start times.

    Raises:
        InvalidFileError: there is neither in it.
    """
    if isinstance(source, bytes | memoryview):
        return _from_bytes(memoryview(source))
    if isinstance(source, RunMetadata | StepStats):
        return _from_bytes(memoryview(source.SerializeToString()))
    if isinstance(source, Recording):
        return _from_bytes(memoryview(serialized(source)))
    if isinstance(source, TracedStep):
        return source.sums or _from_bytes(memoryview(source.wire()[0]))
    return _from_file(Path(os.fspath(source)))


def _from_bytes(data: memoryview) -> RecordedStep:
    return read(data, provenance_of(data))


def _from_file(path: Path) -> RecordedStep | CallSums:
    trace = load(path)
    step = read_step_or_sums(trace)
    if isinstance(step, RecordedStep) and trace.skipped and not any(name.startswith("/") for name in step.device_names):
        raise InvalidFileError(f"{path} is not a step: its readable part has no device", "Give a recorded step")
    if trace.warning:
        log.warning("%s", printable(trace.warning))
    return step
