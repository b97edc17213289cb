"""Print a script by which a shell completes this command: commands, options, their values, files.

Put this line into ~/.bashrc, or the same line with zsh into ~/.zshrc after compinit:

  eval "$(collector completion bash)"

Needs the extra ``completion``. Every new shell prints the script again, so it fits the installed version.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from collector.cli._completed_values import completed_values
from collector.cli._path_arguments import path_argument
from collector.runtime.optional_packages import optional_package

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collector.cli._completed_values import CompletedValues

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
        completed = completed_values(action)
        if completed is not None:
            _offer(action, completed)
            continue
        words = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
        if action.type is path_argument or any(word in words for word in _FILES):  # folders are offered with files
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif any(word in words for word in _FOLDERS):
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    print(shtab.complete(parser, arguments.shell))
    if arguments.shell == "bash":
        print(_BASH)
    return 0


def _offer(action: argparse.Action, completed: CompletedValues) -> None:
    """Let the scripts offer the values of an argument."""
    values = tuple(completed.values())
    if completed.before_folder:
        action.complete = _before_folder(values)  # type: ignore[attr-defined]
    elif completed.separator:
        action.complete = _listed(values, completed.separator)  # type: ignore[attr-defined]
    else:
        action.choices = values


def _before_folder(values: Sequence[str]) -> dict[str, object]:
    """The completion of two words: a value and a folder."""
    words = " ".join(values)
    function = f"_collector_dir_after_{'_'.join(values)}"
    body = f"""
# previous_word is that of the function _shtab_collector, which calls this one.
{function}() {{
  if [[ $previous_word == -* ]]; then
    compgen -W "{words}" -- "$1"
  else
    compgen -d -- "$1"
  fi
}}
"""
    return {"bash": function, "zsh": f"({words}):DIR:_files -/", "tcsh": f"({words})", "preamble": {"bash": body}}


def _listed(values: Sequence[str], separator: str) -> dict[str, object]:
    """The completion of a word that may have several values."""
    words = " ".join(values)
    function = f"_collector_listed_{values[0]}"
    body = f"""
{function}() {{
  local last="${{1##*{separator}}}"
  compgen -P "${{1%"$last"}}" -W "{words}" -- "$last"
}}
"""
    listed = f"_values -s {separator} value {words}"
    return {"bash": function, "zsh": listed, "tcsh": f"({words})", "preamble": {"bash": body}}


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The options and arguments of a parser and of its subcommands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from _actions(each)
        elif action.choices is None and action.nargs != 0:
            yield action
