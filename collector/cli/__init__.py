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
import importlib
import os
import pkgutil
import sys
from typing import TYPE_CHECKING, NoReturn, Protocol, cast

from collector.errors import CollectorError
from collector.text import terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

EXIT_TROUBLE = 2
"""Exit status for a file or an argument that cannot be used."""
_EXIT_INTERRUPTED = 130


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
    try:
        parsed = _parser(given).parse_args(given)
        status = _load(parsed.subcommand).run(parsed)
        sys.stdout.flush()
    except CollectorError as error:
        terminal.report(" ".join(str(error).split()))
        return EXIT_TROUBLE
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


class _Parser(argparse.ArgumentParser):
    """Reports errors in one line, like the other errors of the command."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_TROUBLE, f"collector: {message} (see: {self.prog} --help)\n")


class _Version(argparse.Action):
    """Finds the version out when it is asked for, because that takes as long as many a command."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from collector.version import version

        print(f"collector {version()}")
        parser.exit()


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(prog="collector", description="Trace the work of a GPU, and inspect traces.")
    parser.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    added = parser.add_subparsers(dest="subcommand", metavar="COMMAND", required=True, parser_class=_Parser)
    asked_for = next((word for word in given if not word.startswith("-")), None)
    names = subcommands()
    for name in [asked_for] if asked_for in names else names:
        module = _load(name)
        text = (module.__doc__ or "").strip()
        subparser = added.add_parser(
            name,
            help=text.partition("\n")[0],
            description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(subparser)
    return parser


def _load(name: str) -> Subcommand:
    return cast("Subcommand", importlib.import_module(f"{__name__}.{name}"))
