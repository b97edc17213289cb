"""The reason why a view shows no node, with the names or types there are."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from collector.profiler.patterns import ANYTHING, Patterns
from collector.profiler.profile_options import Options

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.profiler.reporter import Report, Reporter

_MOST_NAMED = 8


def reason_of_empty_view(reporter: Reporter, view: str, options: Options, report: Report) -> str:
    """One line about the first option that leaves nothing of a view; ``""`` if the view shows a node.

    Args:
        reporter: the reporter that gave the answer.
        view: the name of the view that was asked.
        options: the options of the question.
        report: the answer.
    """
    everything = without_filters(options)
    if options.replace(output=everything.output) == everything or options.output.kind == "timeline":
        return ""
    if report.message.children:
        return ""
    names = list(names_below(reporter.ask(view, everything).message))
    if not names:
        return ""
    types = sorted(op_types(reporter))
    for option, known, whole in (
        ("account_type_regexes", types, "type"),
        ("start_name_regexes", names, "name"),
        ("show_name_regexes", names, "name"),
    ):
        expressions: tuple[str, ...] = getattr(options, option)
        if expressions != (ANYTHING,) and not Patterns(expressions).count(known):
            return (
                f"-{option} {','.join(expressions)}: no {whole} matches, and all of a {whole} has to (.*{whole}.*). "
                f"There are {_listed(known)}"
            )
    return f"no node passes all options; without them there are {_listed(names)}"


def without_filters(options: Options) -> Options:
    """The same question about all nodes."""
    return Options(max_depth=options.max_depth, step=options.step, order_by=options.order_by, select=options.select)


def op_types(reporter: Reporter) -> set[str]:
    """The types of all ops."""
    return {each for node in reporter.model.nodes.values() for each in node.op_types if each}


def names_below(root: Any) -> Iterable[str]:
    """The names below the root, those nearest to it first."""
    pending = deque(root.children)
    while pending:
        node = pending.popleft()
        yield node.name
        pending.extend(node.children)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
