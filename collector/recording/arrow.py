"""Columns as tables of pyarrow and pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.recording.distinct import distinct_codes
from collector.runtime.optional_packages import optional_package

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt
    import pandas as pd
    import pyarrow as pa

    Columns = Iterable[tuple[str, "Texts | npt.NDArray[Any]"]]


class Texts(NamedTuple):
    """A column of texts: the distinct texts in order, and the index of each row's text among them."""

    distinct: list[str]
    codes: npt.NDArray[np.int32]

    @classmethod
    def of(cls, ids: npt.NDArray[Any], form: Callable[[int], str]) -> Texts:
        """The texts that ``form`` makes of each row's id; two ids may give the same text."""
        known, index = distinct_codes(ids)
        if not len(known):
            return cls([], np.zeros(0, np.int32))
        made = [form(each) for each in known.tolist()]
        distinct = sorted(set(made))  # not by numpy, whose texts end before a NUL
        places = {text: place for place, text in enumerate(distinct)}
        codes = np.array([places[text] for text in made], np.int32)
        return cls(distinct, codes[index])


def arrow_table(columns: Columns) -> pa.Table:
    """Columns by name as a pyarrow table: numbers without a copy, texts dictionary-encoded.

    Raises:
        collector.MissingDependencyError: pyarrow is not installed.
    """
    pa = optional_package("pyarrow")

    def array(values: Texts | npt.NDArray[Any]) -> Any:
        if isinstance(values, Texts):
            return pa.DictionaryArray.from_arrays(pa.array(values.codes), pa.array(values.distinct, pa.string()))
        return pa.array(values)

    return pa.table({name: array(values) for name, values in columns})


def pandas_table(columns: Columns) -> pd.DataFrame:
    """Columns by name as a pandas data frame, texts as categories.

    Raises:
        collector.MissingDependencyError: pandas is not installed.
    """
    pd = optional_package("pandas")

    def column(values: Texts | npt.NDArray[Any]) -> Any:
        return pd.Categorical.from_codes(values.codes, values.distinct) if isinstance(values, Texts) else values

    return pd.DataFrame({name: column(values) for name, values in columns})
