"""The reference of the documentation site names everything that is public."""

from __future__ import annotations

import importlib
import re
import types
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PUBLIC = {
    "collector": "collector",
    "collector.adapters": "collector.adapters",
    "collector.analysis": "collector.analysis",
    "collector.bench": "collector.bench",
    "collector.dataset": "collector.dataset",
    "collector.nvtx": "collector.tracing.nvtx",
    "collector.profiler": "collector.profiler",
    "collector.testing": "collector.testing",
}
"""Public module -> the module that is imported for it."""


def documented(root: Path) -> set[str]:
    """The full names of what the directives of autodoc in the reference document."""
    names: set[str] = set()
    for page in (root / "docs" / "reference").glob("*.md"):
        for kind, name, options in re.findall(
            r"^\.\. auto(\w+):: (\S+)\n((?: +:.*\n)*)", page.read_text(), re.MULTILINE
        ):
            names.add(name)
            if kind == "module" and ":members:" in options:
                module = importlib.import_module(name)
                # Autodoc sees what `dir` lists, and of it what `__all__` names.
                names |= {f"{name}.{each}" for each in set(module.__all__) & set(dir(module))}
    return names


@pytest.mark.parametrize("name", PUBLIC)
def test_each_public_name_is_in_the_reference(root, name):
    module = importlib.import_module(PUBLIC[name])
    listed = documented(root)
    missing = [
        each
        for each in module.__all__
        if f"{name}.{each}" not in listed and not isinstance(getattr(module, each), types.ModuleType)
    ]
    assert missing == []


def test_each_public_module_is_in_the_reference(root):
    import collector

    modules = {
        f"collector.{each}" for each in collector.__all__ if isinstance(getattr(collector, each), types.ModuleType)
    }
    assert modules <= set(PUBLIC)
    for name in PUBLIC:
        assert any(each == name or each.startswith(f"{name}.") for each in documented(root))
