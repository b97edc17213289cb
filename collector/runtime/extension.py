"""The compiled parts: ``collector._convert``, which reads and draws steps, and the library that records them."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import MissingDependencyError
from collector.runtime.interpreters import is_main_interpreter

if TYPE_CHECKING:
    from types import ModuleType

    from collector import _convert as convert_extension

__all__ = ["capture_library", "convert_extension", "is_capture_library", "load_extension"]


INJECTION_VARIABLE = "CUDA_INJECTION64_PATH"
"""The variable that names the library of a tool, which libcuda loads."""


@cache
def load_extension() -> ModuleType:
    """Return the extension module ``collector._convert``. It needs no CUDA library.

    Raises:
        collector.MissingDependencyError: it was not built, or cannot be loaded here.
    """
    if not is_main_interpreter():
        raise MissingDependencyError(
            "steps are read and drawn in the main interpreter of a process, and this is a sub-interpreter",
            "Load steps there, or in a process of its own",
        )
    try:
        from collector import _convert
    except ImportError as error:
        raise MissingDependencyError(
            f"the extension collector._convert cannot be loaded ({error})",
            "Install cupti-collector again with pip, with a C++ compiler if there is no wheel",
        ) from error
    return _convert


def capture_library() -> Path | None:
    """The path of the library that records, which NVTX and the driver load; None: it is not installed."""
    extension = importlib.util.find_spec("collector._native")
    if extension is None or extension.origin is None:
        return None
    library = Path(extension.origin).with_name("libcollector_capture.so")
    return library if library.exists() else None


def is_capture_library(path: str) -> bool:
    """Whether ``path`` leads to `capture_library`, also under another name."""
    library = capture_library()
    try:
        return library is not None and library.samefile(path)
    except OSError:
        return False


if not TYPE_CHECKING:

    class _Extension:
        """The extension's functions and classes; it is loaded at the first access."""

        def __getattr__(self, name: str) -> object:
            return getattr(load_extension(), name)

    convert_extension = _Extension()
