"""Write the texts of a dataset's views, and the columns of its facts.

The texts, collector/dataset/sql/<dialect>/<view>.sql, follow from their definitions in Ibis, and the columns,
collector/dataset/fact_tables.json, from the questions that they answer.

    make views

Needs ibis-framework[duckdb] in the version of pyproject.toml, so that the same definitions give the same bytes.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from collector.dataset.fact_tables import FILE
from collector.dataset.step_facts import columns_of_facts
from collector.dataset.view_definitions import compiled, view_names
from collector.dataset.view_files import DIALECTS, FOLDER


def generate(folder: Path) -> None:
    """Write every view in every dialect that is kept, and nothing else, into a folder."""
    for dialect in DIALECTS:
        shutil.rmtree(folder / dialect, ignore_errors=True)
        (folder / dialect).mkdir(parents=True)
        for view in view_names():
            (folder / dialect / f"{view}.sql").write_text(compiled(view, dialect), encoding="utf-8")


def fact_columns() -> str:
    """The text of the file with the columns of facts."""
    return f"{json.dumps(columns_of_facts(), indent=1)}\n"


if __name__ == "__main__":
    FILE.write_text(fact_columns(), encoding="utf-8")  # before the views, which read it
    generate(FOLDER)
