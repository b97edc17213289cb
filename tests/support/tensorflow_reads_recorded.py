"""Recorded steps in TensorFlow's own tfprof and timeline.

`python tensorflow_reads_recorded.py GRAPH STEP...` prints, for each step, the times that both show.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.python.client import timeline

v1 = tf.compat.v1


def profiled(graph: tf.Graph, step: Any) -> dict[str, list[list[Any]]]:
    """View -> (name, total, accelerator's and CPU's microseconds) of each node that took any time."""
    profiler = v1.profiler.Profiler(graph)
    profiler.add_step(1, step)
    options = v1.profiler.ProfileOptionBuilder(v1.profiler.ProfileOptionBuilder.time_and_memory(min_bytes=0))
    asked = options.with_empty_output().build()
    answers = {
        "scope": profiler.profile_name_scope(asked),
        "graph": profiler.profile_graph(asked),
        "op": profiler.profile_operations(asked),
    }
    return {view: [times_of(node) for node in nodes_of(answer)] for view, answer in answers.items()}


def nodes_of(root: Any) -> list[Any]:
    """The nodes of an answer, parents first."""
    return [root, *(each for child in root.children for each in nodes_of(child))]


def times_of(node: Any) -> list[Any]:
    """Name, own times, and total times."""
    names = ("exec_micros", "accelerator_exec_micros", "cpu_exec_micros")
    return [node.name, *(getattr(node, name) for name in (*names, *(f"total_{name}" for name in names)))]


def drawn(step: Any) -> dict[str, list[list[Any]]]:
    """Process -> (name, start, duration) of its slices in the timeline."""
    events = json.loads(timeline.Timeline(step.step_stats).generate_chrome_trace_format(show_memory=False))
    names = {event["pid"]: event["args"]["name"] for event in events["traceEvents"] if event["name"] == "process_name"}
    slices = defaultdict(list)
    for event in events["traceEvents"]:
        if event["ph"] == "X":
            slices[names[event["pid"]]].append([event["name"], event["ts"], event["dur"]])
    return {name: sorted(found) for name, found in sorted(slices.items())}


def main() -> None:
    graph = tf.Graph()
    with graph.as_default():
        v1.import_graph_def(v1.GraphDef.FromString(Path(sys.argv[1]).read_bytes()), name="")
    steps = [v1.RunMetadata.FromString(Path(path).read_bytes()) for path in sys.argv[2:]]
    print(json.dumps({"steps": [{"tfprof": profiled(graph, step), "timeline": drawn(step)} for step in steps]}))


if __name__ == "__main__":
    main()
