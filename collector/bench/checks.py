"""Whether two arms compute the same, asked before anything is timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Check = Callable[[Any, Any], str | None]
"""Takes the reference arm's result and another arm's; returns what differs, or None.

Where it has a method ``kept``, what that makes of the reference's result is handed to it, which should be a copy: arms
may write into the same memory."""


def allclose(rtol: float = 1e-5, atol: float = 1e-8, *, equal_nan: bool = False) -> Check:
    """Return a check that passes results close to the reference, elementwise: ``|a - b| <= atol + rtol * |b|``.

    NaN is an error unless ``equal_nan`` lets it equal itself. Results may be
    numpy, torch, CuPy or other arrays that give themselves to numpy, numbers, or sequences of these.
    """
    return _AllClose(rtol, atol, equal_nan)


@dataclass(frozen=True)
class _AllClose:
    rtol: float
    atol: float
    equal_nan: bool

    def kept(self, result: Any) -> list[Any]:
        """A copy on the host."""
        return as_arrays(result)

    def __call__(self, reference: Any, result: Any) -> str | None:
        expected, found = as_arrays(reference), as_arrays(result)
        if len(expected) != len(found):
            return f"{len(found)} results instead of {len(expected)}"
        for index, (wanted, got) in enumerate(zip(expected, found, strict=True)):
            which = f"result {index}: " if len(expected) > 1 else ""
            if wanted.shape != got.shape:
                return f"{which}shape {got.shape} instead of {wanted.shape}"
            if np.isnan(got).any() and not self.equal_nan:
                return f"{which}{int(np.isnan(got).sum())} of {got.size} values are NaN"
            close = np.isclose(got, wanted, rtol=self.rtol, atol=self.atol, equal_nan=self.equal_nan)
            if not close.all():
                worst = float(np.nanmax(np.abs(got - wanted)))
                return f"{which}{int((~close).sum())} of {got.size} values differ, the worst by {worst:.3g}"
        return None


def as_arrays(result: Any) -> list[Any]:
    """Return ``result`` as a list of float64 or complex numpy arrays on the host."""
    if result is None:
        raise TypeError("an arm returned None, and there is nothing to compare; let it return its result")
    if isinstance(result, (list, tuple)):
        return [array for item in result for array in as_arrays(item)]
    if hasattr(result, "detach"):  # torch
        result = result.detach().cpu()
        result = (result.to(dtype=_torch_double(result)) if result.dtype.is_floating_point else result).numpy()
    elif hasattr(result, "get") and hasattr(result, "__cuda_array_interface__"):  # CuPy
        result = result.get()
    array = np.asarray(result)
    return [array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)]


def _torch_double(tensor: Any) -> Any:
    import torch

    return torch.float64
