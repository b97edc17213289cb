"""Profiles of Triton's profiler Proton (``.hatchet``, or the same as ``.json``): trees of sums by call path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from collector.formats.file_format import Format

if TYPE_CHECKING:
    from collector.formats.file_content import FileContent
    from collector.formats.step import Step

_TREE = re.compile(rb'(?:\xef\xbb\xbf)?\s*\[\s*\{\s*"(?:children|frame|metrics)"\s*:')
"""A list whose first entry begins with a member of a node; no event of a Chrome trace has these members."""


def _read(content: FileContent) -> Step:
    from collector.formats.proton_tree import read_tree
    from collector.formats.step import Step
    from collector.formats.step_sources import CallSumsSource

    sums = read_tree(content)
    return Step(CallSumsSource(sums), kind=FORMAT.name, path=content.name, skipped=sums.unread)


FORMAT = Format(
    name="Proton profile",
    family="Proton profiles",
    suffixes=(".hatchet",),
    origin="Triton",
    begins=lambda head: _TREE.match(head) is not None,
    is_likely=lambda content: b'"frame"' in content.head and b'"metrics"' in content.head,
    read=_read,
)
