"""Metadata of annotations as arguments of their slices, and the inverse conversion.

Shapes, types and values are lists of JSON with an entry for each argument of the op, stacks lists of frames. Slices
have the op's type and inputs already, as their labels state these.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from collector.recording.annotation_details import Argument, Details, Frame
from collector.recording.distinct import distinct_codes, distinct_values
from collector.recording.schema import ACTIVITY_TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.recording.recording import Recording

OpDetails: TypeAlias = "tuple[list[int], list[int], list[int], list[int], list[list[tuple[str, str]]]]"

FLOPS, NUM_BYTES, SHAPES, TYPES, VALUES, STACK = ARGUMENTS = (
    "flops",
    "num_bytes",
    "shapes",
    "types",
    "values",
    "stack",
)
NOTHING: OpDetails = ([], [], [], [], [])


def op_details(recording: Recording) -> OpDetails:
    """The details of annotations in the form for the extension.

    Returns:
        Wall times of the starts in order, durations, threads, and which of the details each has; and of each of the
        details its arguments. Of annotations with the same times and thread the innermost one counts.
    """
    texts = [_texts(details) for details in recording.details]
    table = recording.annotations
    has_texts = np.array([False, *map(bool, texts)], bool)
    rows = np.flatnonzero(has_texts[table.details_id])
    if not len(rows):
        return NOTHING
    durations = table.duration_ns
    keys = np.stack([table.start_ns[rows], durations[rows], table.thread_id[rows].astype(np.int64)])
    order = np.lexsort((-table.depth[rows].astype(np.int64), *keys[::-1]))
    keys, rows = keys[:, order], rows[order]
    is_first = np.ones(len(rows), bool)
    is_first[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    starts, lengths, threads = keys[:, is_first]
    return (
        (starts + recording.clock.offset_ns).tolist(),
        lengths.tolist(),
        threads.tolist(),
        (table.details_id[rows[is_first]].astype(np.int64) - 1).tolist(),
        texts,
    )


def call_ops(recording: Recording) -> OpDetails:
    """The annotations of calls that launched no work, as the argument ``op`` of their slices, for the extension.

    Work on a GPU states that of its launch itself. Without an annotation the other rows with a call's correlation id
    would belong to none: memory operations, waits, launches of whole graphs.

    Returns:
        Correlation ids in order, zeros, zeros, and which of the annotations each has; and of each its argument.
    """
    linked = distinct_values(recording.external_correlations.correlation_id)
    stated = np.concatenate([getattr(recording, table).correlation_id for table in ACTIVITY_TABLES])
    ids = linked[~np.isin(linked, stated)]
    names = recording.annotation_ids(ids)
    is_named = (names >= 0) & (ids > 0)
    if not is_named.any():
        return NOTHING
    ids = ids[is_named]
    used, places = distinct_codes(names[is_named])
    none = [0] * len(ids)
    texts = [[("op", recording.strings[name_id])] for name_id in used.tolist()]
    return ids.tolist(), none, none, places.tolist(), texts


def _texts(details: Details) -> list[tuple[str, str]]:
    given = details.arguments
    columns: dict[str, Any] = {
        FLOPS: details.flops,
        NUM_BYTES: details.num_bytes,
        SHAPES: [each.shape for each in given] if any(each.shape for each in given) else [],
        TYPES: [each.type for each in given] if any(each.type for each in given) else [],
        VALUES: [each.value for each in given] if any(each.value for each in given) else [],
        STACK: details.stack,
    }
    return [(key, json.dumps(value, ensure_ascii=False)) for key, value in columns.items() if value]


def details_of(given: Mapping[str, Any]) -> Details:
    """The details that a slice's arguments state; what cannot be read is left out."""
    found = {key: _parsed(given.get(key)) for key in ARGUMENTS}
    lists = [found[key] if isinstance(found[key], list) else [] for key in (SHAPES, TYPES, VALUES)]
    shapes, types, values = (each + [None] * (max(map(len, lists)) - len(each)) for each in lists)
    try:
        arguments = tuple(
            Argument.from_fields((shape or (), dtype or "", value or ""))
            for shape, dtype, value in zip(shapes, types, values, strict=True)
        )
        stack = tuple(
            Frame(str(file), int(line), str(name), int(first)) for file, line, name, first in found[STACK] or ()
        )
    except (TypeError, ValueError, OverflowError):
        arguments, stack = (), ()
    flops, num_bytes = (
        value if type(value) is int and 0 <= value < 1 << 63 else 0 for value in (found[FLOPS], found[NUM_BYTES])
    )
    op, inputs = (given.get(key) for key in ("op", "inputs"))
    return Details(
        flops=flops,
        num_bytes=num_bytes,
        op=op if isinstance(op, str) else "",
        inputs=tuple(inputs.split(", ")) if isinstance(inputs, str) and inputs else (),
        stack=stack,
        arguments=arguments,
    )


def _parsed(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
