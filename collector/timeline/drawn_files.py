"""The files that are drawn slice by slice, each by a TraceVisitor of its own: a line for each.

To add one: a TraceWriter in ``native/write``, its line in ``native/write/trace_writers.cpp``, and a line here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from collector.timeline.perfetto import is_perfetto_trace

Write = Callable[[Any], object]
"""Takes the file's bytes, piece by piece: bytes, or a memoryview that is valid during the call."""


@dataclass(frozen=True)
class DrawnFile:
    """A kind of file that is drawn."""

    writer: str
    """The native writer's name."""
    suffix: str
    """In lower case; the same with ``.gz`` is packed."""
    name: str
    family: str
    """The name of several such files."""
    recognise: Callable[[bytes], bool] | None = None
    """Whether a file's first bytes are those of one, where one is not read back."""

    @property
    def suffixes(self) -> tuple[str, str]:
        """The suffix, and that of a packed file."""
        return self.suffix, f"{self.suffix}.gz"


CHROME = DrawnFile("chrome", ".json", "Chrome trace", "Chrome traces")
DRAWN_FILES = (
    CHROME,
    DrawnFile("perfetto", ".pftrace", "Perfetto trace", "Perfetto traces", is_perfetto_trace),
)


def drawn_file(name: str) -> DrawnFile | None:
    """The kind of file that a name's suffix asks for; None for a suffix of none."""
    plain = name.lower().removesuffix(".gz")
    return next((each for each in DRAWN_FILES if plain.endswith(each.suffix)), None)
