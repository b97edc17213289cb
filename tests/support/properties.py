"""How many examples a run tries of each property: fewer where it leaves tests out, by their marker."""

from __future__ import annotations

import re

import hypothesis

_ALL = 100
_WITHOUT = {"slow": 20, "exhaustive": 40}
"""Marker of tests that a run leaves out -> its examples of a property."""

# The time of an example depends on the machine.
hypothesis.settings.register_profile("all", deadline=None, max_examples=_ALL)
for _marker, _number in _WITHOUT.items():
    hypothesis.settings.register_profile(_marker, deadline=None, max_examples=_number)


def choose_examples(markers: str) -> None:
    """Load the profile of a run, which must happen before the tests are imported.

    Args:
        markers: the run's expression of markers (`-m`).
    """
    left_out = [marker for marker in _WITHOUT if re.search(rf"\bnot\b.*\b{marker}\b", markers)]
    hypothesis.settings.load_profile(left_out[0] if left_out else "all")


def examples(number: int) -> int:
    """The number of examples of a property for which 100 are too few or too many: ``number`` in a run of all tests."""
    return max(1, number * hypothesis.settings().max_examples // _ALL)
