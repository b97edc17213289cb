"""Theoretical occupancy of kernels by launch shape: ``collector.analysis.occupancy(step)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question
from collector.analysis.device_limits import THREADS_PER_WARP, device_limits
from collector.analysis.duration_groups import DurationGroups, Keys
from collector.analysis.kernel_keys import kernel_names
from collector.analysis.named_question import named_question
from collector.recording.first_rows import distinct_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.analysis.device_limits import DeviceLimits
    from collector.recording.recording import Recording
    from collector.recording.table import Table

    Numbers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]
    Texts = npt.NDArray[np.object_]

UNKNOWN_DEVICE = "unknown: the device's attributes are not recorded"
UNKNOWN_SHAPE = "unknown: the launch shape is not recorded"
IMPOSSIBLE = "unknown: no block of this shape fits on the recorded device"
QUESTION = Question(
    "occupancy",
    "Warps of a kernel that fit on a multiprocessor at once, divided by the warps that it can hold, from launch shapes "
    "and limits of the device; nothing here was measured. A grid with fewer blocks than fit on all multiprocessors "
    "fills them less.",
    (
        Column("device_id", "number", "CUDA device ordinal."),
        Column("name", "text", "Short name of the kernel."),
        Column("grid", "text", "Blocks of the grid, x,y,z."),
        Column("block", "text", "Threads of a block, x,y,z."),
        Column("registers", "count", "Registers of a thread."),
        Column("shared_bytes", "bytes", "Shared memory of a block, static and dynamic."),
        Column("count", "count", "Number of kernels with this launch shape."),
        Column("total_ns", "ns", "Sum of their durations."),
        Column("blocks_at_once", "ratio", "Blocks that fit on a multiprocessor at once."),
        Column("limiter", "text", "Resource that limits the blocks: warps, registers, shared memory or blocks."),
        Column("occupancy", "share", "Warps of these blocks divided by the warps that a multiprocessor can hold."),
        Column(
            "grid_occupancy",
            "share",
            "The same, with at most the number of blocks that the grid has for each multiprocessor.",
        ),
        Column("waves", "ratio", "Blocks of the grid divided by the blocks that fit on the device at once."),
        Column("tail", "share", "Waves divided by waves rounded up: how full the device is over all waves."),
        Column("limits", "text", "Source of the device's limits, or the reason why there is no answer."),
    ),
    summed=("count", "total_ns"),
    tables=("kernels",),
)
_LARGEST = float(1 << 62)
_FIGURES = ("blocks_at_once", "occupancy", "grid_occupancy", "waves", "tail")


@named_question(QUESTION, counts=("kernels",))
def occupancy(steps: Asked) -> Answer:
    """Theoretical occupancy, waves and tail of kernels by launch shape, longest total first.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
    """
    return QUESTION.ask(steps, _part)


def _part(recording: Recording) -> Part:
    kernels = recording.kernels
    groups = DurationGroups(
        [
            Keys.of(kernels.device_id),
            kernel_names(recording),
            *(Keys.of_shapes(*axes) for axes in _sizes(kernels)),
            Keys.of(kernels.registers_per_thread),
            Keys.of(_shared_bytes(kernels)),
        ],
        kernels.duration_ns,
    )
    figures, texts = _figures(recording, _launched(recording, groups.first_rows()))
    columns = groups.named_keys(QUESTION.columns[: len(groups.keys)]) | groups.figures() | figures | texts
    return Part(columns, (), groups.evidence("kernels"))


def occupancy_of_kernels(recording: Recording) -> Floats:
    """The theoretical occupancy of each kernel, a share; NaN where it is unknown."""
    kernels = recording.kernels
    if not device_limits(recording):
        return np.full(len(kernels), np.nan)
    grid, block = _sizes(kernels)
    shape = (*grid, *block, kernels.registers_per_thread, _shared_bytes(kernels))
    first, codes = distinct_rows([kernels.device_id, *shape])
    occupied: Floats = _figures(recording, _launched(recording, first))[0]["occupancy"]
    return occupied[codes]


class _Launched(NamedTuple):
    """The distinct combinations of device, kernel and launch shape."""

    device_ids: Numbers
    blocks: Numbers
    """Blocks of the grid; 0: unknown. The same holds for ``threads``."""
    threads: Numbers
    registers: Numbers
    shared_bytes: Numbers


def _launched(recording: Recording, rows: Numbers) -> _Launched:
    """The devices and launch shapes of these kernels."""
    kernels = recording.kernels[rows]
    blocks, threads = map(_product, _sizes(kernels))
    return _Launched(
        kernels.device_id.astype(np.int64),
        blocks,
        threads,
        kernels.registers_per_thread.astype(np.int64),
        _shared_bytes(kernels),
    )


def _sizes(kernels: Table) -> list[list[npt.NDArray[Any]]]:
    """The columns of x, y and z of the grid, and those of the block."""
    return [[getattr(kernels, f"{what}_{axis}") for axis in "xyz"] for what in ("grid", "block")]


def _shared_bytes(kernels: Table) -> Numbers:
    """Shared memory of a block, static and dynamic, for each kernel."""
    num_bytes: Numbers = kernels.static_shared_bytes.astype(np.int64) + kernels.dynamic_shared_bytes
    return num_bytes


def _figures(recording: Recording, launched: _Launched) -> tuple[dict[str, Floats], dict[str, Texts]]:
    """For each launch shape its figures, and its texts: the limiting resource, the source of the device's limits."""
    count = len(launched.device_ids)
    figures = {name: np.full(count, np.nan) for name in _FIGURES}
    limiter, source = np.full(count, "", object), np.full(count, UNKNOWN_DEVICE, object)
    blocks, threads = launched.blocks, launched.threads
    for device, limits in device_limits(recording).items():
        is_own = launched.device_ids == device
        source[is_own] = UNKNOWN_SHAPE
        own = np.flatnonzero(is_own & (threads > 0) & (blocks > 0))
        fits = limits.blocks_at_once(threads[own], launched.registers[own], launched.shared_bytes[own])
        least = np.min(list(fits.values()), axis=0)
        source[own] = np.where(least > 0, limits.source, IMPOSSIBLE)
        is_first = np.argmin(list(fits.values()), axis=0)
        limiter[own] = np.where(least > 0, np.array(list(fits), object)[is_first], "")
        own, least = own[least > 0], least[least > 0]
        for name, values in kernel_occupancy(limits, threads[own], blocks[own], least).items():
            figures[name][own] = values
    return figures, {"limiter": limiter, "limits": source}


