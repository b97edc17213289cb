"""NVIDIA's own reader of activity records, cupti-python, beside ours: its classes, its records, and the rows of both.

Imported only where cupti-python is installed.
"""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from cupti import cupti

from collector.recording.schema import SCHEMA

LOOKED_UP = {"captured_external_id", "graph_degree"}
"""Columns that no record has: the recording looks them up in the graphs of its session, for every source."""


def record_classes(stem: str) -> Iterator[tuple[type, np.dtype[Any]]]:
    """Every class that the installed package has for a record, with its layout."""
    for name in dir(cupti):
        if re.fullmatch(rf"Activity{stem}\d*", name):
            snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
            dtype = getattr(cupti, f"{snake}_dtype", None)
            if dtype is not None:
                yield getattr(cupti, name), dtype


def record_at(record_class: Any, address: int) -> Any:
    """The record at an address.

    It is never freed: cupti-python 13.0 then counts down the uses of a buffer of its own, which there is not.
    """
    record = record_class.from_ptr(address, True)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(record))
    return record


def assert_read_alike(
    table: str, ours: Sequence[tuple[Mapping[str, Any], Sequence[str]]], theirs: tuple[Mapping[str, Any], Sequence[str]]
) -> int:
    """Compare a table's rows, in any order, with every column and with names for name ids.

    Args:
        table: the table.
        ours: the columns of each decoded buffer, with their strings.
        theirs: the columns of all of NVIDIA's records, with their strings.

    Returns:
        the number of rows.
    """
    columns, strings = theirs
    assert set(columns) == set(SCHEMA[table]), table
    looked_up = LOOKED_UP & set(columns)
    assert not any(columns[name].any() for name in looked_up), table
    expected = Counter(_rows({name: column for name, column in columns.items() if name not in looked_up}, strings))
    found: Counter[tuple[Any, ...]] = Counter()
    for part, texts in ours:
        assert set(part) == set(columns) - looked_up, table
        found.update(_rows(part, texts))
    assert found == expected, f"{table}: ours alone {_some(found - expected)}, theirs alone {_some(expected - found)}"
    return found.total()


def _some(rows: Counter[tuple[Any, ...]]) -> str:
    return f"{rows.total()}, such as {sorted(rows)[:3]}"


def _rows(columns: Mapping[str, Any], strings: Sequence[str]) -> list[tuple[Any, ...]]:
    values = {name: column.tolist() for name, column in columns.items()}
    ids = values.pop("name_id", None)
    if ids is not None and "callback_id" not in values:  # the names of API calls are not in their records
        values["name"] = [strings[name_id] for name_id in ids]
    return list(zip(*(values[name] for name in sorted(values)), strict=True))
