"""Google's analyzer of SQL accepts the text of every view for BigQuery. `make test-sql` runs it."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("zetasql", reason="BIGQUERY'S TEXTS WERE NOT ANALYZED: zetasql is not installed (make test-sql)")

from sql_engines import arrow_tables

from collector.dataset.view_files import view_texts

pytestmark = pytest.mark.slow


def test_the_analyzer_accepts_every_text_and_refuses_wrong_ones(example_dataset):
    from zetasql.api import Analyzer, CatalogBuilder, TableBuilder
    from zetasql.types import AnalyzerOptions, LanguageOptions, TypeKind, ZetaSQLBuiltinFunctionOptions

    kinds = {
        "int64": TypeKind.TYPE_INT64,
        "int32": TypeKind.TYPE_INT64,
        "string": TypeKind.TYPE_STRING,
        "bool": TypeKind.TYPE_BOOL,
        "double": TypeKind.TYPE_DOUBLE,
    }
    language = LanguageOptions.maximum_features()
    catalog = CatalogBuilder("datasets")
    for name, rows in arrow_tables(example_dataset).items():
        table = TableBuilder(name)
        for field in rows.schema:
            table = table.add_column(field.name, kinds[str(field.type)])
        catalog = catalog.add_table(table.build())
    catalog = catalog.with_builtin_functions(ZetaSQLBuiltinFunctionOptions(language_options=language)).build()
    analyzer = Analyzer(AnalyzerOptions(language_options=language), catalog)
    for view, text in view_texts("bigquery").items():
        assert analyzer.analyze_statement(text).output_column_list, view
    for wrong in ("SELECT nothing FROM kernels", "SELECT COUNT(*) FILTER (WHERE id > 1) FROM kernels"):
        with pytest.raises(Exception, match=r"nothing|FILTER|Syntax"):
            analyzer.analyze_statement(wrong)
