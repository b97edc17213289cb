"""The step in a Chrome trace of any program, with the checks that all dialects share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.formats.step import Step
from collector.formats.step_sources import StepSource
from collector.recording.step_origin import StepOrigin

if TYPE_CHECKING:
    from collector.formats.file_content import FileContent


def chrome_step(
    content: FileContent, kind: str, source: StepSource, *, is_empty: bool, origin: str = "distributedInfo"
) -> Step:
    """The step of a Chrome trace; ``origin`` is the member of its top level that states its rank.

    Raises:
        collector.InvalidFileError: nothing in it can be read, although there are events.
    """
    found = content.chrome_events
    if is_empty and (found.skipped or found.cut_at is not None):
        reasons = ", ".join(found.skipped) or "cut off"
        raise content.error(f"no event of it can be read ({reasons}; position {found.cut_at or 0})")
    stated = StepOrigin.from_dict(found.metadata.get(origin))
    return Step(
        source,
        kind=kind,
        path=content.name,
        skipped=found.skipped,
        cut_at=found.cut_at,
        rank=stated.rank,
        world_size=stated.world_size,
    )
