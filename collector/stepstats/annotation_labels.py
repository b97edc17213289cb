"""Annotation metadata (op type, flops, inputs) per path: for labels, and for RunMetadata's provenance."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.protos import AnnotationDetails, StackFrame
from collector.recording.annotation_details import Details, Frame, resolve
from collector.stepstats.labels import op_label

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.recording.recording import Recording

_NOTHING = Details()
_LARGEST = 2**63 - 1


class AnnotationLabels:
    """The annotations of one recording."""

    def __init__(self, recording: Recording) -> None:
        self._table = recording.annotations
        self._strings = recording.strings
        self._details = recording.details
        self._pairs: list[tuple[int, int, int]] = []
        """(name_id, details_id, number of annotations with both)."""
        if self._details:
            found, counts = np.unique(self._keys(), return_counts=True)
            self._pairs = [
                (*divmod(key, 1 << 32), count) for key, count in zip(found.tolist(), counts.tolist(), strict=True)
            ]
        self._by_path = {self._strings[name_id]: name_id for name_id, _, _ in self._pairs}

    @cached_property
    def consumed(self) -> frozenset[int]:
        """``name_id`` of the annotations whose results are inputs of others."""
        inputs = (
            name
            for name_id, details_id, _ in self._pairs
            for name in resolve(self._strings[name_id], self._of(details_id).inputs, self._by_path)
        )
        return frozenset(self._by_path[name] for name in inputs if name in self._by_path)

    def column(self) -> tuple[list[str], list[int], npt.NDArray[np.uint32]]:
        """The labels, the ends of their ops in bytes, and the index of each annotation's ``timeline_label``."""
        if self._details:
            keys, index = np.unique(self._keys(), return_inverse=True)
            labels = [self._label(*divmod(key, 1 << 32)) for key in keys.tolist()]
            label_index = index.astype(np.uint32).reshape(-1)
        else:
            is_used = np.zeros(len(self._strings), bool)
            is_used[self._table.name_id] = True
            labels = [self._label(name_id, 0) if used else ("", 0) for name_id, used in enumerate(is_used)]
            label_index = self._table.name_id
        return [text for text, _ in labels], [op_end for _, op_end in labels], label_index

    def _keys(self) -> npt.NDArray[np.uint64]:
        """One number per annotation for the pair of its name and details."""
        keys: npt.NDArray[np.uint64] = self._table.name_id.astype(np.uint64) << np.uint64(32) | self._table.details_id
        return keys

    def _label(self, name_id: int, details_id: int) -> tuple[str, int]:
        """A label, and where its op ends in bytes."""
        details = self._of(details_id)
        path = self._strings[name_id]
        text = op_label(path, details.op, resolve(path, details.inputs, self._by_path))
        return text, len(op_label(path, details.op).encode()) - len("()")

    def fields(self) -> dict[str, Any]:
        """The fields of ``Provenance`` with the combined metadata of all runs of each annotation, or {}."""
        if not self._details:
            return {}
        messages: dict[str, AnnotationDetails] = {}
        frames: dict[Frame, int] = {}
        runs: dict[str, int] = {}
        for name_id, details_id, count in self._pairs:
            path = self._strings[name_id]
            runs[path] = runs.get(path, 0) + count
            if details_id:
                self._add(messages.setdefault(path, AnnotationDetails(path=path)), self._of(details_id), count, frames)
        for path, message in messages.items():
            message.runs = runs[path]
        return {
            "annotations": [messages[path] for path in sorted(messages)],
            "frames": [StackFrame(**frame._asdict()) for frame in frames],
        }

    def _add(self, message: AnnotationDetails, details: Details, count: int, frames: dict[Frame, int]) -> None:
        message.flops = min(message.flops + count * details.flops, _LARGEST)
        message.num_bytes = min(message.num_bytes + count * details.num_bytes, _LARGEST)
        message.op = message.op or details.op
        if not message.inputs:
            message.inputs.extend(resolve(message.path, details.inputs, self._by_path))
        if not message.stack:
            message.stack.extend(frames.setdefault(frame, len(frames)) for frame in details.stack)

    def _of(self, details_id: int) -> Details:
        return self._details[details_id - 1] if details_id else _NOTHING
