"""Tables of a recording as Arrow tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collector.errors import MissingDependencyError
from collector.recording.kernel_names import demangle, short_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    import pyarrow as pa


def pyarrow() -> Any:
    """The module pyarrow.

    Raises:
        collector.MissingDependencyError: it is not installed.
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingDependencyError(
            "to_arrow() needs pyarrow, which is not installed", "Run: pip install 'cupti-collector[arrow]'"
        ) from error
    return pa


def arrow_table(name: str, columns: Mapping[str, npt.NDArray[Any]], strings: Sequence[str]) -> pa.Table:
    """Return a table as a pyarrow Table: its columns without a copy, names as dictionary-encoded text.

    ``name_id`` becomes ``name`` (short for kernels) and, for kernels, also ``demangled_name``.

    Args:
        name: of the table, as in `collector.recording.schema.SCHEMA`.
        columns: the column's name -> its values.
        strings: what ``name_id`` indexes.

    Raises:
        collector.MissingDependencyError: pyarrow is not installed.
    """
    pa = pyarrow()
    arrays = {column: pa.array(values) for column, values in columns.items() if column != "name_id"}
    if "name_id" in columns:
        distinct, index = np.unique(columns["name_id"], return_inverse=True)
        recorded = [strings[name_id] for name_id in distinct.tolist()]
        is_kernels = name == "kernels"
        forms = {"name": short_name, "demangled_name": demangle} if is_kernels else {"name": str}
        for column, form in forms.items():
            texts, merged = np.unique([form(text) for text in recorded] or [""], return_inverse=True)
            codes = merged[index].astype(np.int32)
            dictionary = pa.array(texts.tolist() if recorded else [], pa.string())
            arrays[column] = pa.DictionaryArray.from_arrays(pa.array(codes), dictionary)
    return pa.table(arrays)
