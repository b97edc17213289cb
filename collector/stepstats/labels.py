"""The grammar of ``node_name`` and ``timeline_label``, as this project writes them.

Labels are for people and for TensorFlow's tools. native/stepstats/label_writer.h writes the same for many nodes at
once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_NOT_IN_LABELS = (", ", "(", ")")
"""Readers of labels take inputs apart at these: an input that has one in its name is left out of the label."""


def node_name(activity: str, path: str | None) -> str:
    """``op:kernel`` of what was launched under the annotation ``path``; None: under none."""
    return f"{activity if path is None else op_of(path)}:{activity}"


def op_of(path: str) -> str:
    """An annotation's path as the ``op`` of a node's name, which readers split at colons."""
    return re.sub(r":+", ".", path)


def op_label(path: str, op: str = "", inputs: Sequence[str] = ()) -> str:
    """``path = Op(input, …)``, from which TensorFlow's timeline takes the op and the arrows that it shows."""
    listed = [name for name in inputs if not any(mark in name for mark in _NOT_IN_LABELS)]
    return f"{path} = {op or path.rstrip('/').rpartition('/')[2] or path}({', '.join(listed)})"


def kernel_label(whole_name: str, registers: int, shared_bytes: int, grid: Sequence[int], block: Sequence[int]) -> str:
    """``void add<float>(float*) regs:64 shm:0 grid:8,1,1 block:256,1,1``."""
    shape = f"grid:{','.join(map(str, grid))} block:{','.join(map(str, block))}"
    return f"{name_in_label(whole_name)} regs:{registers} shm:{shared_bytes} {shape}"


def name_in_label(whole_name: str) -> str:
    """A kernel's name as labels have it: TensorFlow takes what stands between @@ and # for the op's name."""
    return whole_name.replace("@@", "@ @")


def copy_label(kind: str, num_bytes: int, from_memory: str, to_memory: str, src_device: int, dst_device: int) -> str:
    """``MEMCPYHtoD 4096 bytes (Pageable to Device)``; between devices with both at the end."""
    ends = f" gpu:{src_device} to gpu:{dst_device}" if kind == "PtoP" else ""
    return f"MEMCPY{kind}{_size(num_bytes)} ({from_memory} to {to_memory}){ends}"


def memset_label(num_bytes: int, memory: str) -> str:
    """``MEMSET 4096 bytes (Device)``."""
    return f"MEMSET{_size(num_bytes)} ({memory})"


def _size(num_bytes: int) -> str:
    """Nothing that was recorded moves no bytes: CUPTI gives 0 where it does not know."""
    return f" {num_bytes} bytes" if num_bytes else ""
