"""Turn a recorded step into a Chrome trace.

Reads RunMetadata and StepStats (.pb, .pbtxt), recordings (.gpurec) and Chrome traces (.json), also gzipped.
Open the result at https://ui.perfetto.dev or chrome://tracing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    parser.add_argument("input", type=Path, metavar="FILE", help="the step")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="what to write: .json, .pftrace (both also with .gz), .pb or .pbtxt",
    )


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    from collector.files import check_writable
    from collector.loading import load
    from collector.outputs import output_of

    write = output_of(arguments.output)
    check_writable(arguments.output)
    step = load(arguments.input)
    for reason, count in step.skipped.items():
        print(f"collector: {arguments.input}: {count} skipped: {reason}", file=sys.stderr)
    if step.cut_at is not None:
        print(f"collector: {arguments.input}: not readable from position {step.cut_at} on", file=sys.stderr)
    write(step, arguments.output)
    return 0
