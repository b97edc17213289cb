"""Optional packages, imported by the functions that need them."""

from __future__ import annotations

import importlib
from typing import Any

from collector.errors import MissingDependencyError, not_installed

_EXTRAS = {
    "pyarrow": "arrow",
    "pynvml": "counters",
    "duckdb": "sql",
    "scipy": "bench",
    "shtab": "completion",
    "starlette": "ui",
    "uvicorn": "ui",
}
"""Package -> our extra that contains it; users install other packages by their own name."""


def optional_package(name: str) -> Any:
    """Import a package, or a module of one, and return it.

    Raises:
        collector.MissingDependencyError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise MissingDependencyError(*not_installed(package, _EXTRAS.get(package, ""))) from error
