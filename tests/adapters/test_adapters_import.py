"""The adapters without any framework."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import textwrap

import pytest

from collector import adapters
from collector.adapters.recorded_frameworks import ADAPTERS


def test_importing_the_adapters_imports_no_framework():
    code = """
        import json, sys, collector
        names = collector.adapters.__all__
        assert set(names) <= set(dir(collector.adapters))
        print(json.dumps(sorted({"torch", "keras", "tensorflow", "triton", "numpy"} & set(sys.modules))))
    """
    program = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_an_adapter_that_does_not_exist_is_no_attribute():
    with pytest.raises(AttributeError, match="annotate_everything"):
        _ = adapters.annotate_everything


def test_every_adapter_says_what_it_names():
    assert all(getattr(adapters, name).__doc__ for name in adapters.__all__)


def test_the_frameworks_that_are_awaited_at_the_start_are_those_that_have_an_adapter(root):
    start = ast.parse((root / "collector/adapters/python_startup/sitecustomize.py").read_text())
    assigned = {ast.unparse(each.targets[0]): each.value for each in start.body if isinstance(each, ast.Assign)}
    assert ast.literal_eval(assigned["FRAMEWORKS"]) == tuple(ADAPTERS)
