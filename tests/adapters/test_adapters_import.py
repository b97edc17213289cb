"""The adapters without any framework."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

from collector import adapters


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