def kernel_occupancy(
    limits: DeviceLimits, threads: Numbers, blocks: Numbers, blocks_at_once: Numbers
) -> dict[str, Floats]:
    """The figures of launch shapes, by column.

    Args:
        limits: the limits of the device.
        threads: threads of a block.
        blocks: blocks of the grid.
        blocks_at_once: blocks that fit on a multiprocessor, more than 0.
    """
    warps = -(-threads // THREADS_PER_WARP)
    per_multiprocessor = _divided(blocks, limits.multiprocessors)
    waves = per_multiprocessor / blocks_at_once
    return {
        "blocks_at_once": blocks_at_once.astype(np.float64),
        "occupancy": blocks_at_once * warps / limits.warps,
        "grid_occupancy": np.minimum(blocks_at_once, per_multiprocessor) * threads / (limits.warps * THREADS_PER_WARP),
        "waves": waves,
        "tail": waves / np.ceil(waves),
    }


def _divided(values: Numbers, divisor: int) -> Floats:
    """The quotients; NaN where the divisor is unknown."""
    return values / divisor if divisor else np.full(len(values), np.nan)


def _product(axes: Sequence[npt.NDArray[Any]]) -> Numbers:
    """The number of blocks or threads; 0 if it is larger than any device supports."""
    sizes = np.array(axes, np.int64)
    return np.where(sizes.astype(np.float64).prod(axis=0) < _LARGEST, sizes.prod(axis=0), 0)
