"""Check whether this machine can be traced, with which libraries, and what to do where it cannot.

Each line is one check: ✓ marks an item that is present; ✗ one that is missing, so that nothing can be traced; ! one
that is wrong but does not prevent tracing; · one that does not matter for tracing. The remedy follows each missing or
wrong item. Exit status: 0: a GPU can be traced here, even with warnings (!); 1: none can be traced; 2: the output
cannot be written, or an argument is wrong.

  collector info
  collector info --json | jq .checks
"""

from __future__ import annotations

import json
import platform
import sys
from typing import TYPE_CHECKING, Any

from collector.sources.machine_checks import FAILED, NOTE, OK, WARNING, Check, machine_checks
from collector.text.terminal import as_written, printable, reader_may_leave, shows_colours

if TYPE_CHECKING:
    import argparse

_MARKS = {OK: ("✓", "bold green"), FAILED: ("✗", "bold red"), WARNING: ("!", "bold yellow"), NOTE: ("·", "")}
"""State -> mark and style."""
_ARM_EARLIER = "Set COLLECTOR_NVTX=1 before the program begins"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    from collector.sources import SOURCE_NAMES

    parser.add_argument("--source", choices=SOURCE_NAMES, default="auto", help="the source of activity records")
    parser.add_argument("--json", action="store_true", help="print the checks as JSON")


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    from collector.errors import UnavailableError
    from collector.sources import open_source

    name = arguments.source
    found: dict[str, Any]
    try:
        source = open_source(name)
        name, found = source.name, source.probe()
    except UnavailableError as error:
        found = {"available": False, "cause": error.cause, "remedy": error.remedy}
    checks = checks_of(name, found)
    available = bool(found.get("available"))
    with reader_may_leave():
        if arguments.json:
            print(json.dumps({"available": available, "source": name, "checks": [each._asdict() for each in checks]}))
        else:
            _print(checks)
    return 0 if available else 1


def checks_of(source: str, found: dict[str, Any]) -> list[Check]:
    """All checks, with the versions that a bug report needs; ``found`` is the result of the source's ``probe``."""
    from collector.tracing.nvtx import missed_copies, state
    from collector.version import version

    return [
        *machine_checks(found),
        Check("source", NOTE, source),
        Check("NVTX", NOTE, state()),
        *(
            Check(
                "NVTX", WARNING, f"{copy} was used before the handler was armed: its ranges are not seen", _ARM_EARLIER
            )
            for copy in missed_copies()
        ),
        Check("collector", NOTE, version()),
        Check("Python", NOTE, f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
    ]


def _print(checks: list[Check]) -> None:
    if not shows_colours(sys.stdout):
        for each in checks:
            print(f"{_MARKS[each.state][0]} {printable(each.name)}: {_line(each)}")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None)
    for each in checks:
        mark, style = _MARKS[each.state]
        table.add_row(
            Text(mark, style=style),
            Text(as_written(printable(each.name)), style="bold"),
            Text(_line(each), overflow="fold"),
        )
    Console().print(table)


def _line(check: Check) -> str:
    return as_written(printable(f"{check.text}. {check.remedy}" if check.remedy else check.text))
