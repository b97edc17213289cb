"""A TensorFlow program that profiles itself: run with TensorFlow's profiler, and with one import line changed.

`python tensorflow_runs.py` prints, for every use, whether the output and the result are the same.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

from collector import profiler as ours
from collector.protos import OpLogProto, ProfileProto
from collector.timeline import Timeline

v1 = tf.compat.v1
theirs = v1.profiler
v1.disable_eager_execution()


def program() -> tuple[Any, Any]:
    """A graph that was trained by one step, and the record of that step."""
    graph = v1.Graph()
    with graph.as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 8], name="x")
        with v1.variable_scope("layer1"):
            weights, bias = v1.get_variable("weights", [8, 16]), v1.get_variable("bias", [16])
            hidden = v1.nn.relu(v1.nn.bias_add(v1.matmul(x, weights), bias))
        with v1.variable_scope("layer2"):
            loss = v1.reduce_mean(v1.matmul(hidden, v1.get_variable("weights", [16, 4])))
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        session.run(v1.global_variables_initializer())
        metadata, options = v1.RunMetadata(), v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
        session.run(train, {x: [[1.0] * 8] * 32}, options=options, run_metadata=metadata)
    return graph, metadata


def printed_by(use: Callable[[], Any]) -> tuple[Any, str]:
    """A call's result, and its output from Python or C++."""
    sys.stdout.flush()
    with tempfile.TemporaryFile() as file:
        before = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            returned = use()
            sys.stdout.flush()
            ctypes.CDLL(None).fflush(None)
        finally:
            os.dup2(before, 1)
        file.seek(0)
        return returned, file.read().decode()


def uses(graph: Any, run_meta: Any, folder: Path) -> dict[str, Callable[[Any], Any]]:
    """Typical uses of TensorFlow's users; given the module, each returns messages."""

    def options(profiler: Any, preset: str = "time_and_memory") -> Any:
        return profiler.ProfileOptionBuilder(getattr(profiler.ProfileOptionBuilder, preset)())

    def steps(profiler: Any) -> Any:
        profile = profiler.Profiler(graph)
        profile.add_step(1, run_meta)
        profile.add_step(2, run_meta)
        asked = options(profiler).build()
        names = ("profile_name_scope", "profile_graph", "profile_operations", "profile_python")
        return [getattr(profile, name)(asked) for name in names]

    def of_the_default_graph(profiler: Any) -> Any:
        profile = profiler.Profiler()
        profile.add_step(1, run_meta)
        return [profile.profile_operations(options(profiler).build())]

    def serialized(profiler: Any) -> Any:
        profile = profiler.Profiler(graph)
        profile.add_step(0, run_meta)
        return [ProfileProto.FromString(profile.serialize_to_string())]

    def op_log(profiler: Any, **how: Any) -> Any:
        profiler.write_op_log(graph, str(folder), **how)
        return [OpLogProto.FromString((folder / "tfprof_log").read_bytes())]

    def with_own_types(profiler: Any) -> Any:
        log = profiler.OpLogProto()
        log.log_entries.add(name="layer1/MatMul", types=["mine"], float_ops=77)
        asked = options(profiler, "float_operation").with_accounted_types(["mine", "MatMul"]).build()
        return [profiler.profile(graph, run_meta, log, cmd="op", options=asked)]

    def to_file(profiler: Any) -> Any:
        asked = options(profiler).with_file_output(str(folder / "profile")).build()
        answer = profiler.profile(graph, run_meta, cmd="scope", options=asked)
        print((folder / "profile").read_text())
        return [answer]

    def advice(profiler: Any) -> Any:
        answer = profiler.advise(graph, run_meta)
        sys.stdout.flush()
        return [answer]

    def view(cmd: str, preset: str) -> Callable[[Any], Any]:
        return lambda profiler: [
            profiler.profile(graph, run_meta, cmd=cmd, options=options(profiler, preset).with_max_depth(20).build())
        ]

    presets = ("trainable_variables_parameter", "float_operation", "time_and_memory")
    return {
        **{f"{cmd} {preset}": view(cmd, preset) for cmd in ("scope", "graph", "op", "code") for preset in presets},
        "default graph and options": lambda profiler: [profiler.profile()],
        "no run metadata": lambda profiler: [
            profiler.profile(graph, options=options(profiler, "float_operation").build())
        ],
        "several steps": steps,
        "a profiler of the default graph": of_the_default_graph,
        "serialized": serialized,
        "op log": op_log,
        "op log with shapes": lambda profiler: op_log(profiler, run_meta=run_meta),
        "op log without traces": lambda profiler: op_log(profiler, add_trace=False),
        "types of one's own": with_own_types,
        "to a file": to_file,
        "advice": advice,
    }


def timelines(run_meta: Any) -> list[bool]:
    """Whether our Timeline renders TensorFlow's StepStats exactly like TensorFlow."""
    from tensorflow.python.client import timeline

    same = []
    for how in ({}, {"show_dataflow": False}, {"show_memory": True}, {"op_time": "gpu"}):
        texts = [
            kind(run_meta.step_stats).generate_chrome_trace_format(**how) for kind in (timeline.Timeline, Timeline)
        ]
        same.append(texts[0] == texts[1])
    return same


def main() -> None:
    results: dict[str, Any] = {}
    graph, run_meta = program()
    with tempfile.TemporaryDirectory() as folder, graph.as_default():
        for name, use in uses(graph, run_meta, Path(folder)).items():
            answers = []
            for profiler in (theirs, ours):
                messages, text = printed_by(lambda use=use, profiler=profiler: use(profiler))
                # The order of advice differs between runs, and thus the position of empty lines.
                lines = sorted(filter(None, text.splitlines())) if name == "advice" else text
                answers.append((lines, [message.SerializeToString(deterministic=True) for message in messages]))
            results[name] = [answers[0][part] == answers[1][part] for part in (0, 1)] + [bool(answers[0][1][0])]
    results["names that are missing"] = [name for name in dir(theirs) if name[0] != "_" and not hasattr(ours, name)]
    results["timelines"] = timelines(run_meta)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
