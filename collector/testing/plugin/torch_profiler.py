"""PyTorch's profiler and our tracer alternate: CUPTI serves one of them at a time.

If a test first used ``torch.profiler`` inside our trace, it would record no GPU activity for the rest of the process.
Our trace therefore pauses from the time when PyTorch prepares its profiler until it has finished.
"""

from __future__ import annotations

import sys
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collector.testing.plugin.background_tracing import Tracing

REASON = "PyTorch's profiler held CUPTI for a part of the test"
_MODULE = "torch.autograd.profiler"


class TakeTurns:
    """Makes ``tracing`` pause for PyTorch's profiler, once PyTorch is loaded, until `undo`."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self._replaced: list[tuple[Any, str, Any]] = []

    def arrange(self) -> None:
        """Install the hooks, if PyTorch is loaded and they are not installed yet."""
        module = sys.modules.get(_MODULE)
        if module is None or self._replaced:
            return
        prepare, disable = getattr(module, "_prepare_profiler", None), getattr(module, "_disable_profiler", None)
        if prepare is None or disable is None:
            return

        @wraps(prepare)
        def pause_and_prepare(*args: Any, **kwargs: Any) -> Any:
            self._tracing.pause(REASON)
            return prepare(*args, **kwargs)

        @wraps(disable)
        def disable_and_resume(*args: Any, **kwargs: Any) -> Any:
            try:
                return disable(*args, **kwargs)
            finally:
                self._tracing.resume()

        for name, original, ours in (
            ("_prepare_profiler", prepare, pause_and_prepare),
            ("_disable_profiler", disable, disable_and_resume),
        ):
            setattr(module, name, ours)
            self._replaced.append((module, name, original))

    def undo(self) -> None:
        """Restore PyTorch's own functions."""
        while self._replaced:
            setattr(*self._replaced.pop())
