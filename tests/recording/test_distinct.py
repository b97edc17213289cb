"""The distinct values of a column, compared with numpy's."""

from __future__ import annotations

import numpy as np
import pytest

from collector.recording.distinct import distinct_values


@pytest.mark.parametrize("values", [[], [3], [3, 3], [5, 1, 5, 2, 1], [2**63 - 1, -(2**63), 0]])
def test_they_are_those_that_numpy_finds(values):
    column = np.array(values, np.int64)
    assert distinct_values(column).tolist() == np.unique(column).tolist()
    assert column.tolist() == values
