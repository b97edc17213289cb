"""Making very many objects that all stay, without Python's garbage collector going over them again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collecting() -> Iterator[None]:
    """Puts the garbage collector off until the block, or the function it decorates, is done.

    It looks for cycles whenever thousands of objects were made, over all there are: a third of the time that a tree of
    ten thousand nodes takes. What is no longer used is still given back at once.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
