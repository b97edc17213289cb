"""All questions by name, for commands and pages: their options, and their names in other tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.analysis.annotation_times import QUESTIONS as ANNOTATION_TIMES_BY
from collector.analysis.annotation_times import annotation_times
from collector.analysis.api_calls import QUESTION as CALLS
from collector.analysis.api_calls import calls
from collector.analysis.backward import QUESTION as BACKWARD
from collector.analysis.backward import backward
from collector.analysis.busy_time import QUESTION as DEVICES
from collector.analysis.busy_time import devices
from collector.analysis.code_loading import QUESTION as CODE_LOADING
from collector.analysis.code_loading import code_loading
from collector.analysis.concurrency import QUESTION as CONCURRENCY
from collector.analysis.concurrency import concurrency
from collector.analysis.copies import QUESTION as COPIES
from collector.analysis.copies import copies
from collector.analysis.critical_path import QUESTIONS as CRITICAL_PATH_BY
from collector.analysis.critical_path import critical_path
from collector.analysis.graphs import QUESTION as GRAPHS
from collector.analysis.graphs import graphs
from collector.analysis.idle import GAPS as IDLE_GAPS
from collector.analysis.idle import OPS as IDLE_OPS
from collector.analysis.idle import QUESTION as IDLE
from collector.analysis.idle import idle, idle_gaps, idle_ops
from collector.analysis.kernels import QUESTIONS as KERNELS_BY
from collector.analysis.kernels import kernels
from collector.analysis.launches import DELAYS as LAUNCH_DELAYS
from collector.analysis.launches import QUESTION as LAUNCHES
from collector.analysis.launches import launch_delays, launches
from collector.analysis.memory import QUESTIONS as MEMORY_BY
from collector.analysis.memory import memory
from collector.analysis.memory_growth import QUESTIONS as MEMORY_GROWTH_BY
from collector.analysis.memory_growth import memory_growth
from collector.analysis.occupancy import QUESTION as OCCUPANCY
from collector.analysis.occupancy import occupancy
from collector.analysis.ops import QUESTION as OPS
from collector.analysis.ops import ops
from collector.analysis.overlap import QUESTIONS as OVERLAP_BY
from collector.analysis.overlap import overlap
from collector.analysis.queue_depth import QUESTIONS as QUEUE_BY
from collector.analysis.queue_depth import queue
from collector.analysis.ranks import QUESTIONS as RANKS_BY
from collector.analysis.ranks import ranks
from collector.analysis.record_counts import QUESTIONS as LEDGER_BY
from collector.analysis.record_counts import ledger
from collector.analysis.steps import QUESTION as STEPS
from collector.analysis.steps import steps
from collector.analysis.streams import QUESTION as STREAMS
from collector.analysis.streams import streams
from collector.analysis.tensor_cores import QUESTIONS as TENSOR_CORES_BY
from collector.analysis.tensor_cores import tensor_cores
from collector.analysis.tracing_cost import QUESTION as TRACING_COST
from collector.analysis.tracing_cost import tracing_cost

if TYPE_CHECKING:
    from collector.analysis.answer import Answer
    from collector.analysis.asked import Question


@dataclass(frozen=True)
class NamedQuestion:
    """A question that can be asked by its name."""

    ask: Callable[..., Answer]
    """The function of the question, which takes steps, and ``by`` and ``window`` if it has them."""
    questions: Mapping[str, Question]
    """Value of ``by`` -> the question with its columns, the default first; ``""`` where there is no choice."""
    has_window: bool = False
    """Whether it takes ``window``."""
    in_overview: bool = True
    """Whether `collector stats` answers it when no question is named."""
    of_sums: bool = False
    """Whether a profile without start times can answer it."""
    of_ranks: bool = False
    """Whether it compares ranks, and refuses the steps of a single rank."""

    @property
    def by(self) -> tuple[str, ...]:
        """The values of ``by``; the first is the default."""
        return tuple(filter(None, self.questions))

    @property
    def help(self) -> str:
        """The first line of the function's docstring."""
        return (self.ask.__doc__ or "").partition("\n")[0]


