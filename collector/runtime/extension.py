"""The C++ extension ``collector._convert``, which is required for reading, drawing or merging steps."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from collector.errors import MissingDependencyError
from collector.runtime.interpreters import is_main_interpreter

if TYPE_CHECKING:
    from types import ModuleType

    from collector import _convert as convert_extension

__all__ = ["convert_extension", "load_extension"]


@cache
def load_extension() -> ModuleType:
    """Return the extension module ``collector._convert``. It needs no CUDA library.

    Raises:
        collector.MissingDependencyError: it was not built, or cannot be loaded here.
    """
    if not is_main_interpreter():
        raise MissingDependencyError(
            "steps are read and drawn in the main interpreter of a process, and this is a sub-interpreter",
            "Do this work there, or in a process of its own",
        )
    try:
        from collector import _convert
    except ImportError as error:
        raise MissingDependencyError(
            f"the extension collector._convert cannot be loaded ({error})",
            "Install cupti-collector again with pip, with a C++ compiler if there is no wheel",
        ) from error
    return _convert


if not TYPE_CHECKING:

    class _Extension:
        """The extension's functions and classes; it is loaded at the first access."""

        def __getattr__(self, name: str) -> object:
            return getattr(load_extension(), name)

    convert_extension = _Extension()
