"""How many examples a run tries of each property: a fifth of them where it leaves the slow tests out."""

from __future__ import annotations

import hypothesis

QUICK_SHARE = 5
_ALL = 100

# The time of an example depends on the machine.
hypothesis.settings.register_profile("all", deadline=None, max_examples=_ALL)
hypothesis.settings.register_profile("quick", deadline=None, max_examples=_ALL // QUICK_SHARE)


def choose_examples(*, slow: bool) -> None:
    """Load the profile of a run, which must happen before the tests are imported.

    Args:
        slow: whether the run includes the slow tests.
    """
    hypothesis.settings.load_profile("all" if slow else "quick")


def examples(number: int) -> int:
    """The number of examples of a property for which 100 are too few or too many: ``number`` in a run of all tests."""
    return max(1, number * hypothesis.settings().max_examples // _ALL)
