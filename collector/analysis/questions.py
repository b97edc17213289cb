"""All questions by name, for commands and pages, and their names in other tools.

To add a question: one module in this package with a function that `collector.analysis.named_question.named_question`
decorates, and a line here that imports the function.
"""

from __future__ import annotations

from collections.abc import Mapping

from collector.analysis.named_question import NAMED_QUESTIONS, NamedQuestion

# In the order of an overview. ``as`` makes each a public name of this module, and so of `collector.analysis`.
# isort: off
from collector.analysis.busy_time import devices as devices
from collector.analysis.concurrency import concurrency as concurrency
from collector.analysis.streams import streams as streams
from collector.analysis.overlap import overlap as overlap
from collector.analysis.idle import idle as idle
from collector.analysis.idle import idle_ops as idle_ops
from collector.analysis.idle import idle_gaps as idle_gaps
from collector.analysis.critical_path import critical_path as critical_path
from collector.analysis.kernels import kernels as kernels
from collector.analysis.ops import ops as ops
from collector.analysis.backward import backward as backward
from collector.analysis.copies import copies as copies
from collector.analysis.launches import launches as launches
from collector.analysis.queue_depth import queue as queue
from collector.analysis.launches import launch_delays as launch_delays
from collector.analysis.graphs import graphs as graphs
from collector.analysis.api_calls import calls as calls
from collector.analysis.annotation_times import annotation_times as annotation_times
from collector.analysis.memory import memory as memory
from collector.analysis.memory_growth import memory_growth as memory_growth
from collector.analysis.occupancy import occupancy as occupancy
from collector.analysis.tensor_cores import tensor_cores as tensor_cores
from collector.analysis.steps import steps as steps
from collector.analysis.code_loading import code_loading as code_loading
from collector.analysis.tracing_cost import tracing_cost as tracing_cost
from collector.analysis.record_counts import ledger as ledger
from collector.analysis.ranks import ranks as ranks

# isort: on

QUESTIONS: Mapping[str, NamedQuestion] = {
    name: NAMED_QUESTIONS[name] for name in list(globals()) if name in NAMED_QUESTIONS
}
"""Name -> question, in the order of an overview."""

ALIASES: Mapping[str, tuple[str, str]] = {
    alias: (name, by) for name, question in QUESTIONS.items() for alias, by in question.aliases.items()
}
"""Report of ``nsys stats`` or ``nsys analyze``, or analysis of HolisticTraceAnalysis -> the question that answers it,
and its value of ``by``."""

BY_ALONE: Mapping[str, tuple[str, str]] = {
    alone: (name, by) for name, question in QUESTIONS.items() for alone, by in question.by_alone.items()
}
"""Value of ``--by`` without a question -> the question that answers it, and its value of ``by``."""
