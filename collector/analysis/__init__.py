"""Questions about steps, each answered by one function with an `Answer`.

>>> import collector
>>> from collector import analysis
>>> step = collector.load("step.pb")  # doctest: +SKIP
>>> print(analysis.idle(step))  # doctest: +SKIP

There is one module per question. Each question takes a recording, a loaded step, an ended session, or a list of them.
"""

from collector.analysis.annotation_times import annotation_times
from collector.analysis.answer import Answer, Column, Window
from collector.analysis.api_calls import calls
from collector.analysis.backward import backward
from collector.analysis.between import between
from collector.analysis.busy_time import devices
from collector.analysis.code_loading import code_loading
from collector.analysis.compare import compare
from collector.analysis.concurrency import concurrency
from collector.analysis.copies import copies
from collector.analysis.critical_path import critical_path
from collector.analysis.graphs import graphs
from collector.analysis.idle import idle, idle_gaps, idle_ops
from collector.analysis.kernels import kernels
from collector.analysis.launches import launch_delays, launches
from collector.analysis.memory import memory
from collector.analysis.memory_growth import memory_growth
from collector.analysis.occupancy import occupancy
from collector.analysis.ops import ops
from collector.analysis.overlap import overlap
from collector.analysis.queue_depth import queue
from collector.analysis.ranks import ranks
from collector.analysis.record_counts import ledger
from collector.analysis.steps import steps
from collector.analysis.streams import streams
from collector.analysis.tensor_cores import tensor_cores
from collector.analysis.tracing_cost import tracing_cost

__all__ = [
    "Answer",
    "Column",
    "Window",
    "annotation_times",
    "backward",
    "between",
    "calls",
    "code_loading",
    "compare",
    "concurrency",
    "copies",
    "critical_path",
    "devices",
    "graphs",
    "idle",
    "idle_gaps",
    "idle_ops",
    "kernels",
    "launch_delays",
    "launches",
    "ledger",
    "memory",
    "memory_growth",
    "occupancy",
    "ops",
    "overlap",
    "queue",
    "ranks",
    "steps",
    "streams",
    "tensor_cores",
    "tracing_cost",
]
