"""The command language of ``collector prof``: tfprof's commands and options, on the command line and at the prompt.

``scope -max_depth 4 -select micros,bytes``: a command, followed by options. ``-max_depth=4`` and ``--max_depth 4`` are
equivalent.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from collector.profiler.attributes import ATTRIBUTES, ORDERS
from collector.profiler.profile_options import OUTPUTS, Filters, Options, Output
from collector.profiler.profiler_errors import OptionError
from collector.profiler.views.view_registry import VIEWS
from collector.text.wording import suggestion

COMMANDS: dict[str, str] = {
    **{name: view.help for name, view in VIEWS.items()},
    "advise": "findings with the largest gain first; -explain for the evidence",
    "set": "defaults of the options of all later commands",
    "help": "this text; help COMMAND or help -OPTION for one",
}
"""Command -> help."""

OPTIONS: dict[str, str] = {
    "max_depth": "levels of a tree, hops of the graph, rows of the op view",
    "min_bytes": "only nodes that requested at least this many bytes in total",
    "min_peak_bytes": "only nodes that held at least this many bytes at some time",
    "min_residual_bytes": "only nodes that kept at least this many bytes",
    "min_output_bytes": "only nodes with outputs of at least this many bytes",
    "min_micros": "only nodes that took at least this many microseconds in total",
    "min_accelerator_micros": "only nodes that took at least this many microseconds on the accelerator",
    "min_cpu_micros": "only nodes that took at least this many microseconds on the host",
    "min_params": "only nodes with at least this many parameters",
    "min_float_ops": "only nodes with at least this many float operations",
    "min_occurrence": "only nodes that ran (op: are defined) at least this often",
    "step": "one step; -1: the average of all",
    "order_by": f"sort by one of {', '.join(ORDERS)}",
    "account_type_regexes": "only nodes with one of these types count",
    "start_name_regexes": "show from these names on",
    "trim_name_regexes": "do not go below these names",
    "show_name_regexes": "show only these names",
    "hide_name_regexes": "do not show these names",
    "account_displayed_op_only": "totals of displayed nodes only",
    "select": f"show some of {', '.join(ATTRIBUTES)}",
    "output": f"one of {', '.join(OUTPUTS)}; for example file:outfile=report.txt",
}
"""Option -> help. Regular expressions are separated by commas and must match whole names."""

_TRUE = ("true", "t", "yes", "y", "1")
_FALSE = ("false", "f", "no", "n", "0")


@dataclass(frozen=True)
class Command:
    """One parsed line."""

    name: str
    """A key of ``COMMANDS``, or ``""`` for an empty line."""
    options: Options
    """The options set before, changed by the line's own."""
    words: tuple[str, ...] = ()
    """The topic of ``help``."""
    advice: dict[str, str] = field(default_factory=dict)
    """Options of ``advise``."""


_HELP = {"-h", "-help", "--help"}
"""Words that ask for help, as other commands understand them."""


