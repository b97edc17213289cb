"""Values of options that a project states: tables ``[tool.collector.COMMAND]`` of its ``pyproject.toml``.

The file is the first ``pyproject.toml`` with a table ``[tool.collector]`` in the working directory or a folder above
it. A key is the long name of an option without the dashes; what is given on the command line wins.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from collector.errors import CollectorError, MissingDependencyError
from collector.text.wording import most_similar, suggestion

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

_FILE = "pyproject.toml"
_TABLE = "tool.collector"
_STATES_OPTIONS = re.compile(rb"tool[\s.\"'\]=({]*collector")
"""Matches the content of every file with the table ``[tool.collector]``, in each notation of TOML."""


class AppliedOptions(NamedTuple):
    """The options that a command takes from a project, by the names of their variables."""

    file: Path
    command: str
    keys: Mapping[str, str]
    """Variable -> key of the file."""
    defaults: Mapping[str, Any]
    """Variable -> its value where nothing states it."""


class ProjectOptions(NamedTuple):
    """The options that a project states for its commands."""

    file: Path
    by_command: Mapping[str, Mapping[str, Any]]


def project_options(commands: Sequence[str]) -> ProjectOptions | None:
    """The options that the project of the working directory states; None: there is none, or it states no options.

    Raises:
        CollectorError: the file cannot be read, it states options of ours and is not TOML, or a table of it is named
            after no command.
    """
    try:
        folder = Path.cwd()
    except FileNotFoundError:  # the working directory has been deleted
        return None
    for parent in (folder, *folder.parents):
        file = parent / _FILE
        try:
            content = file.read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            continue
        except OSError as error:
            raise CollectorError(f"cannot read {file}: {error.strerror}", "Correct it, or use --isolated") from None
        if not _STATES_OPTIONS.search(content):  # a file that is none of our business may be no TOML
            continue
        tools = _parsed(file, content).get("tool")
        stated = tools.get("collector") if isinstance(tools, dict) else None
        if stated is not None:
            return ProjectOptions(file, _checked(file, stated, commands))
    return None


def _parsed(file: Path, content: bytes) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        try:
            import tomli as tomllib
        except ImportError:
            raise MissingDependencyError(
                f"{file} states options of collector, and tomli, which reads it, is not installed", "pip install tomli"
            ) from None
    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CollectorError(f"{file} is not valid TOML: {error}", "Correct it, or use --isolated") from None


def _checked(file: Path, stated: Any, commands: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(stated, dict):
        raise CollectorError(f"{_TABLE} in {file} is not a table", f"Write [{_TABLE}.COMMAND] with options below it")
    for name, options in stated.items():
        if not isinstance(options, dict):
            raise CollectorError(
                f"{_TABLE}.{name} in {file} is not a table",
                f"Write [{_TABLE}.{name if name in commands else 'COMMAND'}] with options below it",
            )
        if name not in commands:
            similar = most_similar(name, commands)
            raise CollectorError(
                f"{file} has a table [{_TABLE}.{name}], but collector has no command `{name}`",
                f"Did you mean `{similar}`?" if similar else "`collector --help` lists the commands",
            )
    return stated


def apply(
    project: ProjectOptions, command: str, parser: argparse.ArgumentParser, given: Collection[str]
) -> AppliedOptions:
    """Make the values that the project states the defaults of the command's parser, and return which ones.

    Args:
        project: the options of the project.
        command: the name of the subcommand.
        parser: its parser.
        given: the variables that the command line sets. They keep their values, and options that exclude them are
            left out.

    Raises:
        CollectorError: a key is not an option of the command, a value is not one of its option, or two options exclude
                each other.
    """
    actions = dict(_options_of(parser))
    values: dict[str, Any] = {}
    stated: dict[str, argparse.Action] = {}
    for key, value in project.by_command.get(command, {}).items():
        action = actions.get(key)
        place = f"{key} of [{_TABLE}.{command}] in {project.file}"
        if action is None:
            raise CollectorError(
                f"{place} is not an option of collector {command}{suggestion(key, list(actions))}",
                f"See `collector {command} --help`",
            )
        default = _default(action, value, place)
        if not default:
            continue
        other = next((name for name, each in stated.items() if each.dest in _excluded_by(action, parser)), None)
        if other is not None:
            raise CollectorError(
                f"{other} and {key} of [{_TABLE}.{command}] in {project.file} exclude each other", "State one of them"
            )
        values |= default
        stated[key] = action
    keys, defaults = dict[str, str](), dict[str, Any]()
    for key, action in stated.items():
        action.required = False
        if not {action.dest, *_excluded_by(action, parser)} & set(given):
            keys[action.dest], defaults[action.dest] = key, action.default
            parser.set_defaults(**{action.dest: values[action.dest]})
    return AppliedOptions(project.file, command, keys, defaults)


def is_of_project(arguments: argparse.Namespace, name: str) -> bool:
    """Whether the project states the value of an option that applies."""
    return arguments.of_project is not None and name in arguments.of_project.keys


def leave_out(arguments: argparse.Namespace, *names: str) -> None:
    """Reset those of these options that the project states to their defaults."""
    applied = arguments.of_project
    for name in names:
        if is_of_project(arguments, name):
            setattr(arguments, name, applied.defaults[name])
    if applied is not None:
        keys = {name: key for name, key in applied.keys.items() if name not in names}
        arguments.of_project = applied._replace(keys=keys)


def settle(arguments: argparse.Namespace, some: Sequence[str], others: Sequence[str]) -> None:
    """Of options that exclude each other, leave those of the project out if the command line gives one of the others.

    Args:
        arguments: the arguments of the command.
        some: the names of variables.
        others: the names of the variables of the options that exclude these.

    Raises:
        CollectorError: the project states some of both, and the command line gives none.
    """
    for names, excluding in ((some, others), (others, some)):
        if arguments.on_command_line & set(excluding):
            leave_out(arguments, *names)
    stated = [next((name for name in names if is_of_project(arguments, name)), None) for names in (some, others)]
    if None not in stated:
        applied = arguments.of_project
        first, second = (applied.keys[name] for name in stated)
        raise CollectorError(
            f"{first} and {second} of [{_TABLE}.{applied.command}] in {applied.file} exclude each other",
            "State one of them",
        )


def option_text(arguments: argparse.Namespace, name: str) -> str:
    """An option for a message: ``--csv``, or its key and the file in which the project states it."""
    if not is_of_project(arguments, name):
        return f"--{name.replace('_', '-')}"
    applied = arguments.of_project
    return f"{applied.keys[name]} of [{_TABLE}.{applied.command}] in {applied.file}"


def _excluded_by(action: argparse.Action, parser: argparse.ArgumentParser) -> set[str]:
    """The variables of the other options that exclude this one."""
    groups = [group for group in parser._mutually_exclusive_groups if action in group._group_actions]
    return {other.dest for group in groups for other in group._group_actions if other is not action}


def _options_of(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    """The options by their long names, without those that print something and exit."""
    for action in parser._actions:
        if action.default is argparse.SUPPRESS:
            continue
        for name in action.option_strings:
            if name.startswith("--"):
                yield name[2:], action


def _default(action: argparse.Action, value: Any, place: str) -> dict[str, Any]:
    """The value as the command line would give it, by the name of its variable."""
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise CollectorError(f"{place} is {value!r}, and it takes true or false", "Correct it")
        if isinstance(action, argparse.BooleanOptionalAction):
            return {action.dest: value}
        return {action.dest: action.const} if value else {}
    if action.nargs in (None, "?") and not isinstance(action, argparse._AppendAction):
        return {action.dest: _converted(action, value, place)}
    given = value if isinstance(value, list) else [value]
    return {action.dest: [_converted(action, each, place) for each in given]}


def _converted(action: argparse.Action, value: Any, place: str) -> Any:
    if isinstance(value, (bool, list, dict)):
        raise CollectorError(f"{place} is {value!r}, and it takes one value", "Write a text or a number")
    convert = action.type if callable(action.type) else str
    try:
        converted = convert(str(value))
    except argparse.ArgumentTypeError as error:
        raise CollectorError(f"{place} is {value!r}: {error}", "Correct it") from None
    except (ValueError, TypeError):
        raise CollectorError(f"{place} is {value!r}, which is not a valid value", "Correct it") from None
    if action.choices is not None and converted not in action.choices:
        raise CollectorError(
            f"{place} is {value!r}{suggestion(str(value), [str(each) for each in action.choices])}",
            f"It takes {', '.join(str(each) for each in action.choices)}",
        )
    return converted
