"""A cache with a bound on the bytes of its values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class SizedCache(Generic[Value]):
    """Drops the values that were not used for the longest time as soon as all values together exceed the bound."""

    def __init__(self, max_bytes: int, size: Callable[[Value], int]) -> None:
        """Make an empty cache.

        Args:
            max_bytes: the bound; the value that was added last is kept even if it is larger.
            size: the bytes of a value, asked again whenever a value is added.
        """
        self._max_bytes = max_bytes
        self._size = size
        self._values: OrderedDict[str, Value] = OrderedDict()

    def get(self, key: str) -> Value | None:
        """The value of a key, which counts as used now; None if it is not there."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def add(self, key: str, value: Value) -> None:
        """Keep a value, and forget others where they are too many."""
        self._values[key] = value
        self._values.move_to_end(key)
        while len(self._values) > 1 and self.num_bytes > self._max_bytes:
            self._values.popitem(last=False)

    def remove(self, key: str) -> None:
        """Forget a value."""
        self._values.pop(key, None)

    @property
    def num_bytes(self) -> int:
        """The bytes of all values."""
        return sum(map(self._size, self._values.values()))

    def __len__(self) -> int:
        return len(self._values)
