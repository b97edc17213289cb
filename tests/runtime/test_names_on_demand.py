"""Packages whose public names are imported at their first use."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

PACKAGES = ["adapters", "bench", "profiler", "testing", "timeline"]


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_is_found_and_listed(name):
    package = importlib.import_module(f"collector.{name}")
    assert package.__all__ == sorted(package.__all__)
    assert set(package.__all__) <= set(dir(package))
    for each in package.__all__:
        assert getattr(package, each).__name__
    with pytest.raises(AttributeError, match=f"module 'collector.{name}' has no attribute 'nothing'"):
        package.nothing  # noqa: B018


@pytest.mark.parametrize("name", PACKAGES)
def test_no_name_is_missing_from_the_public_ones(name):
    """Nothing is found on demand that `__all__` does not have."""
    program = f"import collector.{name} as it; print(*sorted(set(dir(it)) - set(vars(it)) - set(it.__all__)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [], "add the names to __all__"
