"""Runs of pytest inside a test, with the plugin registered as by an installed package."""

from __future__ import annotations

import gc
import importlib
import json
import pkgutil
import re
import sys

import pytest

import collector.testing.plugin

# Without the plugins of Hypothesis and AnyIO, whose imports take longer than a run.
INI = """
[pytest]
addopts = --strict-markers --strict-config -p no:cacheprovider -p no:benchmark -p no:hypothesispytest -p no:anyio
filterwarnings =
    error
    ignore:Module already imported so cannot be rewritten:pytest.PytestAssertRewriteWarning
"""

needs_lines = pytest.mark.skipif(
    sys.version_info < (3, 12) and sys.gettrace() is not None,
    reason="beside a coverage tool the plugin notes no lines before Python 3.12",
)

# A run in this process drops its imports, and numpy can be imported only once: so all is imported before.
for module in pkgutil.iter_modules(collector.testing.plugin.__path__):
    importlib.import_module(f"collector.testing.plugin.{module.name}")
for name in ("collector._native", "collector.testing", "collector.timeline", "rich.table", "rich.box"):
    importlib.import_module(name)


def run(pytester, source, *arguments, ini=INI, file="test_step.py", apart=False):
    """Write ``source`` as a test file (None: leave the files unchanged), run pytest, return its result.

    The run is in this process unless it is ``apart``, for runs that end or change their process, or need a fresh one.
    (The simulator stays the one that was last opened in a process, also for a run that opens none.) The leak check
    collects garbage around each test, and would each time search all objects that this process has made.
    """
    if source is not None:
        (pytester.path / file).write_text(source)
    (pytester.path / "pytest.ini").write_text(ini)
    if apart:
        return pytester.runpytest_subprocess(*arguments)
    gc.collect()
    gc.freeze()
    return pytester.runpytest_inprocess(*arguments)


def report_of(pytester, name="out.json"):
    """The run's GPU report, its tests by the part of their node id after ``::``."""
    report = json.loads((pytester.path / name).read_text())
    return report, {test["nodeid"].partition("::")[2]: test for test in report["tests"]}


def without_times(text):
    """The output without the parts that differ between runs."""
    return re.sub(r"in \d+\.\d+s", "in 1.00s", text)
