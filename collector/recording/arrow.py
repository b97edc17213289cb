"""Tables of a recording as Arrow tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.errors import MissingDependencyError
from collector.recording.kernel_names import demangle, short_name

if TYPE_CHECKING:
    import pyarrow as pa

    from collector.recording.table import Table


def arrow_table(table: Table) -> pa.Table:
    """Return ``table`` as a pyarrow Table: its columns without a copy, names as dictionary-encoded text.

    ``name_id`` becomes ``name`` (short for kernels) and, for kernels, also ``demangled_name``.

    Raises:
        collector.MissingDependencyError: pyarrow is not installed.
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingDependencyError(
            "to_arrow() needs pyarrow, which is not installed", "Run: pip install 'cupti-collector[arrow]'"
        ) from error
    columns = table.columns
    arrays = {name: pa.array(values) for name, values in columns.items() if name != "name_id"}
    if "name_id" in columns:
        distinct, index = np.unique(columns["name_id"], return_inverse=True)
        recorded = [table.text(name_id) for name_id in distinct.tolist()]
        is_kernels = table.name == "kernels"
        forms = {"name": short_name, "demangled_name": demangle} if is_kernels else {"name": str}
        for column, form in forms.items():
            texts, merged = np.unique([form(text) for text in recorded] or [""], return_inverse=True)
            codes = merged[index].astype(np.int32)
            dictionary = pa.array(texts.tolist() if recorded else [], pa.string())
            arrays[column] = pa.DictionaryArray.from_arrays(pa.array(codes), dictionary)
    return pa.table(arrays)
