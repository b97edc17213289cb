"""Python's garbage collection, kept away from what it would disturb."""

from __future__ import annotations

import contextlib
import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collect no garbage inside the block, or the function it decorates; afterwards collection is as it was.

    Collection looks for cycles whenever thousands of objects were made, over all there are: a third of the time that a
    tree of ten thousand nodes takes. Objects that nothing refers to any more are freed at once all the same.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
