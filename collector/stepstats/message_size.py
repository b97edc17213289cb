"""The size limit of protobuf messages, which files of StepStats, RunMetadata and XSpace are."""

from __future__ import annotations

from collector.errors import OutputError
from collector.text.quantities import size_text

MAX_MESSAGE_BYTES = (2 << 30) - 1
"""The size limit of a protobuf message."""


def check_message_size(num_bytes: int, name: object) -> None:
    """Refuse a message that no protobuf library can read.

    Raises:
        collector.OutputError: it would take more than `MAX_MESSAGE_BYTES`.
    """
    if num_bytes > MAX_MESSAGE_BYTES:
        raise OutputError(
            f"{name} would take {size_text(num_bytes)}, more than the 2 GiB that a protobuf message can be",
            "Use another format, such as .gpurec for one step, or a part of the trace",
        )
