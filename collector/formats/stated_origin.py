"""The origin of a step as the provenance of its message states it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.recording.step_origin import NO_ORIGIN, StepOrigin, stated_number

if TYPE_CHECKING:
    from collector.protos import Provenance


def stated_origin(provenance: Provenance | None) -> StepOrigin:
    """The rank and the number of ranks; the missing parts of files stay in the message, whose ledger has them."""
    if provenance is None:
        return NO_ORIGIN
    rank = stated_number(provenance.rank) if provenance.HasField("rank") else None
    return StepOrigin(rank, stated_number(provenance.world_size) or None)