QUESTIONS: Mapping[str, NamedQuestion] = {
    "devices": NamedQuestion(devices, {"": DEVICES}, has_window=True),
    "concurrency": NamedQuestion(concurrency, {"": CONCURRENCY}, has_window=True, in_overview=False),
    "streams": NamedQuestion(streams, {"": STREAMS}, in_overview=False),
    "overlap": NamedQuestion(overlap, OVERLAP_BY, has_window=True, in_overview=False),
    "idle": NamedQuestion(idle, {"": IDLE}, has_window=True),
    "idle_ops": NamedQuestion(idle_ops, {"": IDLE_OPS}, has_window=True, in_overview=False),
    "idle_gaps": NamedQuestion(idle_gaps, {"": IDLE_GAPS}, has_window=True, in_overview=False),
    "critical_path": NamedQuestion(critical_path, CRITICAL_PATH_BY, in_overview=False),
    "kernels": NamedQuestion(kernels, KERNELS_BY, of_sums=True),
    "ops": NamedQuestion(ops, {"": OPS}, of_sums=True),
    "backward": NamedQuestion(backward, {"": BACKWARD}, in_overview=False),
    "copies": NamedQuestion(copies, {"": COPIES}),
    "launches": NamedQuestion(launches, {"": LAUNCHES}),
    "queue": NamedQuestion(queue, QUEUE_BY, in_overview=False),
    "launch_delays": NamedQuestion(launch_delays, {"": LAUNCH_DELAYS}, in_overview=False),
    "graphs": NamedQuestion(graphs, {"": GRAPHS}, in_overview=False),
    "calls": NamedQuestion(calls, {"": CALLS}),
    "annotation_times": NamedQuestion(annotation_times, ANNOTATION_TIMES_BY, in_overview=False),
    "memory": NamedQuestion(memory, MEMORY_BY, in_overview=False),
    "memory_growth": NamedQuestion(memory_growth, MEMORY_GROWTH_BY, in_overview=False),
    "occupancy": NamedQuestion(occupancy, {"": OCCUPANCY}, in_overview=False),
    "tensor_cores": NamedQuestion(tensor_cores, TENSOR_CORES_BY, in_overview=False),
    "steps": NamedQuestion(steps, {"": STEPS}, in_overview=False),
    "code_loading": NamedQuestion(code_loading, {"": CODE_LOADING}, in_overview=False),
    "tracing_cost": NamedQuestion(tracing_cost, {"": TRACING_COST}, in_overview=False),
    "ledger": NamedQuestion(ledger, LEDGER_BY, in_overview=False),
    "ranks": NamedQuestion(ranks, RANKS_BY, in_overview=False, of_ranks=True),
}
"""Name -> question, in the order of an overview."""

ALIASES: Mapping[str, tuple[str, str]] = {
    "cuda_gpu_kern_sum": ("kernels", "name"),
    "cuda_gpu_kern_gb_sum": ("kernels", "shape"),
    "nvtx_sum": ("annotation_times", "name"),
    "nvtx_pushpop_sum": ("annotation_times", "name"),
    "nvtx_gpu_proj_sum": ("ops", ""),
    "nvtx_kern_sum": ("kernels", "op"),
    "cuda_gpu_mem_time_sum": ("copies", ""),
    "cuda_gpu_mem_size_sum": ("copies", ""),
    "cuda_api_sum": ("calls", ""),
    "cuda_kern_exec_sum": ("launches", ""),
    "cuda_kern_exec_trace": ("launch_delays", ""),
    "gpu_gaps": ("idle_gaps", ""),
    "gpu_time_util": ("devices", ""),
    "temporal_breakdown": ("devices", ""),
    "idle_time_breakdown": ("idle", ""),
    "comm_comp_overlap": ("overlap", ""),
    "gpu_kernel_breakdown": ("kernels", "name"),
    "gpu_kernels_with_user_annotations": ("kernels", "op"),
    "gpu_user_annotation_breakdown": ("ops", ""),
    "cuda_kernel_launch_stats": ("launch_delays", ""),
    "queue_length_summary": ("queue", ""),
    "memory_bw_summary": ("copies", ""),
    "potential_stragglers": ("ranks", ""),
}
"""Report of ``nsys stats`` or ``nsys analyze``, or analysis of HolisticTraceAnalysis -> the question that answers it,
and its value of ``by``."""

BY_ALONE: Mapping[str, tuple[str, str]] = {
    "op": ("ops", ""),
    "kernel": ("kernels", "name"),
    "shape": ("kernels", "shape"),
    "stream": ("streams", ""),
    "step": ("steps", ""),
    "rank": ("ranks", "rank"),
}
"""Value of ``--by`` without a question -> the question that answers it, and its value of ``by``."""
