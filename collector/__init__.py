"""Traces the GPU work of one step of a CUDA program.

>>> import collector
>>> with collector.trace("step.json") as step:
...     with collector.annotate("layer1/conv"):
...         launch_some_kernels()
>>> print(step.summary())

Importing this package is cheap: modules that need numpy, protobuf or the native extension are imported when used.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from collector.errors import (
    CollectorError,
    CollectorWarning,
    CuptiCallError,
    CuptiNotFoundError,
    CuptiUnusableError,
    DriverNotFoundError,
    InvalidFileError,
    MissingDependencyError,
    NotTracedError,
    OutputError,
    PermissionDeniedError,
    SessionActiveError,
    SubscriberConflictError,
    UnavailableError,
    UnknownFormatError,
)
from collector.tracing.annotate import annotate

if TYPE_CHECKING:
    from collector import adapters, analysis
    from collector.formats.loading import load
    from collector.merging.merged_trace import merge
    from collector.options import TraceOptions
    from collector.recording.ledger import Ledger
    from collector.recording.recording import Recording
    from collector.timeline import Timeline, chrome_trace
    from collector.tracing import nvtx
    from collector.tracing.listener import listen
    from collector.tracing.recorder import Recorder, record
    from collector.tracing.schedule import every, schedule
    from collector.tracing.session import Session
    from collector.tracing.trace import trace

_LAZY = {
    "Ledger": "collector.recording.ledger",
    "Recorder": "collector.tracing.recorder",
    "Recording": "collector.recording.recording",
    "Session": "collector.tracing.session",
    "Timeline": "collector.timeline",
    "TraceOptions": "collector.options",
    "chrome_trace": "collector.timeline",
    "every": "collector.tracing.schedule",
    "listen": "collector.tracing.listener",
    "load": "collector.formats.loading",
    "load_ipython_extension": "collector.tracing.cell_magic",
    "merge": "collector.merging.merged_trace",
    "record": "collector.tracing.recorder",
    "schedule": "collector.tracing.schedule",
    "trace": "collector.tracing.trace",
}
"""Public name -> the module that is imported at its first use."""
_MODULES = {"adapters": "collector.adapters", "analysis": "collector.analysis", "nvtx": "collector.tracing.nvtx"}
"""Public module -> its full name."""

__all__ = [
    "CollectorError",
    "CollectorWarning",
    "CuptiCallError",
    "CuptiNotFoundError",
    "CuptiUnusableError",
    "DriverNotFoundError",
    "InvalidFileError",
    "Ledger",
    "MissingDependencyError",
    "NotTracedError",
    "OutputError",
    "PermissionDeniedError",
    "Recorder",
    "Recording",
    "Session",
    "SessionActiveError",
    "SubscriberConflictError",
    "Timeline",
    "TraceOptions",
    "UnavailableError",
    "UnknownFormatError",
    "adapters",
    "analysis",
    "annotate",
    "chrome_trace",
    "every",
    "listen",
    "load",
    "merge",
    "nvtx",
    "record",
    "schedule",
    "trace",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from collector.version import version

        return version()
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name not in _LAZY:
        raise AttributeError(f"module 'collector' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_MODULES, "__version__"})


def _is_on(variable: str) -> bool:
    """Whether an environment variable is set to anything but 0, false, no, off or an empty text."""
    return os.environ.get(variable, "").strip().lower() not in ("", "0", "false", "no", "off")


if _is_on("COLLECTOR_NVTX"):
    importlib.import_module("collector.tracing.nvtx").arm()

if _is_on("COLLECTOR_LISTEN"):
    importlib.import_module("collector.tracing.listener").listen_as_asked()

if os.environ.get("COLLECTOR_RUN_FOLDER"):
    importlib.import_module("collector.tracing.recorded_process").send_annotations_to_run()
