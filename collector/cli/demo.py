"""Trace a training-like step, on this machine's GPU or on a simulated one.

With an NVIDIA GPU and cuda-python, real kernels are compiled and run on several streams with copies. Otherwise the same
step runs on the simulated GPU, which is marked in the output and the trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.cli._path_arguments import path_argument
from collector.files.written_files import opened_with
from collector.text import terminal

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    parser.add_argument(
        "-o",
        "--output",
        type=path_argument,
        metavar="FILE",
        help="write the trace to this file: .json, .json.gz, .pb, ...",
    )
    parser.add_argument("--simulate", action="store_true", help="use the simulated GPU even if there is a real one")


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    from collector.demo.demo_run import run_demo

    step, what = run_demo(arguments.output, simulate=arguments.simulate)
    print(f"One training-like step on {what}\n")
    print(step.summary())
    if step.path is not None:
        print(f"\nWrote {terminal.printable(str(step.path))}")
        if how := opened_with(step.path):
            print(f"Open it with {how}")
    return 0
