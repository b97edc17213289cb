"""The examples of docs/profiler.md for PyTorch and Keras, run where these are installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("collector._native", reason="the native extension is not built")

IMPORTS = """
```python
from pathlib import Path
from collector import profiler
from collector.profiler import adapters
```
"""


@pytest.fixture(scope="module")
def docs(root: Path) -> ModuleType:
    """The module that runs the other examples."""
    spec = importlib.util.spec_from_file_location("run_docs", root / "tests" / "repository" / "test_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(("framework", "package"), [("PyTorch", "torch"), ("Keras", "keras")])
def test_an_example_happens(framework: str, package: str, root: Path, docs: ModuleType, tmp_path: Path) -> None:
    backends = [name for name in ("tensorflow", "torch") if find_spec(name)]
    if find_spec(package) is None or not backends:
        pytest.skip(f"THE EXAMPLE FOR {framework.upper()} WAS NOT RUN: {package} is not installed, or has no backend")
    (example,) = [
        block for block in docs.blocks(root / "docs" / "profiler.md") if block.skipped == f"needs {framework}"
    ]
    page = tmp_path / "page.md"
    page.write_text(f"{IMPORTS}\n```{example.language}\n{example.text}```\n")
    done = subprocess.run(
        [sys.executable, "-c", docs.script_of(page)],
        cwd=tmp_path,
        env={"KERAS_BACKEND": backends[0]} | os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
