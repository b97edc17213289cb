"""The columns of a recording that hold indices of texts in its ``strings``."""

from __future__ import annotations


def text_column(column: str) -> str:
    """The name of the column of texts that a column of indices stands for; empty for every other column.

    >>> [text_column(column) for column in ("name_id", "group_name_id", "payload_text_id", "graph_id")]
    ['name', 'group_name', 'payload', '']
    """
    if column.endswith("_text_id"):
        return column.removesuffix("_text_id")
    return column.removesuffix("_id") if column == "name_id" or column.endswith("_name_id") else ""
