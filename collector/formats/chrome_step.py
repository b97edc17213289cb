"""The step in a Chrome trace of any program, with the checks that all of them share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.formats.step import Step, StepSource

if TYPE_CHECKING:
    from collector.formats.file_content import FileContent


def chrome_step(content: FileContent, kind: str, source: StepSource, *, is_empty: bool) -> Step:
    """The step of a Chrome trace.

    Raises:
        collector.InvalidFileError: there is nothing in it, though there are events.
    """
    found = content.chrome_events
    if is_empty and (found.skipped or found.cut_at is not None):
        reasons = ", ".join(found.skipped) or "cut off"
        raise content.error(f"no event of it can be read ({reasons}; position {found.cut_at or 0})")
    distributed = found.metadata.get("distributedInfo")

    def stated(name: str) -> int | None:
        number = distributed.get(name) if isinstance(distributed, dict) else None
        return number if type(number) is int and number >= 0 else None

    return Step(
        source,
        kind=kind,
        path=content.name,
        skipped=found.skipped,
        cut_at=found.cut_at,
        rank=stated("rank"),
        world_size=stated("world_size") or None,
    )
