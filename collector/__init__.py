"""Trace what the GPU did in one step of a CUDA program.

>>> import collector
>>> with collector.trace("step.json") as step:
...     with collector.annotate("layer1/conv"):
...         launch_some_kernels()
>>> print(step.summary())

Importing this package is cheap: whatever needs numpy, protobuf or the native extension is imported when it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from collector.annotate import annotate
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

if TYPE_CHECKING:
    from collector.ledger import Ledger
    from collector.loading import load
    from collector.merging import merge
    from collector.options import TraceOptions
    from collector.recording import Recording
    from collector.session import Session, trace
    from collector.timeline import Timeline, chrome_trace

_LAZY = {
    "Ledger": "collector.ledger",
    "Recording": "collector.recording",
    "Session": "collector.session",
    "Timeline": "collector.timeline",
    "TraceOptions": "collector.options",
    "chrome_trace": "collector.timeline",
    "load": "collector.loading",
    "merge": "collector.merging",
    "trace": "collector.session",
}
"""Public name -> the module it is imported from at its first use."""

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
    "Recording",
    "Session",
    "SessionActiveError",
    "SubscriberConflictError",
    "Timeline",
    "TraceOptions",
    "UnavailableError",
    "UnknownFormatError",
    "annotate",
    "chrome_trace",
    "load",
    "merge",
    "trace",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from collector.about import version

        return version()
    if name not in _LAZY:
        raise AttributeError(f"module 'collector' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, "__version__"})
