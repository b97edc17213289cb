"""StepStats in, a Chrome trace out.

``Timeline`` gives TensorFlow's own answer to the byte, for those who change one import line and nothing else:

>>> from collector.timeline import Timeline
>>> text = Timeline(run_metadata.step_stats).generate_chrome_trace_format(show_memory=True)  # doctest: +SKIP

What draws is imported when it is first used: the list of formats, which every command needs, is in this package too.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collector.timeline.drawing import Drawn, View, chrome_trace, write_trace
    from collector.timeline.tensorflow import ChromeTrace, StepStatsAnalysis, Timeline
    from collector.timeline.tensorflow_rules import AllocationMaximum

_LAZY = {
    "AllocationMaximum": "collector.timeline.tensorflow_rules",
    "ChromeTrace": "collector.timeline.tensorflow",
    "Drawn": "collector.timeline.drawing",
    "StepStatsAnalysis": "collector.timeline.tensorflow",
    "Timeline": "collector.timeline.tensorflow",
    "View": "collector.timeline.drawing",
    "chrome_trace": "collector.timeline.drawing",
    "write_trace": "collector.timeline.drawing",
}
"""Public name -> the module it is imported from at its first use."""

__all__ = [
    "AllocationMaximum",
    "ChromeTrace",
    "Drawn",
    "StepStatsAnalysis",
    "Timeline",
    "View",
    "chrome_trace",
    "write_trace",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'collector.timeline' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
