"""The examples of README and docs on this machine's GPU: what runs, what fails, and what the commands print.

    documented_examples.py [PAGE ...]               all pages that trace, or these (``tracing.md``)
    documented_examples.py --simulated [PAGE ...]   on the simulator

tests/repository/test_docs.py compares what the examples print on the simulated GPU; times and names of a real one
differ, so that a person has to read them here. Where a page uses the simulated ``gpu``, kernels that take the same time
stand for it. Blocks with a simulated GPU of their own, and those that need what this machine has not, are left out.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "repository")]

SECONDS, SIMULATED_SECONDS = 60, 600
"""The time limit of a page; the simulator may run on a busy machine."""
SHOWN_LINES = 40
"""Of what a block prints."""


class OfTheSimulatorError(Exception):
    """An example uses what only the simulated GPU can do."""


class GpuOfExamples:
    """The calls of the simulated GPU that pages make, on the real one: kernels that take as long as is asked for."""

    def __init__(self) -> None:
        from cuda_program import CudaProgram

        self._cuda = CudaProgram()
        self._streams: dict[int, Any] = {}
        self._memory = self._cuda.allocate(16 << 20)

    def _stream(self, number: int) -> Any:
        if number not in self._streams:
            self._streams[number] = self._cuda.stream()
        return self._streams[number]

    def launch(self, name: str, *, stream: int = 7, duration_ns: int = 10_000, **_: Any) -> None:
        """Launch a kernel, whose name here is ``spin``."""
        self._cuda.launch("spin", ctypes.c_longlong(duration_ns), stream=self._stream(stream))

    def memcpy(self, direction: str, num_bytes: int, *, stream: int = 7, **_: Any) -> None:
        """Copy as many bytes, at most 4 MiB."""
        num_bytes = min(num_bytes, 4 << 20)
        with self._cuda.pinned(num_bytes) as host:
            if direction == "HtoD":
                self._cuda.copy_to_device(self._memory, host, num_bytes, self._stream(stream))
            elif direction == "DtoH":
                self._cuda.copy_to_host(host, self._memory, num_bytes, self._stream(stream))
            else:
                self._cuda.copy_on_device(self._memory + (8 << 20), self._memory, num_bytes, self._stream(stream))
            self._cuda.synchronize()

    def memset(self, num_bytes: int, *, value: int = 0, stream: int = 7, **_: Any) -> None:
        """Set as many bytes, at most 16 MiB."""
        self._cuda.fill(self._memory, value, min(num_bytes, 16 << 20), self._stream(stream))

    def malloc(self, num_bytes: int, **_: Any) -> int:
        """Return the address of new device memory."""
        return self._cuda.allocate(num_bytes)

    def free(self, address: int, **_: Any) -> None:
        """Release device memory."""
        self._cuda.free(address)

    def advance(self, ns: int) -> None:
        """Let time pass."""
        time.sleep(ns / 1e9)

    def synchronize(self) -> None:
        """Wait for everything."""
        self._cuda.synchronize()

    def __getattr__(self, name: str) -> Any:
        raise OfTheSimulatorError(name)


def names_of_examples() -> dict[str, Any]:
    """What a page takes for granted: a program that uses a GPU."""
    gpu = GpuOfExamples()

    def launch_some_kernels() -> None:
        gpu.memcpy("HtoD", 1 << 20, stream=7)
        gpu.launch("sgemm", stream=7, duration_ns=12_000)
        gpu.launch("relu", stream=7, duration_ns=3_000)

    def shell(line: str) -> None:
        words, _, questions = line.partition(" < ")
        with Path(questions or os.devnull).open() as given:
            done = subprocess.run(
                [sys.executable, "-c", "import sys; from collector.cli import main; sys.exit(main(sys.argv[1:]))",
                 *shlex.split(words)[1:]],
                stdin=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            )  # fmt: skip
        print(done.stdout, end="")
        if done.returncode:
            print("exit status", done.returncode)

    return {
        "__name__": "__main__", "contextlib": contextlib, "shlex": shlex, "sys": sys, "gpu": gpu, "shell": shell,
        "launch_some_kernels": launch_some_kernels, "train_step": launch_some_kernels,
    }  # fmt: skip


def statements(block: Any, where: str) -> list[str]:
    """The Python of a block: of a session, what was typed."""
    from test_docs import session_of

    if block.language == "python":
        return [block.text]
    text = session_of(block.text) if block.language == "console" else block.text
    return [example.source for example in doctest.DocTestParser().get_examples(text, where)]


def run_page(page: Path) -> int:
    """Run the blocks of a page in this process and its folder, one after another; returns how many failed."""
    from test_docs import blocks

    names, failed = names_of_examples(), 0
    for block in blocks(page):
        is_shown = block.language in ("python", "pycon") or (block.language == "console" and block.is_checked)
        if not is_shown or block.skipped or re.search(r"SimulatedGpu|simulated_gpu", block.text):
            continue
        where, printed = f"{page.name}, line {block.line}", io.StringIO()
        fate, error = "ran", ""
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            for statement in statements(block, where):
                mode = "exec" if block.language == "python" else "single"
                try:
                    exec(compile(statement, where, mode), names)
                except OfTheSimulatorError as missing:
                    fate = f"left out, as only the simulated GPU has `{missing}`"
                    break
                except (Exception, SystemExit):
                    fate, error = "FAILED", traceback.format_exc(limit=-3)
                    failed += 1
                    break
        print(f"-- {where}: {fate}")
        lines = (printed.getvalue() + error).rstrip().splitlines()
        print("\n".join(lines[:SHOWN_LINES] + (["..."] if len(lines) > SHOWN_LINES else [])), flush=True)
    return failed


def main() -> int:
    """Run each page in a process and a folder of its own; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", help="all that trace")
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        if options.simulated:
            import simulated_cuda

            simulated_cuda.install()
        return min(run_page(options.here), 1)
    from test_docs import OPENS_ITS_OWN, PAGES, shows_python

    failed = []
    limit = SIMULATED_SECONDS if options.simulated else SECONDS
    for page in PAGES:
        if options.pages and page.name not in options.pages:
            continue
        if not shows_python(page) or OPENS_ITS_OWN in page.read_text(encoding="utf-8"):
            continue
        command = [sys.executable, __file__, "--here", str(page), *(["--simulated"] if options.simulated else [])]
        print(f"== {page.relative_to(ROOT)}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            try:
                status = subprocess.run(command, cwd=folder, timeout=limit, check=False).returncode
            except subprocess.TimeoutExpired:
                print(f"-- not at its end after {limit} s")
                status = 1
        if status:
            failed.append(page.name)
    print(f"Failed on: {', '.join(failed)}" if failed else "Every block ran")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
