"""The folders of the module path in which NVIDIA's wheels are searched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from collector.sources.native import search_roots


@pytest.mark.parametrize(
    "entry", ["x" * 300, "a\0b", b"bytes", 7, Path("/tmp"), None], ids=["long", "NUL", "bytes", "int", "Path", "None"]
)
def test_an_entry_that_names_no_folder_is_left_out(monkeypatch, entry):
    """Python ignores it in imports, too."""
    before = search_roots()
    monkeypatch.setattr(sys, "path", [entry, *sys.path])
    assert search_roots() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="ONLY ROOT CAN BECOME ANOTHER USER")
@pytest.mark.medium
def test_a_folder_that_the_user_may_not_enter_is_left_out(tmp_path):
    """As of a service that gives up its rights after its imports."""
    program = """
import os, sys
from collector.sources.native import search_roots
before = search_roots()
os.mkdir("closed", 0o700)
sys.path.insert(0, os.path.abspath("closed"))
os.setresuid(65534, 65534, 65534)
assert set(search_roots()) <= set(before)
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
