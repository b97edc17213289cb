"""Profiles of messages, as readers get them."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

from collector.formats.xspace import write_xspace
from collector.protos.xplane_pb2 import XSpace

if TYPE_CHECKING:
    from collector.protos import RunMetadata


def xspace(run_metadata: RunMetadata) -> XSpace:
    """The step as a profile, through the bytes of its file."""
    file = BytesIO()
    write_xspace(run_metadata.SerializeToString(), file)
    return XSpace.FromString(file.getvalue())
