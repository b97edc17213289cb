"""Runs of pytest in a process of its own, with the plugin as an installed package brings it."""

from __future__ import annotations

import json
import re

INI = """
[pytest]
addopts = --strict-markers --strict-config -p no:cacheprovider -p no:benchmark
filterwarnings =
    error
    ignore:Module already imported so cannot be rewritten:pytest.PytestAssertRewriteWarning
"""


def run(pytester, source, *arguments, ini=INI, file="test_step.py"):
    """Write ``source`` as a test file (none: leave the files as they are), run pytest, return its result."""
    if source is not None:
        (pytester.path / file).write_text(source)
    (pytester.path / "pytest.ini").write_text(ini)
    return pytester.runpytest_subprocess(*arguments, timeout=120)


def report_of(pytester, name="out.json"):
    """The run's GPU report, its tests by the part of their node id after ``::``."""
    report = json.loads((pytester.path / name).read_text())
    return report, {test["nodeid"].partition("::")[2]: test for test in report["tests"]}


def without_times(text):
    """Output without what differs from run to run."""
    return re.sub(r"in \d+\.\d+s", "in 1.00s", text)
