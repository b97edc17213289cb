"""Write the texts of a dataset's views, collector/dataset/sql/<dialect>/<view>.sql, from their definitions in Ibis.

    python scripts/generate_views.py [FOLDER]

Needs ibis-framework[duckdb] in the version of pyproject.toml, so that the same definitions give the same bytes.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from collector.dataset.view_definitions import compiled, view_names
from collector.dataset.view_files import DIALECTS, FOLDER


def generate(folder: Path) -> None:
    """Write every view in every dialect that is kept, and nothing else, into a folder."""
    for dialect in DIALECTS:
        shutil.rmtree(folder / dialect, ignore_errors=True)
        (folder / dialect).mkdir(parents=True)
        for view in view_names():
            (folder / dialect / f"{view}.sql").write_text(compiled(view, dialect), encoding="utf-8")


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
