"""Functions of later rooms, which are looked up by name when they are called.

A room imports only from earlier rooms. This table is the only exception.
"""

from __future__ import annotations

import importlib
from typing import Any

_FUNCTIONS = {
    "benchmark_report_as_text": ("collector.bench.report_tables", "as_text"),
    "ask_dataset": ("collector.dataset.database", "ask_dataset"),
    "load_named_step": ("collector.dataset.steps_by_name", "load_named_step"),
    "load_recording": ("collector.recording.gpurec", "load_recording"),
    "overview_html": ("collector.analysis.notebook_overview", "overview_html"),
    "report_of_step": ("collector.web.report_file", "report_of_step"),
    "save_report": ("collector.web.report_file", "save_report"),
    "save_in_format": ("collector.formats.registry", "save_in_format"),
    "summarize": ("collector.analysis.summary", "summarize"),
    "summarize_sums": ("collector.analysis.summary", "summarize_sums"),
}
"""Name -> the module and the function in it."""


def later_function(name: str) -> Any:
    """Import the module that defines the function ``name``, and return the function."""
    module, function = _FUNCTIONS[name]
    return getattr(importlib.import_module(module), function)
