"""The rooms of the package import in one direction, and no two modules share a name."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import collector

PACKAGE = Path(collector.__file__).parent

ORDER = (
    ("files", "text", "runtime", "protos", "errors", "checked_arguments", "version", "_convert", "_native"),
    ("recording", "options"),
    ("sources",),
    ("stepstats",),
    ("timeline",),
    ("formats",),
    ("merging",),
    ("statistics",),
    ("analysis",),
    ("dataset",),
    ("tracing",),
    ("launching",),
    ("testing", "testing.simulator"),
    ("profiler",),
    ("adapters",),
    ("bench",),
    ("web",),
    ("testing.plugin",),
    ("demo",),
    ("cli",),
    ("", "__main__"),
)
"""The rooms of docs/architecture.md; a room imports from itself, from its own row and from rows above it."""

ROW = {room: row for row, rooms in enumerate(ORDER) for room in rooms}

WAY_UP = "runtime.later_modules"
"""The one table of functions that are looked up in later modules by name."""


@cache
def modules() -> dict[str, Path]:
    """Every module by its name within the package; a package by its own name; ``""`` is the package itself."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def room_of(module: str) -> str:
    first, _, rest = module.partition(".")
    return f"testing.{rest.partition('.')[0]}" if first == "testing" and rest else first


@cache
def imports() -> dict[str, dict[str, int]]:
    """Module -> the modules that it imports, anywhere in it, also for type checkers alone, with the line."""
    return {module: _imports_of(path) for module, path in modules().items() if not module.startswith("protos.")}


def _imports_of(path: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                _note(found, alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: a relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                is_module = inner.removeprefix("collector.") in {*modules(), "_convert", "_native"}
                _note(found, inner if is_module else str(node.module), node.lineno)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            name = node.value.removeprefix("collector.")  # a name given to importlib; loggers have those of packages
            if name != node.value and name in modules() and modules()[name].name != "__init__.py":
                _note(found, node.value, node.lineno)
    return found


def _note(found: dict[str, int], name: str, line: int) -> None:
    if name == "collector" or name.startswith("collector."):
        found.setdefault(name.removeprefix("collector").removeprefix("."), line)


def test_every_module_stands_in_a_room():
    assert not [module for module in modules() if room_of(module) not in ROW]


@pytest.mark.medium
def test_rooms_import_only_from_the_rooms_before_them():
    upward = [
        f"{module}:{line} imports {imported}"
        for module, found in imports().items()
        if module != WAY_UP
        for imported, line in found.items()
        if ROW[room_of(imported)] > ROW[room_of(module)]
    ]
    assert not upward


def test_no_modules_import_each_other():
    rest = {
        module: {name for name in found if name != module and name in imports()} for module, found in imports().items()
    }
    del rest[WAY_UP]
    while free := [module for module, found in rest.items() if not found & rest.keys()]:
        for module in free:
            del rest[module]
    circle = {module: sorted(found & rest.keys()) for module, found in rest.items()}
    assert not circle


def test_no_two_modules_have_one_name():
    places = defaultdict(list)
    for module, path in modules().items():
        if path.name != "__init__.py" and room_of(module) != "cli":
            places[path.stem].append(module)
    assert not {name: found for name, found in places.items() if len(found) > 1}


@pytest.mark.medium
def test_no_module_imports_the_private_names_of_another():
    private = [
        f"{module}:{node.lineno} imports {node.module}.{alias.name}: give it a public name"
        for module, path in modules().items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).removeprefix("collector.") in modules()
        for alias in node.names
        if alias.name.startswith("_") and f"{node.module}.{alias.name}".removeprefix("collector.") not in modules()
    ]
    assert not private
