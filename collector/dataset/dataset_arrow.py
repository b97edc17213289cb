"""The columns of a dataset's tables in Arrow: their types, and tables made of values."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from collector.recording.arrow import Texts
from collector.runtime.optional_packages import optional_package

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from collector.dataset.dataset_tables import DatasetColumn, DatasetTable

Values: TypeAlias = "Texts | npt.NDArray[Any]"


def arrow_type(column: DatasetColumn) -> pa.DataType:
    """The type of a column in Arrow; texts are dictionary-encoded in files only."""
    pa = optional_package("pyarrow")
    types = {"int64": pa.int64, "int32": pa.int32, "string": pa.string, "bool": pa.bool_, "double": pa.float64}
    return types[column.type]()


@cache  # it took a tenth of the time to read a small step
def arrow_schema(table: DatasetTable) -> pa.Schema:
    """The columns of a table as a schema of Arrow, with their units."""
    pa = optional_package("pyarrow")
    return pa.schema(
        [
            pa.field(column.name, arrow_type(column), metadata={"unit": column.unit} if column.unit else None)
            for column in table.columns
        ]
    )


def table_of(table: DatasetTable, columns: Mapping[str, Values | pa.Array | Sequence[Any]]) -> pa.Table:
    """An Arrow table of a dataset's table, from columns by name; numbers that do not fit a signed type wrap around."""
    pa = optional_package("pyarrow")
    schema = arrow_schema(table)
    arrays = []
    for field in schema:
        values = columns[field.name]
        if isinstance(values, Texts):
            values = pa.DictionaryArray.from_arrays(pa.array(values.codes), pa.array(values.distinct, pa.string()))
        elif isinstance(values, np.ndarray) and values.dtype.kind in "iu":
            values = pa.array(values.astype("i4" if field.type == pa.int32() else "i8", copy=False))
        elif not isinstance(values, (pa.Array, pa.ChunkedArray)):
            values = pa.array(values, field.type)
        arrays.append(values)
    return pa.table(
        dict(zip(schema.names, arrays, strict=True)),
        schema=pa.schema(
            [field.with_type(array.type) for field, array in zip(schema, arrays, strict=True)], metadata=schema.metadata
        ),
    )
