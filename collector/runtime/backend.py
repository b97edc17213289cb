"""The native converters, where it can be loaded."""

from __future__ import annotations

from functools import cache
from types import ModuleType

from collector.runtime.interpreters import is_main_interpreter


@cache
def native() -> ModuleType | None:
    """The extension module ``collector._convert``, or None where it was not built or cannot be loaded here.

    It needs no CUDA library. Everything works without it, only slower.
    """
    if not is_main_interpreter():
        return None
    try:
        from collector import _convert
    except ImportError:
        return None
    module: ModuleType = _convert
    return module
