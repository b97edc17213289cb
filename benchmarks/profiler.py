"""The time of each of the profiler's views: for a step of a million kernels, and compared with TensorFlow's profiler.

Goals: from the ``.pb`` to the answer 2 seconds in a new process, and 100 ms for the next answer; if TensorFlow is
installed, no slower than ``tf.compat.v1.profiler`` on one of its graphs of 10,000 nodes.

The figures are CPU seconds, so other load on the machine matters little. A view is computed in a separate process, and
all work of the process counts: starting Python, importing, reading the file. The comparison is the time of protobuf
alone for parsing the file, measured alternately. Medians.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from _profiler_steps import tensorflow_model, write_kernels, write_recorded

VIEWS = ("scope", "graph", "op", "code")
GOAL_SECONDS, GOAL_MILLISECONDS, GOAL_RATIO = 2.0, 100, 1.0
NEXT_ANSWERS = 5


# --- a million kernels ---


def answer(path: Path, view: str) -> None:
    """Runs in a separate process: reads the step, answers twice as text, and prints CPU seconds of each answer."""
    from collector.profiler.api import Profiler
    from collector.profiler.profile_options import Options

    options = Options(order_by="micros", select=frozenset(("micros", "occurrence")))
    profiler = Profiler()
    profiler.add_recorded_step(0, path)
    nodes = profiler.reporter.ask(view, options).text.count("\n")
    first = time.process_time()
    following = []
    for depth in range(2, 2 + NEXT_ANSWERS):
        begun = time.process_time()
        profiler.reporter.ask(view, options.replace(max_depth=depth + 2)).text.count("\n")
        following.append(time.process_time() - begun)
    print(json.dumps({"first": first, "next": following[0], "later": statistics.median(following), "lines": nodes}))


def parse(path: Path) -> None:
    """Runs in a separate process: lets protobuf parse the step."""
    from collector.protos import RunMetadata

    RunMetadata.FromString(path.read_bytes())
    print(json.dumps({"first": time.process_time()}))


def in_process(*arguments: str) -> dict[str, float]:
    """The output of this script for these arguments."""
    done = subprocess.run([sys.executable, __file__, *arguments], check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure_step(title: str, path: Path, views: Sequence[str], repeats: int) -> bool:
    """Prints a line for each view; returns whether all goals are met."""
    rounds = [
        {"protobuf": in_process("--parse", str(path))}
        | {view: in_process("--answer", view, str(path)) for view in views}
        for _ in range(repeats)
    ]

    def median(arm: str, figure: str = "first") -> float:
        return statistics.median(round_[arm][figure] for round_ in rounds)

    met = True
    for view in views:
        whole, following = median(view), 1e3 * median(view, "next")
        met = met and whole <= GOAL_SECONDS and following <= GOAL_MILLISECONDS
        print(
            f"| {title}, {path.stat().st_size / 1e6:.0f} MB | {view} | {median(view, 'lines'):.0f} | {whole:.2f} | "
            f"{whole / median('protobuf'):.2f} | {following:.0f} | {1e3 * median(view, 'later'):.0f} |",
            flush=True,
        )
    return met


def measure_steps(kernels: int, repeats: int) -> bool:
    """Prints the table of recorded steps; returns whether all goals are met."""
    print("\n| step | view | lines | CPU s from the file | / protobuf's parsing alone | next answer ms | later ms |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "step.pb"
        write_kernels(path, kernels)
        met = measure_step(f"{kernels:,} kernels", path, [view for view in VIEWS if view != "code"], repeats)
        write_recorded(path, kernels)
        return measure_step("with every launch, annotation and stack", path, VIEWS, repeats) and met


# --- TensorFlow's graph ---

Arm = tuple[Callable[[], Any], dict[str, Callable[[Any], Any]]]
"""(makes a profiler and adds the step, view -> its answer)."""

_METHODS = {
    "scope": "profile_name_scope",
    "graph": "profile_graph",
    "op": "profile_operations",
    "code": "profile_python",
}


def ours(graph: bytes, metadata: bytes, log: bytes) -> Arm:
    """Our profiler, given the same messages as TensorFlow's."""
    from collector import profiler
    from collector.protos import GraphDef, OpLogProto, RunMetadata

    given = GraphDef.FromString(graph), RunMetadata.FromString(metadata), OpLogProto.FromString(log)
    return _arm(profiler.Profiler, profiler.ProfileOptionBuilder, *given)


