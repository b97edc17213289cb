"""The origin of a step, and the program that recorded it, as the provenance of its message states them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.recording.recorder_name import RECORDED_BY, recorder_of
from collector.recording.step_origin import NO_ORIGIN, StepOrigin, stated_number

if TYPE_CHECKING:
    from collector.protos import Provenance


def stated_origin(provenance: Provenance | None) -> StepOrigin:
    """The rank and the number of ranks; the missing parts of files stay in the message, whose ledger has them."""
    if provenance is None:
        return NO_ORIGIN
    rank = stated_number(provenance.rank) if provenance.HasField("rank") else None
    return StepOrigin(rank, stated_number(provenance.world_size) or None)


def recorder_in(provenance: Provenance | None) -> dict[str, str]:
    """The program that recorded the step, as a file in the format of another program states it; empty: not known."""
    if provenance is None:
        return {}
    name = recorder_of({**provenance.environment, "source": provenance.source})
    return {RECORDED_BY: name} if name else {}
