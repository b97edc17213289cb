"""Where activity comes from.

A source records what the GPU does between ``start`` and ``stop`` and hands over a `Capture`: plain columns and the
facts that only it knows. Everything that is said about a capture afterwards (what belongs to the step, what was lost)
is said by `collector.recording.recording`, the same way for every source.

To add a source: one module in this package with a class that fits `Source`, and its name in `_SOURCES`.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from collector.options import TraceOptions
    from collector.recording.annotation_details import Details

ANNOTATION_EXTERNAL_KIND = 5
"""CUPTI's external correlation kind CUSTOM2, ours: other profilers use UNKNOWN, CUSTOM0 and CUSTOM1."""


class _Details(TypedDict, total=False):
    details: Sequence[Details]
    """What was said of annotations, by ``details_id`` less 1; added by the session."""


class Capture(_Details):
    """What a source hands over when it stops."""

    tables: dict[str, dict[str, npt.NDArray[np.generic]]]
    """Table -> column -> values, as `collector.recording.schema.SCHEMA` says; those on request may be missing."""
    strings: list[str]
    """What every ``name_id`` indexes: kernel names as recorded (mangled), API names, annotation paths."""
    counters: dict[str, int]
    """Facts about the capture itself: buffers, bytes, dropped records; see `collector.recording.ledger.Ledger`."""
    clock: dict[str, int]
    """cupti_start_ns, cupti_stop_ns, wall_start_ns, wall_stop_ns, uncertainty_ns."""
    environment: dict[str, Any]
    """driver_version, cupti_path, cupti_api_version, cuda_version, devices, simulated, source, ..."""


class Source(Protocol):
    """One way to record GPU activity. At most one is recording at a time; the session sees to that."""

    name: str
    """What ``Provenance.source`` says: native, cupti-python, replay."""

    def probe(self) -> dict[str, Any]:
        """Say what is there, without starting: keys as ``collector._native.probe`` has them. Never raises."""

    def start(self, options: TraceOptions) -> None:
        """Begin to record. Raises a `collector.CollectorError` and leaves nothing running when it cannot."""

    def stop(self, *, synchronize: bool, timeout_ms: int) -> Capture:
        """End, and hand over what was recorded. ``synchronize``: wait for the devices' unfinished work first."""

    def abort(self) -> None:
        """End without a result and without waiting, as when the interpreter exits. Never raises."""

    def push_annotation(self, path: str, details: int = 0) -> None:
        """Put ``path`` (whole, such as ``layer1/conv``) on the launches this thread makes from now on.

        ``details`` goes into the annotation's ``details_id``; 0 where nothing else is said of it.
        """

    def pop_annotation(self) -> None:
        """Go back to the annotation this thread had before the last push; nothing happens where there was none."""


_SOURCES = {
    "native": ("collector.sources.native", "NativeSource"),
    "cupti-python": ("collector.sources.cupti_python", "CuptiPythonSource"),
}

SOURCE_NAMES = ("auto", *_SOURCES)
"""What ``trace(source=...)`` takes besides a `Source` of one's own."""


def open_source(name: str) -> Source:
    """Return the source called ``name``; ``auto`` is native, or cupti-python where the extension cannot be loaded.

    Raises:
        ValueError: no source has that name.
        collector.UnavailableError: the source's own code cannot be imported.
    """
    if name == "auto":
        from collector.sources.native import extension_error

        # Where neither is there, it is the extension that should be: its error tells what to do.
        instead = extension_error() is not None and importlib.util.find_spec("cupti") is not None
        name = "cupti-python" if instead else "native"
    if name not in _SOURCES:
        raise ValueError(f"unknown source {name!r}: choose one of {', '.join(SOURCE_NAMES)}")
    module, attribute = _SOURCES[name]
    source: Source = getattr(importlib.import_module(module), attribute)()
    return source


def empty_capture() -> Capture:
    """The capture of a step in which nothing was recorded."""
    import numpy as np

    from collector.recording.schema import SCHEMA

    return {
        "tables": {t: {c: np.zeros(0, dtype) for c, dtype in columns.items()} for t, columns in SCHEMA.items()},
        "strings": [],
        "counters": {},
        "clock": dict.fromkeys(
            ("cupti_start_ns", "cupti_stop_ns", "wall_start_ns", "wall_stop_ns", "uncertainty_ns"), 0
        ),
        "environment": {},
    }
