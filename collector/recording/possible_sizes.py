"""The largest possible size of a copy, a memset or an allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

LARGEST_BYTES = 1 << 46
"""64 TiB, more than any device has: a larger size is that of a damaged record."""


def possible_bytes(num_bytes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Recorded sizes in bytes, of which those of damaged records are 0, as CUPTI records unknown ones."""
    return np.where(num_bytes <= LARGEST_BYTES, num_bytes, 0).astype(np.int64)
