"""Answer questions about steps: busy and idle time, kernels, copies, launches, calls.

Reads all files that `collector timeline` reads. The answers for several files follow each other, numbered from 0. The
figures are those of `collector.analysis`.

  collector stats step.pb                             all questions, the largest rows of each answer
  collector stats step.json.gz --question idle        why the devices were idle
  collector stats step.gpurec --question kernels --by shape --csv > kernels.csv
  collector stats step.pb --by op                     GPU time by op, kernel, stream, step, ...
  collector stats step.pb --question kernels --window 20ms..35ms    for a part of the step
  collector stats rank*.json.gz --question ranks      which rank the others wait for, and how far each clock is ahead
  collector stats report.sqlite --question cuda_gpu_kern_sum    names of nsys stats and HTA work as well
"""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING, Any

from collector.cli._clock_arguments import add_clock_offset, offsets_by_rank
from collector.cli._completed_values import CompletedValues, complete_values
from collector.cli._printed_answers import add_format_arguments, print_answers
from collector.cli._project_options import is_of_project, leave_out, option_text
from collector.cli._step_files import add_step_files, files_of, load_steps
from collector.cli._time_arguments import time_window
from collector.errors import CollectorError, InvalidFileError
from collector.files.path_kinds import exists
from collector.text import terminal
from collector.text.progress import progress
from collector.text.quantities import time_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.formats.step import Step

