"""Errors of benchmarking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.errors import CollectorError

if TYPE_CHECKING:
    from collections.abc import Mapping


class BenchmarkError(CollectorError):
    """The whole comparison is impossible."""


class ArmError(CollectorError):
    """One arm cannot be measured; the others are still measured."""

    def __init__(self, arm: str, cause: str, remedy: str = "") -> None:
        """Store the arm's name with the cause and the remedy."""
        self.arm = arm
        """The arm's name."""
        super().__init__(f"arm {arm!r}: {cause}", remedy)


class BodyNotRunError(CollectorError):
    """A call of an arm did not run the body of its function."""


def no_arm_left(failures: Mapping[str, ArmError]) -> BenchmarkError:
    """The error with the reasons why no arm could be measured."""
    return BenchmarkError(f"no arm could be measured; {'; '.join(map(str, failures.values()))}")
