"""The kinds of files that are drawn slice by slice, each by its own TraceVisitor.

To add one: a TraceWriter in ``native/write``, its line in ``native/write/trace_writers.cpp``, and a line here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from collector.timeline.perfetto import is_perfetto_trace

Write = Callable[[Any], object]
"""Takes the file's bytes piece by piece: bytes, or a memoryview that is valid only during the call."""


@dataclass(frozen=True)
class DrawnFile:
    """A kind of drawn file."""

    writer: str
    """The native writer's name."""
    suffix: str
    """In lower case; with an additional ``.gz`` the file is compressed."""
    name: str
    family: str
    """The plural of the name."""
    recognise: Callable[[bytes], bool] | None = None
    """Whether a file with these first bytes is of this kind, for kinds that cannot be read back."""

    @property
    def suffixes(self) -> tuple[str, str]:
        """The suffix, and that of a compressed file."""
        return self.suffix, f"{self.suffix}.gz"


CHROME = DrawnFile("chrome", ".json", "Chrome trace", "Chrome traces")
DRAWN_FILES = (
    CHROME,
    DrawnFile("perfetto", ".pftrace", "Perfetto trace", "Perfetto traces", is_perfetto_trace),
)


def drawn_file(name: str) -> DrawnFile | None:
    """The kind of file for a name's suffix; None if there is none."""
    plain = name.lower().removesuffix(".gz")
    return next((each for each in DRAWN_FILES if plain.endswith(each.suffix)), None)
