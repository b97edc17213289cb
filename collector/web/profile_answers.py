"""Answers of tfprof's views for the page: the tree as a table, and the text that `collector prof` prints."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from collector.analysis.answer import Answer, Column
from collector.analysis.units import values_of
from collector.profiler.attributes import ATTRIBUTES, ORDERS
from collector.profiler.builder import ProfileOptionBuilder
from collector.profiler.commands import OPTIONS, parse_options
from collector.profiler.empty_profiles import names_below, op_types, without_filters
from collector.profiler.patterns import ANYTHING
from collector.profiler.pprof import MEASURES
from collector.profiler.profile_options import Filters, Options
from collector.profiler.profiler_errors import OptionError
from collector.profiler.views.view_registry import VIEWS
from collector.text.shell_words import file_argument
from collector.web.report_data import answer_data
from collector.web.text_search import check_match_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from collector.profiler.api import Profiler
    from collector.profiler.model import Model
    from collector.profiler.reporter import Reporter
    from collector.profiler.views.view import Message

_UNITS = {"microseconds": ("ns", 1000), "bytes": ("bytes", 1), "count": ("count", 1)}
"""Unit of a measure -> the unit of a column, and the factor of its values."""
_PRESETS = {
    "Profile Trainable Variables": ("scope", {**ProfileOptionBuilder.trainable_variables_parameter()}),
    "Profile Float Operations": ("op", {**ProfileOptionBuilder.float_operation()}),
    "Profile Time and Memory": ("code", {**ProfileOptionBuilder.time_and_memory()}),
}
"""Name of a preset of profiler-ui -> its view and options."""
_OUTPUT = "output"


def profile_choices() -> dict[str, Any]:
    """The choices: views, options with their help and defaults, attributes, orders, presets."""
    return {
        "views": list(VIEWS),
        "options": [[name, text] for name, text in OPTIONS.items() if name != _OUTPUT],
        "defaults": {name: _text(value) for name, value in Options().items() if name != _OUTPUT},
        "attributes": list(ATTRIBUTES),
        "orders": list(ORDERS),
        "presets": [
            [name, view, {option: _text(value) for option, value in options.items() if option != _OUTPUT}]
            for name, (view, options) in _PRESETS.items()
        ],
    }


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(sorted(value)) if isinstance(value, (list, tuple, set, frozenset)) else str(value)


def profile_answer(profiler: Profiler, name: str, view: str, words: Mapping[str, str]) -> dict[str, Any]:
    """The answer of a view.

    Args:
        profiler: the profiler that answers.
        name: the name of the file.
        view: scope, graph, op or code.
        words: options as texts, by their names on the command line.

    Raises:
        collector.CollectorError: there is no such view or option, or no such answer, or a regular expression that takes
            too long.
    """
    if view not in VIEWS:
        raise OptionError(f"no view {view!r}", f"There are {', '.join(VIEWS)}")
    options = parse_options([f"-{option}={value}" for option, value in words.items()], Options())
    if options.output != Options().output:  # `-output` and `--output` are names of this option as well
        raise OptionError("the page itself shows the answer", "Leave -output out")
    _check_expressions(profiler.reporter, view, options)
    report = profiler.reporter.ask(view, options)
    measures = [attribute for attribute in MEASURES if attribute in options.select]
    answer = _table(report.message, view, measures, _notes(profiler.model, options.step))
    said = " ".join(f"-{option} {shlex.quote(value)}" for option, value in words.items() if value)
    source = "" if profiler.recorded else "--profile_path="
    return {
        **answer_data(answer),
        "python": f"profiler.answer({view!r}, Options({_arguments(words, options)}))",
        "cli": f"collector prof {source}{file_argument(name)} {view} {said}".rstrip(),
        "text": report.text,
        "measure": f"total_{measures[0]}" if measures else "",
    }


def _check_expressions(reporter: Reporter, view: str, options: Options) -> None:
    """Refuse regular expressions that would not be done with the names of a view."""
    filters = Filters(options, is_logged=False)
    every = (filters.account, filters.start, filters.trim, filters.show, filters.hide)
    given = {each for patterns in every for each in patterns.expressions} - {"", ANYTHING}
    if filters.broken or not given:
        return
    texts = [*names_below(reporter.ask(view, without_filters(options)).message), *op_types(reporter)]
    for expression in sorted(given):
        check_match_time(expression, texts)


def _arguments(words: Mapping[str, str], options: Options) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items() if name in words)


def _table(message: Message, view: str, measures: list[str], notes: tuple[str, ...]) -> Answer:
    rows = list(_rows(message))
    columns = [
        Column("path", "text", "Name of the node, the type or the line of code."),
        Column("depth", "number", "Levels above it."),
    ]
    values: dict[str, Any] = {
        "path": values_of([node.name for node, _ in rows], "text"),
        "depth": values_of([depth for _, depth in rows], "number"),
    }
    for attribute in measures:
        counter, measure, comment = MEASURES[attribute]
        unit, factor = _UNITS[measure]
        for prefix, of in (("total_", "Of it and what is below it. "), ("", "Of itself. ")):
            columns.append(Column(f"{prefix}{attribute}", unit, of + comment))
            figures = [getattr(node, f"{prefix}{counter}") * factor for node, _ in rows]
            values[f"{prefix}{attribute}"] = values_of(figures, unit)
    definition = f"The {view} view of tfprof, in the order of its tree."
    return Answer(f"prof_{view}", definition, tuple(columns), values, notes=notes)


def _notes(model: Model, step: int) -> tuple[str, ...]:
    """The notes of the command: tfprof's notice, and the share of the profile's nodes that ran in each step."""
    notes = [" ".join(model.notice.split())] if model.notice else []
    nodes = len(model.nodes)
    shares = [_ran(model, each) / nodes for each in sorted(model.steps) if nodes and step in (-1, each)]
    if shares and min(shares) < 1:
        least, most = f"{min(shares):.1%}", f"{max(shares):.1%}"
        share = least if least == most else f"{least} to {most}"
        steps = "the step" if len(shares) == 1 else f"each of the {len(shares)} steps"
        notes.append(f"{share} of the profile's nodes ran in {steps}.")
    return tuple(notes)


def _ran(model: Model, step: int) -> int:
    """The number of nodes that ran in a step."""
    return sum(step in node.executions for node in model.nodes.values())


def _rows(root: Message) -> Iterator[tuple[Any, int]]:
    """Every node of a message with its depth, parents first; of the op view all types stand side by side."""
    pending: list[tuple[Any, int]] = [(root, 0)]
    while pending:
        node, depth = pending.pop()
        yield node, depth
        pending.extend((child, depth + 1) for child in reversed(node.children))
