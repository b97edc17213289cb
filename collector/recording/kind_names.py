"""Names of kinds, which are ``kind 42`` for numbers that a newer CUPTI added, and the numbers of these names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from collector.recording.cupti_enums import COPY_KINDS, MEMORY_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

_WITHOUT_NAME = re.compile(r"kind ?([0-9]{1,3})")
_LARGEST = (1 << 8) - 1
"""The columns of kinds whose numbers are in their names have 8 bits."""


def copy_kind_name(kind: int) -> str:
    """The name of a copy kind."""
    return kind_name(COPY_KINDS, kind)


def memory_kind_name(kind: int) -> str:
    """The name of a kind of memory."""
    return kind_name(MEMORY_KINDS, kind)


def kind_name(names: tuple[str, ...], kind: int) -> str:
    """The name of a value of one of `collector.recording.cupti_enums`; native/kinds/unlisted_text.h has the same."""
    return names[kind] if kind < len(names) else kind_without_name(kind)


def kind_without_name(kind: int) -> str:
    """The name of a number that no enumeration lists."""
    return f"kind {kind}"


def kind_number(numbers: Mapping[str, int], name: str) -> int | None:
    """The number of a name, where ``numbers`` has the listed names; None if the name is that of no number."""
    found = _WITHOUT_NAME.fullmatch(name)
    if found is None:
        return numbers.get(name)
    return int(found[1]) if int(found[1]) <= _LARGEST else None
