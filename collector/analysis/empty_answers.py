"""The reason why an answer has no row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.analysis.annotation_paths import is_own_recording
from collector.recording.schema import KINDS_ON_REQUEST, RECORDS, SCHEMA
from collector.text.wording import counted, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.recording.recording import Recording

_ROWS = {
    "kernels": "kernel[|s]",
    "memcpys": "cop[y|ies]",
    "memsets": "memset[|s]",
    "graph_launches": "launch[|es] of CUDA graphs",
    "api_calls": "call[|s] of CUDA",
    "annotations": "annotation[|s]",
    "memory_operations": "memory operation[|s]",
    "overheads": "overhead[|s] of CUPTI",
    "jit_operations": "compilation[|s] by the driver",
}
"""Table -> its rows in words."""


def why_empty(recordings: Sequence[Recording], tables: Sequence[str], otherwise: str) -> str:
    """One sentence that says why there is no row.

    Args:
        recordings: the recordings that the question was put to.
        tables: the tables from whose rows the answer is computed.
        otherwise: the reason if there are such rows.
    """
    if not recordings:
        return "No step was given."
    if all(each.ledger.untraced for each in recordings):
        return "Nothing was traced."
    if not tables or any(len(getattr(each, table)) for each in recordings for table in tables):
        return otherwise
    return why_missing(recordings, tables)


def why_missing(recordings: Sequence[Recording], tables: Sequence[str], *, is_part: bool | None = None) -> str:
    """One sentence that says why recordings, or parts of them, have no row of some tables.

    Args:
        recordings: all of them, or those that the parts were cut out of.
        tables: the names of the tables.
        is_part: whether parts of the recordings are meant; None: what the recordings themselves say.
    """
    if is_part is None:
        is_part = any(each.is_part for each in recordings)
    words = [_ROWS[table] for table in tables]
    apart = sum(sum(each.counts_apart(table)) for each in recordings for table in tables)
    if apart:
        rows = listed(words, "or")
        return counted(f"The recording sets {{:,}} {rows} apart because of [its|their] times: see the ledger.", apart)
    reason = _why_missing(recordings, tables, f"no {counted(listed(words, 'or'), 0)}", is_part=is_part)
    if unknown := sum(map(_unknown_apart, recordings)):
        rows = counted("{:,} row[|s] set apart because of [its|their] times", unknown)
        reason += f", or they are among the {rows}, of which only the number is known: see the ledger"
    return f"{reason}."


def _why_missing(recordings: Sequence[Recording], tables: Sequence[str], missing: str, *, is_part: bool) -> str:
    """Why no row of some tables was recorded, without a full stop."""
    whose = "This part of the" if is_part else "The"
    if not any(is_own_recording(each) for each in recordings):
        return f"{whose} file has {missing}"
    kinds = list(dict.fromkeys(each.option for each in RECORDS if each.table in tables))
    if not kinds:
        return f"{whose} recording has {missing}: the program made none"
    if set(kinds) <= set(KINDS_ON_REQUEST):
        return f"{whose} recording has {missing}, which are recorded on request only (kind {listed(kinds)})"
    left_out = counted("the kind[|s] {{}} [was|were] left out", len(kinds)).format(listed(kinds))
    return f"{whose} recording has {missing}: none happened, or {left_out}"


def _unknown_apart(recording: Recording) -> int:
    """The number of rows that the ledger counts as set apart, and that may be of any table."""
    stated = recording.ledger.invalid_timestamps + recording.ledger.out_of_window
    return max(stated - sum(sum(recording.counts_apart(table)) for table in SCHEMA), 0)
