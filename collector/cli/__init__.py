"""The command ``collector``.

A subcommand is one module in this package with its name. The first line of its docstring is its help; it has two
functions:

* ``add_arguments(parser)`` declares its options and arguments,
* ``run(arguments) -> int`` runs it and returns the exit status.

Only the module of the given subcommand is imported. A `collector.CollectorError` raised by ``run`` becomes one line on
standard error and exit status 2.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import pkgutil
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast

from collector.cli._ending_signals import ended_by_exception
from collector.errors import CollectorError
from collector.text import terminal
from collector.text.wording import suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

EXIT_TROUBLE = 2
"""Exit status for a file or an argument that cannot be used."""
_EXIT_INTERRUPTED = 130
_EXIT_UNREAD = 141
"""Exit status if the reader of the output left before its end; shells show it for programs that SIGPIPE ended."""
_OF_WRITING = (errno.EAGAIN, errno.EBADF, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC, errno.EPERM)
"""Errors of the system call `write`."""
_WITHOUT_PROJECT = ("info", "completion")
"""Commands for which faulty options of the project are a warning: one explains faults, one runs in each new shell."""
_WITH_OWN_SIGNALS = ("attach", "bench", "run")
"""Commands that end others with themselves, or call code of the user, whose SystemExit is its own affair."""
_EXAMPLES = """\
collector demo -o step.pb                   trace a training-like step, on a simulated GPU if there is no other
collector summary step.pb                   busy time, kernels, time by annotation, copies, losses
collector timeline step.pb -o step.json     a timeline for https://ui.perfetto.dev and chrome://tracing

`collector --help` lists all commands, and `collector COMMAND --help` explains one.
"""
_CHOICE = re.compile(r"invalid choice: '(?P<given>.*)'(?P<listed> \(choose from (?P<known>.*)\))", re.DOTALL)
"""A message of argparse about a value outside of a list."""
_MOST_LISTED = 20
"""A longer list of valid words hides what is wrong, and is left to the help."""


class Subcommand(Protocol):
    """The interface of a module of this package."""

    __doc__: str | None

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare options and arguments."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Run the subcommand; return the exit status."""


