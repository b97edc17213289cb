"""The time limit of tests stands in one place and leaves room for slow machines."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PROCESSES = {"run", "call", "check_call", "check_output", "communicate", "runpytest_subprocess", "spawn"}
WAITS = {"wait", "join"}
PROCESS_S, WAIT_S = 600, 60
MAY_LIMIT = re.compile(r"\btimeout\s*=|\b(wait|join)\(\s*\d")
"""What a file holds in which the search for limits can find one."""


def narrow_limits(path: Path) -> list[str]:
    """Where a file of tests gives a process, or something that is waited for, little time."""
    found = []
    text = path.read_text()
    if not MAY_LIMIT.search(text):
        return []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Attribute, ast.Name)):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        given = [word.value for word in node.keywords if word.arg == "timeout" and name in PROCESSES | WAITS]
        given += node.args[:1] if name in WAITS else []
        least = PROCESS_S if name in PROCESSES else WAIT_S
        # A fraction of a second is a pause.
        seconds = [value.value for value in given if isinstance(value, ast.Constant) and isinstance(value.value, int)]
        found += [f"{path.name}:{node.lineno}" for limit in seconds if limit < least]
    return found


@pytest.mark.medium
def test_no_process_or_thread_that_a_test_starts_has_a_narrow_limit(root):
    found = sorted(where for path in (root / "tests").rglob("*.py") for where in narrow_limits(path))
    assert found == [], "leave the limit to pytest's own, which is in pyproject.toml"


def test_pytest_ends_what_hangs_and_leaves_time_to_slow_machines(pytestconfig):
    if not pytestconfig.pluginmanager.hasplugin("timeout"):
        pytest.skip("pytest-timeout is not installed")
    assert int(pytestconfig.getini("timeout")) >= 1800
