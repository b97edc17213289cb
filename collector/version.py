"""The version of this package."""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache
def version() -> str:
    """The installed distribution's version; ``unknown`` if the package runs without installation."""
    try:
        return metadata.version("cupti-collector")
    except metadata.PackageNotFoundError:
        return "unknown"
