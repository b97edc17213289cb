"""The C++ extension ``collector._convert``, which everything that reads, draws or merges steps needs."""

from __future__ import annotations

from functools import cache
from types import ModuleType

from collector.errors import MissingDependencyError
from collector.runtime.interpreters import is_main_interpreter


@cache
def convert_extension() -> ModuleType:
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
            "Install cupti-collector again with pip, with a C++ compiler at hand where there is no wheel",
        ) from error
    module: ModuleType = _convert
    return module
