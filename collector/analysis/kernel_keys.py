"""Kernels counted under their short names, as several questions do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.analysis.duration_groups import Keys
from collector.analysis.shared_values import shared
from collector.recording.kernel_names import short_name

if TYPE_CHECKING:
    from collector.recording.recording import Recording


@shared
def kernel_names(recording: Recording) -> Keys:
    """The short name of each kernel."""
    table = recording.kernels
    return Keys.of(table.name_id, lambda name: short_name(table.text(name)))
