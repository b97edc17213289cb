"""The words of Triton's profiler Proton: frames of call paths, and names of metrics."""

from __future__ import annotations

import re

from collector.formats.chrome_events import text

ROOT = "ROOT"
"""The first frame of every path: not a frame of the program but the profile itself."""
FLOPS = re.compile(r"flops[0-9]{0,3}")
"""The names of the metrics of operations: ``flops``, and ``flops16`` for those of 16 bits."""
_PLACE = re.compile(r"(?:/|[A-Za-z]:\\)(?:.*[/\\])?([^/\\]+:[^/\\@]+@.+)", re.DOTALL)
"""A frame of Python, ``/home/someone/model.py:12@forward``, of which the folder is left out."""


def frame_name(written: str) -> str:
    """The name of a frame, without folders of the machine that recorded it."""
    place = _PLACE.fullmatch(written)
    return text(place[1] if place else written)
