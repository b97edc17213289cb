"""The version of this package."""

from __future__ import annotations

from functools import cache
from importlib import metadata

DISTRIBUTION = "cupti-collector"


@cache
def version() -> str:
    """The installed distribution's version; ``unknown`` if the package runs without installation."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "unknown"
