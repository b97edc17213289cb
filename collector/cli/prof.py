"""Show where time, memory, parameters and flops go, as tfprof does.

collector prof step.pb [scope|graph|op|code|advise [OPTIONS]]
collector prof --graph_path=graph.pb --run_meta_path=run_meta [--op_log_path=…] [--checkpoint_path=…] [COMMAND …]
collector prof --profile_path=profile_100 [COMMAND …]

Without a command it opens a prompt, where the tab key completes commands, options and their values, and help explains
them. Without a terminal it prints the output of `collector summary` for recorded steps, and the scope view otherwise.
"""

from __future__ import annotations

import contextlib
import glob
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from collector.cli._path_arguments import check_names
from collector.cli._project_options import leave_out, settle
from collector.errors import CollectorError
from collector.files.path_kinds import exists, is_folder
from collector.text import terminal
from collector.text.progress import progress
from collector.text.wording import suggestion

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator

    from collector.profiler.api import Profiler
    from collector.profiler.commands import Command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    from collector.formats.registry import readable_list

    parser.add_argument("--graph_path", metavar="FILE", help="a GraphDef, binary or text")
    parser.add_argument(
        "--run_meta_path", metavar="FILES", help="RunMetadata files, separated by commas: steps 0, 1, 2…"
    )
    parser.add_argument("--op_log_path", metavar="FILE", help="an OpLogProto: types, flops, code traces")
    parser.add_argument("--checkpoint_path", metavar="PREFIX", help="a checkpoint (PREFIX.index): values of variables")
    parser.add_argument("--profile_path", metavar="FILE", help="a ProfileProto, instead of the others")
    parser.add_argument(
        "words",
        nargs="...",
        metavar="[STEP…] [COMMAND [OPTIONS]]",
        help=f"recorded steps ({readable_list()}), then scope, graph, op, code, advise or help with its options",
    )


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    with _warnings_reported():
        return _run(arguments)


class _Reports(logging.Handler):
    """Prints warnings as all messages of the command."""

    def emit(self, record: logging.LogRecord) -> None:
        for line in record.getMessage().splitlines():
            terminal.report(line)


@contextlib.contextmanager
def _warnings_reported() -> Iterator[None]:
    """The profiler's log, which tells a program what tfprof prints on standard error, goes there."""
    log, reports = logging.getLogger("collector.profiler"), _Reports(logging.WARNING)
    log.addHandler(reports)
    try:
        yield
    finally:
        log.removeHandler(reports)


def _run(arguments: argparse.Namespace) -> int:
    from collector.profiler import commands, prompt
    from collector.profiler.profile_options import Options

    words = list(arguments.words)
    steps = []
    while words and words[0] not in commands.COMMANDS and not words[0].startswith("-"):
        _check_word(words[0], commands.COMMANDS)
        steps.append(words.pop(0))
    check_names(steps)
    options = Options(order_by="accelerator_micros") if steps else Options()
    command = commands.parse(words, options) if words else None
    if command is not None and command.name == "help":
        sys.stdout.write(commands.help_text(command.words))
        return 0
    profiler = profiler_of(arguments, steps)
    inputs = _files_read(arguments, steps)

    def answer(asked: Command) -> str:
        return _answer(profiler, asked, inputs)

    if command is None:
        of_graph = arguments.graph_path or arguments.run_meta_path
        prompt.interact(prompt.Prompt(answer, options), _summaries(steps) if steps and not of_graph else None)
    else:
        terminal.write(answer(command))
    return 0


def _check_word(word: str, known: Iterable[str]) -> None:
    """Raise `collector.CollectorError` for a misspelled command, which would be taken for a file."""
    if not exists(word) and (similar := suggestion(word, list(known))):
        raise CollectorError(f"{word} is neither a file nor a command{similar}")


def _summaries(steps: list[str]) -> Callable[[], str]:
    """The output of `collector summary` for these steps."""
    from collector.cli.summary import summaries

    return lambda: f"{summaries([Path(step) for step in steps])}\n"


def profiler_of(arguments: argparse.Namespace, steps: list[str]) -> Profiler:
    """The profile of the files that arguments and steps name.

    Raises:
        collector.CollectorError: a file cannot be read, or arguments cannot be combined.
    """
    from collector.errors import InvalidFileError
    from collector.profiler.api import Profiler

    others = ("graph_path", "run_meta_path", "op_log_path", "checkpoint_path")
    if steps:
        leave_out(arguments, "profile_path")
    settle(arguments, ("profile_path",), others)
    given = [name for name in others if getattr(arguments, name)]
    if arguments.profile_path:
        if given or steps:
            other = "a step" if steps else f"--{given[0]}"
            raise InvalidFileError(f"--profile_path cannot be combined with {other}", "Give one of them")
        return Profiler.from_profile(arguments.profile_path)
    if not given and not steps:
        raise InvalidFileError("nothing to profile", "Give a recorded step, --run_meta_path or --profile_path")
    profiler = Profiler(arguments.graph_path)
    for step, path in enumerate(filter(None, (arguments.run_meta_path or "").split(","))):
        of_graph = list(profiler.model.nodes.values()) if arguments.graph_path else []
        profiler.add_step(step, path)
        if of_graph:
            ran = sum(step in node.executions for node in of_graph)
            if not ran:
                raise InvalidFileError(f"{path} does not belong to the graph: none of its nodes ran in that step")
            terminal.report(f"step {step}: {ran / len(of_graph):.1%} of the graph's nodes ran")
    with progress("reading", shown=bool(steps)) as report:
        for place, path in enumerate(steps):
            report(f"reading {Path(path).name}", place, len(steps))
            profiler.add_recorded_step(len(profiler.model.steps), path)
    if arguments.op_log_path:
        profiler.add_op_log(arguments.op_log_path)
    if arguments.checkpoint_path:
        profiler.add_checkpoint(arguments.checkpoint_path)
    return profiler


def _files_read(arguments: argparse.Namespace, steps: list[str]) -> list[str]:
    """The files that `profiler_of` reads, with those of a checkpoint and the segments of journals."""
    given = [arguments.graph_path, arguments.op_log_path, arguments.profile_path]
    files = [*filter(None, given), *(arguments.run_meta_path or "").split(","), *steps]
    if arguments.checkpoint_path:
        checkpoint = Path(arguments.checkpoint_path.removesuffix(".index"))
        files += map(str, checkpoint.parent.glob(f"{glob.escape(checkpoint.name)}.*"))
    return files + [str(segment) for step in steps if is_folder(step) for segment in Path(step).iterdir()]


def _answer(profiler: Profiler, command: Command, inputs: list[str]) -> str:
    """The text of an answer; requested files are written."""
    from collector.profiler.empty_profiles import reason_of_empty_view
    from collector.profiler.reporter import write_files

    with progress(f"answering {command.name}"):
        if command.name == "advise":
            return profiler.advice_text(command.advice)
        report = profiler.reporter.ask(command.name, command.options)
        reason = reason_of_empty_view(profiler.reporter, command.name, command.options, report)
    if reason:
        terminal.report(reason)
    write_files(report, inputs)
    if command.options.output.kind == "stdout":
        return report.text
    return report.note
