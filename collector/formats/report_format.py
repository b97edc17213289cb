"""Reports (``.html``): a page about one step that opens in any browser, without a network."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from collector.formats.file_format import Format, Writable
from collector.runtime.later_modules import later_function

if TYPE_CHECKING:
    from pathlib import Path


_BEGINNING = re.compile(rb"\s*<!doctype", re.IGNORECASE)


def _is_page(head: bytes) -> bool:
    return _BEGINNING.match(head) is not None and b"collector-report" in head


def _write(step: Writable, path: Path) -> None:
    later_function("save_report")(step, path)


FORMAT = Format(
    name="report",
    family="reports",
    suffixes=(".html",),
    use="a page for any browser",
    begins=_is_page,
    write=_write,
)
