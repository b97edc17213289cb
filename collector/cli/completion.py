"""Print a script by which a shell completes this command: commands, options, their values, files.

Put this line into ~/.bashrc, or the same line with zsh into ~/.zshrc after compinit:

  eval "$(collector completion bash)"

Needs the extra ``completion``. Every new shell prints the script again, so it fits the installed version.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from collector.cli._path_arguments import path_argument
from collector.runtime.optional_packages import optional_package

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHELLS = ("bash", "zsh", "tcsh")
_FILES = ("FILE", "JSON", "PREFIX", "PROGRAM", "STEP", "BEFORE", "NOW", "ZIP")
_FOLDERS = ("DIR", "FOLDER", "LOGDIR")
_BASH = r"""
# Bash takes the = of --option=value for a word. Here it separates an option from its value, as a space does.
_collector_completion() {
  local -a words=()
  local index cword=$COMP_CWORD prefix=""
  for ((index = 0; index < ${#COMP_WORDS[@]}; index++)); do
    local word="${COMP_WORDS[index]}"
    if [[ $word == "=" && $index -gt 0 && ${words[${#words[@]} - 1]} == --* ]]; then
      if [[ $index -eq $COMP_CWORD ]]; then
        words+=("")
      elif [[ $index -lt $COMP_CWORD ]]; then
        cword=$((cword - 1))
      fi
    elif [[ $word == --?*=* ]]; then  # COMP_WORDBREAKS lacks the =
      words+=("${word%%=*}" "${word#*=}")
      [[ $index -le $COMP_CWORD ]] && cword=$((cword + 1))
      [[ $index -eq $COMP_CWORD ]] && prefix="${word%%=*}="
    else
      words+=("$word")
    fi
  done
  local -a COMP_WORDS=("${words[@]}")
  local COMP_CWORD=$cword
  _shtab_collector
  COMPREPLY=("${COMPREPLY[@]/#/$prefix}")
}

complete -o bashdefault -o default -F _collector_completion collector
"""


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
        if action.type is path_argument or any(word in words for word in _FILES):  # folders are offered with files
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif any(word in words for word in _FOLDERS):
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    print(shtab.complete(parser, arguments.shell))
    if arguments.shell == "bash":
        print(_BASH)
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The options and arguments of a parser and of its subcommands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from _actions(each)
        elif action.choices is None and action.nargs != 0:
            yield action
