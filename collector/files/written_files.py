"""The message about a large file after it is written: its path, size, viewer, and a smaller alternative."""

from __future__ import annotations

import time
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING

from collector.text import terminal
from collector.text.quantities import size_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SAID_AFTER_S = 1.0
"""Nothing is reported about faster writes."""
_SMALLER = 5
"""The compression ratio from which on the message suggests ``.json.gz``."""
_SAMPLE_BYTES = 1 << 20
_OPENED_BY = {
    ".xplane.pb": "XProf or TensorBoard, which take the folder above plugins/profile",
    ".json": "https://ui.perfetto.dev or chrome://tracing",
    ".pftrace": "https://ui.perfetto.dev",
    ".pb": "collector prof",
    ".gpurec": "collector prof",
    ".html": "a browser",
}


@contextmanager
def written(path: Path, *, shown: bool = True, after_s: float | None = None) -> Iterator[None]:
    """Report a written file on standard error, if the block took long.

    Args:
        path: the file.
        shown: False: report nothing.
        after_s: the seconds that count as long; None: `SAID_AFTER_S`.
    """
    began = time.monotonic()
    yield
    if shown and time.monotonic() - began >= (SAID_AFTER_S if after_s is None else after_s):
        terminal.report(_sentence(path))


def opened_with(path: Path) -> str:
    """The program that opens a file, by its suffix; empty if none is known."""
    plain = path.name.lower().removesuffix(".gz")
    return next((how for suffix, how in _OPENED_BY.items() if plain.endswith(suffix)), "")


def _sentence(path: Path) -> str:
    num_bytes = path.stat().st_size
    name = path.name.lower()
    open_with = opened_with(path)
    text = f"{path}: {size_text(num_bytes)}" + (f"; open it with {open_with}" if open_with else "")
    if name.endswith(".json"):
        times = _compression(path, num_bytes)
        if times >= _SMALLER:
            text += f"; {path.name}.gz would be about {times:.0f} times smaller and opens in the same viewers"
    return text


def _compression(path: Path, num_bytes: int) -> float:
    """The compression ratio of a sample from the middle of a file."""
    with path.open("rb") as file:
        file.seek(max(num_bytes - _SAMPLE_BYTES, 0) // 2)
        sample = file.read(_SAMPLE_BYTES)
    return len(sample) / max(len(zlib.compress(sample, 6)), 1)
