"""Print a script by which a shell completes this command: commands, options, their values, files.

Put this into ~/.bashrc, or the same with zsh into ~/.zshrc behind compinit:

  eval "$(collector completion bash)"

Needs the extra ``completion``. The script is that of the installed version: a new shell prints it anew.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from collector.runtime.optional_packages import optional_package

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHELLS = ("bash", "zsh", "tcsh")
_FOLDERS = ("DIR", "FOLDER", "LOGDIR")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    parser.add_argument("shell", choices=_SHELLS, help="the shell")


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    from collector.cli import command_parser

    shtab = optional_package("shtab")
    parser = command_parser()
    for action in _actions(parser):
        words = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
        if any(word in words for word in _FOLDERS):
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif action.type is Path or "FILE" in words:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, arguments.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The options and arguments of a parser and of its subcommands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from _actions(each)
        elif action.choices is None and action.nargs != 0:
            yield action
