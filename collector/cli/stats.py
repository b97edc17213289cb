"""Answer questions about steps: busy and idle time, kernels, copies, launches, calls.

Reads all that `collector timeline` reads; several files are answered below each other, numbered from 0. The figures are
those of `collector.analysis`.

  collector stats step.pb                             all of them, the largest rows of each
  collector stats step.json.gz --question idle        why the devices were idle
  collector stats step.gpurec --question kernels --by shape --csv > kernels.csv
  collector stats report.sqlite --question cuda_gpu_kern_sum    names of nsys stats work as well
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import CollectorError
from collector.text import terminal

if TYPE_CHECKING:
    from collector.analysis.answer import Answer

_ROWS = 20
_WIDTH = 100
"""Characters of a line where the terminal does not say."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    from collector.analysis.questions import ALIASES, QUESTIONS
    from collector.formats.registry import readable_list

    parser.add_argument(
        "inputs",
        type=Path,
        nargs="+",
        metavar="FILE",
        help=f"one step each: {readable_list(with_origins=True)}; also gzipped",
    )
    questions = "; ".join(f"{name}: {each.help}" for name, each in QUESTIONS.items())
    parser.add_argument(
        "--question",
        action="append",
        choices=[*QUESTIONS, *ALIASES],
        metavar="NAME",
        help=f"what to answer; may be given several times. {questions} Names of nsys stats: {', '.join(ALIASES)}",
    )
    counted_by = {by: None for each in QUESTIONS.values() for by in each.by}
    parser.add_argument("--by", choices=[*counted_by], help="what the rows of a question are counted by")
    parser.add_argument(
        "--window",
        choices=["step", "span"],
        help="step: all of what was recorded; span: from the first to the last activity of each device (step)",
    )
    parser.add_argument("--rows", type=_rows, metavar="N", help=f"rows to show; all: every one ({_ROWS})")
    formats = parser.add_mutually_exclusive_group()
    formats.add_argument("--json", action="store_true", help="a list of answers, with every row and what columns mean")
    formats.add_argument("--csv", action="store_true", help="every row of one answer")
    formats.add_argument("--markdown", action="store_true", help="every row as tables of Markdown")


def _rows(text: str) -> int:
    if text == "all":
        return sys.maxsize
    try:
        rows = int(text)
    except ValueError:
        rows = 0
    if rows < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number from 1 on nor 'all'")
    return rows


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    from collector.formats.loading import load

    asked = _asked(arguments)
    if arguments.csv and len(asked) > 1:
        raise CollectorError("--csv holds one answer: say which with --question")
    steps = [load(path) for path in arguments.inputs]
    for step in steps:
        if step.warning:
            terminal.report(step.warning)
    answers = _answers(asked, steps[0] if len(steps) == 1 else steps, arguments.window)
    if arguments.json:
        json.dump([answer.to_json() for answer in answers], sys.stdout, indent=1, allow_nan=False)
        print()
    elif arguments.csv:
        sys.stdout.write(answers[0].to_csv())
    elif arguments.markdown:
        terminal.write("\n".join(f"{answer.definition}\n\n{answer.to_markdown()}" for answer in answers))
    else:
        rows = _ROWS if arguments.rows is None else arguments.rows
        width = shutil.get_terminal_size((_WIDTH, 0)).columns
        color = sys.stdout.isatty()
        print("\n\n".join(answer.text(rows=rows, width=width, color=color, losses=False) for answer in answers))
        for loss in answers[0].losses:
            print(f"incomplete: {terminal.printable(loss)}")
    return 0


def _asked(arguments: argparse.Namespace) -> list[tuple[str, str]]:
    """Names of questions, and what the rows of each are counted by."""
    from collector.analysis.questions import ALIASES, QUESTIONS

    overview = [name for name, each in QUESTIONS.items() if each.in_overview]
    asked = [ALIASES.get(name, (name, "")) for name in arguments.question or overview]
    if arguments.question and arguments.by and not any(QUESTIONS[name].by for name, _ in asked):
        raise CollectorError(f"--by {arguments.by}: the rows of {arguments.question[0]} are counted by one thing only")
    for name, _ in asked if arguments.question and arguments.by else ():
        if QUESTIONS[name].by and arguments.by not in QUESTIONS[name].by:
            raise CollectorError(
                f"--by {arguments.by}: the rows of {name} are counted by {', '.join(QUESTIONS[name].by)}"
            )
    if arguments.question and arguments.window and not any(QUESTIONS[name].has_window for name, _ in asked):
        raise CollectorError(f"--window {arguments.window}: {arguments.question[0]} is asked of all that was recorded")
    return [(name, arguments.by if arguments.by in QUESTIONS[name].by else by) for name, by in asked]


def _answers(asked: list[tuple[str, str]], steps: object, window: str | None) -> list[Answer]:
    from collector.analysis.questions import QUESTIONS

    answers = []
    for name, by in asked:
        question = QUESTIONS[name]
        options = ({"by": by} if by else {}) | ({"window": window} if window and question.has_window else {})
        answers.append(question.ask(steps, **options))
    return answers
