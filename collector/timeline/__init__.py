"""Converts StepStats to a Chrome trace.

``Timeline`` produces exactly TensorFlow's output, for programs that only change one import line:

>>> from collector.timeline import Timeline
>>> text = Timeline(run_metadata.step_stats).generate_chrome_trace_format(show_memory=True)  # doctest: +SKIP

The modules that draw are imported at their first use, because every command needs the list of formats in this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.runtime.names_on_demand import names_on_demand

if TYPE_CHECKING:
    from collector.timeline.drawing import Drawn, View, chrome_trace, write_trace
    from collector.timeline.tensorflow import ChromeTrace, StepStatsAnalysis, Timeline
    from collector.timeline.tensorflow_rules import AllocationMaximum

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

__getattr__, __dir__ = names_on_demand(
    __name__,
    {
        "AllocationMaximum": "collector.timeline.tensorflow_rules",
        "ChromeTrace": "collector.timeline.tensorflow",
        "Drawn": "collector.timeline.drawing",
        "StepStatsAnalysis": "collector.timeline.tensorflow",
        "Timeline": "collector.timeline.tensorflow",
        "View": "collector.timeline.drawing",
        "chrome_trace": "collector.timeline.drawing",
        "write_trace": "collector.timeline.drawing",
    },
)
