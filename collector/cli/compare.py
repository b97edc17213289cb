"""Compare steps with others: slower, faster, new and gone work, with verdicts.

BEFORE and NOW are files that `collector stats` reads, folders of such files, or patterns in quotes; a file in which
annotations mark steps counts as these steps. Time is divided in several ways, and each time the parts add up to the
whole change. Exit status: 0; 1: the step became slower by more than --fail-above, and certainly slower; 3: too few
steps to say so, or nothing was recorded in those of one side; 2: a file or an argument cannot be used.

  collector compare before.json.gz now.json.gz
  collector compare runs/monday runs/tuesday --by kernel
  collector compare 'main/step_*.pb' 'change/step_*.pb' --fail-above 5% --markdown > change.md
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.cli._printed_answers import add_format_arguments, print_answers
from collector.cli._project_options import leave_out, option_text
from collector.cli._share_arguments import add_fail_above_argument
from collector.cli._step_files import load_steps, step_files
from collector.errors import CollectorError
from collector.text import terminal
from collector.text.progress import progress

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from collector.analysis.answer import Answer
    from collector.formats.step import Step

EXIT_REGRESSION = 1
EXIT_NOT_ENOUGH_STEPS = 3
_OVERVIEW = ("step", "time", "op", "kernel", "copies")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    from collector.analysis.compare import BY

    parser.add_argument("before", metavar="BEFORE", help="a file, a folder of files, or a pattern: one step each")
    parser.add_argument("now", metavar="NOW", help="the steps to compare with those before")
    parser.add_argument(
        "--by",
        action="append",
        choices=BY,
        help=f"what is compared; may be given several times ({', '.join(_OVERVIEW)})",
    )
    add_fail_above_argument(parser)
    add_format_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    from collector.analysis.compare import comparisons

    asked = arguments.by or _OVERVIEW
    if "by" in arguments.on_command_line and len(asked) > 1:
        leave_out(arguments, "csv")
    if arguments.csv and len(asked) > 1:
        raise CollectorError(f"{option_text(arguments, 'csv')} prints one answer: choose it with --by")
    sides = [step_files(given) for given in (arguments.before, arguments.now)]
    loaded = load_steps([path for side in sides for path in side])
    before, now = loaded[: len(sides[0])], loaded[len(sides[0]) :]
    with progress("comparing"):
        *answers, whole = comparisons(before, now, by=(*asked, "step"))
    with terminal.reader_may_leave():
        print_answers(answers, arguments)
    return EXIT_NOT_ENOUGH_STEPS if _is_blank(before) or _is_blank(now) else _status(whole, arguments.fail_above)


def _is_blank(steps: Sequence[Step]) -> bool:
    """Whether nothing was recorded in any of the steps: their durations are then those of something else."""
    return all(step.ledger.untraced or step.ledger.nothing_recorded for step in steps)


def _status(answer: Answer, fail_above: float) -> int:
    """The exit status that follows from the durations of the steps."""
    row = next(iter(answer), None)  # None: no step of either side took any time
    if row is None or row["verdict"] in ("not enough steps", ""):
        return EXIT_NOT_ENOUGH_STEPS
    return EXIT_REGRESSION if row["verdict"] == "slower" and row["low"] > 1 and row["ratio"] > 1 + fail_above else 0
