"""Code that runs on a card alone uses what exists: tests, questions and benchmarks, and the programs in their texts.

A function that moves, or a parameter with a new name, would else be noticed when a card is there.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

CHECKED = ("attr-defined", "call-arg", "call-overload", "name-defined", "import-not-found", "import-untyped")
"""The kinds of mypy's errors that are failures here: the code is not typed."""
SETTINGS = """
[mypy]
check_untyped_defs = True
disable_error_code = annotation-unchecked
explicit_package_bases = True
ignore_missing_imports = True
mypy_path = {path}

[mypy-collector.*]
ignore_missing_imports = False

[mypy-cuda.*,cupti.*,cupy.*,jax.*,nvtx.*,torch.*,triton.*]
follow_imports = skip
"""
"""Packages that this machine need not have are not looked into where it has them."""
FOLDERS = (
    "scripts", "scripts/card", "tests", "tests/gpu", "tests/support", "tests/repository", "benchmarks", "examples",
)  # fmt: skip
"""Folders from which modules are imported by their names alone."""
GIVEN = "_given"
"""The name, of no type, that stands for what a program's text is completed with."""


class _Given:
    def __format__(self, form: str) -> str:
        return GIVEN

    def __repr__(self) -> str:
        return GIVEN


def _joins(node: ast.AST) -> bool:
    """Whether an expression makes a text of others, or asks for the method that does."""
    return isinstance(node, (ast.BinOp, ast.JoinedStr)) or (isinstance(node, ast.Attribute) and node.attr == "format")


class _Programs(ast.NodeVisitor):
    """The texts in a file that are programs with imports of ours, as far as they are complete.

    A text is a literal, a sum of texts, an f-string, or a text that `str.format` completes.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.named: dict[str, str] = {}
        self.found: dict[int, str] = {}
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                text = self.text_of(statement.value)
                if text is not None:
                    self.named[statement.targets[0].id] = text
        parts = {
            name.id for node in ast.walk(tree) if _joins(node) for name in ast.walk(node) if isinstance(name, ast.Name)
        }
        for statement in tree.body:
            if not (isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") in parts):
                self.visit(statement)

    def text_of(self, node: ast.expr) -> str | None:
        """The text that an expression is, if it is one."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Name):
            return self.named.get(node.id)
        if isinstance(node, ast.JoinedStr):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else GIVEN for part in node.values)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            texts = self.text_of(node.left), self.text_of(node.right)
            return None if None in texts else "".join(map(str, texts))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            template = self.text_of(node.func.value)
            given: defaultdict[Any, _Given] = defaultdict(_Given)
            return None if template is None else Formatter().vformat(template, given, given)  # type: ignore[arg-type]
        return None

    def visit(self, node: ast.AST) -> None:
        """Take the largest texts."""
        text = self.text_of(node) if isinstance(node, ast.expr) else None
        if text is None:
            self.generic_visit(node)
        elif re.search(r"^\s*(import|from) (collector|cuda_program)\b", text, re.MULTILINE):
            self.found[node.lineno] = text  # type: ignore[attr-defined]


def sources(root: Path) -> list[Path]:
    """The files with code for a card."""
    scripts = [root / "scripts" / name for name in ("gpu_report.py", "gpu_questions.py")]
    folders = (root / "tests" / "gpu", root / "scripts" / "card", root / "benchmarks")
    return [*scripts, *(path for folder in folders for path in sorted(folder.glob("*.py")))]


def names_without_meaning(root: Path, files: list[Path], folder: Path) -> list[str]:
    """What files, and the programs in their texts, use that does not exist."""
    api = pytest.importorskip("mypy.api")
    programs = folder / "programs"
    programs.mkdir()
    for path in files:
        for line, text in _Programs(ast.parse(path.read_text())).found.items():
            ast.parse(text, f"{path}:{line}")
            begin = f"from typing import Any\n{GIVEN}: Any = None\n"
            (programs / f"text_{path.stem}_{line}.py").write_text(begin + text)
    searched = [root, programs, *(root / name for name in FOLDERS)]
    settings = folder / "mypy.ini"
    settings.write_text(SETTINGS.format(path=":".join(map(str, searched))))
    options = ["--config-file", str(settings), "--cache-dir", str(folder / "cache"), "--no-error-summary"]
    printed, errors, _ = api.run([*options, *map(str, files), *map(str, sorted(programs.glob("*.py")))])
    assert not errors
    return [line for line in printed.splitlines() if line.endswith(tuple(f"[{kind}]" for kind in CHECKED))]


@pytest.mark.slow
def test_code_for_a_card_uses_what_exists(root, tmp_path):
    found = names_without_meaning(root, sources(root), tmp_path)
    assert not found, "\n".join(found)


MOVED = """
from collector.demo import demo_step as demo

from collector.demo.demo_gpu import DemoGpu

def test_it(cuda, run):
    step, what = demo.run_demo(cuda.path)
    run(START + "print([each.bytes for each in step.recording.details])")
    run(OTHER.format(path=cuda.path))

START = '''
import collector
with collector.trace(strict=True) as step:
    pass
'''
OTHER = '''
import collector
collector.load({path!r}, strictly=True)
'''
"""


@pytest.mark.slow
def test_what_has_moved_is_found(root, tmp_path):
    file = tmp_path / "test_moved.py"
    file.write_text(MOVED)
    found = names_without_meaning(root, [file], tmp_path)
    assert len(found) == 4, "\n".join(found)
    for name in ("demo.demo_gpu", "run_demo", "strictly", "bytes"):
        assert sum(f'"{name}"' in line or f'.{name}"' in line for line in found) == 1, name
