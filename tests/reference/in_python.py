"""Replaces the package's native code by plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.profiler import device_columns
from collector.stepstats import from_recording
from collector.timeline import drawing, tensorflow
from reference import plain_drawing, plain_node_fields, plain_step_stats

if TYPE_CHECKING:
    import pytest


def use_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the twins instead of native code: drawing, TensorFlow's timeline, encoding and reading nodes."""
    monkeypatch.setattr(drawing, "draw", plain_drawing.draw)
    monkeypatch.setattr(tensorflow._Step, "native_text", lambda self, options, *, pretty: None)
    monkeypatch.setattr(tensorflow._Step, "native_maximums", lambda self, options: None if options.show_memory else {})
    monkeypatch.setattr(from_recording, "_encoded", plain_step_stats.encoded)
    monkeypatch.setattr(device_columns, "read_fields", plain_node_fields.read_fields)
    monkeypatch.setattr(device_columns, "distinct_texts", plain_node_fields.distinct_texts)
