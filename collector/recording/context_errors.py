"""CUDA errors after which a context is unusable, and the calls of a recording that returned one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.recording.table import Table

STICKY_ERRORS = {
    214: "CUDA_ERROR_ECC_UNCORRECTABLE",
    220: "CUDA_ERROR_NVLINK_UNCORRECTABLE",
    700: "CUDA_ERROR_ILLEGAL_ADDRESS",
    702: "CUDA_ERROR_LAUNCH_TIMEOUT",
    709: "CUDA_ERROR_CONTEXT_IS_DESTROYED",
    710: "CUDA_ERROR_ASSERT",
    714: "CUDA_ERROR_HARDWARE_STACK_ERROR",
    715: "CUDA_ERROR_ILLEGAL_INSTRUCTION",
    716: "CUDA_ERROR_MISALIGNED_ADDRESS",
    717: "CUDA_ERROR_INVALID_ADDRESS_SPACE",
    718: "CUDA_ERROR_INVALID_PC",
    719: "CUDA_ERROR_LAUNCH_FAILED",
    721: "CUDA_ERROR_CONTAINED",
}
"""Results after which all calls in a process's context return the same result, by CUDA's documentation of CUresult.

The recorder looks for the same ones: `is_sticky` in native/capture/launch_watch.cpp."""


def failed_calls(api_calls: Table) -> npt.NDArray[np.intp]:
    """The rows of the calls that returned one of `STICKY_ERRORS`, in the order of their start."""
    return np.flatnonzero(np.isin(api_calls.return_value, list(STICKY_ERRORS)))
