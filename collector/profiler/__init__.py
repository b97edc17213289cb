"""The use of time, memory, parameters and flops by name scope, graph, op type and code line.

tfprof's Python interface without TensorFlow, for TensorFlow's own files and for any step recorded here.

>>> from collector import profiler
>>> p = profiler.Profiler()
>>> p.add_recorded_step(1, "step.pb")  # doctest: +SKIP
>>> node = p.profile_name_scope(profiler.ProfileOptionBuilder.time_and_memory())  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.runtime.names_on_demand import names_on_demand

if TYPE_CHECKING:
    from collector.profiler.api import Profiler, advise, profile, write_op_log
    from collector.profiler.builder import ProfileOptionBuilder
    from collector.profiler.context import ProfileContext
    from collector.profiler.hook import ProfilerHook
    from collector.profiler.profile_options import Options
    from collector.profiler.profiler_errors import (
        MissingStepError,
        MissingTracesError,
        OptionError,
        ProfilerError,
        ViewError,
    )
    from collector.profiler.recorded_graph import graph, op_log
    from collector.protos import AdviceProto, GraphNodeProto, MultiGraphNodeProto, OpLogProto

__all__ = [
    "AdviceProto",
    "GraphNodeProto",
    "MissingStepError",
    "MissingTracesError",
    "MultiGraphNodeProto",
    "OpLogProto",
    "OptionError",
    "Options",
    "ProfileContext",
    "ProfileOptionBuilder",
    "Profiler",
    "ProfilerError",
    "ProfilerHook",
    "ViewError",
    "advise",
    "graph",
    "op_log",
    "profile",
    "write_op_log",
]

__getattr__, __dir__ = names_on_demand(
    __name__,
    {
        "AdviceProto": "collector.protos",
        "GraphNodeProto": "collector.protos",
        "MissingStepError": "collector.profiler.profiler_errors",
        "MissingTracesError": "collector.profiler.profiler_errors",
        "MultiGraphNodeProto": "collector.protos",
        "OpLogProto": "collector.protos",
        "OptionError": "collector.profiler.profiler_errors",
        "Options": "collector.profiler.profile_options",
        "ProfileContext": "collector.profiler.context",
        "ProfileOptionBuilder": "collector.profiler.builder",
        "Profiler": "collector.profiler.api",
        "ProfilerError": "collector.profiler.profiler_errors",
        "ProfilerHook": "collector.profiler.hook",
        "ViewError": "collector.profiler.profiler_errors",
        "advise": "collector.profiler.api",
        "graph": "collector.profiler.recorded_graph",
        "op_log": "collector.profiler.recorded_graph",
        "profile": "collector.profiler.api",
        "write_op_log": "collector.profiler.api",
    },
)
