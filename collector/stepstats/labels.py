"""The grammar of ``node_name``, ``timeline_label`` and device names: this project's writer and reader.

Labels are for display and for TensorFlow's tools; they are read only from nodes that have no columns.
native/stepstats/label_writer.h writes the same for many nodes at once, and the labels of kernels;
native/stepstats/activity.h reads labels.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from collector.recording.cupti_enums import COPY_KINDS, MEMORY_KINDS
from collector.recording.kind_names import kind_number
from collector.runtime.extension import convert_extension

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.protos.step_stats_pb2 import NodeExecStats

_NOT_IN_LABELS = (", ", "(", ")")
"""Separators in labels: an input whose name contains one of them is left out of the label."""
_OP_LABEL = re.compile(r"(.*) = (.*)\((.*)\)")
_API_NAME = re.compile(r"(cu|cuda)[A-Z]\w*$")
_RUNTIME_API_NAME = re.compile(r"cuda[A-Z]")
_STREAM = re.compile(r"/stream:(\d{1,9})(?:\.\d{1,9})?$")
_NUMBERS = {
    **{text: number for number, text in enumerate(COPY_KINDS)},
    **{text: number for number, text in enumerate(MEMORY_KINDS)},
}


def node_name(activity: str, path: str | None) -> str:
    """``op:kernel`` of an activity launched under the annotation ``path``; None if there was no annotation."""
    return f"{activity if path is None else op_of(path)}:{activity}"


def op_and_kernel(name: str) -> tuple[str, str]:
    """The parts of ``op:kernel``; a name without a colon is both."""
    op, _, kernel = name.partition(":")
    return op, kernel or op


def recorded_op(node: NodeExecStats) -> tuple[str, str]:
    """Op and name of GPU work of ours, from the recorded end of the op; the op is empty if there is none."""
    if not node.op_end:
        op, kernel = op_and_kernel(node.node_name)
        return "" if op == kernel else op, kernel
    name = node.node_name.encode()
    return name[: node.op_end].decode(errors="replace"), name[node.op_end + 1 :].decode(errors="replace")


def op_of(path: str) -> str:
    """An annotation's path as the ``op`` of a node's name; readers split node names at colons."""
    return re.sub(r":+", ".", path)


def op_label(path: str, op: str = "", inputs: Sequence[str] = ()) -> str:
    """``path = Op(input, …)``, from which TensorFlow's timeline takes the op and its arrows."""
    listed = [name for name in inputs if not any(mark in name for mark in _NOT_IN_LABELS)]
    return f"{path} = {op or implied_op(path)}({', '.join(listed)})"


def implied_op(path: str) -> str:
    """The op in the label of an annotation that states none: the last name in its path."""
    return path.rstrip("/").rpartition("/")[2] or path


def name_in_label(whole_name: str) -> str:
    """A kernel's name in the form for labels: TensorFlow takes the text between @@ and # as the op's name."""
    return whole_name.replace("@@", "@ @")


def copy_label(kind: str, num_bytes: int, from_memory: str, to_memory: str, src_device: int, dst_device: int) -> str:
    """``MEMCPYHtoD 4096 bytes (Pageable to Device)``; a copy between devices ends with both devices."""
    ends = f" gpu:{src_device} to gpu:{dst_device}" if kind == "PtoP" else ""
    return f"MEMCPY{kind}{_size(num_bytes)} ({from_memory} to {to_memory}){ends}"


def memset_label(num_bytes: int, memory: str) -> str:
    """``MEMSET 4096 bytes (Device)``."""
    return f"MEMSET{_size(num_bytes)} ({memory})"


def _size(num_bytes: int) -> str:
    """No bytes means an unknown size, which CUPTI reports as 0; no recorded activity is empty."""
    return f" {num_bytes} bytes" if num_bytes else ""


# --- reading of nodes without columns


class LabelledWork(NamedTuple):
    """GPU work parsed from its name and label; numbers are those of an activity's columns."""

    kind: int
    """``Activity.Kind``: a kernel, copy or memset."""
    num_bytes: int
    """-1: unknown."""
    copy_kind: int
    src_kind: int
    dst_kind: int
    src_device_id: int
    """-1: unknown."""
    dst_device_id: int
    num_blocks: int
    """Blocks in the grid; 0: unknown."""


def gpu_work(names: Sequence[str], labels: Sequence[str]) -> list[LabelledWork]:
    """The work of GPU nodes, parsed from their names and labels."""
    work = []
    for kind, num_bytes, copied, source, target, *rest in convert_extension.gpu_labels(list(names), list(labels)):
        kinds = (kind_number(_NUMBERS, text) or 0 for text in (copied, source, target))
        work.append(LabelledWork._make((kind, num_bytes, *kinds, *rest)))
    return work


def parse_op_label(label: str) -> tuple[str, list[str]]:
    """Op and inputs of ``[memory] name = Op(in1, in2)``; ``("unknown", [])`` of anything else."""
    match = _OP_LABEL.match(label)
    if match is None:
        return "unknown", []
    op, inputs = match.group(2), match.group(3)
    return op, inputs.split(", ") if inputs else []


def parse_kernel_name(label: str, node_name: str) -> tuple[str, str]:
    """Name and op of a kernel or copy: ``name:op``, taken from ``@@name:op#`` in the label if it contains that."""
    start, end = label.find("@@"), label.find("#")
    if start >= 0 and end > start + 2:
        node_name = label[start + 2 : end]
    name, op = [*node_name.split(":"), "unknown"][:2]
    return name, op


def is_api_name(name: str) -> bool:
    """Whether a host node has the name of a function of CUDA's driver or runtime API."""
    return _API_NAME.match(name) is not None


def is_runtime_api_name(name: str) -> bool:
    """Whether a name is that of a function of CUDA's runtime API."""
    return _RUNTIME_API_NAME.match(name) is not None


# --- devices

HOST_DEVICE = "/cpu:0"
"""The device of annotations and calls."""


def unit_of(device: str) -> str:
    """The GPU of a stream's device: ``/gpu:0`` for ``/gpu:0/stream:all``."""
    return device.partition("/stream:")[0]


def stream_device(unit: str, stream_id: int, context_id: int | None = None) -> str:
    """The device of a stream; its name contains the context if a context with a lower number has that stream too."""
    return f"{unit}/stream:{stream_id}" + ("" if context_id is None else f".{context_id}")


def stream_of(device: str) -> int | None:
    """The stream of a device, whatever its context is; None if the device is not a stream.

    >>> stream_of("/gpu:0/stream:7"), stream_of("/gpu:0/stream:7.2"), stream_of("/gpu:0/stream:all")
    (7, 7, None)
    """
    match = _STREAM.search(device)
    return int(match[1]) if match else None
