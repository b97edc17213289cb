"""Hooks of a framework that can be removed again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType


class InstalledHooks:
    """The hooks that an adapter installed. As a context manager it removes them at the end of the block."""

    def __init__(self, removals: Iterable[Callable[[], object]]) -> None:
        self._removals = list(removals)

    def remove(self) -> None:
        """Remove the hooks; a second call does nothing."""
        while self._removals:
            self._removals.pop()()

    def __enter__(self) -> InstalledHooks:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.remove()
