"""Errors of benchmarking."""

from __future__ import annotations

from collector.errors import CollectorError


class BenchmarkError(CollectorError):
    """The whole comparison is impossible."""


class ArmError(CollectorError):
    """One arm cannot be measured; the others are still measured."""

    def __init__(self, arm: str, cause: str, remedy: str = "") -> None:
        """Store the arm's name with the cause and the remedy."""
        self.arm = arm
        """The arm's name."""
        super().__init__(f"arm {arm!r}: {cause}", remedy)
