"""The stubs of the C++ extensions name the members of the modules with their parameters."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import collector

pytest.importorskip("collector._native", reason="the native extension is not built")

PACKAGE = Path(collector.__file__).parent
MODULES = ("_native", "_convert")
Parameters = list[tuple[str, str, object]]


def parameters(arguments: ast.arguments) -> Parameters:
    """(name, kind, default) of each parameter."""
    before = [*arguments.posonlyargs, *arguments.args]
    defaults = [*[None] * (len(before) - len(arguments.defaults)), *arguments.defaults]
    given = [("positional", *pair) for pair in zip(before, defaults, strict=True)]
    given += [("keyword", *pair) for pair in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    return [(arg.arg, kind, None if value is None else ast.literal_eval(value)) for kind, arg, value in given]


def documented(function: object) -> Parameters:
    """What pybind11 writes into the first line of a function's documentation."""
    line, *_ = (function.__doc__ or "").splitlines()
    definition = ast.parse(f"def {line}: ...").body[0]
    assert isinstance(definition, ast.FunctionDef)
    return parameters(definition.args)


def stub_of(module: str) -> dict[str, ast.stmt]:
    """Public definitions of a stub by name, but for the types of plain dictionaries, which the module does not have."""
    tree = ast.parse((PACKAGE / f"{module}.pyi").read_text())
    return {
        node.name: node
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        and not (isinstance(node, ast.ClassDef) and "TypedDict" in map(ast.unparse, node.bases))
    }


def public(names: object) -> set[str]:
    return {name for name in vars(names) if not name.startswith("_")}


@pytest.mark.parametrize("module", MODULES)
def test_a_stub_has_the_names_of_its_module(module: str) -> None:
    assert public(importlib.import_module(f"collector.{module}")) == set(stub_of(module))


@pytest.mark.parametrize("module", MODULES)
def test_a_stub_has_the_parameters_of_its_modules_functions(module: str) -> None:
    loaded = importlib.import_module(f"collector.{module}")
    functions = {name: node for name, node in stub_of(module).items() if isinstance(node, ast.FunctionDef)}
    stated = {name: parameters(node.args) for name, node in functions.items()}
    assert stated == {name: documented(getattr(loaded, name)) for name in functions}


@pytest.mark.parametrize("module", MODULES)
def test_a_stub_has_the_classes_of_its_module_with_their_methods(module: str) -> None:
    loaded = importlib.import_module(f"collector.{module}")
    for name, node in stub_of(module).items():
        if not isinstance(node, ast.ClassDef):
            continue
        real = getattr(loaded, name)
        assert inspect.isclass(real)
        assert {base.__name__ for base in real.__mro__} >= set(map(ast.unparse, node.bases))
        methods = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
        assert public(real) == {each for each in methods if not each.startswith("_")}
        for method, definition in methods.items():
            is_property = isinstance(getattr(real, method), property)
            assert is_property == (list(map(ast.unparse, definition.decorator_list)) == ["property"]), (
                f"{name}.{method}"
            )
            if is_property:
                continue  # pybind11 documents no type of it
            assert parameters(definition.args) == documented(getattr(real, method)), f"{name}.{method}"
