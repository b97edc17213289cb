"""The collectives that a recording states in its table ``collectives``, under names that are equal on all ranks."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from collector.merging.clocks import COLLECTIVE, in_order, shared_collective_name
from collector.recording.collective_rows import collective_rows
from collector.recording.distinct import distinct_codes
from collector.recording.kernel_names import demangle

if TYPE_CHECKING:
    from collector.merging.clocks import Markers
    from collector.recording.recording import Recording

_NAMES = {"collective": "name_id", "group": "group_name_id", "dtype": "type_name_id"}
_FIGURES = {"seq": "sequence", "elements": "num_in_elements"}
"""Detail of a collective -> its column."""
_SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")


def stated_moments(recording: Recording, step_number: int, *, by_table: bool = True) -> Markers:
    """The markers of a recording that states collectives, see `collector.merging.clocks.Markers`; else none.

    Kernels of collectives that the table does not state are known by their names. So are all others without
    ``by_table``, as they are in the trace of a rank that states none.
    """
    strings, table = recording.strings, recording.collectives
    if not len(table):
        return {}
    rows = collective_rows(recording)
    named_so, place = distinct_codes(recording.kernels.name_id)
    is_named_so = np.array([bool(COLLECTIVE.search(strings[name_id])) for name_id in named_so.tolist()], bool)
    chosen = np.flatnonzero((rows >= 0) | is_named_so[place])
    kernels = recording.kernels[chosen]
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    offset_ns = recording.clock.offset_ns
    for row, name_id, start_ns, end_ns, *shape in zip(
        rows[chosen].tolist(),
        *(kernels[column].tolist() for column in ("name_id", "start_ns", "end_ns", *_SHAPE)),
        strict=True,
    ):
        details = {"grid": _sizes(shape[:3]), "block": _sizes(shape[3:])}
        if by_table and row >= 0:
            details |= {key: strings[table[column][row]] for key, column in _NAMES.items()}
            details |= {key: str(table[column][row] or "") for key, column in _FIGURES.items()}
        stated = {key: value for key, value in details.items() if value}
        name = shared_collective_name(demangle(strings[name_id]), stated)
        found[name].append((start_ns + offset_ns, end_ns + offset_ns))
    return {(step_number, name): in_order(moments) for name, moments in found.items()}


def _sizes(sizes: list[int]) -> str:
    return ",".join(map(str, sizes)) if any(sizes) else ""
