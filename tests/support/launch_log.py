"""A source for `annotate` that remembers which annotation each launch was made under."""

from __future__ import annotations

import threading


class Log:
    """A source that keeps each thread's annotation stack and remembers what was launched under what."""

    def __init__(self) -> None:
        self._threads = threading.local()
        self.launched: list[tuple[str, str]] = []
        self.pushes = 0

    @property
    def stack(self) -> list[str]:
        if not hasattr(self._threads, "stack"):
            self._threads.stack = []
        return self._threads.stack

    def push_annotation(self, path: str, details: int = 0) -> None:
        self.pushes += 1
        self.stack.append(path)

    def pop_annotation(self) -> None:
        self.stack.pop()  # IndexError: more pops than pushes

    def launch(self, kernel: str) -> None:
        self.launched.append((kernel, self.stack[-1] if self.stack else ""))
