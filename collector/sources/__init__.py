"""The sources of activity records.

A source records the activities of the GPU between ``start`` and ``stop`` and returns a
`collector.recording.capture.Capture`. To add a source: one module in this package with a class that implements
`Source`, and its name in `_SOURCES`.
"""

from __future__ import annotations

import importlib
import importlib.util

from collector.options import Source

__all__ = ["SOURCE_NAMES", "Source", "open_source"]

_SOURCES = {
    "native": ("collector.sources.native", "NativeSource"),
    "cupti-python": ("collector.sources.cupti_python", "CuptiPythonSource"),
}

SOURCE_NAMES = ("auto", *_SOURCES)
"""The names that ``trace(source=...)`` accepts; it also accepts a `Source` object."""


def open_source(name: str) -> Source:
    """Return the source called ``name``; ``auto`` is native, or cupti-python if the extension cannot be loaded.

    Raises:
        ValueError: no source has that name.
        collector.UnavailableError: the source's own code cannot be imported.
    """
    if name == "auto":
        from collector.sources.native import extension_error

        # If both are missing, the extension's error is raised, because it contains the remedy.
        instead = extension_error() is not None and importlib.util.find_spec("cupti") is not None
        name = "cupti-python" if instead else "native"
    if name not in _SOURCES:
        raise ValueError(f"unknown source {name!r}: choose one of {', '.join(SOURCE_NAMES)}")
    module, attribute = _SOURCES[name]
    source: Source = getattr(importlib.import_module(module), attribute)()
    return source
