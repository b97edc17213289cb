"""The details of a step's ops: types, flops, bytes, inputs, and their places in the program.

They come from ``collector.annotate`` and travel in the step's provenance. A step without them, such as TensorFlow's,
has op types and inputs in its labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from collector.profiler.device_columns import DeviceColumns
from collector.profiler.model import Frame
from collector.protos import AnnotationDetails, Provenance
from collector.stepstats.labels import parse_op_label


def in_provenance(provenance: Provenance | None) -> dict[str, AnnotationDetails]:
    """The details of annotations by path; paths are names as nodes have them."""
    found: dict[str, AnnotationDetails] = {}
    for given in provenance.annotations if provenance else ():
        details = AnnotationDetails()
        details.CopyFrom(given)
        details.path = node_path(given.path)
        del details.inputs[:]
        details.inputs.extend(map(node_path, given.inputs))
        found[details.path] = details
    return found


def in_labels(device: DeviceColumns, *, has_provenance: bool) -> Iterator[AnnotationDetails]:
    """Types and inputs from ``name = Op(input, …)``, for ops whose label contains more than their name.

    Ops with columns have their details in the step's provenance, unless that was removed.
    """
    names, index = device.names
    labelled = np.flatnonzero(~device.is_typed) if has_provenance else np.arange(len(index))
    name_ids, firsts = np.unique(index[labelled], return_index=True)
    labels, label_index = device.labels_at(labelled[firsts])
    for name_id, place in zip(name_ids.tolist(), label_index.tolist(), strict=True):
        name, label = names[name_id], labels[place]
        op, inputs = parse_op_label(label) if f"{name} = " in label else ("", [])
        op = "" if op == name.rstrip("/").rpartition("/")[2] else op
        if op or inputs:
            paths = (reference.partition(":")[0].removeprefix("^") for reference in inputs)
            yield AnnotationDetails(path=node_path(name), op=op, inputs=filter(None, paths))


def node_path(path: str) -> str:
    """An annotation's path as a node's name, without the separator of op and kernel."""
    return re.sub(r":+", ".", path)


def stack_of(details: AnnotationDetails, provenance: Provenance) -> list[Frame]:
    """Stack of the op in the program, outermost frame first."""
    known = len(provenance.frames)
    frames = (provenance.frames[index] for index in details.stack if 0 <= index < known)
    return [Frame(frame.file, frame.line, frame.function, first_line=frame.first_line) for frame in frames]
