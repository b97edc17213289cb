"""Show whether this machine can be traced and with which libraries, or the remedy if it cannot."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `collector.cli`."""
    from collector.sources import SOURCE_NAMES

    parser.add_argument("--source", choices=SOURCE_NAMES, default="auto", help="the source of activity records")


def run(arguments: argparse.Namespace) -> int:
    """See `collector.cli`."""
    from collector.errors import UnavailableError
    from collector.sources import open_source

    try:
        source = open_source(arguments.source)
        rows = describe(source.name, source.probe())
    except UnavailableError as error:
        rows = describe(arguments.source, {"available": False, "cause": error.cause, "remedy": error.remedy})
    _print(rows)
    return 0


def describe(source: str, found: dict[str, Any]) -> list[tuple[str, str]]:
    """The result of a source's ``probe`` as pairs of title and text; unknown values are left out."""
    from collector.tracing.nvtx import state
    from collector.version import version

    available = bool(found.get("available"))
    features = found.get("features") or {}
    devices = found.get("devices") or []
    rows = [
        ("tracing", "available" if available else "unavailable"),
        ("cause", "" if available else str(found.get("cause", ""))),
        ("remedy", "" if available else str(found.get("remedy", ""))),
        ("simulated", "yes: no real GPU is behind these libraries" if found.get("simulated") else ""),
        ("source", source),
        ("driver", _library(found.get("driver_path"), "CUDA " + _cuda(found.get("driver_version")))),
        ("libcupti", _library(found.get("cupti_path"), f"API version {found.get('cupti_api_version')}")),
        ("CUPTI's CUDA", _cuda(found.get("cuda_version"))),
        ("features", ", ".join(sorted(name for name, there in features.items() if there))),
        ("without", ", ".join(sorted(name for name, there in features.items() if not there))),
        *((f"device {device['ordinal']}", str(device["name"])) for device in devices),
        ("NVTX", state()),
        ("collector", version()),
        ("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
    ]
    return [(title, text) for title, text in rows if text]


def _cuda(version: int | None) -> str:
    return f"{version // 1000}.{version % 1000 // 10}" if version else ""


def _library(path: str | None, version: str) -> str:
    return f"{path} ({version})" if path else ""


def _print(rows: list[tuple[str, str]]) -> None:
    if not sys.stdout.isatty():
        for title, text in rows:
            print(f"{title}: {text}")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None)
    styles = {"unavailable": "bold red", "available": "bold green"}
    for title, text in rows:
        table.add_row(Text(title, style="bold"), Text(text, style=styles.get(text, ""), overflow="fold"))
    Console().print(table)
