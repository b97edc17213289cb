"""Node ids of pytest's tests, by which files of tests are named."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def node_id(item: pytest.Item) -> str:
    """The node id of a test without the group that pytest-xdist adds (``--dist=loadgroup``, before pytest 9)."""
    return item.name if item.parent is None else f"{item.parent.nodeid}::{item.name}"
