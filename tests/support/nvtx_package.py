"""The package ``nvtx``, whose name the folder tests/nvtx has too."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution

import pytest


def require_nvtx_package() -> None:
    """Skip the test where the package is not installed."""
    try:
        distribution("nvtx")
    except PackageNotFoundError:
        pytest.skip("THE PACKAGE NVTX WAS NOT TRIED: it is not installed")
