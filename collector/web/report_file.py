"""One file that holds the page and its data: opens from a mail attachment, and loads nothing from anywhere."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import os
from dataclasses import dataclass
from importlib.resources import files
from itertools import zip_longest
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.errors import UnknownFormatError
from collector.files.atomic_files import atomic_write
from collector.files.distinct_names import distinct_names
from collector.text.terminal import printable
from collector.web.part_rows import part_rows
from collector.web.report_data import joined_names, page_data, step_data

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from collector.formats.step import TracedStep
    from collector.web.part_rows import PartRows
    from collector.web.report_lanes import Lanes

MAX_SIZE = 2_000_000
"""The default limit of a report in bytes."""
_FEWEST_SLICES = 2_000
"""The minimum number of slices in a report, whatever its limit."""
_SAMPLE = 20_000
"""Slices that are packed to estimate how many fit."""
_WELL_FILLED = 0.85
"""Share of the room for slices below which more of them are tried."""
_ROWS_BY_SLICES = 0.5
"""The minimum ratio of the bytes of packed rows to those of packed slices; rows that cannot fit are not packed."""
_COUNTS = 16
"""Bytes by which the packed data of a step may grow where it states another number of slices."""
_LEVEL = 6


@dataclass(frozen=True)
class ReportSize:
    """The size and content of a written report."""

    num_bytes: int
    slices: int
    """Slices in it."""
    all_slices: int
    """Slices of the steps."""


def write_report(
    path: str | os.PathLike[str],
    steps: Sequence[tuple[str, TracedStep]],
    *,
    before: Sequence[tuple[str, TracedStep]] = (),
    title: str = "",
    max_size: int = MAX_SIZE,
) -> ReportSize:
    """Write a page about these steps to a file, whole or not at all.

    Args:
        path: the file.
        steps: name and step of each.
        before: other steps, which these are compared with; they come first in the page.
        title: the title of the page; empty: the names of the steps.
        max_size: the maximum size in bytes. Slices of the timeline that do not fit are left out, the shortest first,
            and the page says so; tables are never cut for it.

    Raises:
        TypeError: the size is not a number.
        ValueError: the size is NaN or below 0.
        collector.OutputError: the file cannot be written.
    """
    if not isinstance(max_size, Real) or isinstance(max_size, bool):
        raise TypeError(f"max_size takes a number of bytes, not {max_size!r}")
    if not max_size >= 0:
        raise ValueError(f"max_size is {max_size!r}: a number of bytes from 0 on is needed")
    together = [*before, *steps]
    data = [step_data(step, name) for name, step in together]
    title = title or _title([name for name, _ in before], [name for name, _ in steps])
    described = page_data(data, [step for _, step in together], title, len(before))
    content, kept = _fitting(
        [each.lanes for each in data],
        described,
        lambda: [part_rows(step.recording) for _, step in together],
        max_size,
    )
    with atomic_write(path) as file:
        file.write(content)
    return ReportSize(len(content), kept, sum(each.lanes.num_slices for each in data))


def _title(before: Sequence[str], now: Sequence[str]) -> str:
    return f"{joined_names(before)} → {joined_names(now)}" if before else joined_names(now)


def save_report(step: TracedStep, path: Path) -> None:
    """Write a page about one step; see `write_report`."""
    write_report(path, [(_plain_name(step, path), step)])


def report_of_step(step: TracedStep, path: Path, before: Sequence[TracedStep], title: str, max_size: int) -> None:
    """Write a page about one step and the steps that it is compared with; see `write_report`.

    Raises:
        collector.UnknownFormatError: the file is not named as a page is.
    """
    if path.suffix.lower() != ".html":
        raise UnknownFormatError(f"{path}: a report is a page", "Name it .html")
    together = [*before, step]
    pages = [*(Path(f"before {place}") for place in range(len(before))), path]
    names = [_plain_name(each, page) for each, page in zip(together, pages, strict=True)]
    files = [page if each.path is None else each.path for each, page in zip(together, pages, strict=True)]
    *others, own = zip(distinct_names(names, files), together, strict=True)
    write_report(path, [own], before=others, title=title, max_size=max_size)


def _plain_name(step: TracedStep, path: Path) -> str:
    """The name of the step's file, or that of the page without its suffix."""
    return step.path.name if step.path is not None else path.stem


