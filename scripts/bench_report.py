"""Run every benchmark and write benchmarks/results/<card or processor>.md: the machine, and every table.

    bench_report.py [SCRIPT ...]     all of benchmarks/, or some by name; about eight minutes on two cores

Benchmarks that need a GPU run on the simulator if there is none, and their output says so. A script that exceeds its
time is ended, and its output so far is kept. The exit status says whether all of them completed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "benchmarks"
SECONDS = 570
"""The time limit for all of them together."""
DEFAULT_SECONDS = 60
CHOICES: dict[str, tuple[tuple[str, ...], int]] = {
    "overhead": (("--launches=50000", "--rounds=5", "--seconds=60"), 90),
    "floors": (("--launches=20000", "--rounds=2", "--seconds=15"), 30),
    "completeness": (("--launches=20000", "--rounds=3", "--seconds=30"), 60),
    "sessions": (("--launches=5000", "--rounds=3", "--seconds=30"), 60),
    "killed": (("--launches=200000", "--rounds=3", "--seconds=30"), 60),
    "memory": (("--launches=100000", "--rounds=5", "--seconds=40"), 60),
    "streaming": (("--launches=400000", "--rounds=3", "--seconds=40"), 60),
    "recorder": (("--launches=400000", "--rounds=3", "--seconds=40"), 60),
    "stop_to_file": (("--launches=50000", "--rounds=5", "--seconds=60"), 90),
    "decode": (("--seconds=2", "--launches=300000"), 100),
    "session": (("--seconds=8",), 60),
    "nvtx": (("--turns=50000", "--rounds=25"), 60),
    "adapters": ((), 60),
    "timeline": (("--quick",), 120),
    "profiler": (("--kernels=100000",), 60),
    "pytest_plugin": (("--rounds=3",), 60),
    "harness": (("--seconds=90",), 120),
    "training_step": (("--launches=20", "--rounds=3", "--seconds=40"), 60),
}
"""Script -> its options here, and its time limit in seconds; others: none, and `DEFAULT_SECONDS`."""


def scripts(chosen: list[str]) -> list[Path]:
    """The scripts to run: those of `CHOICES` first, in that order.

    Raises:
        SystemExit: a script does not exist.
    """
    found = {path.stem: path for path in sorted(BENCHMARKS.glob("[!_]*.py"))}
    names = [name for name in CHOICES if name in found] + [name for name in found if name not in CHOICES]
    if unknown := [name for name in chosen if name not in found]:
        raise SystemExit(f"no benchmark {', '.join(unknown)}; there are {', '.join(names)}")
    return [found[name] for name in names if not chosen or name in chosen]


def run(command: list[str], seconds: float) -> tuple[str, str]:
    """Run a command and pass on its output immediately; return the output and the error, empty if there is none."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    deadline = time.monotonic() + seconds
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, start_new_session=True
    ) as process, selectors.DefaultSelector() as ready:  # fmt: skip
        try:
            output = {process.stdout: b"", process.stderr: b""}
            for pipe in output:
                ready.register(pipe, selectors.EVENT_READ)
            while ready.get_map() and time.monotonic() < deadline:
                for key, _ in ready.select(timeout=1.0):
                    data = os.read(key.fd, 1 << 16)
                    if not data:
                        ready.unregister(key.fileobj)
                    output[key.fileobj] += data
                    sys.stdout.write(data.decode(errors="replace"))
                    sys.stdout.flush()
            late = bool(ready.get_map())
        finally:
            if ready.get_map():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # with the processes that it started
        status = process.wait()
    ended = f"ended after {seconds:.0f} s" if late else f"exit status {status}" if status else ""
    if ended:
        last = output[process.stderr].decode(errors="replace").strip().splitlines()
        ended += f": {last[-1]}" if last else ""
    return output[process.stdout].decode(errors="replace"), ended


def machine() -> tuple[str, dict[str, Any]]:
    """The name of the card or the processor, and further facts about the machine."""
    from collector.bench.environment import environment
    from collector.bench.gpu import Host
    from collector.sources.native import NativeSource

    about = environment(Host(), {})
    probe = NativeSource().probe()
    devices = [device["name"] for device in probe.get("devices", [])]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    rows = {
        "processor": f"{about['gpu']}, {os.cpu_count()} cores, {memory / 1e9:.0f} GB, load {os.getloadavg()[0]:.1f}",
        "card": ", ".join(devices) or "none",
        "driver, libcupti": f"{probe['driver_version']}, {Path(probe['cupti_path']).name}" if devices else "none",
        "Python": f"{about['python']} on {about['platform']}",
        "packages": ", ".join(f"{name} {version}" for name, version in about["libraries"].items()),
        "commit": about["git_revision"] or "unknown",
        "time": about["time"],
    }
    return devices[0] if devices else str(about["gpu"]), rows


def page(title: str, rows: dict[str, Any], results: dict[str, tuple[str, str, float]]) -> str:
    """The report."""
    lines = [f"# {title}", "", "Made by `make bench`.", "", "| | |", "| --- | --- |"]
    lines += [f"| {name} | {value} |" for name, value in rows.items()]
    for name, (output, ended, seconds) in results.items():
        lines += ["", f"## {name}", "", f"{seconds:.0f} s{f'; {ended}' if ended else ''}", "", "```text"]
        lines += [*(line.rstrip() for line in output.strip().splitlines()), "```"]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run, and write the report after each script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT", help="names of files in benchmarks/, without .py")
    parser.add_argument("--results", type=Path, default=BENCHMARKS / "results", help="the folder of the report")
    options = parser.parse_args()
    chosen = scripts(options.scripts)
    title, rows = machine()
    path = options.results / f"{re.sub(r'[^A-Za-z0-9]+', '-', title).strip('-').lower()}.md"
    options.results.mkdir(parents=True, exist_ok=True)
    results: dict[str, tuple[str, str, float]] = {}
    began = time.monotonic()
    for number, script in enumerate(chosen, 1):
        arguments, limit = CHOICES.get(script.stem, ((), DEFAULT_SECONDS))
        seconds = min(limit, SECONDS - (time.monotonic() - began))
        before = time.monotonic()
        if seconds < 1:
            results[script.stem] = ("", "not run: no time left", 0.0)
        else:
            print(f"\n== {number} of {len(chosen)}: {script.stem} (at most {seconds:.0f} s)", flush=True)
            output, ended = run([sys.executable, str(script), *arguments], seconds)
            results[script.stem] = (output, ended, time.monotonic() - before)
        path.write_text(page(title, rows, results))
    troubles = {name: ended for name, (_, ended, _) in results.items() if ended}
    print(f"\nWrote {path} in {time.monotonic() - began:.0f} s")
    if troubles:
        print(json.dumps(troubles, indent=1))
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
