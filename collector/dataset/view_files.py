"""The views of a dataset as texts of SQL, one file for each view and dialect; `make views` writes them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).parent / "sql"
DIALECTS = ("duckdb", "datafusion", "spark", "bigquery")
"""The dialects whose texts are kept, each of which a test executes or analyses."""


@cache
def view_texts(dialect: str) -> Mapping[str, str]:
    """The name of each view -> its query in a dialect."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted((FOLDER / dialect).glob("*.sql"))}
