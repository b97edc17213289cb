"""Whether a generator may wait inside a block that it enters, found in its code.

While a generator waits inside ``with annotate(...)``, Python runs its caller without reporting it. The launches of the
caller would get the generator's name.
"""

from __future__ import annotations

import dis
import sys
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import CodeType, FrameType

_DRIVERS = ("contextlib", "_pytest.fixtures", "pluggy._callers")
"""Modules whose generators wait while a block or a test runs that is to have the name."""


def waits_inside(frame: FrameType) -> bool:
    """Whether the generator or asynchronous generator of ``frame``, about to enter a block, may yield inside it."""
    caller = frame.f_back
    if caller is not None and caller.f_globals.get("__name__") in _DRIVERS:
        return False
    return _yields_inside(frame.f_code, frame.f_lasti)


@lru_cache(maxsize=4096)
def _yields_inside(code: CodeType, offset: int) -> bool:
    """Whether a yield stands in the block that the instruction at ``offset`` enters; False if it enters none."""
    if sys.version_info < (3, 11):
        return _yields_before_handler(code, offset)
    regions = dis._parse_exception_table(code)  # type: ignore[attr-defined]

    def handler_of(place: int) -> int | None:
        return next((region.target for region in regions if region.start <= place < region.end), None)

    instructions = list(dis.get_instructions(code))
    after = next((each.offset for each in instructions if each.offset > offset and each.opname != "CACHE"), None)
    handler = None if after is None else handler_of(after)
    if handler is None or handler == handler_of(offset):
        return False

    def is_inside(place: int) -> bool:
        seen: set[int] = set()
        found = handler_of(place)
        while found is not None and found not in seen:
            if found == handler:
                return True
            seen.add(found)
            found = handler_of(found)
        return False

    # RESUME says what the instruction before it was: 1 a yield, 2 a yield from.
    return any(
        each.opname == "RESUME" and each.arg is not None and each.arg & 3 in (1, 2) and is_inside(each.offset)
        for each in instructions
    )


def _yields_before_handler(code: CodeType, offset: int) -> bool:
    """The same in the code of CPython 3.10, where the block stands before its handler."""
    entry = next((each for each in dis.get_instructions(code) if each.offset == offset), None)
    if entry is None or entry.opname not in ("SETUP_WITH", "SETUP_ASYNC_WITH"):
        return False
    yields = {"YIELD_VALUE"} | (set() if code.co_flags & 0x200 else {"YIELD_FROM"})  # await is one, too
    return any(each.opname in yields and offset < each.offset < entry.argval for each in dis.get_instructions(code))