def tensorflows(graph: bytes, metadata: bytes, log: bytes) -> Arm:
    """TensorFlow's."""
    import tensorflow as tf

    v1 = tf.compat.v1
    imported = tf.Graph()
    with imported.as_default():
        v1.import_graph_def(v1.GraphDef.FromString(graph), name="")
    given = imported, v1.RunMetadata.FromString(metadata), v1.profiler.OpLogProto.FromString(log)
    return _arm(v1.profiler.Profiler, v1.profiler.ProfileOptionBuilder, *given)


def _arm(profiler: Any, builder: Any, graph: Any, metadata: Any, log: Any) -> Arm:
    options = builder(builder.time_and_memory()).with_empty_output().build()

    def prepare() -> Any:
        made = profiler(graph, op_log=log)
        made.add_step(1, metadata)
        return made

    def asking(method: str) -> Callable[[Any], Any]:
        return lambda made: getattr(made, method)(options)

    return prepare, {view: asking(method) for view, method in _METHODS.items()}


def cpu_seconds(arm: Arm) -> dict[str, float]:
    """CPU seconds of one round: adding the step, and each view's first answer."""
    prepare, views = arm
    begun = time.process_time()
    made = prepare()
    found = {"graph, op log and step": time.process_time() - begun}
    for view, ask in views.items():
        begun = time.process_time()
        try:
            ask(made)
        except IndexError:  # TensorFlow's code view, for a graph that was not built in its own process
            continue
        found[view] = time.process_time() - begun
    return found


def measure_tensorflow(nodes: int, repeats: int) -> bool | None:
    """Prints the table with TensorFlow's profiler; returns whether the goal is met, None without TensorFlow."""
    model = tensorflow_model(nodes)
    has_tensorflow = importlib.util.find_spec("tensorflow") is not None
    arms = {"ours": ours(*model)} | ({"TensorFlow's": tensorflows(*model)} if has_tensorflow else {})
    rounds = [{name: cpu_seconds(arm) for name, arm in arms.items()} for _ in range(repeats + 1)][1:]
    print(f"\n| TensorFlow graph, {nodes:,} nodes | ours CPU ms | TensorFlow's ms | ours / TensorFlow's |")
    print("| --- | --- | --- | --- |")
    sums = dict.fromkeys(arms, 0.0)
    for part in rounds[0]["ours"]:
        ran = [name for name in arms if part in rounds[0][name]]
        figures = {name: statistics.median(round_[name][part] for round_ in rounds) for name in ran}
        if ran == list(arms):
            sums = {name: sums[name] + figures[name] for name in arms}
        print(_beside(part, figures, "crashed" if has_tensorflow else "not installed"))
    print(_beside("all that both answered", sums, "not installed"))
    if not has_tensorflow:
        print("\nTENSORFLOW IS NOT INSTALLED: ITS OWN PROFILER WAS NOT MEASURED")
        return None
    return sums["ours"] <= GOAL_RATIO * sums["TensorFlow's"]


def _beside(part: str, seconds: dict[str, float], missing: str) -> str:
    mine, theirs = 1e3 * seconds["ours"], 1e3 * seconds.get("TensorFlow's", 0.0)
    peer, ratio = (f"{theirs:.0f}", f"{mine / theirs:.2f}") if theirs else (missing, "not known")
    return f"| {part} | {mine:.0f} | {peer} | {ratio} |"


def processor() -> str:
    """The processor's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown processor"


def main() -> int:
    """Measures and prints; a missed goal is printed but is no error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=1_000_000)
    parser.add_argument("--nodes", type=int, default=10_000, help="of the graph of TensorFlow's")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--answer", choices=VIEWS, help=argparse.SUPPRESS)
    parser.add_argument("--parse", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("file", type=Path, nargs="?", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer:
        answer(options.file, options.answer)
        return 0
    if options.parse:
        parse(options.file)
        return 0
    print(f"{processor()}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    met = measure_steps(options.kernels, options.repeats)
    beside = measure_tensorflow(options.nodes, options.repeats)
    print(f"\n{GOAL_SECONDS:.0f} s from the file, {GOAL_MILLISECONDS} ms afterwards: {'met' if met else 'MISSED'}")
    if beside is not None:
        print(f"not slower than TensorFlow's profiler: {'met' if beside else 'MISSED'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
