"""Errors of benchmarking."""

from __future__ import annotations

from collector.errors import CollectorError


class BenchmarkError(CollectorError):
    """The comparison as a whole cannot be made."""


class ArmError(CollectorError):
    """One arm cannot be measured; the others are."""

    def __init__(self, arm: str, cause: str, remedy: str = "") -> None:
        """Name the arm and what is wrong with it."""
        self.arm = arm
        """The arm's name."""
        super().__init__(f"arm {arm!r}: {cause}", remedy)
