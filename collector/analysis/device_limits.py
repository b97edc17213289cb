"""Limits of a multiprocessor, from recorded attributes or the compute capability, and the blocks that fit at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]

THREADS_PER_WARP = 32
_KIB = 1024


class _Capability(NamedTuple):
    blocks: int
    warps: int
    shared_kib: int
    sub_partitions: int = 4


_CAPABILITIES = {
    (5, 0): _Capability(32, 64, 64),
    (5, 2): _Capability(32, 64, 96),
    (5, 3): _Capability(32, 64, 64),
    (6, 0): _Capability(32, 64, 64, sub_partitions=2),
    (6, 1): _Capability(32, 64, 96),
    (6, 2): _Capability(32, 64, 64),
    (7, 0): _Capability(32, 64, 96),
    (7, 2): _Capability(32, 64, 96),
    (7, 5): _Capability(16, 32, 64),
    (8, 0): _Capability(32, 64, 164),
    (8, 6): _Capability(16, 48, 100),
    (8, 7): _Capability(16, 48, 164),
    (8, 9): _Capability(24, 48, 100),
    (9, 0): _Capability(32, 64, 228),
    (10, 0): _Capability(32, 64, 228),
    (10, 3): _Capability(32, 64, 228),
    (12, 0): _Capability(24, 48, 100),
    (12, 1): _Capability(24, 48, 100),
}
"""Compute capability -> limits of a multiprocessor. Sources: CUDA C++ Programming Guide, "Technical Specifications per
Compute Capability"; NVIDIA's header ``cuda_occupancy.h`` of CUDA 13 for blocks and sub-partitions."""
_REGISTERS = 65536
_REGISTER_UNIT = 256
"""Registers are allocated to a warp in multiples of this."""
_ANY_NUMBER = np.iinfo(np.int64).max


class DeviceLimits(NamedTuple):
    """The resources of a multiprocessor of a device, and the units in which they are allocated."""

    source: str
    """``recorded`` for attributes of the device, or ``compute capability 8.0`` where they are not recorded."""
    multiprocessors: int
    """0: unknown."""
    blocks: int
    warps: int
    registers: int
    shared_bytes: int
    sub_partitions: int
    """Parts of a multiprocessor, each with its share of the registers."""
    shared_unit: int
    """Shared memory is allocated to a block in multiples of this."""
    reserved_shared_bytes: int
    """Shared memory that CUDA reserves in each block."""

    def blocks_at_once(self, threads: Numbers, registers: Numbers, shared_bytes: Numbers) -> dict[str, Numbers]:
        """Limit -> the number of blocks that it lets a multiprocessor hold at once.

        The formula is that of NVIDIA's ``cuda_occupancy.h``. A resource that a kernel does not use allows any number.

        Args:
            threads: threads of a block, more than 0.
            registers: registers of a thread.
            shared_bytes: shared memory of a block, static and dynamic.
        """
        warps = -(-threads // THREADS_PER_WARP)
        per_warp = _rounded_up(registers * THREADS_PER_WARP, _REGISTER_UNIT)
        warps_by_registers = self.registers // self.sub_partitions // np.maximum(per_warp, 1) * self.sub_partitions
        shared = _rounded_up(shared_bytes + self.reserved_shared_bytes, self.shared_unit)
        return {
            "warps": self.warps // warps,
            "registers": np.where(per_warp > 0, warps_by_registers // warps, _ANY_NUMBER),
            "shared memory": np.where(shared > 0, self.shared_bytes // np.maximum(shared, 1), _ANY_NUMBER),
            "blocks": np.full(len(threads), self.blocks, np.int64),
        }


def device_limits(recording: Recording) -> dict[int, DeviceLimits]:
    """CUDA device ordinal -> the limits of the device, for devices with known limits.

    Attributes that are not recorded are taken from the device's compute capability.
    """
    found = {}
    for device in recording.devices:
        if device.threads_per_warp not in (0, THREADS_PER_WARP):
            continue  # a device of another vendor, whose multiprocessors divide their resources differently
        capability = (int(device.compute_major), int(device.compute_minor))
        known = _CAPABILITIES.get(capability)
        recorded = (
            device.max_blocks_per_multiprocessor,
            device.max_warps_per_multiprocessor,
            device.max_registers_per_multiprocessor,
            device.max_shared_bytes_per_multiprocessor,
        )
        usual = (known.blocks, known.warps, _REGISTERS, known.shared_kib * _KIB) if known else (0, 0, 0, 0)
        blocks, warps, registers, shared_bytes = (int(own or other) for own, other in zip(recorded, usual, strict=True))
        if not (blocks and warps and registers and shared_bytes) or capability == (0, 0):
            continue
        found[int(device.device_id)] = DeviceLimits(
            "recorded" if all(recorded) else "compute capability {}.{}".format(*capability),
            int(device.num_multiprocessors),
            blocks,
            warps,
            registers,
            shared_bytes,
            known.sub_partitions if known else 4,
            128 if capability >= (8, 0) else 256,
            _KIB if capability >= (8, 0) else 0,
        )
    return found


def _rounded_up(values: Numbers, unit: int) -> Numbers:
    return -(-values // unit) * unit
