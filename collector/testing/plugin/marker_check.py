"""The check of every collected test's markers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.testing.plugin.markers import MarkerError, read_markers
from collector.text.terminal import printable_lines

if TYPE_CHECKING:
    from collections.abc import Sequence


def sort_out(items: list[pytest.Item], ours: Sequence[pytest.Item]) -> bool:
    """Report and remove tests of ``ours`` with invalid markers; return whether any test of ``ours`` is left.

    Such a test becomes a collection error under its own name: pytest then runs no tests unless it is told to continue
    (``--continue-on-collection-errors``), and its exit status is not 0 in either case.
    """
    bad: set[pytest.Item] = set()
    for item in ours:
        try:
            read_markers(item)
        except MarkerError as error:
            bad.add(item)
            text = printable_lines(f"{item.nodeid}: {error}")
            report = pytest.CollectReport(nodeid=item.nodeid, outcome="failed", longrepr=text, result=[])
            item.ihook.pytest_collectreport(report=report)
    if bad:
        items[:] = [item for item in items if item not in bad]
    return len(ours) > len(bad)
