"""StepStats in, a Chrome trace out.

``Timeline`` gives TensorFlow's own answer to the byte, for those who change one import line and nothing else:

>>> from collector.timeline import Timeline
>>> text = Timeline(run_metadata.step_stats).generate_chrome_trace_format(show_memory=True)  # doctest: +SKIP
"""

from __future__ import annotations

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