def parse_line(line: str, current: Options) -> Command:
    """Parse a line typed at the prompt.

    Raises:
        OptionError: there is no such command or option, or an option has an invalid value.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise OptionError(f"cannot read the line: {error}") from error
    return parse(words, current)


def parse(words: Sequence[str], current: Options) -> Command:
    """Parse the words of a command line; see ``parse_line``."""
    if not words:
        return Command("", current)
    name, rest = words[0], list(words[1:])
    if not _HELP.isdisjoint(words):
        return Command("help", current, (name,) if name == "advise" else ())
    if name not in COMMANDS:
        raise OptionError(f"no command {name!r}{suggestion(name, list(COMMANDS))}", f"There are {', '.join(COMMANDS)}")
    if name == "help":
        return Command(name, current, tuple(rest))
    if name == "advise":
        return Command(name, current, advice=_advice_options(rest))
    return Command(name, parse_options(rest, current))


def parse_options(words: Iterable[str], current: Options) -> Options:
    """``current`` changed by ``-option value`` words.

    Raises:
        OptionError: an option is unknown or has an invalid value.
    """
    pairs = _pairs(words, OPTIONS, "no option", "See help", flags=("account_displayed_op_only",))
    changes = {name: _value(name, text) for name, text in pairs}
    options = current.replace(**changes)
    broken = Filters(options, is_logged=False).broken
    if broken:
        raise OptionError(f"not a regular expression: {broken[0]}")
    return options


def _pairs(
    words: Iterable[str], known: Iterable[str], cause: str, remedy: str, flags: Sequence[str]
) -> Iterable[tuple[str, str]]:
    """(option, value) pairs; a flag without a value is true. An option that is not ``known`` raises with ``cause``."""
    queue = list(words)
    while queue:
        word = queue.pop(0)
        name, has_value, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not name:
            remedy = "Name files before the command" if os.path.lexists(word) else "Options begin with -"
            raise OptionError(f"{word!r} is not an option", remedy)
        if name not in known:
            raise OptionError(f"{cause} -{name}{suggestion(f'-{name}', [f'-{each}' for each in known])}", remedy)
        if not has_value:
            follows = bool(queue) and not (queue[0].startswith("-") and not _is_number(queue[0]))
            if not follows and name not in flags:
                raise OptionError(f"option -{name} needs a value")
            value = queue.pop(0) if follows else "true"
        yield name, value


def _is_number(word: str) -> bool:
    return word.lstrip("-").isdecimal()


def _value(name: str, text: str) -> Any:
    text = text.strip("'\"")
    if name.endswith("_regexes"):
        return tuple(filter(None, text.split(",")))
    if name == "select":
        return _known(name, frozenset(filter(None, text.split(","))), ATTRIBUTES)
    if name == "order_by":
        (order,) = _known(name, frozenset((text,)), ORDERS)
        return order
    if name == "output":
        return Output.parse(text)
    if name == "account_displayed_op_only":
        return _truth(name, text)
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"option -{name} is a number, not {text!r}") from None


def _known(name: str, given: frozenset[str], known: Iterable[str]) -> frozenset[str]:
    unknown = sorted(given.difference(known))
    if unknown:
        raise OptionError(f"option -{name} has no value {unknown[0]!r}", f"Its values are {', '.join(known)}")
    return given


def _truth(name: str, text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise OptionError(f"option -{name} is true or false, not {text!r}")


def advice_options() -> dict[str, str]:
    """Option of ``advise`` -> help."""
    from collector.profiler.advice.step_advice import thresholds

    return {"explain": "the evidence for each piece of advice", **thresholds()}


def _advice_options(words: Iterable[str]) -> dict[str, str]:
    known = advice_options()
    has = f"It has {', '.join('-' + word for word in known)}"
    options = dict(_pairs(words, known, "advise has no option", has, flags=("explain",)))
    for name, text in options.items():
        if name != "explain":
            try:
                float(text)
            except ValueError:
                raise OptionError(f"option -{name} is a number, not {text!r}") from None
    return options


def help_text(words: Sequence[str] = ()) -> str:
    """The help on commands and options, or on those in ``words``.

    Raises:
        OptionError: there is no such command or option.
    """
    asked = [word.lstrip("-") for word in words]
    if asked:
        of_advice = advice_options()
        every = {**COMMANDS, **OPTIONS, **of_advice}
        for word in asked:
            if word not in every:
                raise OptionError(f"no help on {word!r}", "See help")
        thresholds = "".join(f"  -{name:<34}{text}\n" for name, text in of_advice.items())
        return "".join(f"{word}: {every[word]}\n{thresholds if word == 'advise' else ''}" for word in asked)
    commands = "".join(f"  {name:<27}{text}\n" for name, text in COMMANDS.items())
    options = "".join(f"  -{name:<26}{text}\n" for name, text in OPTIONS.items())
    views = " | ".join(VIEWS)
    return f"Commands:\n{commands}\nOptions of {views} and set:\n{options}\nAn empty line shows the options in force.\n"