def _fitting(
    lanes: Sequence[Lanes],
    described: dict[str, Any],
    rows_of_steps: Callable[[], Sequence[PartRows | None]],
    max_size: int,
) -> tuple[bytes, int]:
    """The page with as many slices as fit, the longest ones; where all fit, with the rows of parts if those do, too."""
    total = sum(each.num_slices for each in lanes)
    bins = {f"bins-{place}": _packed(each.bins()) for place, each in enumerate(lanes)}

    def packed(most: int) -> dict[str, str]:
        return {f"slices-{place}": _packed(each.slices(count(each, most))) for place, each in enumerate(lanes)}

    def count(each: Lanes, most: int) -> int:
        return each.num_slices * most // max(total, 1)

    def page(most: int, slices: Mapping[str, str], rows: Sequence[PartRows | None] = ()) -> bytes:
        steps = [
            {**step, "slices": count(each, most), "rows": own.described if own else None}
            for step, each, own in zip_longest(described["steps"], lanes, rows)
        ]
        own_rows = {f"rows-{place}": _packed(own.planes) for place, own in enumerate(rows) if own}
        return page_of_data({**described, "steps": steps}, {**bins, **slices, **own_rows})

    fixed = len(page(0, packed(0))) + _COUNTS * len(lanes)
    most, room = total, max(max_size - fixed, 0)
    if total > _SAMPLE:  # how much one takes is known from some
        most = min(total, room * _SAMPLE // _size_of(packed(_SAMPLE)))
    most = max(most, min(total, _FEWEST_SLICES))
    slices = packed(most)
    if most < total and _size_of(slices) < _WELL_FILLED * room:  # the longest take more than others
        most = min(total, int(most * _WELL_FILLED * room / _size_of(slices)))
        slices = packed(most)
    while _size_of(slices) > room and most > _FEWEST_SLICES:
        most = max(int(most * room / _size_of(slices) * 0.97), _FEWEST_SLICES)
        slices = packed(most)
    content = page(most, slices)
    if most == total and len(content) + _ROWS_BY_SLICES * _size_of(slices) <= max_size:
        whole = page(most, slices, rows_of_steps())
        content = whole if len(whole) <= max_size else content
    return content, most


def _size_of(islands: Mapping[str, str]) -> int:
    return sum(map(len, islands.values()))


def page_of_data(described: Mapping[str, Any], drawn: Mapping[str, str]) -> bytes:
    """The page with its data, and packed islands of bytes by their names."""
    text = json.dumps(described, separators=(",", ":"), allow_nan=False)
    islands = {"data": _packed(text.encode()), "licences": _packed(asset("LICENSES.txt").encode()), **drawn}
    script, style = asset("app.js"), asset("app.css")
    policy = (
        f"default-src 'none'; script-src '{_content_hash(script)}'; style-src '{_content_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = [
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n",
        f'<meta http-equiv=Content-Security-Policy content="{policy}">\n',
        '<meta name=viewport content="width=device-width,initial-scale=1">\n<meta name=referrer content=no-referrer>\n',
        f"<meta name=generator content={described['format']}>\n",
        f"<title>{html.escape(printable(described['title']))}</title>\n",
        f"<style>{style}</style>\n</head>\n<body>\n",
        "<noscript>This report is drawn by the script that it contains, and scripts are disabled.</noscript>\n",
        "<main id=app></main>\n",
        *(
            f'<script type="application/octet-stream" id="{name}">{content}</script>\n'
            for name, content in islands.items()
        ),
        f"<script>{script}</script>\n</body>\n</html>\n",
    ]
    return "".join(parts).encode()


def _packed(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content, _LEVEL, mtime=0)).decode()


def _content_hash(content: str) -> str:
    """The hash of a script or style for a content security policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def asset(name: str) -> str:
    """A file of the page."""
    return files("collector.web").joinpath("assets", name).read_text("utf-8")
