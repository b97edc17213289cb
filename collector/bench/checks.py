"""Checks that two arms compute the same, made before any timing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from collector.text.wording import counted

Check = Callable[[Any, Any], str | None]
"""Takes the reference arm's result and another arm's; returns the difference, or None.

If it has a method ``kept``, it is passed that method's result for the reference's result, which should be a copy,
because arms may write into the same memory.
"""


def allclose(rtol: float = 1e-5, atol: float = 1e-8, *, equal_nan: bool = False) -> Check:
    """Return a check that passes results close to the reference, elementwise: ``|a - b| <= atol + rtol * |b|``.

    NaN is an error unless ``equal_nan`` makes it equal to itself. Results may be numpy, torch, CuPy or other arrays
    that convert to numpy, numbers, or sequences and mappings of these; mappings are compared by their keys.
    """
    return _AllClose(rtol, atol, equal_nan)


@dataclass(frozen=True)
class _AllClose:
    rtol: float
    atol: float
    equal_nan: bool

    def kept(self, result: Any) -> dict[str, Any]:
        """A copy on the host."""
        return as_arrays(result)

    def __call__(self, reference: Any, result: Any) -> str | None:
        expected, found = as_arrays(reference), as_arrays(result)
        if expected.keys() != found.keys():
            if not _named(expected) and not _named(found):
                return f"{counted('{} result[|s]', len(found))} instead of {len(expected)}"
            return f"results {', '.join(sorted(found))} instead of {', '.join(sorted(expected))}"
        for name, wanted in expected.items():
            got = found[name]
            which = f"result {name}: " if len(expected) > 1 or _named(expected) else ""
            if wanted.shape != got.shape:
                return f"{which}shape {got.shape} instead of {wanted.shape}"
            if np.isnan(got).any() and not self.equal_nan:
                return f"{which}{int(np.isnan(got).sum())} of {got.size} values are NaN"
            close = np.isclose(got, wanted, rtol=self.rtol, atol=self.atol, equal_nan=self.equal_nan)
            if not close.all():
                worst = float(np.nanmax(np.abs(got - wanted)))
                return f"{which}{int((~close).sum())} of {got.size} values differ, the worst by {worst:.3g}"
        return None


def _named(arrays: Mapping[str, Any]) -> bool:
    return not all(name.isdecimal() for name in arrays)


def as_arrays(result: Any, name: str = "") -> dict[str, Any]:
    """Return ``result`` as float64 or complex numpy arrays on the host, by their keys and places in it.

    Raises:
        TypeError: it contains nothing to compare.
    """
    if result is None:
        raise TypeError("an arm returned None, and there is nothing to compare; let it return its result")
    if isinstance(result, Mapping):
        return _arrays_of(((str(key), value) for key, value in result.items()), name)
    if isinstance(result, (list, tuple)):
        return _arrays_of(((str(place), value) for place, value in enumerate(result)), name)
    if hasattr(result, "detach"):
        result = _of_torch(result)
    elif hasattr(result, "get") and hasattr(result, "__cuda_array_interface__"):  # CuPy
        result = result.get()
    array = np.asarray(result)
    return {name or "0": array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)}


def _arrays_of(items: Iterable[tuple[str, Any]], name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in items:
        found.update(as_arrays(value, f"{name}.{key}" if name else key))
    return found


def _of_torch(tensor: Any) -> Any:
    """A tensor as a numpy array, including types and layouts that numpy lacks, such as bfloat16."""
    import torch

    tensor = tensor.detach().cpu()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64).resolve_conj().resolve_neg().numpy()