_WINDOWS = ("step", "span")
"""Windows that have a name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    from collector.analysis.questions import ALIASES, BY_ALONE, QUESTIONS

    add_step_files(parser)
    parser.add_argument(
        "--question",
        action="append",
        choices=[*QUESTIONS, *ALIASES],
        metavar="NAME",
        help="what to answer, a question of the list below; may be given several times",
    )
    counted_by = [*BY_ALONE, *dict.fromkeys(by for each in QUESTIONS.values() for by in each.by if by not in BY_ALONE)]
    parser.add_argument(
        "--by",
        choices=counted_by,
        help="the key by which the rows of a question are counted; without --question it selects the question: "
        + ", ".join(f"{by} {question}" for by, (question, _) in BY_ALONE.items()),
    )
    window = parser.add_argument(
        "--window",
        type=_window,
        metavar="FROM..TO",
        help="only activities that overlap this part of the step, counted from its begin, such as 20ms..35ms. "
        "Also step: the whole step; span: from the first to the last activity of each device (step)",
    )
    complete_values(window, CompletedValues(lambda: _WINDOWS))
    group = parser.add_argument_group(
        "clocks of ranks",
        "For --question ranks the offsets of the ranks' clocks are estimated from the ends of collectives, unless\n"
        "they are given; the answer has each rank's offset and its error.",
    )
    clocks = group.add_mutually_exclusive_group()
    add_clock_offset(clocks)
    clocks.add_argument("--same-clock", action="store_true", help="take the clocks to be the same, as on one machine")
    add_format_arguments(parser)
    width = max(shutil.get_terminal_size().columns - 4, 40)  # the help indents by two, and leaves the last two free
    parser.add_argument_group("questions, and the keys of --by", _listed_questions(width))
    parser.add_argument_group("the same by names of nsys and HTA", textwrap.fill(", ".join(ALIASES), width))


def _listed_questions(width: int) -> str:
    from collector.analysis.questions import QUESTIONS

    column = max(map(len, QUESTIONS)) + 2
    lines = []
    for name, each in QUESTIONS.items():
        text = f"{each.help} By {', '.join(each.by)}." if each.by else each.help
        lines.append(textwrap.fill(text, width, initial_indent=name.ljust(column), subsequent_indent=" " * column))
    return "\n".join(lines)


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    from collector.analysis.asked import sums_in
    from collector.analysis.questions import QUESTIONS

    asked = _asked_of_both(arguments)
    if "question" in arguments.on_command_line and len(asked) > 1:
        leave_out(arguments, "csv")
    if arguments.csv and len(asked) > 1:
        raise CollectorError(f"{option_text(arguments, 'csv')} prints one answer: choose it with --question")
    _check_files(arguments.inputs)
    steps: Sequence[Step] = load_steps(files_of(arguments.inputs))
    if not arguments.question and sums_in(steps):
        asked = [each for each in asked if QUESTIONS[each[0]].of_sums] or asked
    window = arguments.window
    if isinstance(window, tuple):
        steps, window = [_part(step, *window) for step in steps], None
    answers = _answers(asked, steps[0] if len(steps) == 1 else steps, window, _clock_options(arguments, asked))
    print_answers(answers, arguments)
    return 0


def _check_files(given: Sequence[Path]) -> None:
    from collector.analysis.questions import ALIASES, QUESTIONS

    for path in given:
        if (name := str(path)) in QUESTIONS.keys() | ALIASES.keys() and not exists(path):
            raise InvalidFileError(
                f"{name}: No such file or directory", f"To ask this question, write --question {name}"
            )


def _clock_options(arguments: argparse.Namespace, asked: list[tuple[str, str]]) -> dict[str, Mapping[int, int] | None]:
    """The arguments of questions about ranks that concern clocks."""
    from collector.analysis.questions import QUESTIONS

    if not any(QUESTIONS[name].of_ranks for name, _ in asked):
        leave_out(arguments, "same_clock", "clock_offset")
    if not arguments.same_clock and not arguments.clock_offset:
        return {}
    if not any(QUESTIONS[name].of_ranks for name, _ in asked):
        raise CollectorError("--clock-offset and --same-clock apply to --question ranks only")
    return {"clock_offsets": offsets_by_rank(arguments.clock_offset)}


def _window(text: str) -> str | tuple[int | None, int | None]:
    return text if text in _WINDOWS else time_window(text)


def _part(step: Step, begin_ns: int | None, end_ns: int | None) -> Step:
    """The activities that overlap a part of a step, as a step of this length."""
    from collector.analysis.between import between

    begin_ns, length_ns = begin_ns or 0, step.recording.clock.window_ns
    if begin_ns >= length_ns > 0:
        raise CollectorError(
            f"{step.path} is {time_text(length_ns)} long, and --window begins after that",
            "Count its times from the beginning of the step",
        )
    part = between(step, begin_ns, max(length_ns if end_ns is None else min(end_ns, length_ns), begin_ns))
    if not part.recording.has_work and step.recording.has_work:
        terminal.report(
            f"{step.path}: no launch and no activity overlaps --window; the step is {time_text(length_ns)} long"
        )
    return part


def _asked_of_both(arguments: argparse.Namespace) -> list[tuple[str, str]]:
    """The questions of command line and project or, if both cannot be combined, those of the command line."""
    try:
        return _asked(arguments)
    except CollectorError as error:
        stated = [name for name in ("by", "window", "question") if is_of_project(arguments, name)]
        if not stated:
            raise
        if not arguments.on_command_line & {"by", "window", "question"}:
            places = " and ".join(option_text(arguments, name) for name in stated)
            raise CollectorError(f"{places}: {error}") from None
        leave_out(arguments, *stated)
        return _asked(arguments)


def _asked(arguments: argparse.Namespace) -> list[tuple[str, str]]:
    """Names of questions, and the keys by which the rows of each are counted."""
    from collector.analysis.questions import ALIASES, BY_ALONE, QUESTIONS

    if arguments.by and not arguments.question:
        alone = [(name, arguments.by) for name, each in QUESTIONS.items() if arguments.by in each.by]
        return [BY_ALONE[arguments.by]] if arguments.by in BY_ALONE else alone
    overview = [name for name, each in QUESTIONS.items() if each.in_overview]
    asked = [ALIASES.get(name, (name, "")) for name in arguments.question or overview]
    if arguments.by:
        asked = [(name, _counted_by(name, arguments.by, asked, by)) for name, by in asked]
    if (
        arguments.question
        and isinstance(arguments.window, str)
        and not any(QUESTIONS[name].has_window for name, _ in asked)
    ):
        raise CollectorError(f"--window {arguments.window}: {arguments.question[0]} is always about the whole step")
    return asked


def _counted_by(name: str, wanted: str, asked: list[tuple[str, str]], otherwise: str) -> str:
    """The key by which the rows of a question are counted, if one is given."""
    from collector.analysis.questions import BY_ALONE, QUESTIONS

    question, meant = BY_ALONE.get(wanted, ("", ""))
    choices = QUESTIONS[name].by
    if not any(QUESTIONS[each].by for each, _ in asked):
        raise CollectorError(f"--by {wanted}: {name} counts its rows by one key only")
    if not choices:
        return otherwise
    if wanted in choices or (question == name and meant in choices):
        return wanted if wanted in choices else meant
    raise CollectorError(f"--by {wanted}: the rows of {name} are counted by {', '.join(choices)}")


def _answers(
    asked: list[tuple[str, str]],
    steps: Asked,
    window: str | None,
    clock_options: Mapping[str, Mapping[int, int] | None],
) -> list[Answer]:
    from collector.analysis.questions import QUESTIONS

    answers = []
    with progress("answering") as report:
        for place, (name, by) in enumerate(asked):
            report(f"answering {name}", place, len(asked))
            question = QUESTIONS[name]
            options: dict[str, Any] = {}
            if window and question.has_window:
                options["window"] = window
            if question.of_ranks:
                options |= clock_options
            answers.append(question.answer(steps, by, **options))
    return answers