def subcommands() -> list[str]:
    """The names of all subcommands, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with ``arguments`` (``sys.argv`` without a program name); return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    terminal.replace_closed_streams()
    terminal.escape_unknown_characters()
    status, trouble = 0, ""
    try:
        try:
            status = _run(given)
        except CollectorError as error:
            status, trouble = EXIT_TROUBLE, " ".join(str(error).split())
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        terminal.discard_output()
        status = status or _EXIT_UNREAD
    except OSError as error:
        if not _has_working_directory() and isinstance(error, FileNotFoundError):
            terminal.report("the working directory has been deleted. Change to another one")
        elif error.filename is None and error.errno in _OF_WRITING and not _can_write_output():
            terminal.discard_output()
            from collector.files.atomic_files import output_error

            terminal.report(str(output_error("cannot write standard output", error)))
        elif error.filename is None and isinstance(error, FileNotFoundError) and (cause := _no_temporary_folder()):
            terminal.report(cause)
        elif error.filename is not None:  # not status 1, which has a meaning of its own
            terminal.report(f"{os.fsdecode(error.filename)}: {error.strerror}")
        else:
            raise
        return EXIT_TROUBLE
    if trouble:
        terminal.report(trouble)
    return status


def _run(given: Sequence[str]) -> int:
    if not given:
        print(_EXAMPLES, end="")
        return 0
    parsed = _parsed(given)
    command = _load(parsed.subcommand)
    if parsed.subcommand in _WITH_OWN_SIGNALS:
        return command.run(parsed)
    with ended_by_exception():
        return command.run(parsed)


def _can_write_output() -> bool:
    try:
        print(flush=True)  # not flush alone, because there may be no buffer
    except OSError:
        return False
    return True


def _no_temporary_folder() -> str:
    """One line, if no temporary file can be made; else ``""``."""
    from collector.files.new_folders import temporary_folder

    try:
        temporary_folder()
    except CollectorError as error:
        return str(error)
    return ""


def _has_working_directory() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


def _parsed(given: Sequence[str]) -> argparse.Namespace:
    """The parsed arguments, with the options that the project of the working directory states.

    ``on_command_line`` has the variables that the command line gives itself, and ``of_project`` those that the project
    states.
    """
    parser = command_parser(given)
    on_command_line = parser.given(given)
    command = getattr(on_command_line, "subcommand", None)
    applied = None
    if command is not None and not hasattr(on_command_line, "isolated"):
        from collector.cli import _project_options

        names = subcommands()
        try:
            project = _project_options.project_options(names)
            if project is not None:
                of_command = parser.subcommand_parsers[command]
                applied = _project_options.apply(project, command, of_command, set(vars(on_command_line)))
        except CollectorError as error:
            if command not in _WITHOUT_PROJECT:
                raise
            terminal.report(" ".join(str(error).split()))
    parsed = parser.parse_args(given)
    parsed.on_command_line = frozenset(vars(on_command_line or argparse.Namespace()))
    parsed.of_project = applied
    return parsed


class _HelpRequestedError(Exception):
    """Help is among the arguments."""


class _Parser(argparse.ArgumentParser):
    """Reports errors in one line, with the most similar valid word, like the other errors of the command."""

    _prints_help = True
    _is_mixing = False

    def __init__(self, *names: Any, **options: Any) -> None:
        super().__init__(*names, **options)
        self.suggest_on_error = False  # from CPython 3.15 on, argparse proposes a word itself

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As argparse, but options may stand between the files of a command: ``sql runs --csv "select …"``."""
        rests = (argparse.PARSER, argparse.REMAINDER)
        has_rest = any(action.nargs in rests for action in self._get_positional_actions())
        asks_for_help = args is not None and not {"-h", "--help"}.isdisjoint(args)
        if self._is_mixing or has_rest or asks_for_help:  # argparse would print the help without positional arguments
            return super().parse_known_args(args, namespace)
        self._is_mixing = True  # argparse calls this method again: for the options, then for the other words
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_mixing = False

    def given(self, words: Sequence[str]) -> argparse.Namespace | None:
        """The arguments that these words give, without defaults; None if they ask for help.

        Words that are not arguments end the program, as in `parse_args`; missing arguments do not. An unknown option is
        an error of its subcommand, which knows the valid ones.
        """
        parsers = [self, *self.subcommand_parsers.values()]
        before = [(action, action.default, action.required) for each in parsers for action in each._actions]
        for action, _, _ in before:
            action.required = False
            if action.option_strings:  # argparse converts the default of a positional argument as if it was given
                action.default = argparse.SUPPRESS
        for each in parsers:
            each._prints_help = False
        try:
            parsed, unknown = self.parse_known_args(words)
        except _HelpRequestedError:
            return None
        finally:
            for action, default, required in before:
                action.default, action.required = default, required
            for each in parsers:
                each._prints_help = True
        if unknown:
            of_subcommand = self.subcommand_parsers.get(getattr(parsed, "subcommand", ""), self)
            of_subcommand.error(f"unrecognized arguments: {' '.join(unknown)}{of_subcommand._remedy(unknown)}")
        return parsed

    @property
    def subcommand_parsers(self) -> Mapping[str, _Parser]:
        """The parsers of the subcommands by name."""
        return next((each.choices for each in self._actions if isinstance(each, argparse._SubParsersAction)), {})

    def print_help(self, file: Any = None) -> None:
        """Coloured on a terminal; plain in a file or a pipe; see `collector.text.terminal.shows_colours`."""
        if not self._prints_help:
            raise _HelpRequestedError
        if terminal.shows_colours(file or sys.stdout):
            # Only here: argparse makes a formatter for each argument that is added.
            from collector.cli._coloured_help import ColouredHelp

            self.formatter_class = ColouredHelp
        (file or sys.stdout).write(self.format_help())  # argparse hides errors of writing

    def error(self, message: str) -> NoReturn:
        choice = _CHOICE.search(message)
        if choice:
            known = re.findall(r"[^\s,']+", choice["known"])
            if len(known) > _MOST_LISTED:
                message = message[: choice.start("listed")]
            message += suggestion(choice["given"], known)
        self.exit(EXIT_TROUBLE, f"collector: {terminal.printable(message)} (see: {self.prog} --help)\n")

    def _remedy(self, unknown: Sequence[str]) -> str:
        """What helps against words that are no arguments: a similar option, or the places that files can take."""
        if any(word.startswith("-") for word in unknown):
            return self._similar_option(unknown)
        places = [str(action.metavar or action.dest) for action in self._get_positional_actions()]
        if not places or self.subcommand_parsers:
            return ""
        taken = f"one {places[0]}" if len(places) == 1 else f"{' and '.join(places)}: put a pattern of names in quotes"
        return f"; {self.prog} takes {taken}"

    def _similar_option(self, unknown: Sequence[str]) -> str:
        actions = (action for action in self._actions if action.help != argparse.SUPPRESS)
        known = sorted(name for action in actions for name in action.option_strings if name.startswith("--"))
        return next((suggestion(word.partition("=")[0], known) for word in unknown if word.startswith("--")), "")


class _Version(argparse.Action):
    """Finds the version out when it is asked for, because that takes as long as many a command."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from collector.version import version

        print(f"collector {version()}")
        parser.exit()


def command_parser(given: Sequence[str] = ()) -> _Parser:
    """The parser of the command, with the one subcommand that ``given`` asks for, or with all of them.

    The version alone needs none of them.
    """
    parser = _Parser(
        prog="collector",
        description="Trace the work of a GPU, and inspect traces.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    _add_isolated(parser)
    added = parser.add_subparsers(dest="subcommand", metavar="COMMAND", required=True, parser_class=_Parser)
    asked_for = next((word for word in given if not word.startswith("-")), None)
    names = subcommands()
    for name in [] if list(given) == ["--version"] else [asked_for] if asked_for in names else names:
        module = _load(name)
        text = (module.__doc__ or "").strip()
        subparser = added.add_parser(
            name,
            help=text.partition("\n")[0],
            description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(subparser)
        _add_isolated(subparser)
    return parser


def _add_isolated(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--isolated",
        action="store_true",
        default=argparse.SUPPRESS,
        help="take no options from [tool.collector] of pyproject.toml",
    )


def _load(name: str) -> Subcommand:
    return cast("Subcommand", importlib.import_module(f"{__name__}.{name}"))
