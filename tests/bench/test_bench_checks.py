"""Checks that arms compute the same: types of results, and messages where results differ."""

from __future__ import annotations

import sys
from collections import OrderedDict, namedtuple
from types import ModuleType

import numpy as np
import pytest

from collector.bench.checks import allclose

Output = namedtuple("Output", ["logits", "loss"])
ONES = np.ones(3)


@pytest.mark.parametrize(
    ("reference", "result", "message"),
    [
        (ONES, [1.0, 1.0, 1.0], "3 results instead of 1"),
        (ONES, (ONES,), None),
        (2, 2.0, None),
        ({"loss": 1.0, "logits": ONES}, OrderedDict(logits=ONES, loss=np.float32(1)), None),
        ({"loss": 1.0}, {"logits": 1.0}, "results logits instead of loss"),
        ({"loss": 1.0}, {"loss": 1.0, "logits": ONES}, "results logits, loss instead of loss"),
        ({"loss": 1.0}, {"loss": 2.0}, "result loss: 1 of 1 values differ, the worst by 1"),
        ({"a": {"b": [ONES, ONES]}}, {"a": {"b": [ONES, ONES[:2]]}}, "result a.b.1: shape (2,) instead of (3,)"),
        (Output(ONES, 1.0), (ONES, 2.0), "result 1: 1 of 1 values differ, the worst by 1"),
        ([ONES, [ONES]], [ONES, [ONES, ONES]], "results 0, 1.0, 1.1 instead of 0, 1.0"),
        ({7: ONES}, {7: ONES * np.nan}, "3 of 3 values are NaN"),
        (ONES, ONES + 1j, "3 of 3 values differ, the worst by 1"),
    ],
)
def test_results_and_their_verdicts(reference, result, message):
    check = allclose()
    assert check(reference, result) == message
    assert check(check.kept(reference), result) == message  # the copy stands for the result


def test_what_is_kept_is_a_copy():
    check, result = allclose(), {"x": np.ones(2)}
    kept = check.kept(result)
    result["x"][:] = 5
    assert check(kept, result) == "result x: 2 of 2 values differ, the worst by 4"


@pytest.mark.parametrize("result", [None, {"a": None}, (1.0, None)])
def test_nothing_cannot_be_compared(result):
    with pytest.raises(TypeError, match="nothing to compare"):
        allclose()(result, result)


class Tensor:
    """A torch tensor, as strict as torch is about what can be handed to numpy."""

    layout = "strided"
    is_quantized = False

    def __init__(self, values, dtype="bfloat16", *, on_host=False, needs_gradient=True, is_lazy=True):
        self.values, self.dtype = np.asarray(values), dtype
        self.on_host, self.needs_gradient, self.is_lazy = on_host, needs_gradient, is_lazy

    def _changed(self, **changes):
        state = {key: getattr(self, key) for key in ("dtype", "on_host", "needs_gradient", "is_lazy")}
        return Tensor(self.values, **(state | changes))

    def detach(self):
        return self._changed(needs_gradient=False)

    def cpu(self):
        return self._changed(on_host=True)

    def to(self, dtype):
        return self._changed(dtype=dtype)

    def is_complex(self):
        return bool(np.iscomplexobj(self.values))

    def resolve_conj(self):
        return self

    def resolve_neg(self):
        return self._changed(is_lazy=False)

    def numpy(self):
        assert (self.on_host, self.needs_gradient, self.is_lazy) == (True, False, False)
        assert self.dtype == ("complex128" if self.is_complex() else "float64")
        return self.values


@pytest.mark.parametrize("values", [[1.0, 2.0], [1 + 2j]])
def test_tensors_are_brought_to_the_host_first(monkeypatch, values):
    """With a stand-in for torch; `test_bench_torch.py` does it with torch."""
    module = ModuleType("torch")
    vars(module).update(strided="strided", float64="float64", complex128="complex128")
    monkeypatch.setitem(sys.modules, "torch", module)
    check = allclose()
    assert check({"y": Tensor(values)}, {"y": np.asarray(values)}) is None
    message = check(np.zeros(len(values)), Tensor(values))
    assert message is not None
    assert message.startswith(f"{len(values)} of {len(values)} values differ")
