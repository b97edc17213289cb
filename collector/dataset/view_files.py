"""The views of a dataset as texts of SQL, one file for each view and dialect; scripts/generate_views.py writes them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import CollectorError

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).parent / "sql"
DIALECTS = ("duckdb", "datafusion", "spark", "bigquery")
"""The dialects whose texts are kept, each of which a test executes or analyses."""


@cache
def view_texts(dialect: str) -> Mapping[str, str]:
    """The name of each view -> its query in a dialect."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted((FOLDER / dialect).glob("*.sql"))}


def view_text(view: str, dialect: str) -> str:
    """The query of one view.

    Raises:
        CollectorError: there is no such view or dialect.
    """
    if dialect not in DIALECTS:
        raise CollectorError(f"there are no views in the dialect {dialect!r}", f"Choose one of {', '.join(DIALECTS)}")
    texts = view_texts(dialect)
    if view not in texts:
        raise CollectorError(f"there is no view {view!r}", f"Choose one of {', '.join(texts)}")
    return texts[view]
