"""How far each kernel filled the device, by its launch shape: ``collector.analysis.occupancy(step)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question
from collector.analysis.device_limits import THREADS_PER_WARP, device_limits

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.analysis.device_limits import DeviceLimits
    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

UNKNOWN_DEVICE = "unknown: the device's attributes are not recorded"
UNKNOWN_SHAPE = "unknown: the launch shape is not recorded"
IMPOSSIBLE = "unknown: no block of this shape fits on the recorded device"
QUESTION = Question(
    "occupancy",
    "Warps that can be on a multiprocessor at once by the warps that it holds, from launch shapes and limits of the "
    "device; nothing here was measured. A grid that has too few blocks for all multiprocessors fills them less.",
    (
        Column("device_id", "number", "CUDA's number of the device."),
        Column("name", "text", "Short name of the kernel."),
        Column("grid", "text", "Blocks of the grid, x,y,z."),
        Column("block", "text", "Threads of a block, x,y,z."),
        Column("registers", "count", "Registers of a thread."),
        Column("shared_bytes", "bytes", "Shared memory of a block, static and dynamic."),
        Column("count", "count", "Kernels launched like this."),
        Column("total_ns", "ns", "Sum of their durations."),
        Column("blocks_at_once", "ratio", "Blocks that fit on a multiprocessor at once."),
        Column("limiter", "text", "What keeps more blocks from fitting: warps, registers, shared memory or blocks."),
        Column("occupancy", "share", "Warps of these blocks by the warps that a multiprocessor holds."),
        Column("grid_occupancy", "share", "The same, of no more blocks than the grid has for each multiprocessor."),
        Column("waves", "ratio", "Blocks of the grid by those that fit on the device at once."),
        Column("tail", "share", "Waves by waves rounded up: how full the device is over all waves."),
        Column("limits", "text", "Where the device's limits are from, or why there is no answer."),
    ),
    summed=("count", "total_ns"),
)
_FIGURES = ("blocks_at_once", "occupancy", "grid_occupancy", "waves", "tail")


def occupancy(steps: Asked) -> Answer:
    """Theoretical occupancy, waves and tail of kernels by launch shape, those that took longest first.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
    """
    return QUESTION.ask(steps, _part)


def _part(recording: Recording) -> Part:
    kernels = recording.kernels
    shape = np.stack(
        [
            kernels.device_id,
            *(getattr(kernels, f"{what}_{axis}") for what in ("grid", "block") for axis in "xyz"),
            kernels.registers_per_thread,
            kernels.static_shared_bytes.astype(np.int64) + kernels.dynamic_shared_bytes,
            kernels.name_id,
        ]
    ).astype(np.int64)
    order = np.lexsort(shape[::-1])
    is_new = np.ones(len(order), bool)
    is_new[1:] = (shape[:, order[1:]] != shape[:, order[:-1]]).any(axis=0)
    firsts = np.flatnonzero(is_new)
    bounds = np.append(firsts, len(order))
    launched = shape[:, order[firsts]]
    spent = np.concatenate([[0], np.cumsum(kernels.duration_ns[order])])
    figures, limiter, limits = _figures(recording, launched)
    names = kernels[order[firsts]].names()
    sizes = [[f"{x},{y},{z}" for x, y, z in launched[first : first + 3].T.tolist()] for first in (1, 4)]
    rows = list(
        zip(
            launched[0].tolist(),
            names,
            *sizes,
            *launched[7:9].tolist(),
            np.diff(bounds).tolist(),
            np.diff(spent[bounds]).tolist(),
            figures["blocks_at_once"].tolist(),
            limiter,
            *(figures[name].tolist() for name in _FIGURES[1:]),
            limits,
            strict=True,
        )
    )
    ranked = sorted(range(len(rows)), key=lambda place: (-rows[place][7], rows[place][:6], place))
    evidence = [{"kernels": np.sort(order[bounds[place] : bounds[place + 1]])} for place in ranked]
    return Part([rows[place] for place in ranked], (), evidence)


def _figures(recording: Recording, launched: Numbers) -> tuple[dict[str, Floats], list[str], list[str]]:
    """Of each launch shape the figures, what limits it, and where the limits are from."""
    count = launched.shape[1]
    figures = {name: np.full(count, np.nan) for name in _FIGURES}
    limiter, source = np.full(count, "", object), np.full(count, UNKNOWN_DEVICE, object)
    blocks = _product(launched[1:4])
    threads = _product(launched[4:7])
    for device, limits in device_limits(recording).items():
        is_own = launched[0] == device
        source[is_own] = UNKNOWN_SHAPE
        own = np.flatnonzero(is_own & (threads > 0) & (blocks > 0))
        fits = limits.blocks_at_once(threads[own], launched[7, own], launched[8, own])
        least = np.min(list(fits.values()), axis=0)
        source[own] = np.where(least > 0, limits.source, IMPOSSIBLE)
        is_first = np.argmin(list(fits.values()), axis=0)
        limiter[own] = np.where(least > 0, np.array(list(fits), object)[is_first], "")
        own, least = own[least > 0], least[least > 0]
        for name, values in kernel_occupancy(limits, threads[own], blocks[own], least).items():
            figures[name][own] = values
    return figures, limiter.tolist(), source.tolist()


def kernel_occupancy(
    limits: DeviceLimits, threads: Numbers, blocks: Numbers, blocks_at_once: Numbers
) -> dict[str, Floats]:
    """The figures of launch shapes, by column.

    Args:
        limits: of the device.
        threads: threads of a block.
        blocks: blocks of the grid.
        blocks_at_once: how many fit on a multiprocessor, more than 0.
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
    """NaN where the divisor is not known."""
    return values / divisor if divisor else np.full(len(values), np.nan)


def _product(sizes: Any) -> Numbers:
    """The number of blocks or threads; 0 for what no device can have."""
    whole = sizes.astype(np.float64).prod(axis=0)
    return np.where(whole < 2**62, sizes.prod(axis=0), 0)
