"""Errors after which all calls in a CUDA context return the same error, until the process ends."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from collector.recording.context_errors import STICKY_ERRORS, failed_calls
from collector.testing.plugin.driver import DriverError, mapped_driver

if TYPE_CHECKING:
    from collector.recording.recording import Recording

_CUDA_TROUBLE = re.compile(
    r"CUDA_ERROR_\w+|cudaError\w+|CUDA error|an illegal memory access was encountered|unspecified launch failure"
)


def sticky_error() -> str | None:
    """The name of the error in which this process's CUDA contexts are stuck; None if they work."""
    driver = mapped_driver()
    if driver is None:
        return None
    try:
        return STICKY_ERRORS.get(driver.synchronize())
    except DriverError as error:  # a device whose context is lost may refuse even this query
        return next((name for name in STICKY_ERRORS.values() if name in str(error)), None)


def recorded_sticky_error(recordings: list[Recording]) -> str | None:
    """A sticky error that a recorded call returned, or None."""
    for recording in recordings:
        calls = recording.api_calls
        if len(failed := failed_calls(calls)):
            return STICKY_ERRORS[int(calls.return_value[failed[0]])]
    return None


def speaks_of_cuda(text: str) -> bool:
    """Whether a failure's text is about a CUDA error, so that a broken context explains it."""
    return _CUDA_TROUBLE.search(text) is not None
