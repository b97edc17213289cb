"""TensorFlow's users change one import line: the same program with TensorFlow's own profiler, and with ours."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from programs import results_of

if find_spec("tensorflow") is None:
    pytest.skip("NOTHING WAS HELD AGAINST TENSORFLOW ITSELF: it is not installed", allow_module_level=True)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def same() -> dict[str, Any]:
    """Of every use, whether what is printed and what is returned is TensorFlow's, and whether that is anything."""
    return results_of("tensorflow_runs.py")


def test_every_use_gives_what_tensorflow_gives(same):
    uses = {name: found for name, found in same.items() if name not in ("timelines", "names that are missing")}
    assert len(uses) == 23
    assert [name for name, found in uses.items() if found != [True, True, True]] == []


def test_every_name_is_there(same):
    assert same["names that are missing"] == []


def test_timelines_are_the_same(same):
    assert same["timelines"] == [True] * 4
